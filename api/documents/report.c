/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "api/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/spec.h"
#include "base/json.h"
#include "documents/report_recipe.h"
#include "documents/report_stages.h"

/* version of the report, raised when a member changes its meaning */
enum { SCHEMA = 1 };

static json_t *
integer(uint64_t value)
{
    return json_integer((json_int_t)value);
}

/* Encodes an index or an axis; null when there is none. */
static json_t *
index_or_null(int value)
{
    return value < 0 ? json_null() : json_integer(value);
}

/* --- plan ----------------------------------------------------------------- */

static json_t *
encode_int(const void *items, size_t i)
{
    return json_integer(((const int *)items)[i]);
}

/* Encodes the ids of a set of rules. */
static json_t *
encode_rules(uint64_t set)
{
    json_t *ids = json_array();
    for (size_t i = 0; ids && qdq_rule(i); i++)
        if ((set >> i & 1) &&
            json_array_append_new(ids, json_string(qdq_rule(i)->id)) != 0) {
            json_decref(ids);
            ids = NULL;
        }
    return ids;
}

static json_t *
encode_layer(const void *items, size_t i)
{
    const struct qdq_layer *layer = (const struct qdq_layer *)items + i;
    bool weight = layer->weight_input >= 0;
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o}", "name",
        api_json_text(layer->name), "op", api_json_text(layer->op), "class",
        api_json_text(layer->cls), "quantized_inputs",
        api_json_list(layer->quantized_inputs, layer->n_inputs, encode_int),
        "quantized_outputs",
        api_json_list(layer->quantized_outputs, layer->n_outputs, encode_int),
        "weight_quantized", weight, "weight_axis",
        index_or_null(weight ? layer->weight_axis : -1), "reason",
        api_json_text(layer->reason), "rules", encode_rules(layer->rules));
}

static json_t *
encode_warning(const void *items, size_t i)
{
    const struct qdq_warning *warning = (const struct qdq_warning *)items + i;
    return json_pack("{s:o, s:o, s:o, s:o}", "code", api_json_text(warning->code),
                     "detail", api_json_text(warning->detail), "node",
                     api_json_text(warning->node), "rule",
                     api_json_text(warning->rule));
}

/* Encodes the summary. Its size_after is null before the model is written. */
static json_t *
encode_summary(const struct qdq_plan_view *plan, size_t pairs, uint64_t size_before,
               json_t *size_after, const char *verdict)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "layers",
                     integer(plan->n_layers), "quantized_layers",
                     integer(plan->n_quantized), "qdq_pairs", integer(pairs),
                     "size_before", integer(size_before), "size_after", size_after,
                     "verdict", api_json_text(verdict));
}

char *
api_plan_encode(const struct qdq_plan_view *plan, const struct qdq_model_info *model)
{
    json_t *summary =
        encode_summary(plan, plan->n_tensors + plan->n_weights,
                       model->size + model->external_size, json_null(), NULL);
    return api_json_dump(
        json_pack("{s:o, s:o, s:o}", "summary", summary, "layers",
                  api_json_list(plan->layers, plan->n_layers, encode_layer), "warnings",
                  api_json_list(plan->warnings, plan->n_warnings, encode_warning)),
        0);
}

/* --- what-ifs: each is null when the spec did not ask for it ------------- */

static json_t *
encode_cost(const void *items, size_t i)
{
    const struct qdq_sensitivity *row = (const struct qdq_sensitivity *)items + i;
    return json_pack("{s:o, s:o, s:o}", "name", api_json_text(row->name),
                     "sqnr_db_alone", api_json_real(row->sqnr_db_alone), "gain_db",
                     api_json_real(row->gain_db));
}

static json_t *
encode_sensitivity(const struct qdq_report *report)
{
    if (!report->sensitivity)
        return json_null();
    return api_json_list(report->sensitivity, report->n_sensitivity, encode_cost);
}

static json_t *
encode_name(const void *items, size_t i)
{
    return api_json_text(((const char *const *)items)[i]);
}

