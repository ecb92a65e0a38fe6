/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Problems: application/problem+json (RFC 9457). Every error that a client can see is a
 * row of api/problems.h. The engine's codes are rows there, too, with their HTTP
 * status.
 */
#ifndef API_PROBLEM_H
#define API_PROBLEM_H

#include "qdq/error.h"

enum api_code {
#define PROBLEM_ENGINE(name, status, retryable) API_##name,
#define PROBLEM(name, slug, status, retryable, meaning) API_##name,
#include "api/problems.h"
#undef PROBLEM_ENGINE
#undef PROBLEM
    API_N_CODES
};

struct api_problem {
    enum api_code code;
    bool set;
    /* the kind of place that `where` names, which becomes errors[0] of the document */
    enum qdq_where kind;
    char where[256];
    char detail[512];
    char model[72]; /* for ACCURACY: id of the model that was made and refused, or "" */
};

/* Sets *p unless it is set already, so the first error wins. Returns false, for
   `return`. */
bool api_problem_set(struct api_problem *p, enum api_code code, enum qdq_where kind,
                     const char *where, const char *fmt, ...) QDQ_PRINTF(5, 6);
/* Do the same for a problem without a place, and for one at a JSON pointer. */
#define api_fail(p, code, ...) \
    api_problem_set(p, code, QDQ_AT_NOTHING, NULL, __VA_ARGS__)
#define api_fail_at(p, code, pointer, ...) \
    api_problem_set(p, code, QDQ_AT_POINTER, pointer, __VA_ARGS__)
bool api_problem_vset(struct api_problem *p, enum api_code code, enum qdq_where kind,
                      const char *where, const char *fmt, va_list args)
    QDQ_PRINTF(5, 0);
bool api_problem_no_memory(struct api_problem *p);
bool api_problem_set_engine(struct api_problem *p, const struct qdq_error *err);

int api_problem_status(enum api_code code);
const char *api_problem_slug(enum api_code code);
const char *api_problem_meaning(enum api_code code);
bool api_problem_retryable(enum api_code code);
/* Returns the code of that slug, or API_N_CODES. */
enum api_code api_problem_code(const char *slug);

/* Encodes the JSON document, which the caller frees; NULL when out of memory. */
char *api_problem_encode(const struct api_problem *p);
/* Encodes the body of GET /v1/errors. */
char *api_problems_encode(void);

#endif
