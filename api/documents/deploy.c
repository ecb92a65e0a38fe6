/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "documents/deploy.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/report.h"
#include "base/json.h"
#include "base/markup.h"
#include "documents/client.h"

/* --- types and names ---------------------------------------------------------------- */

/* The names that the languages have for a type. */
struct type {
    const char *dtype, *numpy, *c, *ort, *triton;
};

static const struct type types[] = {
    {"float32", "np.float32", "float", "FLOAT", "FP32"},
    {"float64", "np.float64", "double", "DOUBLE", "FP64"},
    {"float16", "np.float16", "uint16_t", "FLOAT16", "FP16"},
    {"int64", "np.int64", "int64_t", "INT64", "INT64"},
    {"int32", "np.int32", "int32_t", "INT32", "INT32"},
    {"int16", "np.int16", "int16_t", "INT16", "INT16"},
    {"int8", "np.int8", "int8_t", "INT8", "INT8"},
    {"uint64", "np.uint64", "uint64_t", "UINT64", "UINT64"},
    {"uint32", "np.uint32", "uint32_t", "UINT32", "UINT32"},
    {"uint16", "np.uint16", "uint16_t", "UINT16", "UINT16"},
    {"uint8", "np.uint8", "uint8_t", "UINT8", "UINT8"},
    {"bool", "np.bool_", "bool", "BOOL", "BOOL"},
};

static const struct type *
type_of(const struct qdq_value *value)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].dtype, value->dtype) == 0)
            return &types[i];
    return NULL;
}

/* Returns whether a name can stand between quotes in all languages. */
static bool
is_plain(const char *name)
{
    for (; *name; name++)
        if ((unsigned char)*name <= ' ' || strchr("\"'\\\177", *name))
            return false;
    return true;
}

static bool
are_known(const struct qdq_value *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!type_of(&values[i]) || !values[i].has_shape || !is_plain(values[i].name))
            return false;
    return true;
}

/* Returns a size, where 1 stands for one that is not known. */
static int64_t
size_of(const struct qdq_dim *dim)
{
    return dim->value >= 0 ? dim->value : 1;
}

static bool
is_dynamic(const struct qdq_value *value)
{
    for (size_t i = 0; i < value->rank; i++)
        if (value->dims[i].value < 0)
            return true;
    return false;
}

static void
add_sizes(struct api_markup *text, const struct qdq_value *value, const char *between)
{
    for (size_t i = 0; i < value->rank; i++)
        api_markup_format(text, "%s%" PRId64, i ? between : "",
                          size_of(&value->dims[i]));
}

/* --- the programs ------------------------------------------------------------------- */

static void
add_numpy(struct api_markup *text, const struct qdq_model_info *model)
{
    api_markup_add(text, "inputs = {\n");
    for (size_t i = 0; i < model->n_inputs; i++) {
        const struct qdq_value *value = &model->inputs[i];
        api_markup_format(text, "    \"%s\": np.zeros((", value->name);
        add_sizes(text, value, ", ");
        api_markup_format(text, "%s), %s),\n", value->rank == 1 ? "," : "",
                          type_of(value)->numpy);
    }
    api_markup_add(text, "}\n");
}

static void
onnxruntime_python(struct api_markup *text, const struct qdq_report *report)
{
    api_markup_add(text, "import numpy as np\n"
                         "import onnxruntime\n\n"
                         "session = onnxruntime.InferenceSession(\"model.onnx\")\n");
    add_numpy(text, report->model);
    api_markup_add(text, "outputs = session.run(None, inputs)\n");
}

/* The target's module has its name. */
static void
compiled_python(struct api_markup *text, const struct qdq_report *report)
{
    const char *module = report->plan->target->name;
    api_markup_format(text,
                      "import numpy as np\n"
                      "import %s\n\n"
                      "model = %s.compile_model(\"model.onnx\", \"CPU\")\n",
                      module, module);
    add_numpy(text, report->model);
    api_markup_add(text, "outputs = model(inputs)\n");
}

