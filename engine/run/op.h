/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What our custom operators of ONNX Runtime have in common. Only for engine/run/.
 *
 * A node has the attribute `slot`, which says whose it is of the things that its
 * operator works on (an observer, a switch …). The first inputs pass through to the
 * outputs, one to one, in the same shape.
 */
#ifndef QDQI_RUN_OP_H
#define QDQI_RUN_OP_H

#include <stdbool.h>
#include <stddef.h>

#include <onnxruntime_c_api.h>

struct qdqi_kernel;

/* Where an output may lie. */
enum qdqi_op_memory {
    QDQI_OP_OWN,     /* there are no outputs */
    QDQI_OP_INPLACE, /* where its input does, if nobody else reads that; else apart */
    QDQI_OP_ALIAS,   /* likewise, also if others read it: the data are not changed */
};

/* An operator, bound to one session; must live where it was initialized. */
struct qdqi_op {
    OrtCustomOp op; /* first: the runtime hands it back */
    const OrtApi *api;
    const char *name;
    const char *provider;           /* whose nodes these are; NULL: the CPU's */
    ONNXTensorElementDataType type; /* of inputs and outputs; UNDEFINED: any */
    size_t n_inputs, n_outputs; /* n_outputs <= n_inputs, at most 2; 0 for any type */
    enum qdqi_op_memory memory;
    void *state; /* what its slots are of; borrowed */
    size_t n_slots;
    OrtStatusPtr (*compute)(const struct qdqi_kernel *kernel,
                            OrtKernelContext *context);
};

/* One node. */
struct qdqi_kernel {
    const struct qdqi_op *op;
    size_t slot;
};

/* Fills op->op in; the other members are there. */
void qdqi_op_init(struct qdqi_op *op);

/* A tensor of a run. */
struct qdqi_op_tensor {
    ONNXTensorElementDataType type;
    size_t n;      /* elements */
    int64_t axis0; /* indices of the first axis; 0 for a tensor without axes */
    void *data;
};

OrtStatusPtr qdqi_op_input(const struct qdqi_kernel *kernel, OrtKernelContext *context,
                           size_t i, struct qdqi_op_tensor *ret);
/* Output i, of input i's shape; the data may lie where the input's do. */
OrtStatusPtr qdqi_op_output(const struct qdqi_kernel *kernel, OrtKernelContext *context,
                            size_t i, void **ret);

/* do_part(arg, i) for i < n, on the runtime's own threads, of which this is one. */
OrtStatusPtr qdqi_op_share(const struct qdqi_kernel *kernel,
                           const OrtKernelContext *context,
                           void (*do_part)(void *arg, size_t i), size_t n, void *arg);

#endif
