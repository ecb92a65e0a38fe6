/* SPDX-License-Identifier: Apache-2.0 */
/* Problems as documents: application/problem+json, and the list of all codes. */
#include "config.h"
#include "api/problem.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"

/* Encodes the place. Samples and byte offsets are numbers, all other places are
   names. */
static json_t *
encode_where(enum qdq_where kind, const char *where)
{
    if (kind == QDQ_AT_SAMPLE || kind == QDQ_AT_OFFSET) {
        char *end;
        errno = 0;
        long long number = strtoll(where, &end, 10);
        if (end != where && !*end && errno == 0)
            return json_integer(number);
    }
    return api_json_text(where);
}

static json_t *
encode_errors(const struct api_problem *p)
{
    return json_pack("[{s:o, s:o}]", qdq_where_name(p->kind),
                     encode_where(p->kind, p->where), "detail",
                     api_json_text(p->detail));
}

json_t *
api_problem_json(const struct api_problem *p)
{
    enum api_code code = p->set ? p->code : API_INTERNAL;
    const char *slug = api_problem_slug(code);
    char type[96];
    snprintf(type, sizeof type, "/v1/errors#%s", slug);
    json_t *json = api_pack("type:t title:t status:d detail:t code:t retryable:b", type,
                            api_problem_meaning(code), api_problem_status(code),
                            p->detail, slug, api_problem_retryable(code));
    bool ok = !qdq_where_name(p->kind)[0] ||
              json_object_set_new(json, "errors", encode_errors(p)) == 0;
    ok = ok && (!*p->model ||
                json_object_set_new(json, "model", api_json_text(p->model)) == 0);
    return api_json_if(ok, json);
}

char *
api_problem_encode(const struct api_problem *p)
{
    return api_json_dump(api_problem_json(p), 0);
}

static json_t *
encode_row(const void *unused, size_t i)
{
    (void)unused;
    enum api_code code = (enum api_code)i;
    return api_pack("code:t status:d retryable:b meaning:t", api_problem_slug(code),
                    api_problem_status(code), api_problem_retryable(code),
                    api_problem_meaning(code));
}

char *
api_problems_encode(void)
{
    return api_dump_list("errors", NULL, API_N_CODES, encode_row);
}