static json_t *
encode_step(const void *items, size_t i)
{
    const struct qdq_search_step *step = (const struct qdq_search_step *)items + i;
    return json_pack("{s:o, s:o, s:o, s:o}", "float_layers",
                     integer(step->float_layers), "layer", api_json_text(step->layer),
                     "sqnr_db", api_json_real(step->sqnr_db), "top1_agreement",
                     api_json_real(step->top1_agreement));
}

static json_t *
encode_search(const struct qdq_search_report *search)
{
    if (!search)
        return json_null();
    json_t *deployed =
        isnan(search->deployed_sqnr_db)
            ? json_null()
            : json_pack("{s:o, s:o}", "sqnr_db",
                        api_json_real(search->deployed_sqnr_db), "top1_agreement",
                        api_json_real(search->deployed_top1));
    return json_pack(
        "{s:I, s:b, s:o, s:o, s:o}", "samples", (json_int_t)search->samples, "met",
        search->met, "deployed", deployed, "float_layers",
        api_json_list(search->layers, search->n_layers, encode_name), "curve",
        api_json_list(search->steps, search->n_steps, encode_step));
}

static json_t *
encode_refinement(const struct qdq_refinement *r)
{
    if (!r)
        return json_null();
    return json_pack("{s:o, s:I, s:o, s:o, s:o}", "start", api_json_text(r->start),
                     "samples", (json_int_t)r->samples, "adjusted",
                     integer(r->adjusted), "sqnr_db_before",
                     api_json_real(r->sqnr_db_before), "sqnr_db_after",
                     api_json_real(r->sqnr_db_after));
}

/* --- report --------------------------------------------------------------- */

static json_t *
encode_tensor(const void *items, size_t i)
{
    const struct qdq_tensor_report *tensor =
        (const struct qdq_tensor_report *)items + i;
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:I}", "name", api_json_text(tensor->name),
        "min", api_json_real(tensor->min), "max", api_json_real(tensor->max), "dtype",
        api_json_text(tensor->dtype), "scale", api_json_real(tensor->scale),
        "zero_point", (json_int_t)tensor->zero_point, "method",
        api_json_text(tensor->method), "samples", (json_int_t)tensor->samples);
}

/* The largest number of a weight's parts whose scales a report lists. */
enum { MOST_PARTS = QDQ_SCALE_PARTS };

/* Returns the largest scale of each part of the channels, in their order; null for a weight
   with one scale. */
