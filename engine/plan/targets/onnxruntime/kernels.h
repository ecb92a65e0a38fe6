/* SPDX-License-Identifier: Apache-2.0 */
/* The roles that operators have in ONNX Runtime's integer kernels; see
   the table in kernels.c. */
#ifndef QDQI_PLAN_TARGETS_ONNXRUNTIME_KERNELS_H
#define QDQI_PLAN_TARGETS_ONNXRUNTIME_KERNELS_H

#include "files/model/model.h"

enum qdqi_role {
    QDQI_NO_KERNEL,
    QDQI_COMPUTES,
    QDQI_UNIT,
    QDQI_CLIPS,
    QDQI_MOVES,
};

/* Returns the role of one of ONNX's own operators. */
enum qdqi_role qdqi_kernel_role(const char *op);

/* Returns whether there is an integer kernel for the operator: its role is COMPUTES or UNIT. */
bool qdqi_has_kernel(const char *op);

/* Returns why the integer kernel that ONNX Runtime would make of the node between
   pairs does not run, or NULL if it runs. */
const char *qdqi_kernel_hindrance(const struct qdqi_node *node);

#endif
