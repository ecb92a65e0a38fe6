/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/scale/correct.h"

#include "graph/layers/bias.h"
#include "numbers/arithmetic/packed.h"
#include "stages/scale/matrix.h"
#include "stages/scale/round.h"

#include <string.h>

enum { MAX_REASONS = 32 };

/* Layers whose bias does not take the mean of the errors, for one reason. */
struct uncorrected {
    const char *why; /* NULL in the row behind the last one */
    const char *first;
    size_t n;
};

struct correction {
    struct qdqi_attempt *attempt;
    struct qdqi_scales *scales;
    struct uncorrected left[MAX_REASONS + 1];
    size_t n_made; /* biases that were made and take the mean */
    const char *first_made;
};

/* --- the numbers ----------------------------------------------------------- */

/* Subtracts from the bias what the errors of the weight add to the mean output. */
static void
shift(const struct qdqi_matrix *m, const struct qdqi_params *p, const uint8_t *bias,
      float *to)
{
    const struct qdqi_format_row *format = qdqi_format_row((int)p->format);
    for (size_t g = 0; g < m->moments->groups; g++) {
        const struct qdqi_moment *moment = &m->moments->moments[g];
        for (size_t n = g * m->outputs; n < (g + 1) * m->outputs; n++) {
            double sum = 0;
            float before;
            for (size_t i = 0; i < m->k; i++) {
                size_t at = n * m->row + i * m->column, s = m->scale_of[at];
                double number = (double)(qdqi_packed_get(format, p->rounded, at) -
                                         qdqi_zero_point(p, s)) *
                                (double)p->scales[s];
                sum += ((double)m->elements[at] - number) * moment->sums[i];
            }
            memcpy(&before, bias + n * sizeof before, sizeof before);
            to[n] = (float)((double)before + sum / (double)moment->rows);
        }
    }
}

/* Computes the new bias. */
static enum qdq_code
shift_bias(struct correction *c, size_t index, const struct qdqi_constant *elements,
           const struct qdqi_bias_place *place, const struct qdqi_constant *bias,
           struct qdq_error *err)
{
    struct qdqi_attempt *a = c->attempt;
    struct qdqi_scales *s = c->scales;
    const struct qdq_layer *layer = &a->plan->view.layers[index];
    const struct qdqi_params *p = &s->weights[layer->weight_row];
    struct qdqi_matrix m;
    float *values = qdqi_arena_array(a->scratch, bias->n, sizeof *values);
    bool ok =
        qdqi_matrix_open(a, &a->plan->weights[layer->weight_row], elements, p, &m) &&
        values;
    if (ok) {
        shift(&m, p, bias->bytes, values);
        s->shifted[s->n_shifted++] = (struct qdqi_shifted_bias){
            index,      place->node, place->input, place->tensor->name,
            bias->rank, bias->n,     bias->dims,   values};
    }
    qdqi_matrix_close(&m);
    return ok ? QDQ_OK : qdqi_no_memory(err);
}

/* --- biases that cannot be corrected --------------------------------------- */

/* Returns why a layer whose weight was rounded has no bias that can take the mean; NULL:
   there is nothing to tell. */
static const char *
why_no_bias(const struct qdqi_attempt *a, const struct qdqi_bias_place *place)
{
    if (place->why)
        return place->why;
    if (place->tensor)
        return "its bias is not a float32 constant with one number for each output";
    return a->spec->bias_correction == QDQ_BIASES_ALL
               ? "it has no bias, and the target would not compute one at no cost"
               : NULL;
}

static void
count_uncorrected(struct correction *c, const struct qdq_layer *layer, const char *why)
{
    struct uncorrected *row = c->left;
    while (row->why && row->why != why)
        row++;
    if (row == c->left + MAX_REASONS)
        return;
    row->why = why;
    if (row->n++ == 0)
        row->first = layer->name;
}

/* Warns once for each reason. */
static enum qdq_code
warn_uncorrected(const struct correction *c, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    for (const struct uncorrected *row = c->left; row->why && !code; row++)
        code = qdqi_attempt_warn(
            c->attempt, err, "bias_uncorrected", row->first,
            "%zu layers, this one first, keep the mean of the errors of "
            "their weights: %s",
            row->n, row->why);
    return code;
}

/* --- biases that were made ------------------------------------------------- */

