/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transform/equalize/values.h"

#include "transform/equalize/labels.h"
#include "transform/equalize/pass.h"

#include <string.h>

enum { MAX_STEPS = 32, MAX_SIZES = 8 };

/* A node on the way, and its output that leads to the activation. */
struct step {
    const struct qdqi_node *node;
    const struct qdqi_tensor *from; /* its input that comes from the layer */
    int input;
    size_t output;
};

struct path {
    const struct qdq_model *model;
    struct qdqi_arena *arena;
    struct qdqi_maker *ret;
    size_t channels;
    struct step steps[MAX_STEPS]; /* from the activation back to the layer */
    size_t n;
    size_t n_moved; /* steps behind the last bias: the rest only add */
    const struct qdqi_node *maker;
};

static const char unknown[] = "no layer before it can take factors in";
static const char mixed[] = "the values of attention are not those of one layer";

/* --- the way back ----------------------------------------------------------- */

static const char *const movers[] = {"Reshape", "Transpose", "Squeeze", "Unsqueeze",
                                     "Gather",  "Slice",     "Split",   "Identity",
                                     "Dropout", NULL};

/* Returns the input of a node through which the values come; -1: they do not. */
static int
input_of(const struct path *p, const struct qdqi_node *node)
{
    int input = qdqi_node_variable_input(node);
    if (qdqi_node_is_one_of(node->proto, movers))
        return node->proto->n_input > 0 && node->inputs[0] ? 0 : -1;
    if (qdqi_node_is(node->proto, "Add"))
        return input;
    if ((qdqi_node_is(node->proto, "Mul") ||
         (qdqi_node_is(node->proto, "Div") && input == 0)) &&
        input >= 0 && qdqi_is_scalar(p->model, node->inputs[!input]))
        return input;
    return qdqi_multiplies_activations(node) ? 1 : -1;
}

static bool
is_layer(const struct qdqi_node *node)
{
    return (qdqi_node_is(node->proto, "MatMul") || qdqi_node_is(node->proto, "Gemm")) &&
           node->proto->n_input > 1 && node->inputs[1] && node->inputs[1]->is_fixed;
}

static size_t
output_of(const struct qdqi_node *node, const struct qdqi_tensor *t)
{
    size_t i = 0;
    while (i < node->proto->n_output && node->outputs[i] != t)
        i++;
    return i;
}

static const char *
walk_back(struct path *p, const struct qdqi_tensor *t)
{
    for (;;) {
        const size_t scope = t->scope;
        if (t->producer < 0)
            return "it is an input of the model";
        const struct qdqi_node *node = &p->model->graph.nodes[t->producer];
        if (node->scope != scope)
            return unknown;
        if (is_layer(node)) {
            p->maker = node;
            return NULL;
        }
        int input = input_of(p, node);
        if (input < 0)
            return qdqi_arena_printf(p->arena, "%s makes it", node->proto->op_type);
        if (p->n == MAX_STEPS)
            return "the way from attention to it is too long";
        const struct qdqi_tensor *from = node->inputs[input];
        if (from->is_output || from->is_captured)
            return "an output of the model is made on the way to it";
        p->steps[p->n++] = (struct step){node, from, input, output_of(node, t)};
        t = from;
    }
}

/* --- what takes factors in -------------------------------------------------- */

const char *
qdqi_maker_add(const struct qdq_model *model, struct qdqi_maker *maker,
               const struct qdqi_tensor *t, size_t from_end, size_t n)
{
    struct qdqi_constant *c = &maker->constants[maker->n_constants];
    if (maker->n_constants == QDQI_MAX_ABSORBING)
        return "beyond the most that are followed";
    const char *why = qdqi_weight_check(model, t, c);
    if (!why && !qdqi_is_per_channel(c, from_end, n))
        why = "not one value for each channel";
    if (!why)
        maker->tensors[maker->n_constants++] = t;
    return why;
}

