/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cross-layer equalization: a model that computes the same, bit for bit, with weights
 * that suffer less from being quantized. Names, shapes and the graph stay as they are,
 * so whatever is said about the source is true of the result.
 */
#ifndef QDQI_EQUALIZE_EQUALIZE_H
#define QDQI_EQUALIZE_EQUALIZE_H

#include "model/model.h"
#include "qdq/report.h"

/*
 * *ret: the equalized model, in memory of its own that goes with it (shared memory of
 * the size of the file, not the heap), or NULL when nothing was to be changed. Rows for
 * the report lie in `arena`, names borrowed from the source. INTERNAL, IO, NO_MEMORY.
 */
enum qdq_code qdqi_equalize(const struct qdq_model *source, struct qdqi_arena *arena,
                            const struct qdq_equalization **ret_rows,
                            size_t *ret_n_rows, struct qdq_model **ret,
                            struct qdq_error *err) QDQ_MUST_CHECK;

#endif
