/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "api/problem.h"

#include <assert.h>
#include <string.h>

/* The engine's rows come first and in its order, so code n of the engine is code n -
   1 here. */
#define QDQ_CODE(name, slug, meaning)                     \
    static_assert((int)API_##name == (int)QDQ_##name - 1, \
                  "api/problems.h and qdq/codes.h differ at " slug);
#include "qdq/codes.h"
#undef QDQ_CODE

static const struct {
    const char *slug, *meaning; /* NULL: those of the engine */
    int status;
    bool retryable;
} problems[API_N_CODES] = {
#define PROBLEM_ENGINE(name, status, retryable) \
    [API_##name] = {NULL, NULL, status, retryable},
#define PROBLEM(name, slug, status, retryable, meaning) \
    [API_##name] = {slug, meaning, status, retryable},
#include "api/problems.h"
#undef PROBLEM_ENGINE
#undef PROBLEM
};

static enum qdq_code
engine_code(enum api_code code)
{
    return (enum qdq_code)(code + 1);
}

/* Returns the code, or that of an internal error when it is no row: it may come from
   a worker or from the store. */
static enum api_code
known_or_internal(enum api_code code)
{
    return (unsigned)code < API_N_CODES ? code : API_INTERNAL;
}

int
api_problem_status(enum api_code code)
{
    return problems[known_or_internal(code)].status;
}

const char *
api_problem_slug(enum api_code code)
{
    const char *slug = problems[known_or_internal(code)].slug;
    return slug ? slug : qdq_code_slug(engine_code(known_or_internal(code)));
}

const char *
api_problem_meaning(enum api_code code)
{
    const char *meaning = problems[known_or_internal(code)].meaning;
    return meaning ? meaning : qdq_code_meaning(engine_code(known_or_internal(code)));
}

bool
api_problem_retryable(enum api_code code)
{
    return problems[known_or_internal(code)].retryable;
}

enum api_code
api_problem_code(const char *slug)
{
    for (int i = 0; i < API_N_CODES; i++)
        if (strcmp(api_problem_slug((enum api_code)i), slug) == 0)
            return (enum api_code)i;
    return API_N_CODES;
}

bool
api_problem_vset(struct api_problem *p, enum api_code code, enum qdq_where kind,
                 const char *where, const char *fmt, va_list args)
{
    if (!p || p->set)
        return false;
    p->set = true;
    p->code = known_or_internal(code);
    p->kind = where ? kind : QDQ_AT_NOTHING;
    qdq_text_copy(p->where, sizeof p->where, where ? where : "");
    qdq_text_vprint(p->detail, sizeof p->detail, fmt, args);
    return false;
}

bool
api_problem_set(struct api_problem *p, enum api_code code, enum qdq_where kind,
                const char *where, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    api_problem_vset(p, code, kind, where, fmt, args);
    va_end(args);
    return false;
}

bool
api_problem_no_memory(struct api_problem *p)
{
    return api_fail(p, API_NO_MEMORY, "out of memory");
}

bool
api_problem_set_engine(struct api_problem *p, const struct qdq_error *err)
{
    enum api_code code = err->code == QDQ_OK
                             ? API_INTERNAL
                             : known_or_internal((enum api_code)(err->code - 1));
    return api_problem_set(p, code, err->kind,
                           err->kind == QDQ_AT_NOTHING ? NULL : err->where, "%s",
                           err->text);
}