static void
add_names(struct api_markup *text, const char *array, const struct qdq_value *values,
          size_t n)
{
    api_markup_format(text, "    const char *%s[] = {", array);
    for (size_t i = 0; i < n; i++)
        api_markup_format(text, "%s\"%s\"", i ? ", " : "", values[i].name);
    api_markup_add(text, "};\n");
}

/* Adds the tensor of an input with its own memory. */
static void
add_c_tensor(struct api_markup *text, const struct qdq_value *value, size_t i)
{
    const struct type *type = type_of(value);
    api_markup_format(text, "    static %s data%zu[", type->c, i);
    add_sizes(text, value, " * ");
    api_markup_format(text, "%s];\n    const int64_t shape%zu[] = {",
                      value->rank ? "" : "1", i);
    add_sizes(text, value, ", ");
    api_markup_format(
        text,
        "%s};\n    check(ort->CreateTensorWithDataAsOrtValue(memory, data%zu, "
        "sizeof data%zu,\n        shape%zu, %zu, "
        "ONNX_TENSOR_ELEMENT_DATA_TYPE_%s, &in[%zu]));\n",
        value->rank ? "" : "0", i, i, i, value->rank, type->ort, i);
}

#define C_API "onnxruntime_c_api.h"

static void
onnxruntime_c(struct api_markup *text, const struct qdq_report *report)
{
    const struct qdq_model_info *model = report->model;
    api_markup_add(
        text,
        "#include <" C_API ">\n"
        "#include <stdbool.h>\n#include <stdio.h>\n#include <stdlib.h>\n\n"
        "static const OrtApi *ort;\n\n"
        "static void check(OrtStatus *status)\n{\n"
        "    if (status) {\n"
        "        fprintf(stderr, \"%s\\n\", ort->GetErrorMessage(status));\n"
        "        exit(1);\n    }\n}\n\n"
        "int main(void)\n{\n"
        "    OrtEnv *env;\n    OrtSessionOptions *options;\n    OrtSession *session;\n"
        "    OrtMemoryInfo *memory;\n"
        "    ort = OrtGetApiBase()->GetApi(ORT_API_VERSION);\n"
        "    check(ort->CreateEnv(ORT_LOGGING_LEVEL_WARNING, \"run\", &env));\n"
        "    check(ort->CreateSessionOptions(&options));\n"
        "    check(ort->CreateSession(env, \"model.onnx\", options, &session));\n"
        "    check(ort->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, "
        "&memory));\n");
    add_names(text, "in_names", model->inputs, model->n_inputs);
    add_names(text, "out_names", model->outputs, model->n_outputs);
    api_markup_format(text, "    OrtValue *in[%zu], *out[%zu] = {NULL};\n",
                      model->n_inputs, model->n_outputs);
    for (size_t i = 0; i < model->n_inputs; i++)
        add_c_tensor(text, &model->inputs[i], i);
    api_markup_format(
        text,
        "    check(ort->Run(session, NULL, in_names, (const OrtValue *const "
        "*)in, %zu,\n        out_names, %zu, out));\n    return 0;\n}\n",
        model->n_inputs, model->n_outputs);
}

static void
tensorrt_shell(struct api_markup *text, const struct qdq_report *report)
{
    const struct qdq_model_info *model = report->model;
    const char *before = " '--shapes=";
    api_markup_add(text, "trtexec --onnx=model.onnx --stronglyTyped "
                         "--saveEngine=model.plan");
    for (size_t i = 0; i < model->n_inputs; i++) {
        const struct qdq_value *value = &model->inputs[i];
        if (!is_dynamic(value))
            continue;
        api_markup_format(text, "%s%s:", before, value->name);
        add_sizes(text, value, "x");
        before = ",";
    }
    api_markup_add(text, *before == ',' ? "'\n" : "\n");
}

