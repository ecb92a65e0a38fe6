/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folds what follows a Conv, ConvTranspose or Gemm and is linear in each output channel
 * into its weight and bias: a BatchNormalization, and the Add of one constant for each
 * channel. The layer then computes the same up to the rounding of float32.
 *
 * Alpha and beta of a Gemm are folded likewise, where rule P1 is on.
 *
 * A node is folded where it alone reads the layer's output, all its parameters are
 * float32 constants, and neither an entry of the spec nor a given range names it.
 */
#include "config.h"
#include "transform/prepare/prepare.h"

#include "numbers/arithmetic/both.h"
#include "ground/base/glob.h"
#include "graph/edit/edit.h"
#include "files/model/constant.h"
#include "plan/placement/target.h"
#include "plan/targets/shared/plain_forms.h"
#include "transform/prepare/named.h"

#include <math.h>
#include <string.h>

enum { WEIGHT = 1, BIAS = 2, MAX_FOLDED = 8 };

struct folding {
    const struct qdq_model *model;
    const struct qdq_spec *spec;
    struct qdqi_arena *arena;
    struct qdqi_edit *edit;
    const struct qdqi_map *named; /* nodes and tensors that the spec names */
    bool follows;                 /* what follows a layer is folded */
    bool scales;                  /* alpha and beta of a Gemm are folded */
    size_t n_norms, n_biases, n_scaled;
    const char *first; /* the first node that is folded */
};

/* A layer and the linear function of each output channel that follows it: the result is
   the layer's product times factor[c], plus shift[c]. */
struct layer {
    size_t node;
    size_t folded[MAX_FOLDED]; /* the nodes that are folded into it, in order */
    size_t n_folded;
    struct qdqi_constant weight;
    size_t channels;
    bool is_scaled, has_bias; /* a Gemm with alpha or beta; a layer with a bias */
    double *factor, *shift;
};

/* --- constants ------------------------------------------------------------ */

/* Reads a float32 constant in C order. Returns false for any other tensor. */
static bool
read_floats(const struct qdq_model *model, const struct qdqi_tensor *t,
            struct qdqi_constant *ret)
{
    return t && t->is_fixed && !qdqi_constant_is_overridable(model, t) &&
           !qdqi_constant_read(model, t, ret, NULL) && ret->dtype == QDQI_FLOAT32 &&
           !ret->strides;
}

/* Reads one float32 for each of n channels. */
static bool
read_channels(const struct qdq_model *model, const struct qdqi_node *node, size_t input,
              size_t n, struct qdqi_constant *ret)
{
    return input < node->proto->n_input &&
           read_floats(model, node->inputs[input], ret) && ret->n == n;
}

/* --- what the spec names --------------------------------------------------- */

/* Returns whether an entry selects the node by its name, by a glob or by its operator. */
static bool
is_named(const struct folding *f, const struct qdqi_node *node)
{
    if (qdqi_map_get(f->named, node->name) ||
        qdqi_map_get(f->named, node->proto->op_type))
        return true;
    for (size_t i = 0; i < f->spec->n_layers; i++) {
        const struct qdq_layer_entry *entry = &f->spec->layers[i];
        if (entry->by == QDQ_BY_MATCH && qdqi_glob(entry->names[0], node->name))
            return true;
        for (size_t k = 0; entry->by == QDQ_BY_NAME && k < entry->n_names; k++)
            if (entry->names[k][0] == '@' &&
                strcmp(entry->names[k] + 1, node->outputs[0]->name) == 0)
                return true;
    }
    return false;
}

/* --- the layer ------------------------------------------------------------ */

/* Returns the number of output channels of a layer whose weight is folded; 0 for any
   other node. */
static size_t
count_channels(const struct folding *f, const struct qdqi_node *node,
               const struct qdqi_constant *w)
{
    const Onnx__NodeProto *proto = node->proto;
    int64_t groups = qdqi_node_int(proto, "group", 1);
    if (qdqi_node_is(proto, "Gemm"))
        return w->rank == 2 && (f->scales || qdqi_gemm_is_unscaled(proto))
                   ? (size_t)w->dims[!qdqi_node_int(proto, "transB", 0)]
                   : 0;
    if (w->rank < 3 || groups < 1 || w->dims[0] % groups != 0)
        return 0;
    return qdqi_node_is(proto, "Conv") ? (size_t)w->dims[0]
                                       : (size_t)(w->dims[1] * groups);
}

