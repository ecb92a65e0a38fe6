/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Custom Q/DQ insertion cases: Lua scripts that look at the model and return entries of
 * a spec. docs/extend/adding-a-case.md says what a script sees.
 */
#ifndef QDQI_PLAN_CASES_CASE_H
#define QDQI_PLAN_CASES_CASE_H

#include "ground/base/arena.h"
#include "graph/layers/layers.h"
#include "qdq/catalog.h"

/* The state that the scripts of one sandbox share, which borrows all of it. It is passed to
   qdqi_sandbox_new() as its host. */
struct qdqi_script_host {
    /* catalog in which library() finds cases; NULL: only the built-in ones */
    const struct qdq_catalog *catalog;
    struct qdqi_layers *layers; /* NULL if there is no model */
    const struct qdq_spec *spec;
    struct qdqi_arena *arena; /* memory for results, which outlive the sandbox */
};

/* processor time of all cases of a plan together, in nanoseconds */
#define QDQI_TIME_OF_CASES (INT64_C(10) * 1000000000)

/*
 * Runs one case in a Lua state of its own, within limits (sandbox.h). The entries that it
 * returns are allocated in the host's arena. `pointer` is the place of the case in the spec
 * ("/cases/0"), for errors. *left is the processor time in nanoseconds that is left to all
 * cases together; NULL: there is no such bound. INVALID_SPEC when the catalog has no such
 * case, CASE_FAILED with script and line, NO_MEMORY.
 */
enum qdq_code qdqi_case_run(const struct qdqi_script_host *host,
                            const struct qdq_case_use *use, const char *pointer,
                            int64_t *left, struct qdq_layer_entry **ret, size_t *ret_n,
                            struct qdq_error *err) QDQ_MUST_CHECK;

#endif