/* Adds a bias of the layer. Returns NULL, or the reason. */
static const char *
add_bias(struct path *p, const struct qdqi_tensor *t)
{
    const char *why = qdqi_maker_add(p->model, p->ret, t, 1, p->ret->weight.n_out);
    return why ? qdqi_arena_printf(p->arena, "a constant that makes it is %s", why)
               : NULL;
}

/* Reads the layer and the biases between it and the first operator that moves elements. */
static const char *
read_maker(struct path *p)
{
    const char *why = qdqi_weight_read(p->model, p->maker, &p->ret->weight);
    if (why)
        return qdqi_arena_printf(p->arena, "the weight of the layer before it is %s",
                                 why);
    p->ret->layer = (size_t)(p->maker - p->model->graph.nodes);
    if (qdqi_node_is(p->maker->proto, "Gemm") && p->maker->proto->n_input > 2 &&
        p->maker->inputs[2] && (why = add_bias(p, p->maker->inputs[2])))
        return why;
    p->n_moved = p->n;
    for (size_t i = p->n; i-- > 0;) {
        const struct qdqi_node *node = p->steps[i].node;
        if (!qdqi_node_is(node->proto, "Add"))
            continue;
        if (i + 1 != p->n_moved)
            return "a constant is added to it after its elements were moved";
        if ((why = add_bias(p, node->inputs[!qdqi_node_variable_input(node)])))
            return why;
        p->n_moved = i;
    }
    return NULL;
}

/* --- channels --------------------------------------------------------------- */

/* Adds a size that it may be worth trying for the rows of the layer's output. */
static void
add_size(int64_t size, int64_t *sizes, size_t *n)
{
    for (size_t i = 0; i < *n; i++)
        if (sizes[i] == size)
            return;
    if (*n < MAX_SIZES && size > 0)
        sizes[(*n)++] = size;
}

/* Lists the sizes that the rows may have: any number, or a size in a Reshape. */
static size_t
list_sizes(const struct path *p, int64_t *sizes)
{
    size_t n = 0;
    add_size(3, sizes, &n);
    for (size_t i = 0; i < p->n; i++) {
        const struct qdqi_node *node = p->steps[i].node;
        int64_t shape[QDQI_LABEL_AXES];
        size_t rank;
        if (qdqi_node_is(node->proto, "Reshape") && node->proto->n_input > 1 &&
            node->inputs[1] &&
            qdqi_constant_ints(p->model, node->inputs[1], shape, QDQI_LABEL_AXES,
                               &rank))
            for (size_t k = 0; k < rank; k++)
                add_size(shape[k], sizes, &n);
    }
    add_size(1, sizes, &n);
    return n;
}

/* Computes the labels of the activation, and those of each tensor on the way. */
static bool
pass_all(const struct path *p, struct qdqi_arena *arena, size_t rank,
         const int64_t *dims, struct qdqi_labels *of_inputs, struct qdqi_labels *ret)
{
    if (!qdqi_labels_init(arena, rank, dims, ret))
        return false;
    for (size_t i = p->n; i-- > 0;) {
        of_inputs[i] = *ret;
        if (!qdqi_labels_pass(p->model, p->steps[i].node, p->steps[i].output, arena,
                              &of_inputs[i], ret))
            return false;
    }
    return true;
}

/* Sets outputs[c], and marks the outputs of the layer that are used. Returns false when a
   channel has not the same output in all rows, or two channels have the same one. */
static bool
read_outputs(const struct path *p, const struct qdqi_labels *l, uint32_t *outputs,
             bool *used)
{
    if (l->rank < 2 || (size_t)l->dims[l->rank - 1] != p->channels)
        return false;
    for (size_t i = 0; i < l->n; i++)
        if (l->all[i] != l->all[i % p->channels])
            return false;
    for (size_t c = 0; c < p->channels; c++) {
        outputs[c] = l->all[c];
        if (used[outputs[c]])
            return false;
        used[outputs[c]] = true;
    }
    return true;
}

