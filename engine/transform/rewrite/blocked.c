/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transform/rewrite/blocked.h"

#include "ground/base/host.h"

/* Work of one model. */
struct finder {
    const struct qdqi_graph *graph;
    size_t *channels; /* by node: of its first output; 0: it is never in blocks */
};

/* Operators that leave the channels where they are. */
static const char *const same[] = {"AveragePool", "BatchNormalization",
                                   "Clip",        "HardSigmoid",
                                   "HardSwish",   "LeakyRelu",
                                   "MaxPool",     "Relu",
                                   "Sigmoid",     "Tanh",
                                   NULL};
static const char *const joining[] = {"Add", "Mul", "Sum", NULL};

static size_t
channels_of(const struct finder *f, const struct qdqi_tensor *t)
{
    if (!t || t->producer < 0)
        return 0;
    const struct qdqi_node *node = &f->graph->nodes[t->producer];
    return node->outputs[0] == t ? f->channels[t->producer] : 0;
}

/* Returns the channels that a convolution of images makes. */
static size_t
convolved(const struct qdqi_node *conv)
{
    const int64_t *dims;
    size_t rank;
    return conv->proto->n_input > 1 && conv->inputs[1] &&
                   qdqi_tensor_dims(conv->inputs[1], &dims, &rank) && rank == 4
               ? (size_t)dims[0]
               : 0;
}

/* Returns the channels that all inputs have, or 0. */
static size_t
joined(const struct finder *f, const struct qdqi_node *node)
{
    size_t n = channels_of(f, node->inputs[0]);
    for (size_t i = 1; i < node->proto->n_input; i++)
        if (channels_of(f, node->inputs[i]) != n)
            return 0;
    return n;
}

/* Returns the sum of the inputs' channels, or 0 if one is never in blocks. */
static size_t
concatenated(const struct finder *f, const struct qdqi_node *node)
{
    size_t sum = 0;
    for (size_t i = 0; i < node->proto->n_input; i++) {
        size_t n = channels_of(f, node->inputs[i]);
        if (n == 0)
            return 0;
        sum += n;
    }
    return qdqi_node_int(node->proto, "axis", 0) == 1 ? sum : 0;
}

static size_t
channels_made(const struct finder *f, const struct qdqi_node *node)
{
    if (node->proto->n_input == 0 || node->proto->n_output == 0)
        return 0;
    if (qdqi_node_is(node->proto, "Conv"))
        return convolved(node);
    if (qdqi_node_is_one_of(node->proto, same))
        return channels_of(f, node->inputs[0]);
    if (qdqi_node_is_one_of(node->proto, joining))
        return joined(f, node);
    return qdqi_node_is(node->proto, "Concat") ? concatenated(f, node) : 0;
}

/* Returns whether the runtime fuses nodes of the model into its Gelu. */
static bool
is_fused_to_gelu(const struct qdqi_graph *graph)
{
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (qdqi_node_is(graph->nodes[i].proto, "Erf"))
            return true;
    return false;
}

enum qdq_code
qdqi_find_blocked(const struct qdq_model *source, const struct qdq_plan *plan,
                  const bool *wanted, struct qdqi_arena *arena, const size_t **ret,
                  struct qdq_error *err)
{
    size_t n = plan->view.n_tensors, block = qdqi_host_block();
    size_t *blocked = qdqi_arena_array(arena, n, sizeof *blocked);
    struct finder f = {&source->graph, qdqi_arena_array(arena, source->graph.n_nodes,
                                                        sizeof *f.channels)};
    *ret = NULL;
    if (!blocked || !f.channels)
        return qdqi_no_memory(err);
    if (is_fused_to_gelu(f.graph))
        return QDQ_OK;
    for (size_t i = 0; i < f.graph->n_nodes; i++)
        f.channels[i] = channels_made(&f, &f.graph->nodes[i]);
    for (size_t i = 0; i < n; i++) {
        const struct qdqi_planned_tensor *t = &plan->activations[i];
        size_t channels = channels_of(&f, t->tensor);
        if (!wanted[i] || t->dtype != QDQI_FLOAT32 || channels % block != 0)
            continue;
        blocked[i] = channels;
        if (channels > 0)
            *ret = blocked;
    }
    return QDQ_OK;
}