static json_t *
encode_channel_scales(const struct qdq_weight_report *weight)
{
    size_t n = weight->n_scales, parts = n < MOST_PARTS ? n : MOST_PARTS, k = 0;
    bool kept = weight->scales;
    json_t *list = n > 1 ? json_array() : json_null();
    for (size_t part = 0; n > 1 && part < parts; part++) {
        double largest = kept ? 0 : (double)weight->part_scales[part];
        for (; kept && k < (part + 1) * n / parts; k++)
            largest = fmax(largest, (double)weight->scales[k]);
        if (json_array_append_new(list, api_json_real(largest)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *
encode_weight(const void *items, size_t i)
{
    const struct qdq_weight_report *weight =
        (const struct qdq_weight_report *)items + i;
    size_t n = weight->n_scales;
    double low = n ? INFINITY : NAN, high = n ? 0 : NAN;
    if (n > 0 && !weight->scales) {
        low = (double)weight->scale_min;
        high = (double)weight->scale_max;
    }
    for (size_t k = 0; weight->scales && k < n; k++) {
        low = fmin(low, (double)weight->scales[k]);
        high = fmax(high, (double)weight->scales[k]);
    }
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name",
        api_json_text(weight->name), "layer", api_json_text(weight->layer), "axis",
        index_or_null(weight->axis), "dtype", api_json_text(weight->dtype),
        "granularity", api_json_text(weight->granularity), "block",
        weight->block > 0 ? json_integer(weight->block) : json_null(), "scales",
        integer(n), "scale_min", api_json_real(low), "scale_max", api_json_real(high),
        "channel_scales", encode_channel_scales(weight));
}

static json_t *
encode_output(const void *items, size_t i)
{
    const struct qdq_output_report *output =
        (const struct qdq_output_report *)items + i;
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "name", api_json_text(output->name),
                     "sqnr_db", api_json_real(output->sqnr_db), "cosine",
                     api_json_real(output->cosine), "max_abs_error",
                     api_json_real(output->max_abs_error), "top1_agreement",
                     api_json_real(output->top1_agreement));
}

static json_t *
encode_layer_error(const void *items, size_t i)
{
    const struct qdq_layer_error *layer = (const struct qdq_layer_error *)items + i;
    return json_pack("{s:o, s:o}", "name", api_json_text(layer->name), "sqnr_db",
                     api_json_real(layer->sqnr_db));
}

static json_t *
encode_gate(const void *items, size_t i)
{
    const struct qdq_gate_report *gate = (const struct qdq_gate_report *)items + i;
    return json_pack("{s:o, s:o, s:o, s:o, s:b}", "output", api_json_text(gate->output),
                     "name", api_json_text(gate->gate), "wanted",
                     api_json_real(gate->bound), "measured", api_json_real(gate->value),
                     "met", gate->met);
}

/* Encodes the bounds that outputs missed. */
static json_t *
encode_missed(const struct qdq_report *report)
{
    json_t *missed = json_array();
    for (size_t i = 0; missed && i < report->n_gates; i++) {
        const struct qdq_gate_report *gate = &report->gates[i];
        if (gate->met || !gate->output)
            continue;
        json_t *row =
            json_pack("{s:o, s:o, s:o, s:o}", "output", api_json_text(gate->output),
                      "gate", api_json_text(gate->gate), "bound",
                      api_json_real(gate->bound), "value", api_json_real(gate->value));
        if (json_array_append_new(missed, row) != 0) {
            json_decref(missed);
            missed = NULL;
        }
    }
    return missed;
}

/* Encodes the figures as deployed; null where the result was not run in that way. */
static json_t *
encode_deployed(const struct qdq_deployed *deployed)
{
    if (!deployed)
        return json_null();
    return json_pack(
        "{s:o, s:{s:o, s:o, s:o*}, s:o}", "processor",
        api_json_text(deployed->processor), "runtime", "name",
        api_json_text(deployed->runtime), "version", api_json_text(deployed->version),
        "device", deployed->device ? api_json_text(deployed->device) : NULL, "outputs",
        api_json_list(deployed->outputs, deployed->n_outputs, encode_output));
}

static json_t *
encode_unjudged(const void *items, size_t i)
{
    const struct qdq_unjudged *row = (const struct qdq_unjudged *)items + i;
    return json_pack("{s:s, s:o, s:o}", "kind", row->is_layer ? "layer" : "output",
                     "name", api_json_text(row->name), "reason",
                     api_json_text(row->reason));
}

static json_t *
encode_evaluation(const struct qdq_report *report)
{
    if (report->evaluated_samples == 0)
        return json_null();
    return json_pack(
        "{s:I, s:o, s:o, s:o, s:o, s:o}", "samples",
        (json_int_t)report->evaluated_samples, "outputs",
        api_json_list(report->outputs, report->n_outputs, encode_output), "deployed",
        encode_deployed(report->deployed), "layers",
        api_json_list(report->layer_errors, report->n_layer_errors, encode_layer_error),
        "not_judged",
        api_json_list(report->unjudged, report->n_unjudged, encode_unjudged), "missed",
        encode_missed(report));
}

static json_t *
encode_equalized(const void *items, size_t i)
{
    const struct qdq_equalization *row = (const struct qdq_equalization *)items + i;
    return json_pack("{s:o, s:o, s:o, s:o}", "first", api_json_text(row->first),
                     "second", api_json_text(row->second), "channels",
                     integer(row->channels), "reason", api_json_text(row->reason));
}

static json_t *
encode_smoothed(const void *items, size_t i)
{
    const struct qdq_smoothing *row = (const struct qdq_smoothing *)items + i;
    json_t *layers = json_array();
    for (size_t k = 0; k < row->n_layers; k++)
        json_array_append_new(layers, api_json_text(row->layers[k]));
    return json_pack("{s:o, s:o, s:o, s:b, s:o}", "tensor", api_json_text(row->tensor),
                     "layers", layers, "channels", integer(row->channels), "inserted",
                     row->inserted, "reason", api_json_text(row->reason));
}

static json_t *
encode_kept(const void *items, size_t i)
{
    const struct qdq_kept_node *row = (const struct qdq_kept_node *)items + i;
    return json_pack("{s:o, s:o}", "name", api_json_text(row->name), "reason",
                     api_json_text(row->reason));
}

/* Encodes the result of `float`; null when the spec did not ask for it. */
static json_t *
encode_float(const struct qdq_float_report *floats)
{
    if (!floats)
        return json_null();
    return json_pack("{s:o, s:o, s:o}", "type", api_json_text(floats->type), "nodes",
                     integer(floats->n_nodes), "kept",
                     api_json_list(floats->kept, floats->n_kept, encode_kept));
}

/* Encodes the result of `equalize`; null when the spec did not ask for it. */
static json_t *
encode_equalization(const struct qdq_report *report)
{
    if (!report->spec->equalize)
        return json_null();
    return api_json_list(report->equalization, report->n_equalization,
                         encode_equalized);
}

static json_t *
encode_calibration(const struct qdq_report *report)
{
    if (!report->dataset_id && report->calibration_samples == 0)
        return json_null();
    return json_pack("{s:o, s:I, s:I, s:o}", "id", api_json_text(report->dataset_id),
                     "samples", (json_int_t)report->calibration_samples, "inferences",
                     (json_int_t)report->inferences, "reused", integer(report->reused));
}

static json_t *
encode_host(const struct qdq_host_report *host)
{
    return json_pack("{s:o, s:o, s:o}", "name", api_json_text(host->name), "reason",
                     api_json_text(host->reason), "processor",
                     api_json_text(host->processor));
}

static json_t *
encode_rule(const void *items, size_t i)
{
    const struct qdq_rule_report *row = (const struct qdq_rule_report *)items + i;
    return json_pack("{s:o, s:b, s:o}", "id", api_json_text(row->id), "on", row->on,
                     "reason", api_json_text(row->reason));
}

static json_t *
encode_model(const struct qdq_report *report)
{
    const struct qdq_model_info *model = report->model;
    return json_pack(
        "{s:o, s:o, s:o, s:I, s:I, s:o, s:o, s:o}", "id",
        api_json_text(report->model_id), "name", api_json_text(model->name), "producer",
        api_json_text(model->producer), "ir_version", (json_int_t)model->ir_version,
        "opset", (json_int_t)model->opset, "size", integer(model->size), "nodes",
        integer(model->n_nodes), "initializers", integer(model->n_initializers));
}

/* Encodes the seconds of each stage, and their sum. */
static json_t *
encode_report_summary(const struct qdq_report *report)
{
    return encode_summary(report->plan, report->qdq_pairs, report->size_before,
                          integer(report->size_after), report->verdict);
}

static json_t *
encode_spec(const struct qdq_spec *spec)
{
    char *text = api_spec_encode(spec);
    json_t *json = text ? json_loads(text, 0, NULL) : NULL;
    free(text);
    return json;
}

char *
api_summary_encode(const struct qdq_report *report)
{
    return api_json_dump(encode_report_summary(report), 0);
}

const char *
api_summary_verdict(const char *summary)
{
    static const char *const verdicts[] = {"good", "fair", "poor", NULL};
    json_t *json = summary ? json_loads(summary, 0, NULL) : NULL;
    const char *verdict = json_string_value(json_object_get(json, "verdict"));
    size_t i = 0;
    while (verdict && verdicts[i] && strcmp(verdicts[i], verdict) != 0)
        i++;
    const char *found = verdict ? verdicts[i] : NULL;
    json_decref(json);
    return found;
}

/* Writes the pointer of the spec's member that sets the bound. */
static void
point_at(const struct qdq_gate_report *gate, char *to, size_t size)
{
    to[0] = '\0';
    api_json_pointer_add(to, size, "accept");
    if (gate->own) {
        api_json_pointer_add(to, size, "outputs");
        api_json_pointer_add(to, size, gate->output);
    }
    api_json_pointer_add(to, size, gate->gate);
}

/* Returns the first bound that was missed, and the number of all; NULL when there is none. */
static const struct qdq_gate_report *
find_missed(const struct qdq_report *report, size_t *ret_n)
{
    const struct qdq_gate_report *first = NULL;
    *ret_n = 0;
    for (size_t i = 0; i < report->n_gates; i++) {
        if (report->gates[i].met)
            continue;
        first = first ? first : &report->gates[i];
        ++*ret_n;
    }
    return first;
}

bool
api_report_accepted(const struct qdq_report *report, struct api_problem *problem)
{
    size_t n;
    const struct qdq_gate_report *missed = find_missed(report, &n);
    char where[sizeof problem->where], more[64] = "", what[160] = "the model";
    if (!missed)
        return true;
    const char *side = missed->at_most ? "at most" : "at least";
    point_at(missed, where, sizeof where);
    if (missed->output)
        snprintf(what, sizeof what, "output '%.128s'", missed->output);
    if (n > 1)
        snprintf(more, sizeof more, "; %zu more missed", n - 1);
    if (missed->why)
        return api_problem_set(problem, API_ACCURACY, QDQ_AT_POINTER, where,
                               "%s has no %s (%s), and %s %.9g is asked for%s", what,
                               missed->figure, missed->why, side, missed->bound, more);
    return api_problem_set(problem, API_ACCURACY, QDQ_AT_POINTER, where,
                           "%s has %s %.9g, and %s %.9g is asked for%s", what,
                           missed->figure, missed->value, side, missed->bound, more);
}

static json_t *
encode_float_kernel(const void *items, size_t i)
{
    const struct qdq_float_kernel *row = (const struct qdq_float_kernel *)items + i;
    return json_pack("{s:o, s:o}", "name", api_json_text(row->name), "reason",
                     api_json_text(row->reason));
}

/* Encodes the counts of kernels; null where they were not counted. */
static json_t *
encode_kernels(const struct qdq_kernels *kernels)
{
    if (!kernels)
        return json_null();
    json_t *ops = json_object();
    for (size_t i = 0; ops && i < kernels->n_ops; i++)
        if (json_object_set_new(ops, kernels->ops[i].op,
                                integer(kernels->ops[i].count)) != 0) {
            json_decref(ops);
            ops = NULL;
        }
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o*}", "integer", integer(kernels->integer),
        "conversions", integer(kernels->conversions), "ops", ops, "floats",
        api_json_list(kernels->floats, kernels->n_floats, encode_float_kernel),
        "runner", kernels->runner ? api_json_text(kernels->runner) : NULL);
}

