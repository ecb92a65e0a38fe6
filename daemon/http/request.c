/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "http/request.h"
#include "api/grow.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_WAIT 300 /* seconds */
#define MAX_KEY 255

/* --- header and query fields ---------------------------------------------- */

const char *
request_header(const struct request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

const char *
request_query(const struct request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND,
                                       name);
}

struct list {
    const char *name;
    char *text;
    size_t len;
    bool full; /* out of memory */
};

static enum MHD_Result
join_header(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct list *list = arg;
    (void)kind;
    if (strcasecmp(name, list->name) != 0)
        return MHD_YES;
    list->full = (list->len && !api_append(&list->text, &list->len, ",", 1)) ||
                 !api_append(&list->text, &list->len, value, strlen(value));
    return list->full ? MHD_NO : MHD_YES;
}

bool
request_list(const struct request *request, const char *name, char **ret,
             struct api_problem *p)
{
    struct list list = {.name = name};
    MHD_get_connection_values(request->connection, MHD_HEADER_KIND, join_header, &list);
    if (list.full) {
        free(list.text);
        return api_problem_no_memory(p);
    }
    *ret = list.text;
    return true;
}

/* --- values of fields ----------------------------------------------------- */

bool
request_parse_number(const char *text, size_t len, int64_t *ret)
{
    bool ok = len > 0 && len <= 18 && strspn(text, "0123456789") >= len;
    if (ok)
        *ret = strtoll(text, NULL, 10);
    return ok;
}

bool
request_number(const struct request *request, const char *name, int64_t min,
               int64_t max, int64_t absent, int64_t *ret, struct api_problem *p)
{
    int64_t n = absent;
    const char *text = request_query(request, name);
    if (text && (!request_parse_number(text, strlen(text), &n) || n < min || n > max))
        return api_fail(p, API_BAD_REQUEST,
                        "the query's %s is not a whole number from %lld to %lld", name,
                        (long long)min, (long long)max);
    *ret = n;
    return true;
}

/* Finds wait=N in a Prefer header. A value that cannot be read is ignored (RFC
   7240). */
static bool
preferred_wait(const char *prefer, int64_t *ret)
{
    while (prefer && *prefer) {
        size_t len = strcspn(prefer, ",;");
        const char *word = prefer + strspn(prefer, " \t");
        if (!strncasecmp(word, "wait=", 5))
            return request_parse_number(word + 5, strspn(word + 5, "0123456789"), ret);
        prefer += len;
        prefer += *prefer != '\0';
    }
    return false;
}

bool
request_wait(const struct request *request, int absent, int *ret, struct api_problem *p)
{
    int64_t seconds = absent, preferred;
    if (!request_number(request, "wait", 0, MAX_WAIT, absent, &seconds, p))
        return false;
    if (!request_query(request, "wait") &&
        preferred_wait(request_header(request, "Prefer"), &preferred))
        seconds = preferred < MAX_WAIT ? preferred : MAX_WAIT;
    *ret = (int)seconds;
    return true;
}

bool
request_key(const struct request *request, const char **ret, struct api_problem *p)
{
    const char *key = request_header(request, "Idempotency-Key");
    size_t len = key ? strlen(key) : 0;
    *ret = key;
    if (key && (len == 0 || len > MAX_KEY))
        return api_fail(p, API_BAD_REQUEST, "an Idempotency-Key has 1 to %d characters",
                        MAX_KEY);
    for (size_t i = 0; i < len; i++)
        if (key[i] < ' ' || key[i] > '~')
            return api_fail(p, API_BAD_REQUEST,
                            "an Idempotency-Key is printable ASCII");
    return true;
}
