/* SPDX-License-Identifier: Apache-2.0 */
/* The steps that prepare a model for a plan. Each step derives a model from the one
   before it, or leaves that unchanged. */
#ifndef QDQI_TRANSFORM_PREPARE_PREPARE_H
#define QDQI_TRANSFORM_PREPARE_PREPARE_H

#include "ground/base/warnings.h"
#include "files/model/derive.h"
#include "qdq/prepare.h"

struct qdqi_preparing {
    const struct qdq_model *model; /* the result of the steps so far */
    const struct qdq_spec *spec;
    struct qdqi_arena *arena; /* for warnings; freed after the preparation */
    struct qdqi_warnings warnings;
};

/* A step derives *ret from p->model with qdqi_model_derive(); *ret stays NULL where
   nothing has to change. Warnings for the user go to p->warnings. */
typedef enum qdq_code (*qdqi_step)(struct qdqi_preparing *p, struct qdq_model **ret,
                                   struct qdq_error *err);

/* inline.c: replaces the calls of local functions by their nodes. */
enum qdq_code qdqi_step_inline(struct qdqi_preparing *p, struct qdq_model **ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;

#endif
