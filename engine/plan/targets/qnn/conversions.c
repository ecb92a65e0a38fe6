/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs that convert between 8 and 16 bits (rule Q16). The provider makes a kernel of integers of a layer
 * only where all of its activations have one format, and of a pair of one format behind a pair of the
 * other an operator Convert. So each kernel has one width: 16 bits where one of its activations has them.
 * Activations of the other width are read, or made, by way of a second pair.
 */
#include "config.h"
#include "plan/targets/qnn/qnn.h"

#include "numbers/arithmetic/format.h"
#include "plan/placement/outputs.h"

#include <string.h>

/* A kernel is a layer with the bias and the clipping behind it, or a GELU. It has the index of a node. */
struct kernel {
    bool is_wide, has_narrow, converts;
    enum qdqi_format format; /* of its activations */
    bool symmetric;
};

struct converting {
    struct planner *p;
    size_t *kernel_of;      /* by node; QDQI_NONE: it is in no kernel of integers */
    struct kernel *kernels; /* by node */
    /* by row of activations that lead: a kernel of 16 bits that reads or makes one, and whether one of 8
       bits does */
    const struct kernel **wide;
    bool *is_in_narrow;
    enum qdqi_format
        narrow; /* the format of what has 8 bits in spite of its kernel's, or of all */
    bool is_symmetric; /* that one */
};

/* --- kernels ------------------------------------------------------------------------ */

static const struct qdqi_node *
node_of(const struct converting *c, size_t node)
{
    return &c->p->model->graph.nodes[node];
}

/* Returns the node that ends the GELU of which the node is a part. Each part but the last one has one
   reader. */
static size_t
end_of_gelu(const struct converting *c, size_t node)
{
    while (qdqi_gelu_part(c->p, node) != QDQI_GELU_LAST)
        node = node_of(c, node)->outputs[0]->uses->node;
    return node;
}

/* Returns the kernel of the node that makes the first computed input. */
static size_t
kernel_before(const struct converting *c, size_t node)
{
    const struct qdqi_node *n = node_of(c, node);
    for (size_t i = 0; i < n->proto->n_input; i++)
        if (n->inputs[i] && n->inputs[i]->producer >= 0 && !n->inputs[i]->is_fixed)
            return c->kernel_of[n->inputs[i]->producer];
    return QDQI_NONE;
}

static size_t
find_kernel(const struct converting *c, const struct qdq_layer *layer)
{
    const enum qdqi_htp_role role = qdqi_htp_role(layer->op);
    if (qdqi_gelu_part(c->p, layer->node) != QDQI_GELU_NONE)
        return end_of_gelu(c, layer->node);
    if (layer->n_inputs == 0 &&
        (qdq_rule_set_has(&layer->rules, Q5) || qdq_rule_set_has(&layer->rules, Q9)))
        return kernel_before(c, layer->node);
    return layer->n_inputs > 0 && role != QDQI_HTP_NONE && role != QDQI_HTP_MOVES
               ? layer->node
               : QDQI_NONE;
}

static bool
find_kernels(struct converting *c)
{
    struct planner *p = c->p;
    const size_t n = p->model->graph.n_nodes, rows = p->plan->view.n_tensors;
    struct qdqi_arena *arena = p->plan->arena;
    c->kernel_of = qdqi_arena_array(arena, n + 1, sizeof *c->kernel_of);
    c->kernels = qdqi_arena_array(arena, n + 1, sizeof *c->kernels);
    c->is_in_narrow = qdqi_arena_array(arena, rows + 1, sizeof *c->is_in_narrow);
    c->wide = qdqi_arena_array(arena, rows + 1, sizeof(*c->wide));
    if (!c->kernel_of || !c->kernels || !c->is_in_narrow || !c->wide)
        return false;
    const struct qdq_activations *all = &p->plan->format.activations;
    const bool narrow = qdqi_format_row((int)all->format)->bits == 8;
    c->narrow = narrow ? (enum qdqi_format)all->format : QDQI_TO_UINT8;
    c->is_symmetric = narrow && all->symmetric == QDQ_YES;
    for (size_t i = 0; i < n; i++) {
        c->kernel_of[i] = QDQI_NONE;
        c->kernels[i].format = c->narrow;
        c->kernels[i].symmetric = c->is_symmetric;
    }
    for (size_t i = 0; i < p->n_layers; i++)
        c->kernel_of[p->layers[i].node] = find_kernel(c, &p->layers[i]);
    return true;
}

