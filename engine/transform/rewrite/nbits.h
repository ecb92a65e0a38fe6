/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MatMulNBits of com.microsoft (ONNX Runtime 1.31): a MatMul whose weight [K, N] is stored by
 * output, in blocks along K: integers without a sign, [N, blocks, bytes of a block], scales
 * [N, blocks], and zero points [N, bytes of a row's].
 */
#ifndef QDQI_TRANSFORM_REWRITE_NBITS_H
#define QDQI_TRANSFORM_REWRITE_NBITS_H

#include "transform/rewrite/pairs.h"

/* The names of a weight in this form. */
struct qdqi_nbits {
    const char *integers, *scales, *zeros; /* zeros may be NULL: all are the middle */
    int64_t k, n, block, blocks;
    int bits;
};

/* Returns whether the weight of that row of the plan can have the form: its integers have 4 or 8
   bits and were rounded by moments, or to the nearest where rule C24 says so, its blocks are powers
   of two from 16 to 256, and MatMuls alone use it. */
bool qdqi_nbits_can(const struct qdqi_pairs *p, size_t row,
                    const struct qdqi_quantized *q);

/* Stores the weight. NO_MEMORY, and the errors of its elements. */
enum qdq_code qdqi_nbits_store(struct qdqi_pairs *p, const struct qdqi_quantized *q,
                               struct qdqi_nbits *ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/* Makes the MatMuls that use the weight such nodes. */
void qdqi_nbits_multiply(struct qdqi_pairs *p, size_t row, const struct qdqi_nbits *w);

#endif
