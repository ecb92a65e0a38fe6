/* SPDX-License-Identifier: Apache-2.0 */
/* The step that gives a bias of zeros to layers that have none, for bias correction. */
#ifndef QDQI_TRANSFORM_PREPARE_MAKE_BIASES_H
#define QDQI_TRANSFORM_PREPARE_MAKE_BIASES_H

#include "transform/prepare/prepare.h"

enum qdq_code qdqi_step_make_biases(struct qdqi_preparing *p, struct qdq_model **ret,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

#endif
