/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of layer support that the target onnxruntime tries before those of the library.
 * Its integer kernels also accept constants, if these have the format of the
 * activations; a table may be stored as integers; and the runtime may quantize what
 * recurrent layers read.
 */
#ifndef QDQI_PLAN_TARGETS_ONNXRUNTIME_LAYER_ROWS_H
#define QDQI_PLAN_TARGETS_ONNXRUNTIME_LAYER_ROWS_H

#include "graph/layers/classes.h"

enum { QDQI_N_ONNXRUNTIME_CLASSES = 6 };

extern const struct qdqi_class qdqi_onnxruntime_classes[QDQI_N_ONNXRUNTIME_CLASSES];

#endif
