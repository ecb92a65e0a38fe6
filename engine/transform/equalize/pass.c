/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transform/equalize/pass.h"

#include <float.h>
#include <string.h>

/* Reads a bound that is an input (opset 11) or an attribute. Returns false when
   there is none. */
static bool
read_bound(const struct qdq_model *model, const struct qdqi_node *node, size_t input,
           const char *name, float *ret)
{
    const Onnx__AttributeProto *a = qdqi_node_attribute(node->proto, name);
    struct qdqi_constant c;
    *ret = 0;
    if (a)
        *ret = a->f;
    else if (node->proto->n_input <= input || !node->inputs[input])
        return false;
    else if (qdqi_constant_read(model, node->inputs[input], &c, NULL) ||
             c.dtype != QDQI_FLOAT32 || c.n != 1)
        *ret = 1; /* not constant: treated as a bound that stops the factor */
    else
        memcpy(ret, c.bytes, sizeof *ret);
    return true;
}

/* Clip passes a factor through when it is Relu or has no effect. */
static bool
is_unbounded(const struct qdq_model *model, const struct qdqi_node *node)
{
    float min, max;
    if (read_bound(model, node, 1, "min", &min) && !(min == 0 || min <= -FLT_MAX))
        return false;
    return !read_bound(model, node, 2, "max", &max) || max >= FLT_MAX;
}

/* Operators that work on each element alone, and operators that work on the axes
   behind the channels. */
static const char *const elementwise[] = {"Relu",     "LeakyRelu", "PRelu",
                                          "Identity", "Dropout",   NULL};
static const char *const pools[] = {"MaxPool", "AveragePool", "GlobalMaxPool",
                                    "GlobalAveragePool", NULL};

/* Operators that a factor passes through where their input 1 is a scalar. */
static const char *const scalings[] = {"Mul", "Div", NULL};

bool
qdqi_passes_factor(const struct qdq_model *model, const struct qdqi_node *node,
                   size_t rank)
{
    return qdqi_node_is_one_of(node->proto, elementwise) ||
           (qdqi_node_is(node->proto, "Clip") && is_unbounded(model, node)) ||
           (qdqi_node_is_one_of(node->proto, pools) && rank > 2) ||
           (qdqi_node_is_one_of(node->proto, scalings) && node->proto->n_input == 2 &&
            qdqi_is_scalar(model, node->inputs[1]));
}

bool
qdqi_multiplies_activations(const struct qdqi_node *node)
{
    return qdqi_node_is(node->proto, "MatMul") && node->proto->n_input == 2 &&
           node->inputs[0] && node->inputs[1] && !node->inputs[0]->is_fixed &&
           !node->inputs[1]->is_fixed;
}

bool
qdqi_is_scalar(const struct qdq_model *model, const struct qdqi_tensor *t)
{
    struct qdqi_constant c;
    return t && t->is_fixed && !qdqi_constant_read(model, t, &c, NULL) && c.n == 1 &&
           c.rank <= 1 && !qdqi_constant_is_overridable(model, t);
}

bool
qdqi_is_flatten(const struct qdq_model *model, const struct qdqi_node *node)
{
    int64_t shape[2];
    size_t n;
    if (qdqi_node_is(node->proto, "Flatten"))
        return qdqi_node_int(node->proto, "axis", 1) == 1;
    return qdqi_node_is(node->proto, "Reshape") && node->proto->n_input == 2 &&
           node->inputs[1] &&
           qdqi_constant_ints(model, node->inputs[1], shape, 2, &n) && n == 2 &&
           shape[0] == 0 && shape[1] == -1 &&
           !qdqi_node_int(node->proto, "allowzero", 0);
}

bool
qdqi_is_per_channel(const struct qdqi_constant *c, size_t from_end, size_t channels)
{
    if (c->n != channels || c->rank < from_end)
        return false;
    return (size_t)c->dims[c->rank - from_end] == channels;
}
