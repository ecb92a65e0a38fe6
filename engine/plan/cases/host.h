/* SPDX-License-Identifier: Apache-2.0 */
/* The state that the scripts of one sandbox share, which borrows all of it. It is passed to
   qdqi_sandbox_new() as its host. */
#ifndef QDQI_PLAN_CASES_HOST_H
#define QDQI_PLAN_CASES_HOST_H

#include "ground/base/arena.h"
#include "graph/layers/layers.h"
#include "qdq/catalog.h"

struct qdqi_script_host {
    /* catalog in which library() finds cases; NULL: only the built-in ones */
    const struct qdq_catalog *catalog;
    struct qdqi_layers *layers; /* NULL if there is no model */
    const struct qdq_spec *spec;
    struct qdqi_arena *arena; /* memory for results, which outlive the sandbox */
};

#endif