/* Returns whether an output of a node that chooses elements has none of those channels. */
static bool
chooses_others(const struct path *p, const struct qdqi_node *node, size_t output,
               struct qdqi_arena *arena, const struct qdqi_labels *from,
               const bool *used)
{
    static const char *const choosers[] = {"Split", "Gather", "Slice", NULL};
    struct qdqi_labels other;
    if (!qdqi_node_is_one_of(node->proto, choosers) || node->inputs[0] == NULL ||
        !qdqi_labels_pass(p->model, node, output, arena, from, &other))
        return false;
    for (size_t i = 0; i < other.n; i++)
        if (used[other.all[i]])
            return false;
    return true;
}

/* Returns whether a use of the tensor before step i has none of those channels, but for the
   step itself. */
static bool
uses_others(const struct path *p, size_t i, const struct qdqi_use *use,
            struct qdqi_arena *arena, const struct qdqi_labels *from, const bool *used)
{
    const struct qdqi_node *node = &p->model->graph.nodes[use->node];
    const struct step *s = &p->steps[i];
    if (qdqi_node_is(node->proto, "Shape"))
        return true;
    for (size_t k = 0; k < node->proto->n_output; k++) {
        bool is_step = node == s->node && use->input == s->input && k == s->output;
        if (!is_step && node->outputs[k] &&
            (use->input != 0 || !chooses_others(p, node, k, arena, from, used)))
            return false;
    }
    return true;
}

/* Returns whether nothing but the way to the activation reads those channels. */
static bool
is_private(const struct path *p, struct qdqi_arena *arena,
           const struct qdqi_labels *of_inputs, const bool *used)
{
    for (size_t i = 0; i < p->n; i++)
        for (const struct qdqi_use *use = p->steps[i].from->uses; use; use = use->next)
            if (!uses_others(p, i, use, arena, &of_inputs[i], used))
                return false;
    return true;
}

/* Follows the channels where the layer's output has this shape. */
static bool
try_shape(const struct path *p, size_t rank, const int64_t *dims, uint32_t *outputs,
          const char **ret_why)
{
    struct qdqi_arena *arena = qdqi_arena_new();
    struct qdqi_labels labels, of_inputs[MAX_STEPS];
    bool *used =
        arena ? qdqi_arena_array(arena, p->ret->weight.n_out, sizeof *used) : NULL;
    bool fits = used && pass_all(p, arena, rank, dims, of_inputs, &labels) &&
                read_outputs(p, &labels, outputs, used);
    if (fits)
        *ret_why = is_private(p, arena, of_inputs, used)
                       ? NULL
                       : "a tensor on the way to it is read elsewhere, too";
    qdqi_arena_free(&arena);
    return fits;
}

static const char *
find_outputs(const struct path *p)
{
    const int64_t channels = (int64_t)p->ret->weight.n_out;
    int64_t sizes[MAX_SIZES];
    size_t n = list_sizes(p, sizes);
    const char *why = mixed;
    uint32_t *outputs = qdqi_arena_array(p->arena, p->channels, sizeof *outputs);
    if (!outputs)
        return "out of memory"; /* the arena remembers */
    p->ret->outputs = outputs;
    for (size_t i = 0; i < n; i++)
        for (int64_t batch = 2; batch > 0; batch--)
            if (try_shape(p, 3, (const int64_t[]){batch, sizes[i], channels}, outputs,
                          &why))
                return why;
    for (size_t i = 0; i < n; i++)
        if (try_shape(p, 2, (const int64_t[]){sizes[i], channels}, outputs, &why))
            return why;
    return why;
}

const char *
qdqi_values_find(const struct qdq_model *model, const struct qdqi_tensor *activation,
                 size_t channels, struct qdqi_arena *arena, struct qdqi_maker *ret)
{
    struct path p = {.model = model, .arena = arena, .ret = ret, .channels = channels};
    *ret = (struct qdqi_maker){.layer = model->graph.n_nodes};
    const char *why = walk_back(&p, activation);
    if (!why && !p.maker)
        why = "memory is short";
    if (why || (why = read_maker(&p)))
        return why;
    return find_outputs(&p);
}