/* --- the activations of kernels -------------------------------------------------------- */

static int
bits_of(const struct converting *c, size_t row)
{
    return qdqi_format_row((int)c->p->plan->activations[row].format)->bits;
}

/* An activation of a kernel: the place of its row in the layer, whether the layer makes it, and whether it is
   the right operand of a product, which has 8 bits in the HTP. */
struct use {
    struct qdq_layer *layer;
    struct kernel *kernel;
    size_t *row;
    bool is_made, is_right;
};

typedef void (*visit_fn)(struct converting *c, const struct use *use);

/* Calls a function for each activation of each kernel. */
static void
visit(struct converting *c, visit_fn fn)
{
    struct planner *p = c->p;
    for (size_t i = 0; i < p->n_layers; i++) {
        struct qdq_layer *layer = &p->layers[i];
        const size_t at = c->kernel_of[layer->node];
        if (at == QDQI_NONE)
            continue;
        struct use use = {.layer = layer, .kernel = &c->kernels[at]};
        /* the const is cast away: the rows are in the plan's own memory */
        for (size_t k = 0; k < layer->n_inputs; k++) {
            use.row = (size_t *)(uintptr_t)&layer->input_rows[k];
            use.is_right =
                strcmp(layer->op, "MatMul") == 0 && layer->quantized_inputs[k] == 1;
            fn(c, &use);
        }
        use.is_made = true;
        use.is_right = false;
        for (size_t k = 0; k < layer->n_outputs; k++) {
            use.row = (size_t *)(uintptr_t)&layer->output_rows[k];
            fn(c, &use);
        }
    }
}

static void
note_width(struct converting *c, const struct use *use)
{
    const struct qdqi_planned_tensor *t = &c->p->plan->activations[*use->row];
    const bool is_wide = bits_of(c, *use->row) == 16;
    struct kernel *kernel = use->kernel;
    if (use->is_right || (is_wide && qdqi_htp_refuses_wide(use->layer->op)) ||
        kernel->is_wide || (!is_wide && kernel->has_narrow))
        return;
    kernel->is_wide = is_wide;
    kernel->has_narrow = !is_wide;
    kernel->format = t->format;
    kernel->symmetric = t->symmetric;
}

/* --- right operands of products -------------------------------------------------------------- */

static bool
is_right_operand(const struct converting *c, const struct qdqi_use *use)
{
    return use->input == 1 && c->kernel_of[use->node] != QDQI_NONE &&
           qdqi_node_is(node_of(c, use->node)->proto, "MatMul");
}

/* Returns whether a layer that moves data reads the tensor: what it makes is in the same group. */
static bool
is_moved(const struct converting *c, const struct qdqi_use *use)
{
    const struct qdq_layer *layer = c->p->by_node[use->node];
    return layer && layer->n_inputs > 0 && use->input == 0 &&
           qdqi_htp_role(layer->op) == QDQI_HTP_MOVES;
}

/* Gives 8 bits to what products alone read as their right operand: it has these in the HTP, and a range that
   fits them then. */
static bool
narrow(struct converting *c)
{
    const struct qdq_plan *plan = c->p->plan;
    struct qdqi_planned_tensor *rows = plan->activations;
    const size_t n = plan->view.n_tensors;
    bool *is_right = qdqi_arena_array(plan->arena, n + 1, sizeof *is_right);
    bool *is_other = qdqi_arena_array(plan->arena, n + 1, sizeof *is_other);
    if (!is_right || !is_other)
        return false;
    for (size_t i = 0; i < n; i++) {
        const size_t leader = rows[i].leader;
        is_other[leader] = is_other[leader] || rows[i].tensor->is_output;
        for (const struct qdqi_use *use = rows[i].tensor->uses; use; use = use->next)
            if (is_right_operand(c, use))
                is_right[leader] = true;
            else if (!is_moved(c, use))
                is_other[leader] = true;
    }
    for (size_t i = 0; i < n; i++) {
        if (!is_right[rows[i].leader] || is_other[rows[i].leader])
            continue;
        rows[i].format = c->narrow;
        rows[i].symmetric = c->is_symmetric;
    }
    return true;
}

/* --- tensors that kernels of 16 bits alone read and make ---------------------------------- */

static void
note_use(struct converting *c, const struct use *use)
{
    const size_t leader = c->p->plan->activations[*use->row].leader;
    if (use->kernel->is_wide && !use->is_right)
        c->wide[leader] = use->kernel;
    else
        c->is_in_narrow[leader] = true;
}

