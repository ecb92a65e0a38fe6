/* SPDX-License-Identifier: Apache-2.0 */
/* OpenVINO by its C library: the types and functions that the files of this folder share. */
#ifndef QDQI_RUNTIMES_OPENVINO_LIBRARY_H
#define QDQI_RUNTIMES_OPENVINO_LIBRARY_H

#include "runtimes/common/deploy.h"

#include <stdint.h>

struct ov_version {
    const char *build, *description;
};

struct ov_shape {
    int64_t rank;
    int64_t *dims;
};

/* The time of a node in the last run. */
struct ov_profiled {
    int status; /* OV_EXECUTED: it ran */
    int64_t real_us, cpu_us;
    const char *name, *kernel, *type;
};

struct ov_profiling_list {
    struct ov_profiled *rows;
    size_t n;
};

enum { OV_EXECUTED = 2, OV_INVALID_C_PARAM = -14 };

/* ONNX's types of elements are numbered below this. */
enum { N_TYPES = 17 };

/* The functions of the library that are used: FUNCTION(return type, name, arguments). Objects are
   pointers to types that only the library knows. A function that returns an int returns 0, or a
   negative status. */
#define OPENVINO_FUNCTIONS                                                             \
    FUNCTION(int, ov_get_openvino_version, (struct ov_version *))                      \
    FUNCTION(void, ov_version_free, (struct ov_version *))                             \
    FUNCTION(const char *, ov_get_error_info, (int))                                   \
    FUNCTION(const char *, ov_get_last_err_msg, (void))                                \
    FUNCTION(void, ov_free, (const char *))                                            \
    FUNCTION(int, ov_core_create, (void **))                                           \
    FUNCTION(void, ov_core_free, (void *))                                             \
    FUNCTION(int, ov_core_get_property,                                                \
             (const void *, const char *, const char *, char **))                      \
    FUNCTION(int, ov_core_read_model_from_memory_buffer,                               \
             (const void *, const char *, size_t, const void *, void **))              \
    FUNCTION(int, ov_core_compile_model,                                               \
             (const void *, const void *, const char *, size_t, void **, ...))         \
    FUNCTION(void, ov_model_free, (void *))                                            \
    FUNCTION(int, ov_model_const_input_by_name, (const void *, const char *, void **)) \
    FUNCTION(int, ov_model_inputs_size, (const void *, size_t *))                      \
    FUNCTION(int, ov_model_outputs_size, (const void *, size_t *))                     \
    FUNCTION(int, ov_port_get_element_type, (const void *, int *))                     \
    FUNCTION(int, ov_port_get_any_name, (const void *, char **))                       \
    FUNCTION(void, ov_output_const_port_free, (void *))                                \
    FUNCTION(int, ov_compiled_model_create_infer_request, (const void *, void **))     \
    FUNCTION(int, ov_compiled_model_get_property,                                      \
             (const void *, const char *, char **))                                    \
    FUNCTION(int, ov_compiled_model_input_by_name,                                     \
             (const void *, const char *, void **))                                    \
    FUNCTION(int, ov_compiled_model_input_by_index, (const void *, size_t, void **))   \
    FUNCTION(void, ov_compiled_model_free, (void *))                                   \
    FUNCTION(int, ov_infer_request_set_tensor, (void *, const char *, const void *))   \
    FUNCTION(int, ov_infer_request_set_input_tensor_by_index,                          \
             (void *, size_t, const void *))                                           \
    FUNCTION(int, ov_infer_request_get_output_tensor_by_index,                         \
             (const void *, size_t, void **))                                          \
    FUNCTION(int, ov_infer_request_infer, (void *))                                    \
    FUNCTION(int, ov_infer_request_get_profiling_info,                                 \
             (const void *, struct ov_profiling_list *))                               \
    FUNCTION(void, ov_profiling_info_list_free, (struct ov_profiling_list *))          \
    FUNCTION(void, ov_infer_request_free, (void *))                                    \
    FUNCTION(int, ov_tensor_create_from_host_ptr,                                      \
             (int, struct ov_shape, void *, void **))                                  \
    FUNCTION(int, ov_tensor_get_element_type, (const void *, int *))                   \
    FUNCTION(int, ov_tensor_get_shape, (const void *, struct ov_shape *))              \
    FUNCTION(int, ov_tensor_get_size, (const void *, size_t *))                        \
    FUNCTION(int, ov_tensor_data, (const void *, void **))                             \
    FUNCTION(void, ov_tensor_free, (void *))                                           \
    FUNCTION(int, ov_shape_free, (struct ov_shape *))

struct qdqi_openvino {
    void *library, *core;
    char *version;
    int types[N_TYPES]; /* the library's number of an element type of ONNX; 0: none */
#define FUNCTION(type, name, arguments) type(*name) arguments;
    OPENVINO_FUNCTIONS
#undef FUNCTION
};

/* Converts a status to an error with the library's message in one line. */
enum qdq_code qdqi_openvino_check(const struct qdqi_openvino *o, int status,
                                  const char *what,
                                  struct qdq_error *err) QDQ_MUST_CHECK;

/* A request to run a model, which reads `n_inputs` inputs; borrowed. */
struct qdqi_openvino_request {
    void *compiled, *request;
    size_t n_inputs;
};

/* Hands over the inputs of the given model without a copy, and nothing for those that
   OpenVINO has left out because no node reads them. RUN_FAILED, NO_MEMORY. */
enum qdq_code qdqi_openvino_set_inputs(const struct qdqi_openvino *o,
                                       const struct qdqi_openvino_request *request,
                                       const struct qdqi_input *inputs, size_t n_inputs,
                                       struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * Loads libopenvino_c.so.* and its plugin for processors, and reads one small model, so that the
 * library opens no further file. It starts no thread. The place is a struct qdqi_openvino. See
 * struct qdqi_deploy_ops.
 */
enum qdq_code qdqi_openvino_start(const struct qdqi_deploy_ops *ops,
                                  const struct qdqi_deploy_start *from, void **ret,
                                  struct qdq_error *err);
void qdqi_openvino_end(void *place);
const char *qdqi_openvino_version(void *place);

#endif
