/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cross-layer equalization: makes a model that computes the same bits with weights that
 * lose less when they are quantized. Names, shapes and the graph stay the same, so
 * every statement about the source holds for the result.
 */
#ifndef QDQI_TRANSFORM_EQUALIZE_EQUALIZE_H
#define QDQI_TRANSFORM_EQUALIZE_EQUALIZE_H

#include "files/model/model.h"
#include "qdq/report.h"

/*
 * Equalizes a model. *ret is the equalized model, whose bytes lie in shared memory of
 * the size of the file (not on the heap) and are freed with it; NULL when nothing
 * changed. The rows for the report lie in `arena`, with names borrowed from the source.
 * INTERNAL, IO, NO_MEMORY.
 */
enum qdq_code qdqi_equalize(const struct qdq_model *source, struct qdqi_arena *arena,
                            const struct qdq_equalization **ret_rows,
                            size_t *ret_n_rows, struct qdq_model **ret,
                            struct qdq_error *err) QDQ_MUST_CHECK;

#endif
