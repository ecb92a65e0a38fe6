/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps that make a model fit for a plan. Each makes another model of the one
 * before it, or leaves it as it is.
 */
#ifndef QDQI_PREPARE_PREPARE_H
#define QDQI_PREPARE_PREPARE_H

#include "base/warnings.h"
#include "model/derive.h"
#include "qdq/prepare.h"

struct qdqi_preparing {
    const struct qdq_model *model; /* as the steps before left it */
    const struct qdq_spec *spec;
    struct qdqi_arena *arena; /* for warnings; dies with the preparation */
    struct qdqi_warnings warnings;
};

/*
 * A step: what it makes of p->model, by qdqi_model_derive(), goes to *ret, which stays
 * NULL where there is nothing to do. What the user should know goes to p->warnings.
 */
typedef enum qdq_code (*qdqi_step)(struct qdqi_preparing *p, struct qdq_model **ret,
                                   struct qdq_error *err);

/* inline.c: the nodes of local functions in the place of their calls. */
enum qdq_code qdqi_step_inline(struct qdqi_preparing *p, struct qdq_model **ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;

#endif
