/* SPDX-License-Identifier: Apache-2.0 */
/* The step that folds a BatchNormalization, or the Add of a bias, into the layer with a
   weight in front of it. */
#ifndef QDQI_TRANSFORM_PREPARE_FOLD_H
#define QDQI_TRANSFORM_PREPARE_FOLD_H

#include "transform/prepare/prepare.h"

enum qdq_code qdqi_step_fold(struct qdqi_preparing *p, struct qdq_model **ret,
                             struct qdq_error *err) QDQ_MUST_CHECK;

#endif
