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

/* Adds a warning. `code` is a literal. `node`, which may be NULL, and the formatted
   detail are copied. */
enum qdq_code qdqi_warn(struct qdqi_warnings *warnings, struct qdqi_arena *arena,
                        struct qdq_error *err, const char *code, const char *node,
                        const char *fmt, ...) QDQ_PRINTF(6, 7) QDQ_MUST_CHECK;

/* Does the same with a detail of any length. */
enum qdq_code qdqi_warn_text(struct qdqi_warnings *warnings, struct qdqi_arena *arena,
                             struct qdq_error *err, const char *code, const char *node,
                             const char *text) QDQ_MUST_CHECK;

#endif
