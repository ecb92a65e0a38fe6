/* SPDX-License-Identifier: Apache-2.0 */
/* A growing list of warnings, in an arena. */
#ifndef QDQI_GROUND_BASE_WARNINGS_H
#define QDQI_GROUND_BASE_WARNINGS_H

#include "ground/base/arena.h"
#include "qdq/plan.h"

struct qdqi_warnings {
    struct qdq_warning *rows;
    size_t n, cap;
};

/* The first names of a list for a message, long ones cut: "a", "a, b" or "a, b, c, ...". */
enum { QDQI_NAMES_SHOWN = 3, QDQI_NAME_SHOWN = 64 };

struct qdqi_names {
    size_t n; /* that were added */
    const char *first;
    char text[QDQI_NAMES_SHOWN * (QDQI_NAME_SHOWN + 8) + 8];
};

void qdqi_names_add(struct qdqi_names *to, const char *name);

/* Adds a warning. `code` is a literal. `node`, which may be NULL, and the formatted
   detail are copied. */
enum qdq_code qdqi_warn(struct qdqi_warnings *warnings, struct qdqi_arena *arena,
                        struct qdq_error *err, const char *code, const char *node,
                        const char *fmt, ...) QDQ_PRINTF(6, 7) QDQ_MUST_CHECK;

/* Does the same with a detail of any length, which becomes one line. */
enum qdq_code qdqi_warn_text(struct qdqi_warnings *warnings, struct qdqi_arena *arena,
                             struct qdq_error *err, const char *code, const char *node,
                             const char *text) QDQ_MUST_CHECK;

#endif
