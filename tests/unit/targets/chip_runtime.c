/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime chip: an execution provider of ONNX Runtime by its name. */
#include "config.h"
#include "targets/chip_runtime.h"

static const struct qdq_runtime_row row = {.name = "chip", .title = "Chip"};

struct qdqi_provider chip_provider = {.name = "CPU"};

const struct qdqi_deploy_ops qdqi_deploy_chip = {
    .row = &row,
    .kernels = &qdqi_onnxruntime_kernels,
    .provider = &chip_provider,
    .writes = true,
    .checks_float16 = true,
    QDQI_PROVIDER_FUNCTIONS,
};