static json_t *
encode_latency(const struct qdq_latency *latency)
{
    uint64_t peak = latency->peak_bytes;
    return json_pack("{s:o, s:o, s:o}", "p50_ms", api_json_real(latency->p50_ms),
                     "p90_ms", api_json_real(latency->p90_ms), "peak_bytes",
                     peak ? integer(peak) : json_null());
}

static json_t *
encode_op_time(const void *items, size_t i)
{
    const struct qdq_op_time *row = (const struct qdq_op_time *)items + i;
    return json_pack("{s:o, s:o, s:o}", "op", api_json_text(row->op), "float_ms",
                     api_json_real(row->ms[QDQ_SIDE_FLOAT]), "quantized_ms",
                     api_json_real(row->ms[QDQ_SIDE_QUANTIZED]));
}

static json_t *
encode_node_time(const void *items, size_t i)
{
    const struct qdq_node_time *row = (const struct qdq_node_time *)items + i;
    return json_pack("{s:s, s:o, s:o, s:o, s:o}", "model",
                     row->quantized ? "quantized" : "float", "name",
                     api_json_text(row->name), "op", api_json_text(row->op), "provider",
                     api_json_text(row->provider), "ms", api_json_real(row->ms));
}

/* Encodes the float model with the runtime's own precision; null where that is float32. */
static json_t *
encode_default(const struct qdq_profile *p)
{
    if (!p->default_precision)
        return json_null();
    return json_pack("{s:o, s:o, s:o}", "precision",
                     api_json_text(p->default_precision), "p50_ms",
                     api_json_real(p->default_float.p50_ms), "p90_ms",
                     api_json_real(p->default_float.p90_ms));
}

