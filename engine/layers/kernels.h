/* SPDX-License-Identifier: Apache-2.0 */
/* What onnxruntime does with integers, by operator: tbl/kernels.h. */
#ifndef QDQI_LAYERS_KERNELS_H
#define QDQI_LAYERS_KERNELS_H

#include "model/model.h"

enum qdqi_role {
    QDQI_NO_KERNEL,
    QDQI_COMPUTES,
    QDQI_UNIT,
    QDQI_CLIPS,
    QDQI_MOVES,
};

/* By the row of tbl/kernels.h, of ONNX's own operator. */
enum qdqi_role qdqi_kernel_role(const char *op);

/* Why onnxruntime would make of the node, between pairs, an integer kernel that does not
   run; or NULL. */
const char *qdqi_kernel_hindrance(const struct qdqi_node *node);

#endif
