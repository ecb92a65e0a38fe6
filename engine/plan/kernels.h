/* SPDX-License-Identifier: Apache-2.0 */
/* What onnxruntime does with integers, by operator: tbl/kernels.h. */
#ifndef QDQI_KERNELS_H
#define QDQI_KERNELS_H

enum qdqi_role {
    QDQI_NO_KERNEL,
    QDQI_COMPUTES,
    QDQI_UNIT,
    QDQI_CLIPS,
    QDQI_MOVES,
};

/* By the row of tbl/kernels.h, of ONNX's own operator. */
enum qdqi_role qdqi_kernel_role(const char *op);

#endif
