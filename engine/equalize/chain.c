/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "equalize/chain.h"

#include <float.h>
#include <string.h>

/* A walk from the first layer on. Channels are axis 1, or the last one. */
struct walk {
    const struct qdq_model *model;
    struct qdqi_arena *arena;
    struct qdqi_chain *chain;
    const struct qdqi_tensor *at; /* the tensor that was reached */
    size_t rank;                  /* of it; 0: not known, and channels are last */
    bool is_flat; /* channels became blocks, whose size the next weight tells */
};

/* --- what is added on the way --------------------------------------------- */

/* Whether a constant has one element for each channel: axis `from_end` of the sum. */
static bool
is_per_channel(const struct qdqi_constant *c, size_t from_end, size_t channels)
{
    if (c->n != channels || c->rank < from_end)
        return false;
    return (size_t)c->dims[c->rank - from_end] == channels;
}

/* Takes a tensor that is added; NULL, or why it cannot be scaled. */
static const char *
take_bias(struct walk *w, const struct qdqi_tensor *t, size_t from_end)
{
    struct qdqi_chain *chain = w->chain;
    struct qdqi_constant *c = &chain->biases[chain->n_biases];
    if (chain->n_biases == QDQI_MAX_BIASES)
        return "beyond the most that are followed";
    const char *why = qdqi_weight_check(w->model, t, c);
    if (why)
        return why;
    if (!is_per_channel(c, from_end, chain->channels) || (w->rank && c->rank > w->rank))
        return "not one value for each channel";
    chain->bias_tensors[chain->n_biases++] = t;
    return NULL;
}

/* Sets the reason; false, for `return`. */
static bool
stop(struct walk *w, const char *text)
{
    w->chain->reason = text;
    return false;
}

static bool
stop_bias(struct walk *w, const char *why)
{
    return stop(w, qdqi_arena_printf(w->arena, "what is added is %s", why));
}

static bool
pass_add(struct walk *w, const struct qdqi_node *node, int input)
{
    const struct qdqi_tensor *other =
        node->proto->n_input == 2 ? node->inputs[!input] : NULL;
    size_t from_end = w->rank > 1 ? w->rank - 1 : 1;
    /* Before opset 7 an `axis` says where the second operand goes. */
    if (!other || !other->is_fixed || w->is_flat ||
        qdqi_node_attribute(node->proto, "axis"))
        return stop(w, "followed by Add");
    const char *why = take_bias(w, other, from_end);
    return !why || stop_bias(w, why);
}

/* --- what passes a factor on ---------------------------------------------- */

/* A bound that is given as an input (opset 11) or an attribute; false: neither. */
static bool
read_bound(const struct walk *w, const struct qdqi_node *node, size_t input,
           const char *name, float *ret)
{
    const Onnx__AttributeProto *a = qdqi_node_attribute(node->proto, name);
    struct qdqi_constant c;
    *ret = 0;
    if (a)
        *ret = a->f;
    else if (node->proto->n_input <= input || !node->inputs[input])
        return false;
    else if (qdqi_constant_read(w->model, node->inputs[input], &c, NULL) ||
             c.dtype != QDQI_FLOAT32 || c.n != 1)
        *ret = 1; /* not known: as good as any that stops */
    else
        memcpy(ret, c.bytes, sizeof *ret);
    return true;
}

/* Clip passes a factor on where it is Relu or does nothing. */
static bool
is_unbounded(const struct walk *w, const struct qdqi_node *node)
{
    float min, max;
    if (read_bound(w, node, 1, "min", &min) && !(min == 0 || min <= -FLT_MAX))
        return false;
    return !read_bound(w, node, 2, "max", &max) || max >= FLT_MAX;
}

static bool
is_one_of(const struct qdqi_node *node, const char *const *ops)
{
    for (; *ops; ops++)
        if (qdqi_node_is(node->proto, *ops))
            return true;
    return false;
}

/* Element by element; and over the axes behind the channels. */
static const char *const elementwise[] = {"Relu",     "LeakyRelu", "PRelu",
                                          "Identity", "Dropout",   NULL};
static const char *const pools[] = {"MaxPool", "AveragePool", "GlobalMaxPool",
                                    "GlobalAveragePool", NULL};

/* Flatten at axis 1, also as exporters write it: Reshape to [0, -1]. */
static bool
is_flatten(const struct walk *w, const struct qdqi_node *node)
{
    int64_t shape[2];
    size_t n;
    if (qdqi_node_is(node->proto, "Flatten"))
        return qdqi_node_int(node->proto, "axis", 1) == 1;
    return qdqi_node_is(node->proto, "Reshape") && node->proto->n_input == 2 &&
           node->inputs[1] &&
           qdqi_constant_ints(w->model, node->inputs[1], shape, 2, &n) && n == 2 &&
           shape[0] == 0 && shape[1] == -1 &&
           !qdqi_node_int(node->proto, "allowzero", 0);
}

