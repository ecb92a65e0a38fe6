/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of an output in float and quantized, for a drawing: a few that stand for all. */
#ifndef QDQI_STAGES_EVALUATE_SCATTER_H
#define QDQI_STAGES_EVALUATE_SCATTER_H

#include "ground/base/arena.h"
#include "qdq/report.h"

enum { QDQI_MOST_POINTS = 120 };

struct qdqi_scatter {
    struct qdq_point *points; /* room for QDQI_MOST_POINTS; NULL: none are kept */
    uint64_t *places;         /* of each: see scatter.c */
    size_t n;
    uint64_t seen;  /* elements */
    uint64_t bound; /* places below it are kept */
};

/* Makes room. NO_MEMORY. */
enum qdq_code qdqi_scatter_init(struct qdqi_scatter *scatter, struct qdqi_arena *arena,
                                struct qdq_error *err) QDQ_MUST_CHECK;
/* Adds n elements of both models; those that are not finite are left out. */
void qdqi_scatter_add(struct qdqi_scatter *scatter, const float *f, const float *q,
                      size_t n);

#endif
