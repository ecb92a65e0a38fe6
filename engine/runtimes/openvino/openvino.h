/* SPDX-License-Identifier: Apache-2.0 */
/* OpenVINO by its C library, which is loaded with dlopen(). */
#ifndef QDQI_RUNTIMES_OPENVINO_OPENVINO_H
#define QDQI_RUNTIMES_OPENVINO_OPENVINO_H

#include "runtimes/common/deploy.h"

struct qdqi_openvino;

/*
 * Loads libopenvino_c.so.* and its plugin for processors, and reads one small model, so
 * that the library opens no further file. It starts no thread. RUNTIME_MISSING.
 */
enum qdq_code qdqi_openvino_open(const char *library, struct qdqi_openvino **ret,
                                 struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_openvino_close(struct qdqi_openvino **openvino);
const char *qdqi_openvino_version(const struct qdqi_openvino *openvino);

/* A model as OpenVINO gets it: one file, as bytes. */
struct qdqi_model_bytes {
    const void *data;
    size_t size;
};

/* The functions below are those of qdqi_deploy_openvino for a model as bytes, which are
   no longer needed when it is open. */
enum qdq_code qdqi_openvino_load(struct qdqi_openvino *openvino,
                                 const struct qdqi_model_bytes *bytes,
                                 const struct qdqi_deploy_options *options, void **ret,
                                 struct qdq_error *err) QDQ_MUST_CHECK;
enum qdq_code qdqi_openvino_trace(struct qdqi_openvino *openvino,
                                  const struct qdqi_model_bytes *bytes,
                                  const struct qdqi_deploy_options *options,
                                  const struct qdqi_input *inputs, size_t n_inputs,
                                  int runs, struct qdqi_arena *arena,
                                  struct qdqi_trace *ret,
                                  struct qdq_error *err) QDQ_MUST_CHECK;

/* Its place is a struct qdqi_openvino. */
extern const struct qdqi_deploy_ops qdqi_deploy_openvino;

#endif