/* Goes through a node that is no layer. */
static bool
pass(struct walk *w, const struct qdqi_node *node, int input)
{
    if (qdqi_node_is(node->proto, "Add"))
        return pass_add(w, node, input);
    if (input != 0)
        return stop(w, "followed by something else than a layer");
    if (is_one_of(node, elementwise) ||
        (qdqi_node_is(node->proto, "Clip") && is_unbounded(w, node)))
        return true;
    if (is_one_of(node, pools) && w->rank > 2)
        return true;
    if (is_flatten(w, node) && w->rank) {
        w->is_flat |= w->rank > 2;
        w->rank = 2;
        return true;
    }
    return stop(w, qdqi_arena_printf(w->arena, "followed by %s", node->proto->op_type));
}

/* --- both ends ------------------------------------------------------------ */

/* Whether the tensor goes to one input and nowhere else. */
static bool
is_private(struct walk *w)
{
    const struct qdqi_tensor *t = w->at;
    if (t->is_output)
        return stop(w, "its output is one of the model's");
    if (t->is_captured)
        return stop(w, "its output is used in a nested graph");
    if (!t->uses)
        return stop(w, "nothing follows");
    for (const struct qdqi_use *use = t->uses; use; use = use->next)
        if (w->model->graph.nodes[use->node].scope != t->scope)
            return stop(w, "its output is used in a nested graph");
    return !t->uses->next || stop(w, "its output goes to more than one layer");
}

static bool
start(struct walk *w, const struct qdqi_node *node)
{
    struct qdqi_chain *chain = w->chain;
    const char *why = qdqi_weight_read(w->model, node, &chain->w1);
    if (why)
        return stop(w, qdqi_arena_printf(w->arena, "its weight is %s", why));
    chain->channels = chain->w1.n_out;
    bool gemm = qdqi_node_is(node->proto, "Gemm");
    bool matmul = qdqi_node_is(node->proto, "MatMul");
    w->rank = gemm ? 2 : matmul ? 0 : node->inputs[1]->constant->n_dims;
    if (!matmul && node->proto->n_input > 2 && node->inputs[2]) {
        why = take_bias(w, node->inputs[2], 1);
        if (why)
            return stop_bias(w, why);
    }
    if (node->proto->n_output == 0 || !node->outputs[0])
        return stop(w, "nothing follows");
    w->at = node->outputs[0];
    return true;
}

/* Whether input 0 of the second layer has the channels where they are. */
static bool
fits(const struct walk *w, const struct qdqi_node *node)
{
    const struct qdqi_chain *chain = w->chain;
    size_t n_in = chain->w2.n_in;
    if (n_in % chain->channels || (!w->is_flat && n_in != chain->channels))
        return false;
    if (qdqi_node_is(node->proto, "Gemm"))
        return w->rank == 2 && !qdqi_node_int(node->proto, "transA", 0);
    if (qdqi_node_is(node->proto, "MatMul"))
        return w->rank == 2 || w->rank == 0;
    return !w->is_flat && w->rank == node->inputs[1]->constant->n_dims;
}

static void
end(struct walk *w, size_t second, int input)
{
    const struct qdqi_node *node = &w->model->graph.nodes[second];
    struct qdqi_chain *chain = w->chain;
    if (input != 0 || second == chain->first) {
        stop(w, "its output is no data of the next layer");
        return;
    }
    chain->second = second;
    const char *why = qdqi_weight_read(w->model, node, &chain->w2);
    if (why)
        stop(w, qdqi_arena_printf(w->arena, "the next layer's weight is %s", why));
    else if (!fits(w, node))
        stop(w, "the next layer's weight does not have its channels");
    else
        chain->block = chain->w2.n_in / chain->channels;
}

static void
follow(struct walk *w, const struct qdqi_node *node)
{
    if (!start(w, node))
        return;
    while (is_private(w)) {
        const struct qdqi_use *use = w->at->uses;
        const struct qdqi_node *next = &w->model->graph.nodes[use->node];
        if (qdqi_weight_has(next)) {
            end(w, use->node, use->input);
            return;
        }
        if (!pass(w, next, use->input))
            return;
        if (next->proto->n_output == 0 || !next->outputs[0]) {
            stop(w, "nothing follows");
            return;
        }
        w->at = next->outputs[0];
    }
}

/* --- the model ------------------------------------------------------------ */

static bool
is_candidate(const struct qdqi_graph *graph, const struct qdqi_node *node)
{
    return !graph->scopes[node->scope].is_opaque && qdqi_weight_has(node) &&
           node->proto->n_input > 1 && node->inputs[1] && node->inputs[1]->is_fixed;
}

enum qdq_code
qdqi_chains_find(const struct qdq_model *model, struct qdqi_arena *arena,
                 struct qdqi_chain **ret, size_t *ret_n, struct qdq_error *err)
{
    const struct qdqi_graph *graph = &model->graph;
    size_t n = 0;
    for (size_t i = 0; i < graph->n_nodes; i++)
        n += is_candidate(graph, &graph->nodes[i]);
    struct qdqi_chain *chains = qdqi_arena_array(arena, n, sizeof *chains);
    if (!chains)
        return qdqi_no_memory(err);
    *ret = chains;
    *ret_n = n;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        if (!is_candidate(graph, &graph->nodes[i]))
            continue;
        *chains = (struct qdqi_chain){.first = i, .second = graph->n_nodes};
        follow(&(struct walk){.model = model, .arena = arena, .chain = chains},
               &graph->nodes[i]);
        chains++;
    }
    return qdqi_arena_exhausted(arena) ? qdqi_no_memory(err) : QDQ_OK;
}
