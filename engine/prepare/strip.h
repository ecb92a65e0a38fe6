/* SPDX-License-Identifier: Apache-2.0 */
/* The step that takes Q/DQ pairs out of a model. */
#ifndef QDQI_PREPARE_STRIP_H
#define QDQI_PREPARE_STRIP_H

#include "prepare/prepare.h"

/*
 * Whoever reads what a pair makes reads what went into it; integers behind a
 * DequantizeLinear alone become the floats that it makes of them. What is no such pair,
 * or cannot be read, stays.
 */
enum qdq_code qdqi_step_strip(struct qdqi_preparing *p, struct qdq_model **ret,
                              struct qdq_error *err) QDQ_MUST_CHECK;

#endif