/* Encodes the latency; null where it was not measured. */
static json_t *
encode_profile(const struct qdq_profile *p)
{
    if (!p)
        return json_null();
    return json_pack(
        "{s:o, s:{s:o, s:o}, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
        "processor", api_json_text(p->processor), "runtime", "name",
        api_json_text(p->runtime), "version", api_json_text(p->version), "runs",
        (json_int_t)p->runs, "threads", (json_int_t)p->threads, "batch",
        (json_int_t)p->batch, "float", encode_latency(&p->sides[QDQ_SIDE_FLOAT]),
        "quantized", encode_latency(&p->sides[QDQ_SIDE_QUANTIZED]), "default_float",
        encode_default(p), "ratio", api_json_real(p->ratio), "ratio_low",
        api_json_real(p->ratio_low), "ratio_high", api_json_real(p->ratio_high),
        "operators", api_json_list(p->ops, p->n_ops, encode_op_time), "nodes",
        api_json_list(p->nodes, p->n_nodes, encode_node_time));
}

static json_t *
encode_edge(const void *items, size_t i)
{
    const struct qdq_edge *edge = (const struct qdq_edge *)items + i;
    return json_pack("[o, o, o]", api_json_text(edge->from), api_json_text(edge->to),
                     api_json_text(edge->tensor));
}

