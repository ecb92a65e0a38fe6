/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The quantization spec as plain data. Its JSON form is read and written in api/.
 *
 * Zero is never a meaning of its own: qdq_spec_init() writes every default, so a spec
 * that came from it is complete ("effective") at any time. Strings and arrays are
 * borrowed from whoever filled the spec in.
 */
#ifndef QDQ_SPEC_H
#define QDQ_SPEC_H

#include "qdq/error.h"

enum qdq_mode { QDQ_MODE_FULL };
enum qdq_target { QDQ_TARGET_TENSORRT };
enum qdq_device { QDQ_DEVICE_AUTO, QDQ_DEVICE_CPU };
enum qdq_granularity { QDQ_PER_TENSOR, QDQ_PER_CHANNEL };
enum qdq_tristate { QDQ_DEFAULT = -1, QDQ_NO = 0, QDQ_YES = 1 };

/* A range given by hand for one activation tensor: min <= max, both finite. */
struct qdq_given_range {
    const char *tensor;
    double min, max;
};

struct qdq_calibration_spec {
    const char *method; /* a row of the range methods: "minmax" */
    const struct qdq_given_range *ranges;
    size_t n_ranges;
    int64_t max_samples; /* 0: all */
    int64_t batch;       /* samples a run, where the model's axis 0 is symbolic */
};

struct qdq_spec {
    enum qdq_mode mode;
    enum qdq_target target;
    enum qdq_device device;
    enum qdq_granularity weight_granularity;
    struct qdq_calibration_spec calibration;
    enum qdq_tristate evaluate; /* QDQ_DEFAULT: when there is data */
    int64_t evaluate_samples;   /* 0: all */
    bool unmatched_is_error;    /* on_unmatched: error */
};

QDQ_API void qdq_spec_init(struct qdq_spec *spec);

#endif
