/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job for target openvino whose library is fake_openvino.c. Calibration needs ONNX Runtime;
 * without it a program says so and is skipped.
 */
#ifndef TESTS_UNIT_DEPLOY_FAKE_JOB_H
#define TESTS_UNIT_DEPLOY_FAKE_JOB_H

#include "builder.h"
#include "data_files.h"
#include "qdq/quantize.h"
#include "qdq/rules.h"
#include "qdq/targets.h"
#include "run/session/session.h"

#define FAKE "tests/unit/deploy/.libs/libfake_openvino.so"

enum { SAMPLES = 24, WIDTH = 8 };

/* A model of two products, whose output has the shape of its input. */
static inline int
two_products(void)
{
    struct builder b;
    builder_init(&b, 13);
    builder_input(&b, "x", QDQI_FLOAT32);
    builder_shape(&b, 2, (const int64_t[]){1, WIDTH});
    builder_output(&b, "y", QDQI_FLOAT32);
    builder_weight(&b, "w", 2, (const int64_t[]){WIDTH, WIDTH});
    builder_weight(&b, "v", 2, (const int64_t[]){WIDTH, WIDTH});
    builder_node(&b, "MatMul", "first", "x,w", "h");
    builder_node(&b, "MatMul", "second", "h,v", "y");
    int fd = builder_file(&b);
    builder_fini(&b);
    return fd;
}

static inline int
samples(void)
{
    float data[SAMPLES * WIDTH];
    for (int i = 0; i < SAMPLES * WIDTH; i++)
        data[i] = (float)(i % 11) / 5 - 1;
    struct bytes b = npy_c("<f4", "(24, 8)", data, sizeof data);
    return file_of(&b);
}

/* The rules of slow and wrong kernels are off, so that nothing is measured, and none leaves both products
   in float. */
static inline struct qdq_spec
openvino_spec(void)
{
    struct qdq_spec spec;
    qdq_spec_init(&spec);
    spec.target = qdq_target_find("openvino");
    static const char *const rules[] = {"V4", "V8", "V9", "V10", "V11", "V21"};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        qdq_spec_switch_rule(&spec, (size_t)qdq_target_find_rule(spec.target, rules[i]),
                             false);
    return spec;
}

static inline const struct qdq_warning *
find_warning(const struct qdq_report *report, const char *code)
{
    for (size_t i = 0; i < report->n_warnings; i++)
        if (strcmp(report->warnings[i].code, code) == 0)
            return &report->warnings[i];
    return NULL;
}

static inline int
run_with_onnx_runtime(const char *title)
{
    struct qdqi_runtime *runtime = NULL;
    struct qdq_error err = {0};
    if (qdqi_runtime_open(QDQ_ORT_LIBRARY, 1, &runtime, &err)) {
        printf("1..0 # SKIP %s\n", err.text);
        return 0;
    }
    qdqi_runtime_close(&runtime);
    return unit_main((struct unit_suite){.title = title, .fork = CK_NOFORK});
}

#endif
