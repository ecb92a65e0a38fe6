/* SPDX-License-Identifier: Apache-2.0 */
/* How many samples stand for a number of them, by the sizes of the model's outputs. */
#include "config.h"
#include "unit.h"

#include "stages/evaluate/sample_choice.h"
#include "files/model/model.h"
#include "qdq/targets.h"

enum { SAMPLES = 16, LARGE_OUTPUT_SAMPLES = 4 };

static const struct qdq_dim small[] = {{-1, "batch"}, {10, NULL}},
                            notes[] = {{-1, NULL}, {172, NULL}, {88, NULL}},
                            image[] = {{1, NULL}, {3, NULL}, {640, NULL}, {640, NULL}},
                            unknown[] = {{-1, NULL}, {640, NULL}, {-1, "width"}};

static const struct qdq_value labels = {"labels", "int64", true, 2, small},
                              classes = {"classes", "float32", true, 2, small},
                              played = {"played", "float32", true, 3, notes},
                              painted = {"painted", "float16", true, 4, image},
                              open = {"open", "float32", true, 3, unknown},
                              shapeless = {"shapeless", "float32", false, 0, NULL};

static const struct {
    const struct qdq_value *outputs[2];
    size_t n;
    const char *runtime;
    int64_t few, least, enough;
} rows[] = {
    {{&classes}, 1, "openvino", SAMPLES, LARGE_OUTPUT_SAMPLES, SAMPLES},
    {{&played}, 1, "openvino", SAMPLES, LARGE_OUTPUT_SAMPLES, LARGE_OUTPUT_SAMPLES},
    {{&played}, 1, "openvino", SAMPLES, 1, 2},
    {{&painted}, 1, "openvino", SAMPLES, 1, 1},
    {{&painted, &classes}, 2, "openvino", SAMPLES, LARGE_OUTPUT_SAMPLES, SAMPLES},
    {{&labels, &painted},
     2,
     "openvino",
     SAMPLES,
     LARGE_OUTPUT_SAMPLES,
     LARGE_OUTPUT_SAMPLES},
    {{&labels}, 1, "openvino", SAMPLES, LARGE_OUTPUT_SAMPLES, SAMPLES},
    {{&open}, 1, "openvino", SAMPLES, LARGE_OUTPUT_SAMPLES, SAMPLES},
    {{&shapeless}, 1, "openvino", SAMPLES, LARGE_OUTPUT_SAMPLES, SAMPLES},
    {{&painted}, 1, "openvino", 2, LARGE_OUTPUT_SAMPLES, 2},
    {{&painted}, 1, "onnxruntime", SAMPLES, LARGE_OUTPUT_SAMPLES, SAMPLES},
    {{&painted}, 1, NULL, SAMPLES, LARGE_OUTPUT_SAMPLES, SAMPLES},
};

UNIT_ROWS(large_outputs_need_fewer_samples, rows)
{
    struct qdq_value outputs[2];
    for (size_t i = 0; i < rows[_i].n; i++)
        outputs[i] = *rows[_i].outputs[i];
    const struct qdq_target target = {.runtime = rows[_i].runtime};
    const struct qdq_spec spec = {.target = &target};
    struct qdq_model model = {.info = {.n_outputs = rows[_i].n, .outputs = outputs}};
    const struct qdq_engine_options options = {.threads = 1};
    struct qdq_engine *engine = NULL;
    ck_assert_int_eq(qdq_engine_open(&options, &engine, NULL), QDQ_OK);
    const struct qdqi_context context = {.engine = engine, .asked = &spec};
    const struct qdqi_attempt attempt = {
        .context = &context, .spec = &spec, .model = &model};
    ck_assert_int_eq(qdqi_enough_samples(&attempt, rows[_i].few, rows[_i].least),
                     rows[_i].enough);
    qdq_engine_close(&engine);
}

UNIT_SUITE("sample_choice")
