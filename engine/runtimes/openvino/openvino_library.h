/* SPDX-License-Identifier: Apache-2.0 */
/* The types and functions that the files about OpenVINO's C library share. */
#ifndef QDQI_RUNTIMES_OPENVINO_OPENVINO_LIBRARY_H
#define QDQI_RUNTIMES_OPENVINO_OPENVINO_LIBRARY_H

#include "runtimes/openvino/openvino.h"

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

struct qdqi_openvino {
    void *library, *core;
    char *version;
    int types[N_TYPES]; /* the library's number of an element type of ONNX; 0: none */
#define FUNCTION(type, name, arguments) type(*name) arguments;
#include "runtimes/openvino/openvino_api.h"
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

#endif