static void
add_triton_values(struct api_markup *text, const char *kind,
                  const struct qdq_value *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        api_markup_format(text, "%s [ { name: \"%s\" data_type: TYPE_%s dims: [", kind,
                          values[i].name, type_of(&values[i])->triton);
        for (size_t k = 0; k < values[i].rank; k++)
            api_markup_format(text, "%s %" PRId64, k ? "," : "",
                              values[i].dims[k].value >= 0 ? values[i].dims[k].value
                                                           : -1);
        api_markup_add(text, " ] } ]\n");
    }
}

static void
add_triton(struct api_markup *text, const char *platform,
           const struct qdq_model_info *model)
{
    api_markup_format(text, "platform: \"%s\"\nmax_batch_size: 0\n", platform);
    add_triton_values(text, "input", model->inputs, model->n_inputs);
    add_triton_values(text, "output", model->outputs, model->n_outputs);
}

static void
onnxruntime_triton(struct api_markup *text, const struct qdq_report *report)
{
    add_triton(text, "onnxruntime_onnx", report->model);
}

static void
tensorrt_triton(struct api_markup *text, const struct qdq_report *report)
{
    add_triton(text, "tensorrt_plan", report->model);
}

/* --- rows ---------------------------------------------------------------------------- */

static const struct program {
    const char *loaded_by, *language; /* loaded_by: of the target (qdq/targets.h) */
    void (*add)(struct api_markup *text, const struct qdq_report *report);
} programs[] = {
    {"InferenceSession", "python", onnxruntime_python},
    {"InferenceSession", "c", onnxruntime_c},
    {"InferenceSession", "config.pbtxt", onnxruntime_triton},
    {"compile_model", "python", compiled_python},
    {"trtexec", "sh", tensorrt_shell},
    {"trtexec", "config.pbtxt", tensorrt_triton},
};

static json_t *
encode_program(const struct program *program, const struct qdq_report *report)
{
    struct api_markup text = {.len = 0};
    program->add(&text, report);
    json_t *row =
        text.failed ? NULL
                    : api_pack("target:t language:t text:t", report->plan->target->name,
                               program->language, text.data);
    free(text.data);
    return row;
}

enum { MOST_VALUES = 256 }; /* of a model with more, no program is made */

json_t *
api_deploy_rows(const struct qdq_report *report)
{
    const struct qdq_model_info *model = report->model;
    const char *loaded_by = report->plan->target->loaded_by;
    json_t *rows = json_array();
    bool ok = rows;
    if (model->n_inputs + model->n_outputs > MOST_VALUES ||
        !are_known(model->inputs, model->n_inputs) ||
        !are_known(model->outputs, model->n_outputs))
        return rows;
    for (size_t i = 0; ok && loaded_by && i < sizeof programs / sizeof *programs; i++)
        if (strcmp(programs[i].loaded_by, loaded_by) == 0)
            ok = json_array_append_new(rows, encode_program(&programs[i], report)) == 0;
    return api_json_if(ok, rows);
}

/* Returns the first program with the path in the place of the model's name, and whom it is for. Takes
   `rows`. */
static char *
first_program(json_t *rows, const char *path, char target[API_TARGET_SIZE])
{
    static const char name[] = "model.onnx";
    const json_t *row = json_array_get(rows, 0);
    const char *text = api_text_at(row, "text"), *at = strstr(text, name);
    struct api_markup ret = {.len = 0};
    *target = '\0';
    api_text_add(target, API_TARGET_SIZE, api_text_at(row, "target"));
    if (at && is_plain(path)) {
        api_markup_format(&ret, "%.*s%s", (int)(at - text), text, path);
        api_markup_add(&ret, at + strlen(name));
    }
    json_decref(rows);
    if (!ret.failed)
        return ret.data;
    free(ret.data);
    return NULL;
}

char *
api_deploy_text(const struct qdq_report *report, const char *path,
                char target[API_TARGET_SIZE])
{
    return first_program(api_deploy_rows(report), path, target);
}

char *
api_document_deploy(const struct api_document *report, const char *path,
                    char target[API_TARGET_SIZE])
{
    json_t *rows = json_object_get(report->json, "deploy");
    return first_program(json_incref(rows), path, target);
}
