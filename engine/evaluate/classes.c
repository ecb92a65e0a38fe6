/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "evaluate/classes.h"

#include <string.h>

enum { MOST_NODES = 16 }; /* that move data behind a Sigmoid */

/* Returns whether a Sigmoid makes the tensor, perhaps in front of nodes that move data. */
static bool
comes_from_sigmoid(const struct qdq_model *model, const char *name)
{
    static const char *const sigmoids[] = {"Sigmoid", "HardSigmoid", NULL};
    static const char *const moving[] = {"Reshape",   "Squeeze", "Unsqueeze",
                                         "Transpose", "Flatten", "Identity",
                                         "Cast",      "Slice",   NULL};
    const struct qdqi_tensor *t = qdqi_map_get(model->graph.tensors, name);
    for (int i = 0; t && t->producer >= 0 && i < MOST_NODES; i++) {
        const struct qdqi_node *node = &model->graph.nodes[t->producer];
        if (qdqi_node_is_one_of(node->proto, sigmoids))
            return true;
        if (!qdqi_node_is_one_of(node->proto, moving) || node->proto->n_input == 0)
            return false;
        t = node->inputs[0];
    }
    return false;
}

static bool
may_have_shape(const struct qdq_value *a, const struct qdq_value *b)
{
    if (strcmp(a->dtype, b->dtype) != 0 || a->rank != b->rank)
        return false;
    for (size_t i = 0; i < a->rank; i++)
        if (a->dims[i].value >= 0 && b->dims[i].value >= 0 &&
            a->dims[i].value != b->dims[i].value)
            return false;
    return true;
}

bool
qdqi_output_may_list_classes(const struct qdq_model *model, size_t i)
{
    const struct qdq_value *output = &model->info.outputs[i];
    for (size_t k = 0; output->rank >= 3 && k < model->info.n_inputs; k++)
        if (may_have_shape(&model->info.inputs[k], output))
            return false;
    return !comes_from_sigmoid(model, output->name);
}
