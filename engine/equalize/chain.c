/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "equalize/chain.h"

#include "equalize/pass.h"

/* The state of a walk from the first layer on. Channels are axis 1, or the last
   axis. */
struct walk {
    const struct qdq_model *model;
    struct qdqi_arena *arena;
    struct qdqi_chain *chain;
    const struct qdqi_tensor *at; /* the tensor that the walk has reached */
    size_t rank; /* rank of that tensor; 0: not known, and channels are the last axis */
    /* a Flatten turned each channel into a block, whose size follows from the next
       weight */
    bool is_flat;
};

/* --- biases between the layers ------------------------------------------- */

/* Adds a tensor to the chain's biases. Returns NULL, or the reason why it cannot be
   scaled. */
static const char *
add_bias(struct walk *w, const struct qdqi_tensor *t, size_t from_end)
{
    struct qdqi_chain *chain = w->chain;
    struct qdqi_constant *c = &chain->biases[chain->n_biases];
    if (chain->n_biases == QDQI_MAX_BIASES)
        return "beyond the most that are followed";
    const char *why = qdqi_weight_check(w->model, t, c);
    if (why)
        return why;
    if (!qdqi_is_per_channel(c, from_end, chain->channels) ||
        (w->rank && c->rank > w->rank))
        return "not one value for each channel";
    chain->bias_tensors[chain->n_biases++] = t;
    return NULL;
}

/* Sets the reason against the chain; returns false, for use in `return`. */
static bool
reject_chain(struct walk *w, const char *text)
{
    w->chain->reason = text;
    return false;
}

static bool
reject_bias(struct walk *w, const char *why)
{
    return reject_chain(w, qdqi_arena_printf(w->arena, "what is added is %s", why));
}

static bool
pass_add(struct walk *w, const struct qdqi_node *node, int input)
{
    const struct qdqi_tensor *other =
        node->proto->n_input == 2 ? node->inputs[!input] : NULL;
    size_t from_end = w->rank > 1 ? w->rank - 1 : 1;
    /* Before opset 7 an `axis` attribute aligns the second operand. */
    if (!other || !other->is_fixed || w->is_flat ||
        qdqi_node_attribute(node->proto, "axis"))
        return reject_chain(w, "followed by Add");
    const char *why = add_bias(w, other, from_end);
    return !why || reject_bias(w, why);
}

/* --- operators that pass a factor through -------------------------------- */

/* Walks through a node that is not a layer. */
static bool
pass_through(struct walk *w, const struct qdqi_node *node, int input)
{
    if (qdqi_node_is(node->proto, "Add"))
        return pass_add(w, node, input);
    if (input != 0)
        return reject_chain(w, "followed by something else than a layer");
    if (qdqi_passes_factor(w->model, node, w->rank))
        return true;
    if (qdqi_is_flatten(w->model, node) && w->rank) {
        w->is_flat |= w->rank > 2;
        w->rank = 2;
        return true;
    }
    return reject_chain(
        w, qdqi_arena_printf(w->arena, "followed by %s", node->proto->op_type));
}

/* --- both ends ------------------------------------------------------------ */

/* Returns whether the tensor has exactly one use. */
static bool
is_private(struct walk *w)
{
    const struct qdqi_tensor *t = w->at;
    if (t->is_output)
        return reject_chain(w, "its output is one of the model's");
    if (t->is_captured)
        return reject_chain(w, "its output is used in a nested graph");
    if (!t->uses)
        return reject_chain(w, "nothing follows");
    for (const struct qdqi_use *use = t->uses; use; use = use->next)
        if (w->model->graph.nodes[use->node].scope != t->scope)
            return reject_chain(w, "its output is used in a nested graph");
    return !t->uses->next || reject_chain(w, "its output goes to more than one layer");
}

static bool
start(struct walk *w, const struct qdqi_node *node)
{
    struct qdqi_chain *chain = w->chain;
    const char *why = qdqi_weight_read(w->model, node, &chain->w1);
    if (why)
        return reject_chain(w, qdqi_arena_printf(w->arena, "its weight is %s", why));
    chain->channels = chain->w1.n_out;
    bool gemm = qdqi_node_is(node->proto, "Gemm");
    bool matmul = qdqi_node_is(node->proto, "MatMul");
    w->rank = gemm ? 2 : matmul ? 0 : node->inputs[1]->constant->n_dims;
    if (!matmul && node->proto->n_input > 2 && node->inputs[2]) {
        why = add_bias(w, node->inputs[2], 1);
        if (why)
            return reject_bias(w, why);
    }
    if (node->proto->n_output == 0 || !node->outputs[0])
        return reject_chain(w, "nothing follows");
    w->at = node->outputs[0];
    return true;
}

/* Returns whether input 0 of the second layer has its channels on the expected axis. */
static bool
channels_match(const struct walk *w, const struct qdqi_node *node)
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
        reject_chain(w, "its output is no data of the next layer");
        return;
    }
    chain->second = second;
    const char *why = qdqi_weight_read(w->model, node, &chain->w2);
    if (why)
        reject_chain(w,
                     qdqi_arena_printf(w->arena, "the next layer's weight is %s", why));
    else if (!channels_match(w, node))
        reject_chain(w, "the next layer's weight does not have its channels");
    else
        chain->block = chain->w2.n_in / chain->channels;
}

static void
follow_chain(struct walk *w, const struct qdqi_node *node)
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
        if (!pass_through(w, next, use->input))
            return;
        if (next->proto->n_output == 0 || !next->outputs[0]) {
            reject_chain(w, "nothing follows");
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
        follow_chain(&(struct walk){.model = model, .arena = arena, .chain = chains},
                     &graph->nodes[i]);
        chains++;
    }
    return qdqi_arena_exhausted(arena) ? qdqi_no_memory(err) : QDQ_OK;
}
