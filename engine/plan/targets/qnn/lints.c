/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings about formats, sizes and nodes that the HTP does not compute in integers. */
#include "config.h"
#include "plan/targets/qnn/qnn.h"

#include "plan/placement/lint.h"

#include <string.h>

/* --- layers that entries leave without a pair ------------------------------------------ */

static bool
lint_htp_float_weight(const struct planner *p, const struct qdq_layer *layer)
{
    return layer->weight_input >= 0 && layer->n_inputs == 0 &&
           !qdqi_qnn_reads_table(p, layer);
}

const struct qdqi_lint qdqi_qnn_lints[] = {
    {QDQI_LINT(htp_float_weight), Q1,
     "the weight is integers and the input has no pair: the HTP computes the layer in "
     "float16",
     QDQI_LINT_ALWAYS},
    {0},
};

/* --- nodes in floating point ------------------------------------------------------------- */

/* Returns whether the node computes numbers that could have pairs. */
static bool
computes_floats(const struct planner *p, const struct qdqi_node *node)
{
    static const char *const others[] = {
        "Cast",           "Constant", "ConstantOfShape", "DequantizeLinear",
        "QuantizeLinear", NULL};
    const struct qdqi_tensor *t = node->proto->n_output ? node->outputs[0] : NULL;
    return t && !t->is_fixed && !t->is_shape && t->dtype == QDQI_FLOAT32 &&
           !p->model->graph.scopes[node->scope].is_opaque && !node->body &&
           !qdqi_node_is_one_of(node->proto, others) &&
           qdqi_htp_role(node->proto->op_type) != QDQI_HTP_MOVES;
}

/* Returns whether the node is computed in integers: by itself, or as a part of a layer. */
static bool
is_in_integers(const struct planner *p, size_t node)
{
    const struct qdq_layer *layer = p->by_node[node];
    return qdqi_gelu_part(p, node) != QDQI_GELU_NONE ||
           (layer && (layer->n_inputs > 0 || layer->n_outputs > 0 ||
                      qdq_rule_set_has(&layer->rules, Q5) ||
                      qdq_rule_set_has(&layer->rules, Q9)));
}

static enum qdq_code
warn_floats(struct planner *p, struct qdq_error *err)
{
    const struct qdqi_graph *graph = &p->model->graph;
    struct qdqi_layer_count erf = {0, NULL}, others = {0, NULL};
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct qdqi_node *node = &graph->nodes[i];
        if (!computes_floats(p, node) || is_in_integers(p, i))
            continue;
        struct qdqi_layer_count *to = qdqi_node_is(node->proto, "Erf") ? &erf : &others;
        to->first = to->n++ ? to->first : node->name;
    }
    enum qdq_code code = qdqi_warn_count(
        p, &erf, "htp_fallback",
        "the HTP has no Erf outside of a GELU: they run on the processor, and what "
        "surrounds them is cut in two",
        err);
    return code ? code
                : qdqi_warn_count(
                      p, &others, "htp_float",
                      p->spec->host == QDQ_HOST_V68
                          ? "no pairs stand around them, and an HTP of v68 has no "
                            "floats: they run on the processor, or, if the provider "
                            "takes them, the result does not load"
                          : "no pairs stand around them: the HTP computes them in "
                            "float16, or leaves them to the processor",
                      err);
}

/* --- sizes --------------------------------------------------------------------------------- */

/* Returns the name of an input with a size that the model leaves open, or NULL. */
static const char *
find_open(const struct planner *p)
{
    const struct qdq_model_info *info = &p->model->info;
    for (size_t i = 0; i < info->n_inputs; i++) {
        if (!info->inputs[i].has_shape)
            return info->inputs[i].name;
        for (size_t k = 0; k < info->inputs[i].rank; k++)
            if (info->inputs[i].dims[k].value < 0)
                return info->inputs[i].name;
    }
    return NULL;
}

