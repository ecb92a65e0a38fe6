/* SPDX-License-Identifier: Apache-2.0 */
/* The target chip: its integer kernels are those of Conv, and the runtime of its name judges. */
#include "config.h"
#include "plan/placement/target.h"

#include <string.h>

static bool
is_on(const struct planner *p, const struct qdqi_class *cls)
{
    (void)p;
    return strcmp(cls->support.op, "Conv") == 0;
}

static const struct qdqi_hooks hooks = {.is_on = is_on};

const struct qdq_target qdqi_target_chip = {
    .name = "chip",
    .title = "Chip",
    .text = "Pairs stand on the data inputs and the weights of Conv.",
    .weights = QDQ_FORMAT_INT8,
    .activations = QDQ_FORMAT_UINT8,
    .storage = QDQ_STORE_DQ,
    .has_kernels = true,
    .runtime = "chip",
    .hooks = &hooks,
};