static json_t *
encode_count(const void *items, size_t i)
{
    return integer(((const uint64_t *)items)[i]);
}

static json_t *
encode_histogram(const void *items, size_t i)
{
    const struct qdq_histogram_report *h =
        (const struct qdq_histogram_report *)items + i;
    return json_pack("{s:o, s:o, s:o, s:o, s:b, s:[o, o], s:o, s:o}", "tensor",
                     api_json_text(h->tensor), "low", api_json_real(h->low), "high",
                     api_json_real(h->high), "counts",
                     api_json_list(h->counts, h->n, encode_count), "magnitudes",
                     h->magnitudes, "range", api_json_real(h->min),
                     api_json_real(h->max), "clipped", api_json_real(h->clipped),
                     "sqnr_db", api_json_real(h->sqnr_db));
}

/* Encodes the report without its histograms. */
static json_t *
encode_body(const struct qdq_report *report)
{
    return json_pack(
        "{s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o}",
        "schema", SCHEMA, "engine", qdq_version(), "model", encode_model(report),
        "calibration", encode_calibration(report), "spec", encode_spec(report->spec),
        "device", api_json_text(report->device), "host", encode_host(&report->host),
        "rules", api_json_list(report->rules, report->n_rules, encode_rule), "summary",
        encode_report_summary(report), "external_bytes",
        integer(report->external_bytes), "layers",
        api_json_list(report->plan->layers, report->plan->n_layers, encode_layer),
        "edges", api_json_list(report->edges, report->n_edges, encode_edge), "tensors",
        api_json_list(report->tensors, report->n_tensors, encode_tensor), "weights",
        api_json_list(report->weights, report->n_weights, encode_weight), "float",
        encode_float(report->floats), "equalization", encode_equalization(report),
        "smoothing",
        report->smoothing
            ? api_json_list(report->smoothing, report->n_smoothing, encode_smoothed)
            : json_null(),
        "evaluation", encode_evaluation(report), "gates",
        api_json_list(report->gates, report->n_gates, encode_gate), "refinement",
        encode_refinement(report->refinement), "sensitivity",
        encode_sensitivity(report), "search", encode_search(report->search), "recipe",
        api_encode_recipe(report->recipe), "what_ifs", (json_int_t)report->what_ifs,
        "kernels", encode_kernels(report->kernels), "profile",
        encode_profile(report->profile), "timings", api_encode_timings(report),
        "stages", api_encode_stages(report), "warnings",
        api_json_list(report->warnings, report->n_warnings, encode_warning));
}

/* The histograms are the first member, so that api_report_without_histograms() can cut them off. */
char *
api_report_encode(const struct qdq_report *report)
{
    json_t *whole = encode_body(report);
    if (whole && report->n_histograms) {
        json_t *body = whole;
        whole = json_pack(
            "{s:o}", API_REPORT_HISTOGRAMS,
            api_json_list(report->histograms, report->n_histograms, encode_histogram));
        if (whole && json_object_update(whole, body)) {
            json_decref(whole);
            whole = NULL;
        }
        json_decref(body);
    }
    return api_json_dump(whole, 0);
}
