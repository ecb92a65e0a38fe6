/* SPDX-License-Identifier: Apache-2.0 */
/* The description of a model keeps everything of its source but ids and the file's name. */
#include "config.h"
#include "mlflow/mlmodel.h"
#include "unit.h"

static const struct mlmodel model = {"mlflow-artifacts:/0/models/m-2/artifacts", "m-2",
                                     "r'2", "net.int8.onnx"};

static const struct {
    const char *source, *expected;
} rows[] = {
    {"artifact_path: mlflow-artifacts:/0/models/m-1/artifacts\n"
     "flavors:\n"
     "  onnx:\n"
     "    data: model.onnx\n"
     "    onnx_version: 1.23.2\n"
     "  python_function:\n"
     "    data: model.onnx\n"
     "    env:\n"
     "      conda: conda.yaml\n"
     "model_id: m-1\n"
     "model_size_bytes: 1280557\n"
     "model_uuid: m-1\n"
     "run_id: r1\n"
     "signature:\n"
     "  inputs: '[{\"name\": \"run_id: x\"}]'",
     "artifact_path: 'mlflow-artifacts:/0/models/m-2/artifacts'\n"
     "flavors:\n"
     "  onnx:\n"
     "    data: 'net.int8.onnx'\n"
     "    onnx_version: 1.23.2\n"
     "  python_function:\n"
     "    data: 'net.int8.onnx'\n"
     "    env:\n"
     "      conda: conda.yaml\n"
     "model_id: 'm-2'\n"
     "model_uuid: 'm-2'\n"
     "run_id: 'r''2'\n"
     "signature:\n"
     "  inputs: '[{\"name\": \"run_id: x\"}]'"},
    {NULL, "artifact_path: 'mlflow-artifacts:/0/models/m-2/artifacts'\n"
           "flavors:\n"
           "  onnx:\n"
           "    code: null\n"
           "    data: 'net.int8.onnx'\n"
           "    onnx_session_options: null\n"
           "    providers:\n"
           "    - CPUExecutionProvider\n"
           "  python_function:\n"
           "    data: 'net.int8.onnx'\n"
           "    loader_module: mlflow.onnx\n"
           "model_id: 'm-2'\n"
           "run_id: 'r''2'\n"},
    {"", ""},
};

UNIT_ROWS(descriptions, rows)
{
    char *text = make_mlmodel(rows[_i].source, &model);
    ck_assert_str_eq(text, rows[_i].expected);
    free(text);
}

UNIT_SUITE("mlmodel")
