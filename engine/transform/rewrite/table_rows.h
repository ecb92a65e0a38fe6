/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a table that is stored as integers. */
#ifndef QDQI_TRANSFORM_REWRITE_TABLE_ROWS_H
#define QDQI_TRANSFORM_REWRITE_TABLE_ROWS_H

#include "transform/rewrite/pairs.h"

/* Makes what a Gather reads integers, and dequantizes what it makes, whose last axis is
   that of the scales. Where the plan says so, a Transpose of that moves the integers first.
   Returns false when out of memory. */
bool qdqi_dequantize_rows(struct qdqi_pairs *p, size_t gather,
                          const struct qdqi_quantized *q, const char *integers,
                          const struct qdqi_beside *beside);

#endif