/* Returns the output channel of element i of the weight. */
static size_t
channel_of(const struct qdqi_node *node, const struct qdqi_constant *w, size_t i)
{
    size_t inner = w->n / (size_t)w->dims[0];
    if (qdqi_node_is(node->proto, "Gemm"))
        return qdqi_node_int(node->proto, "transB", 0) ? i / inner
                                                       : i % (size_t)w->dims[1];
    if (qdqi_node_is(node->proto, "Conv"))
        return i / inner;
    size_t minor = (size_t)w->dims[1];
    size_t group = (size_t)(w->dims[0] / qdqi_node_int(node->proto, "group", 1));
    return i / inner / group * minor + i / (inner / minor) % minor;
}

/* Returns whether only this node's input 1 reads the weight. */
static bool
is_own_weight(const struct qdqi_tensor *t)
{
    return t->uses && !t->uses->next && !t->is_output && !t->is_captured;
}

static double
float_of(const Onnx__NodeProto *proto, const char *name)
{
    const Onnx__AttributeProto *a = qdqi_node_attribute(proto, name);
    return a ? (double)a->f : 1;
}

static bool
begin(struct folding *f, size_t i, struct layer *ret)
{
    static const char *const ops[] = {"Conv", "ConvTranspose", "Gemm", NULL};
    const struct qdqi_node *node = &f->model->graph.nodes[i];
    struct qdqi_constant bias;
    if (!qdqi_node_is_one_of(node->proto, ops) || node->proto->n_input < 2 ||
        node->proto->n_output != 1 || !node->outputs[0] ||
        !read_floats(f->model, node->inputs[WEIGHT], &ret->weight) ||
        ret->weight.n == 0 || !is_own_weight(node->inputs[WEIGHT]))
        return false;
    size_t n = count_channels(f, node, &ret->weight);
    bool has_bias = node->proto->n_input > BIAS && node->inputs[BIAS];
    if (n == 0 || (has_bias && !read_channels(f->model, node, BIAS, n, &bias)))
        return false;
    const bool gemm = qdqi_node_is(node->proto, "Gemm");
    const double alpha = gemm ? float_of(node->proto, "alpha") : 1,
                 beta = gemm ? float_of(node->proto, "beta") : 1;
    ret->is_scaled = gemm && !qdqi_gemm_is_unscaled(node->proto);
    ret->has_bias = has_bias;
    ret->node = i;
    ret->n_folded = 0;
    ret->channels = n;
    ret->factor = qdqi_arena_array(f->arena, n, sizeof *ret->factor);
    ret->shift = qdqi_arena_array(f->arena, n, sizeof *ret->shift);
    if (!ret->factor || !ret->shift)
        return false;
    for (size_t c = 0; c < n; c++) {
        ret->factor[c] = alpha;
        ret->shift[c] = has_bias ? beta * qdqi_float_at(bias.bytes, c) : 0;
    }
    return true;
}

/* --- what follows it ------------------------------------------------------- */

/* Returns the only reader of the layer's output, or NULL. */
static const struct qdqi_use *
reader_of(const struct folding *f, const struct layer *layer)
{
    const struct qdqi_graph *graph = &f->model->graph;
    const size_t last =
        layer->n_folded ? layer->folded[layer->n_folded - 1] : layer->node;
    const struct qdqi_tensor *t = graph->nodes[last].outputs[0];
    const struct qdqi_use *use = t->uses;
    if (layer->n_folded == MAX_FOLDED || t->is_output || t->is_captured || !use ||
        use->next || graph->nodes[use->node].scope != graph->nodes[layer->node].scope ||
        qdqi_map_get(f->named, t->name))
        return NULL;
    const struct qdqi_node *node = &graph->nodes[use->node];
    return node->proto->n_output > 0 && node->outputs[0] && !is_named(f, node) ? use
                                                                               : NULL;
}

/* Returns whether outputs of a BatchNormalization for training are there. */
static bool
is_inference(const struct qdqi_node *node)
{
    for (size_t i = 1; i < node->proto->n_output; i++)
        if (node->outputs[i])
            return false;
    return !qdqi_node_int(node->proto, "training_mode", 0) &&
           qdqi_node_int(node->proto, "spatial", 1);
}

