/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base of our custom operators of ONNX Runtime. This header is only for
 * engine/run/.
 *
 * A node has the attribute `slot`: the index of the object that the node works on, for
 * example an observer or a comparison.
 */
#ifndef QDQI_RUN_OPERATORS_OP_H
#define QDQI_RUN_OPERATORS_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <onnxruntime_c_api.h>

struct qdqi_kernel;

/* The memory of an output. */
enum qdqi_op_memory {
    QDQI_OP_OWN,     /* there are no outputs */
    QDQI_OP_INPLACE, /* the input's memory if no other node reads it, else its own */
    /* the input's memory, also if other nodes read it: the data are not changed */
    QDQI_OP_ALIAS,
};

/* An operator of one session. It must not move after its initialization. */
struct qdqi_op {
    /* must be first: the runtime passes a pointer to it to the callbacks */
    OrtCustomOp op;
    const OrtApi *api;
    const char *name;
    /* the execution provider that runs the nodes; NULL for the CPU's */
    const char *provider;
    /* element type of inputs and outputs; UNDEFINED for any */
    ONNXTensorElementDataType type;
    /* n_outputs is 0 or 1, and the output has the shape of input 0 */
    size_t n_inputs, n_outputs;
    enum qdqi_op_memory memory;
    void *state; /* the objects that slots are indices into; borrowed */
    size_t n_slots;
    OrtStatusPtr (*compute)(const struct qdqi_kernel *kernel,
                            OrtKernelContext *context);
};

/* The kernel of one node of the graph, which ONNX Runtime creates. */
struct qdqi_kernel {
    const struct qdqi_op *op;
    size_t slot;
};

/* Fills in op->op. The caller has set the other members. */
void qdqi_op_init(struct qdqi_op *op);

/* Returns the status of the runtime that says that there is no memory. */
OrtStatusPtr qdqi_op_no_memory(const OrtApi *api);

/* A tensor of a run. */
struct qdqi_op_tensor {
    ONNXTensorElementDataType type;
    size_t n;      /* elements */
    int64_t axis0; /* size of the first axis; 0 for a tensor without axes */
    void *data;
};

OrtStatusPtr qdqi_op_input(const struct qdqi_kernel *kernel, OrtKernelContext *context,
                           size_t i, struct qdqi_op_tensor *ret);
/* Writes the sizes of the axes of input i; more than `max` axes are an error. */
OrtStatusPtr qdqi_op_input_dims(const struct qdqi_kernel *kernel,
                                OrtKernelContext *context, size_t i, int64_t *dims,
                                size_t max, size_t *ret_rank);
/* Returns the memory of output i, which has the shape of input i. It can be the
   input's memory. */
OrtStatusPtr qdqi_op_output(const struct qdqi_kernel *kernel, OrtKernelContext *context,
                            size_t i, void **ret);

/* Calls do_part(arg, i) for each i < n on the runtime's threads, of which the
   calling thread is one. */
OrtStatusPtr qdqi_op_parallel_for(const struct qdqi_kernel *kernel,
                                  const OrtKernelContext *context,
                                  void (*do_part)(void *arg, size_t i), size_t n,
                                  void *arg);

#endif