static enum qdq_code
warn_sizes(struct planner *p, struct qdq_error *err)
{
    const char *name = find_open(p);
    return name ? qdqi_warn(&p->warnings, p->plan->arena, err, "htp_open_sizes", name,
                            "the HTP needs to know all sizes, and those of this input "
                            "are open: fix them where the model is loaded, by free "
                            "dimension overrides, or export the model with them")
                : QDQ_OK;
}

/* --- formats ------------------------------------------------------------------------------- */

static bool
has_blocks(const struct qdq_layer_format *f)
{
    return f->weights.granularity == QDQ_PER_BLOCK;
}

static bool
has_other_activations(const struct qdq_layer_format *f)
{
    return f->activations.format != QDQ_FORMAT_UINT8 &&
           f->activations.format != QDQ_FORMAT_UINT16;
}

static bool
has_other_weights(const struct qdq_layer_format *f)
{
    return f->weights.format != QDQ_FORMAT_INT8 &&
           f->weights.format != QDQ_FORMAT_INT4 &&
           f->weights.format != QDQ_FORMAT_INT3 &&
           f->weights.format != QDQ_FORMAT_UINT8;
}

/* Returns whether the formats of the plan, or of a layer, are of a kind. */
static bool
has_any(const struct planner *p, bool (*is)(const struct qdq_layer_format *f))
{
    bool any = is(&p->plan->format);
    for (size_t i = 0; i < p->n_layers && !any; i++)
        any = is(p->layers[i].format);
    return any;
}

/* Warns of GELUs that a rule which the spec switches on makes operators of a generation without
   any. */
static enum qdq_code
warn_gelus(struct planner *p, struct qdq_error *err)
{
    struct qdqi_layer_count gelus = {0, NULL};
    for (size_t i = 0; p->spec->host == QDQ_HOST_V68 && i < p->model->graph.n_nodes;
         i++)
        if (qdqi_node_is(p->model->graph.nodes[i].proto, "Erf") &&
            qdqi_gelu_part(p, i) != QDQI_GELU_NONE && gelus.n++ == 0)
            gelus.first = p->model->graph.nodes[i].name;
    return qdqi_warn_count(p, &gelus, "target_format",
                           "rule Q7 makes a GELU of it, and an HTP of v68 has none and "
                           "does not load the result: leave the rule to the host",
                           err);
}

static const char blocks_text[] =
    "the HTP has no scales for blocks of a weight: choose a scale for each channel";
static const char weights_text[] =
    "the HTP has weights of int8, of int4 with a scale for each channel, and of uint8 "
    "with one scale: choose one of these";

const char *
qdqi_qnn_refusal(const struct planner *p, const struct qdq_layer *layer)
{
    if (p->spec->weight_only || layer->weight_input < 0)
        return NULL;
    return has_blocks(layer->format)          ? blocks_text
           : has_other_weights(layer->format) ? weights_text
                                              : NULL;
}

enum qdq_code
qdqi_qnn_check_formats(struct planner *p, struct qdq_error *err)
{
    const char *text = NULL;
    if (p->spec->weight_only)
        text = "weights alone are integers: the HTP computes the layers in float16";
    else if (has_any(p, has_blocks))
        text = blocks_text;
    else if (has_any(p, has_other_activations))
        text = "the HTP computes activations of uint8 and uint16; it refuses layers of "
               "other formats, or computes them in float16";
    else if (has_any(p, has_other_weights))
        text = weights_text;
    enum qdq_code code = text ? qdqi_warn(&p->warnings, p->plan->arena, err,
                                          "target_format", NULL, "%s", text)
                              : QDQ_OK;
    if (!code && !p->spec->weight_only && p->spec->mode != QDQ_MODE_PARTIAL)
        code = warn_floats(p, err);
    if (!code)
        code = warn_gelus(p, err);
    return code ? code : warn_sizes(p, err);
}