/* Returns the biases of zeros that the preparation made; NULL: none. */
static const struct qdqi_map *
made_biases(const struct qdqi_attempt *a)
{
    const struct qdq_model *prepared = a->prepared;
    return prepared ? prepared->made_biases : NULL;
}

/* Lists the biases that were made for layers whose weights stay float. */
static enum qdq_code
find_idle(const struct qdqi_attempt *a, struct qdqi_scales *s, struct qdq_error *err)
{
    const struct qdqi_map *made = made_biases(a);
    const struct qdqi_graph *graph = &a->model->graph;
    const struct qdq_plan_view *plan = &a->plan->view;
    s->n_idle = 0;
    if (!made)
        return QDQ_OK;
    bool *is_quantized =
        qdqi_arena_array(a->scratch, graph->n_nodes, sizeof *is_quantized);
    s->idle = qdqi_arena_array(a->scratch, graph->n_nodes, sizeof *s->idle);
    if (!is_quantized || !s->idle)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < plan->n_layers; i++)
        is_quantized[plan->layers[i].node] |= plan->layers[i].weight_input >= 0;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct qdqi_node *node = &graph->nodes[i];
        if (is_quantized[i] || !qdqi_node_is_one_of(node->proto, qdqi_biased_ops))
            continue;
        const struct qdqi_bias_place place = qdqi_bias_find(a->model, node);
        if (place.tensor && qdqi_map_get(made, place.tensor->name))
            s->idle[s->n_idle++] =
                (struct qdqi_idle_bias){i, place.node, place.input, place.tensor->name};
    }
    return QDQ_OK;
}

static enum qdq_code
warn_made(const struct correction *c, struct qdq_error *err)
{
    if (c->n_made == 0)
        return QDQ_OK;
    return qdqi_attempt_warn(
        c->attempt, err, "biases_made", c->first_made,
        "%zu layers without a bias, this one first, have one that takes "
        "the mean of the errors of their weights",
        c->n_made);
}

/* --- all layers ------------------------------------------------------------ */

static void
count_made(struct correction *c, const struct qdq_layer *layer,
           const struct qdqi_bias_place *place)
{
    const struct qdqi_map *made = made_biases(c->attempt);
    if (!made || !qdqi_map_get(made, place->tensor->name))
        return;
    if (c->n_made++ == 0)
        c->first_made = layer->name;
}

static enum qdq_code
correct_bias(struct correction *c, size_t index, struct qdq_error *err)
{
    const struct qdqi_attempt *a = c->attempt;
    const struct qdq_layer *layer = &a->plan->view.layers[index];
    const struct qdqi_planned_weight *w = &a->plan->weights[layer->weight_row];
    const struct qdqi_bias_place place =
        qdqi_bias_find(a->model, &a->model->graph.nodes[layer->node]);
    struct qdqi_constant elements, bias;
    enum qdq_code code = qdqi_constant_read(a->model, w->tensor, &elements, err);
    if (code)
        return code;
    const char *why = qdqi_cannot_round(a, w, &elements);
    if (!why) {
        const struct qdqi_layer_moments *m =
            qdqi_map_get(a->moments->by_weight, w->tensor->name);
        if (qdqi_bias_read(a->model, &place, elements.n / m->moments->k, &bias)) {
            count_made(c, layer, &place);
            return shift_bias(c, index, &elements, &place, &bias, err);
        }
        why = why_no_bias(a, &place);
    }
    if (why)
        count_uncorrected(c, layer, why);
    return QDQ_OK;
}

enum qdq_code
qdqi_correct_biases(struct qdqi_attempt *a, struct qdqi_scales *s,
                    struct qdq_error *err)
{
    const struct qdq_plan_view *plan = &a->plan->view;
    struct correction c = {.attempt = a, .scales = s};
    s->n_shifted = 0;
    enum qdq_code code = find_idle(a, s, err);
    if (code || !a->moments || a->spec->bias_correction == QDQ_BIASES_NONE)
        return code;
    s->shifted = qdqi_arena_array(a->scratch, plan->n_layers, sizeof *s->shifted);
    if (!s->shifted)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < plan->n_layers && !code; i++) {
        const struct qdq_layer *layer = &plan->layers[i];
        const struct qdqi_planned_weight *w =
            layer->weight_input < 0 ? NULL : &a->plan->weights[layer->weight_row];
        if (w && !w->is_table && !w->is_moved)
            code = correct_bias(&c, i, err);
    }
    if (!code)
        code = warn_made(&c, err);
    return code ? code : warn_uncorrected(&c, err);
}
