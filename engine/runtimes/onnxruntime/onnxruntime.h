/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ONNX Runtime as the runtime that judges. Each of its execution providers can be a runtime of its
 * own: a row with QDQI_PROVIDER_FUNCTIONS, its names and its `provider`.
 */
#ifndef QDQI_RUNTIMES_ONNXRUNTIME_ONNXRUNTIME_H
#define QDQI_RUNTIMES_ONNXRUNTIME_ONNXRUNTIME_H

#include "runtimes/common/deploy.h"

/* The functions of a row whose `provider` runs the models. */
#define QDQI_PROVIDER_FUNCTIONS                                           \
    .start = qdqi_onnxruntime_start, .end = qdqi_onnxruntime_end,         \
    .version = qdqi_onnxruntime_version, .open = qdqi_onnxruntime_open,   \
    .run = qdqi_onnxruntime_run, .precision = qdqi_onnxruntime_precision, \
    .close = qdqi_onnxruntime_close, .trace = qdqi_onnxruntime_trace

/* See struct qdqi_deploy_ops. */
enum qdq_code qdqi_onnxruntime_start(const struct qdqi_deploy_ops *ops,
                                     const struct qdqi_deploy_start *from, void **ret,
                                     struct qdq_error *err);
void qdqi_onnxruntime_end(void *place);
const char *qdqi_onnxruntime_version(void *place);
enum qdq_code qdqi_onnxruntime_open(void *place, const struct qdq_model *model,
                                    const struct qdqi_deploy_options *options,
                                    void **ret, struct qdq_error *err);
enum qdq_code qdqi_onnxruntime_run(void *model, const struct qdqi_input *inputs,
                                   size_t n_inputs, const struct qdqi_output **ret,
                                   size_t *ret_n, double *ret_ms,
                                   struct qdq_error *err);
const char *qdqi_onnxruntime_precision(void *model);
void qdqi_onnxruntime_close(void *model);
enum qdq_code qdqi_onnxruntime_trace(void *place, const struct qdq_model *model,
                                     const struct qdqi_deploy_options *options,
                                     const struct qdqi_input *inputs, size_t n_inputs,
                                     int runs, struct qdqi_arena *arena, void **stays,
                                     struct qdqi_trace *ret, struct qdq_error *err);

/* Returns the library that a place of these functions runs models with. */
struct qdqi_runtime *qdqi_onnxruntime_library(const void *place);

extern const struct qdqi_kernel_names qdqi_onnxruntime_kernels;

#endif