static bool
is_made_by_kernel(const struct converting *c, size_t row)
{
    const int64_t producer = c->p->plan->activations[row].tensor->producer;
    return producer >= 0 && c->kernel_of[producer] != QDQI_NONE;
}

/* Gives 16 bits to what kernels of 16 bits alone read and make, which would be converted twice, and to what
   comes from outside of the HTP where one of them reads it (faults.h). */
static void
widen(struct converting *c)
{
    struct qdqi_planned_tensor *rows = c->p->plan->activations;
    for (size_t i = 0; i < c->p->plan->view.n_tensors; i++) {
        const size_t leader = rows[i].leader;
        const struct kernel *wide = c->wide[leader];
        if (!wide || bits_of(c, i) != 8 ||
            (is_made_by_kernel(c, leader) &&
             (c->is_in_narrow[leader] || rows[i].is_stated)))
            continue;
        rows[i].format = wide->format;
        rows[i].symmetric = wide->symmetric;
    }
}

/* --- conversions ------------------------------------------------------------------------------ */

static void
convert(struct converting *c, const struct use *use)
{
    struct planner *p = c->p;
    struct qdqi_planned_tensor *rows = p->plan->activations;
    const size_t row = *use->row;
    const bool is_wide = use->kernel->is_wide && !use->is_right;
    if (bits_of(c, row) == (is_wide ? 16 : 8))
        return;
    const size_t other =
        rows[row].conversion ? rows[row].other
        : use->is_right
            ? qdqi_output_convert(p, row, c->narrow, c->is_symmetric)
            : qdqi_output_convert(p, row, use->kernel->format, use->kernel->symmetric);
    use->kernel->converts = true;
    if (!use->is_made) {
        *use->row = other;
        return;
    }
    rows[other].conversion = QDQI_FIRST_FORMAT;
    rows[row].conversion = QDQI_SECOND_FORMAT;
}

/* --- constants ---------------------------------------------------------------------------------- */

static size_t
count_users(const struct planner *p, size_t weight)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_layers; i++)
        n += p->layers[i].weight_input >= 0 && p->layers[i].weight_row == weight;
    return n;
}

/* Gives the constant operand of a layer the format of the layer's activations. One that other layers read
   gets a row of its own. */
static void
convert_constant(struct converting *c, struct qdq_layer *layer)
{
    struct planner *p = c->p;
    struct qdq_plan *plan = p->plan;
    const size_t at = c->kernel_of[layer->node];
    if (at == QDQI_NONE || layer->weight_input < 0 || !qdqi_qnn_is_operand(p, layer))
        return;
    struct qdqi_planned_weight *w = &plan->weights[layer->weight_row];
    const enum qdqi_format format = c->kernels[at].format;
    if (w->format == format)
        return;
    if (count_users(p, layer->weight_row) > 1) {
        plan->weights[plan->view.n_weights] = *w;
        layer->weight_row = plan->view.n_weights++;
        w = &plan->weights[layer->weight_row];
        w->layer = layer->name;
    }
    w->format = format;
}

/* --- the rule ------------------------------------------------------------------------------------- */

/* Returns whether activations are integers of 8 and of 16 bits, or of 16 alone. */
static bool
has_wide(const struct planner *p)
{
    bool wide = false;
    for (size_t i = 0; i < p->plan->view.n_tensors; i++) {
        const struct qdqi_format_row *row =
            qdqi_format_row((int)p->plan->activations[i].format);
        if (row->fraction_bits > 0 || (row->bits != 8 && row->bits != 16))
            return false;
        wide = wide || row->bits == 16;
    }
    return wide;
}

enum qdq_code
qdqi_qnn_convert(struct planner *p, struct qdq_error *err)
{
    struct converting c = {.p = p};
    if (!qdqi_rule_is_on(p, Q16) || !has_wide(p))
        return QDQ_OK;
    if (!find_kernels(&c))
        return qdqi_no_memory(err);
    visit(&c, note_width);
    if (!narrow(&c))
        return qdqi_no_memory(err);
    visit(&c, note_use);
    widen(&c);
    visit(&c, convert);
    for (size_t i = 0; i < p->n_layers; i++) {
        convert_constant(&c, &p->layers[i]);
        const size_t at = c.kernel_of[p->layers[i].node];
        if (at != QDQI_NONE && c.kernels[at].converts)
            qdqi_rule_cite(&p->layers[i], Q16);
    }
    return QDQ_OK;
}