static bool
read_norm(const struct folding *f, const struct qdqi_node *node, struct layer *layer)
{
    const Onnx__AttributeProto *a = qdqi_node_attribute(node->proto, "epsilon");
    struct qdqi_constant scale, offset, mean, variance;
    const double epsilon = a ? a->f : 1e-5F;
    const size_t n = layer->channels;
    if (!is_inference(node) || !read_channels(f->model, node, 1, n, &scale) ||
        !read_channels(f->model, node, 2, n, &offset) ||
        !read_channels(f->model, node, 3, n, &mean) ||
        !read_channels(f->model, node, 4, n, &variance))
        return false;
    for (size_t c = 0; c < n; c++)
        if (!(qdqi_float_at(variance.bytes, c) + epsilon > 0))
            return false;
    for (size_t c = 0; c < n; c++) {
        double factor = qdqi_float_at(scale.bytes, c) /
                        sqrt(qdqi_float_at(variance.bytes, c) + epsilon);
        layer->factor[c] *= factor;
        layer->shift[c] = (layer->shift[c] - qdqi_float_at(mean.bytes, c)) * factor +
                          qdqi_float_at(offset.bytes, c);
    }
    return true;
}

/* Returns whether the constant has one element for each channel, at the axis of the
   channels of a tensor of that rank, and so does not widen the tensor. */
static bool
lies_along_channels(const struct qdqi_constant *c, size_t rank, size_t from_end,
                    size_t channels)
{
    return c->n == channels && c->rank >= from_end && c->rank <= rank &&
           (size_t)c->dims[c->rank - from_end] == channels;
}

static bool
read_bias(const struct folding *f, const struct qdqi_node *node, int input,
          struct layer *layer)
{
    const bool gemm = qdqi_node_is(f->model->graph.nodes[layer->node].proto, "Gemm");
    const size_t rank = gemm ? 2 : layer->weight.rank;
    struct qdqi_constant bias;
    if (node->proto->n_input != 2 || qdqi_node_attribute(node->proto, "axis") ||
        !read_floats(f->model, node->inputs[!input], &bias) ||
        !lies_along_channels(&bias, rank, gemm ? 1 : rank - 1, layer->channels))
        return false;
    for (size_t c = 0; c < layer->channels; c++)
        layer->shift[c] += qdqi_float_at(bias.bytes, c);
    return true;
}

/* Takes the nodes that follow the layer, as far as they can be folded. */
static void
follow(const struct folding *f, struct layer *layer)
{
    const struct qdqi_use *use;
    bool taken = true;
    while (taken && (use = reader_of(f, layer))) {
        const struct qdqi_node *node = &f->model->graph.nodes[use->node];
        if (qdqi_node_is(node->proto, "BatchNormalization") && use->input == 0)
            taken = read_norm(f, node, layer);
        else
            taken = qdqi_node_is(node->proto, "Add") &&
                    read_bias(f, node, use->input, layer);
        if (taken)
            layer->folded[layer->n_folded++] = use->node;
    }
}

/* --- the result ------------------------------------------------------------ */

/* Computes the folded weight and bias. Returns false where a number is not finite. */
static bool
compute(const struct folding *f, const struct layer *layer, float *weight, float *bias)
{
    const struct qdqi_node *node = &f->model->graph.nodes[layer->node];
    const struct qdqi_constant *w = &layer->weight;
    bool finite = true;
    for (size_t i = 0; i < w->n; i++) {
        weight[i] =
            (float)(qdqi_float_at(w->bytes, i) * layer->factor[channel_of(node, w, i)]);
        finite &= isfinite(weight[i]) != 0;
    }
    for (size_t c = 0; c < layer->channels; c++) {
        bias[c] = (float)layer->shift[c];
        finite &= isfinite(bias[c]) != 0;
    }
    return finite;
}

/* Removes a node that is folded into the layer, and the constants that it alone read. */
static void
remove_node(struct folding *f, const struct layer *layer, size_t i)
{
    const struct qdqi_node *node = &f->model->graph.nodes[i];
    const bool norm = qdqi_node_is(node->proto, "BatchNormalization");
    if (!f->first)
        f->first = node->name;
    f->n_norms += norm;
    f->n_biases += !norm;
    qdqi_edit_absorb(f->edit, i, layer->node);
    for (size_t k = 0; k < node->proto->n_input; k++)
        if (node->inputs[k] && node->inputs[k]->is_fixed)
            qdqi_edit_drop_unused(f->edit, node->inputs[k]->name);
}

/* Makes alpha and beta of a Gemm 1, which they are where they are left out. */
static void
drop_factors(struct folding *f, const struct layer *layer)
{
    qdqi_edit_retype(f->edit, layer->node, "Gemm", "", "alpha");
    qdqi_edit_retype(f->edit, layer->node, "Gemm", "", "beta");
    f->n_scaled++;
    if (!f->first)
        f->first = f->model->graph.nodes[layer->node].name;
}

static void
store(struct folding *f, const struct layer *layer, const float *weight,
      const float *bias)
{
    const struct qdqi_node *node = &f->model->graph.nodes[layer->node];
    const struct qdqi_constant *w = &layer->weight;
    const char *base = node->inputs[WEIGHT]->name;
    const int64_t channels[] = {(int64_t)layer->channels};
    const char *names[] = {qdqi_edit_name(f->edit, base, "_folded"),
                           qdqi_edit_name(f->edit, base, "_bias")};
    if (!names[0] || !names[1])
        return; /* the edit fails */
    qdqi_edit_add_tensor(f->edit, names[0], QDQI_FLOAT32, w->rank, w->dims, weight,
                         w->n * sizeof *weight);
    qdqi_edit_add_tensor(f->edit, names[1], QDQI_FLOAT32, 1, channels, bias,
                         layer->channels * sizeof *bias);
    qdqi_edit_set_input(f->edit, layer->node, WEIGHT, names[0]);
    if (layer->has_bias || layer->n_folded > 0)
        qdqi_edit_put_input(f->edit, layer->node, BIAS, names[1]);
    if (layer->is_scaled)
        drop_factors(f, layer);
    for (size_t i = 0; i < layer->n_folded; i++)
        remove_node(f, layer, layer->folded[i]);
    qdqi_edit_drop_unused(f->edit, base);
    if (node->proto->n_input > BIAS && node->inputs[BIAS])
        qdqi_edit_drop_unused(f->edit, node->inputs[BIAS]->name);
}

static enum qdq_code
fold_layer(struct folding *f, size_t i, struct qdq_error *err)
{
    struct layer layer;
    if (!begin(f, i, &layer))
        return qdqi_arena_exhausted(f->arena) ? qdqi_no_memory(err) : QDQ_OK;
    if (f->follows)
        follow(f, &layer);
    if (layer.n_folded == 0 && !layer.is_scaled)
        return QDQ_OK;
    float *weight = qdqi_arena_array(f->arena, layer.weight.n, sizeof *weight);
    float *bias = qdqi_arena_array(f->arena, layer.channels, sizeof *bias);
    if (!weight || !bias)
        return qdqi_no_memory(err);
    if (compute(f, &layer, weight, bias))
        store(f, &layer, weight, bias);
    return QDQ_OK;
}

/* --- the step -------------------------------------------------------------- */

static enum qdq_code
fold_all(struct folding *f, struct qdq_error *err)
{
    const struct qdqi_graph *graph = &f->model->graph;
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < graph->n_nodes && !code; i++)
        if (!graph->scopes[graph->nodes[i].scope].is_opaque)
            code = fold_layer(f, i, err);
    return code;
}

/* Tells that the model was changed. The node is the first one that is gone. */
static enum qdq_code
warn_folded(struct qdqi_preparing *p, const struct folding *f, struct qdq_error *err)
{
    if (f->n_scaled == 0)
        return qdqi_warn(&p->warnings, p->arena, err, "layers_folded", f->first,
                         "%zu BatchNormalization and %zu Add of a bias, this one "
                         "first, are folded into the layers before them",
                         f->n_norms, f->n_biases);
    return qdqi_warn(&p->warnings, p->arena, err, "layers_folded", f->first,
                     "%zu BatchNormalization, %zu Add of a bias, and alpha and beta of "
                     "%zu Gemm, this one first, are folded into weights and biases",
                     f->n_norms, f->n_biases, f->n_scaled);
}

/* Finds out what is folded. Returns false where nothing is. */
static bool
is_wanted(const struct qdqi_preparing *p, struct folding *f)
{
    struct qdq_spec spec = *p->spec;
    qdq_spec_complete(&spec);
    const struct qdqi_hooks *hooks = spec.target->hooks;
    f->follows = hooks->folds && hooks->folds(&spec);
    f->scales = hooks->folds && qdqi_has_plain_forms(&spec);
    return (f->follows || f->scales) && !p->model->proto->n_training_info;
}

enum qdq_code
qdqi_step_fold(struct qdqi_preparing *p, struct qdq_model **ret, struct qdq_error *err)
{
    struct folding f = {.model = p->model, .spec = p->spec};
    enum qdq_code code = QDQ_OK;
    if (!is_wanted(p, &f))
        return QDQ_OK;
    if ((f.arena = qdqi_arena_new())) {
        f.edit = qdqi_edit_new(p->model, f.arena);
        f.named = qdqi_named_by_spec(p->spec, f.arena);
    }
    if (!f.edit || !f.named) {
        code = qdqi_no_memory(err);
        goto out;
    }
    if (!(code = fold_all(&f, err)) && f.first &&
        !(code = qdqi_edit_derive(f.edit, &f.arena, ret, err)))
        code = warn_folded(p, &f, err);
out:
    qdqi_arena_free(&f.arena);
    return code;
}
