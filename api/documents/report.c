/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "api/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/genai.h"
#include "api/spec.h"
#include "base/json.h"
#include "documents/deploy.h"
#include "documents/output_rows.h"
#include "documents/report_bound.h"
#include "documents/report_graph.h"
#include "documents/report_recipe.h"

/* version of the report, raised when a member changes its meaning */
enum { SCHEMA = 1 };

/* --- plan ----------------------------------------------------------------- */

/* Encodes the ids of a set of a target's rules. */
static json_t *
encode_rules(const struct qdq_target *target, const struct qdq_rule_set *set)
{
    json_t *ids = json_array();
    bool ok = ids;
    for (size_t i = 0; ok && i < target->n_rules; i++)
        if (qdq_rule_set_has(set, i))
            ok = json_array_append_new(ids, json_string(target->rules[i].id)) == 0;
    return api_json_if(ok, ids);
}

/* Encodes layer i of a plan. */
static json_t *
encode_layer(const void *of_plan, size_t i)
{
    const struct qdq_plan_view *plan = of_plan;
    const struct qdq_layer *layer = &plan->layers[i];
    bool weight = layer->weight_input >= 0;
    return api_pack("name:t op:t class:t quantized_inputs:a quantized_outputs:a "
                    "weight_quantized:b weight_axis:x reason:t rules:j "
                    "weight_dtype:t weight_block:n input_dtype:t constant:b",
                    layer->name, layer->op, layer->cls, layer->quantized_inputs,
                    layer->n_inputs, api_json_int_item, layer->quantized_outputs,
                    layer->n_outputs, api_json_int_item, weight,
                    weight ? layer->weight_axis : -1, layer->reason,
                    encode_rules(plan->target, &layer->rules), layer->weight_dtype,
                    layer->weight_block, layer->input_dtype, layer->is_constant);
}

static json_t *
encode_warning(const void *items, size_t i)
{
    const struct qdq_warning *warning = (const struct qdq_warning *)items + i;
    return api_pack("code:t detail:t node:t rule:t", warning->code, warning->detail,
                    warning->node, warning->rule);
}

/* Encodes the summary. Its size_after is null before the model is written. */
static json_t *
encode_summary(const struct qdq_plan_view *plan, size_t pairs, uint64_t size_before,
               json_t *size_after, const char *verdict)
{
    return api_pack(
        "layers:i quantized_layers:i qdq_pairs:i size_before:i size_after:j "
        "verdict:t",
        plan->n_layers, plan->n_quantized, pairs, size_before, size_after, verdict);
}

char *
api_plan_encode(const struct qdq_plan_view *plan, const struct qdq_model_info *model)
{
    json_t *summary = encode_summary(
        plan, plan->n_pairs, model->size + model->external_size, json_null(), NULL);
    return api_json_dump(api_pack("summary:j layers:a warnings:a", summary, plan,
                                  plan->n_layers, encode_layer, plan->warnings,
                                  plan->n_warnings, encode_warning),
                         0);
}

/* --- what-ifs: each is null when the spec did not ask for it ------------- */

static json_t *
encode_cost(const void *items, size_t i)
{
    const struct qdq_sensitivity *row = (const struct qdq_sensitivity *)items + i;
    return api_pack("name:t sqnr_db_alone:r gain_db:r", row->name, row->sqnr_db_alone,
                    row->gain_db);
}

static json_t *
encode_step(const void *items, size_t i)
{
    const struct qdq_search_step *step = (const struct qdq_search_step *)items + i;
    return api_pack("float_layers:i layer:t sqnr_db:r top1_agreement:r",
                    step->float_layers, step->layer, step->sqnr_db,
                    step->top1_agreement);
}

static json_t *
encode_search(const struct qdq_search_report *search)
{
    if (!search)
        return json_null();
    json_t *deployed = isnan(search->deployed_sqnr_db)
                           ? json_null()
                           : api_pack("sqnr_db:r top1_agreement:r",
                                      search->deployed_sqnr_db, search->deployed_top1);
    return api_pack("samples:i met:b deployed:j task_drop:r float_layers:a curve:a",
                    search->samples, search->met, deployed, search->task_drop,
                    search->layers, search->n_layers, api_json_text_item, search->steps,
                    search->n_steps, encode_step);
}

static json_t *
encode_refinement(const struct qdq_refinement *r)
{
    if (!r)
        return json_null();
    return api_pack("start:t samples:i adjusted:i sqnr_db_before:r sqnr_db_after:r",
                    r->start, r->samples, r->adjusted, r->sqnr_db_before,
                    r->sqnr_db_after);
}

/* --- report --------------------------------------------------------------- */

static json_t *
encode_tensor(const void *items, size_t i)
{
    const struct qdq_tensor_report *tensor =
        (const struct qdq_tensor_report *)items + i;
    json_t *row =
        api_pack("name:t min:r max:r dtype:t scale:r zero_point:i method:t samples:i",
                 tensor->name, tensor->min, tensor->max, tensor->dtype, tensor->scale,
                 tensor->zero_point, tensor->method, tensor->samples);
    if (!row || !tensor->second_dtype)
        return row;
    json_t *second = api_pack("dtype:t scale:r zero_point:i", tensor->second_dtype,
                              tensor->second_scale, tensor->second_zero_point);
    return api_json_if(json_object_set_new(row, "converted", second) == 0, row);
}

/* The largest number of a weight's parts whose scales a report lists. */
enum { MOST_PARTS = QDQ_SCALE_PARTS };

/* Returns the largest scale of each part of the channels, in their order; null for a weight
   with one scale. */
static json_t *
encode_channel_scales(const struct qdq_weight_report *weight)
{
    size_t n = weight->n_scales, parts = n < MOST_PARTS ? n : MOST_PARTS, k = 0;
    bool kept = weight->scales, ok = true;
    json_t *list = n > 1 ? json_array() : json_null();
    for (size_t part = 0; ok && n > 1 && part < parts; part++) {
        double largest = kept ? 0 : (double)weight->part_scales[part];
        for (; kept && k < (part + 1) * n / parts; k++)
            largest = fmax(largest, fabs((double)weight->scales[k]));
        ok = json_array_append_new(list, api_json_real(largest)) == 0;
    }
    return api_json_if(ok, list);
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
        low = fmin(low, fabs((double)weight->scales[k]));
        high = fmax(high, fabs((double)weight->scales[k]));
    }
    return api_pack("name:t layer:t axis:x dtype:t granularity:t block:n scales:i "
                    "scale_min:r scale_max:r channel_scales:j",
                    weight->name, weight->layer, weight->axis, weight->dtype,
                    weight->granularity, weight->block, n, low, high,
                    encode_channel_scales(weight));
}

/* Adds a member unless its text is NULL. Returns the object, which it takes, or NULL when out of
   memory. */
static json_t *
with_text(json_t *object, const char *name, const char *text)
{
    if (!text)
        return object;
    const bool ok =
        object && json_object_set_new(object, name, api_json_text(text)) == 0;
    return api_json_if(ok, object);
}

static json_t *
encode_slice(const void *items, size_t i)
{
    const struct qdq_slice_report *slice = (const struct qdq_slice_report *)items + i;
    return with_text(api_pack("name:t axis:i begin:i end:i sqnr_db:r share:r",
                              slice->name, slice->axis, slice->begin, slice->end,
                              slice->sqnr_db, slice->share),
                     "left_out", slice->left_out);
}

static json_t *
encode_output(const void *items, size_t i)
{
    const struct qdq_output_report *output =
        (const struct qdq_output_report *)items + i;
    return api_with_points(
        api_pack("name:t sqnr_db:r cosine:r max_abs_error:r top1_agreement:r "
                 "kl:r nats_per_token:r float_nats_per_token:r "
                 "nonfinite:i slices:a samples:j",
                 output->name, output->sqnr_db, output->cosine, output->max_abs_error,
                 output->top1_agreement, output->is_logits ? output->kl : NAN,
                 output->is_logits ? output->nats_per_token : NAN,
                 output->is_logits ? output->float_nats_per_token : NAN,
                 (uint64_t)output->nonfinite, output->slices, output->n_slices,
                 encode_slice, api_encode_samples(&output->samples)),
        output);
}

static json_t *
encode_layer_error(const void *items, size_t i)
{
    const struct qdq_layer_error *layer = (const struct qdq_layer_error *)items + i;
    return api_pack("name:t sqnr_db:r", layer->name, layer->sqnr_db);
}

static json_t *
encode_gate(const void *items, size_t i)
{
    const struct qdq_gate_report *gate = (const struct qdq_gate_report *)items + i;
    return api_pack("output:t name:t wanted:r measured:r met:b", gate->output,
                    gate->gate, gate->bound, gate->value, gate->met);
}

/* Encodes the bounds that outputs missed. */
static json_t *
encode_missed(const struct qdq_report *report)
{
    json_t *missed = json_array();
    bool ok = missed;
    for (size_t i = 0; ok && i < report->n_gates; i++) {
        const struct qdq_gate_report *gate = &report->gates[i];
        if (!gate->met && gate->output)
            ok = json_array_append_new(
                     missed, api_pack("output:t gate:t bound:r value:r", gate->output,
                                      gate->gate, gate->bound, gate->value)) == 0;
    }
    return api_json_if(ok, missed);
}

static json_t *
encode_runtime(const char *name, const char *version)
{
    return api_pack("name:t version:t", name, version);
}

/* Encodes the figures as deployed; null where the result was not run in that way. */
static json_t *
encode_deployed(const struct qdq_deployed *deployed)
{
    if (!deployed)
        return json_null();
    return api_pack("processor:t runtime:j outputs:a", deployed->processor,
                    with_text(encode_runtime(deployed->runtime, deployed->version),
                              "device", deployed->device),
                    deployed->outputs, deployed->n_outputs, encode_output);
}

static json_t *
encode_task(const struct qdq_task_report *task)
{
    json_t *interval = isnan(task->low) ? json_null()
                                        : json_pack("[o, o]", api_json_real(task->low),
                                                    api_json_real(task->high));
    return api_with_confusions(
        api_pack("kind:t float:r quantized:r drop:r interval:j samples:i deployed:b "
                 "runtime:j processor:t",
                 task->kind == QDQ_TASK_METRIC ? "metric" : "classification",
                 task->float_figure, task->quantized, task->drop, interval,
                 task->samples, task->deployed,
                 encode_runtime(task->runtime, task->version), task->processor),
        task);
}

/* Adds the figures of the user's task, where there is one. Takes the object and returns it, or
   NULL when out of memory. */
static json_t *
with_task(json_t *object, const struct qdq_task_report *task)
{
    if (!task)
        return object;
    const bool ok =
        object && json_object_set_new(object, "task", encode_task(task)) == 0;
    return api_json_if(ok, object);
}

static json_t *
encode_unjudged(const void *items, size_t i)
{
    const struct qdq_unjudged *row = (const struct qdq_unjudged *)items + i;
    return api_pack("kind:t name:t reason:t", row->is_layer ? "layer" : "output",
                    row->name, row->reason);
}

static json_t *
encode_evaluation(const struct qdq_report *report)
{
    if (report->evaluated_samples == 0)
        return json_null();
    return with_task(
        api_pack("samples:i of:i rule:t outputs:a deployed:j layers:a layer_samples:i "
                 "not_judged:a missed:j",
                 report->evaluated_samples, report->evaluated_of,
                 report->evaluation_rule, report->outputs, report->n_outputs,
                 encode_output, encode_deployed(report->deployed), report->layer_errors,
                 report->n_layer_errors, encode_layer_error, report->layer_samples,
                 report->unjudged, report->n_unjudged, encode_unjudged,
                 encode_missed(report)),
        report->task);
}

static json_t *
encode_equalized(const void *items, size_t i)
{
    const struct qdq_equalization *row = (const struct qdq_equalization *)items + i;
    return api_pack("first:t second:t channels:i reason:t", row->first, row->second,
                    row->channels, row->reason);
}

static json_t *
encode_smoothed(const void *items, size_t i)
{
    const struct qdq_smoothing *row = (const struct qdq_smoothing *)items + i;
    return api_pack("tensor:t layers:a channels:i inserted:b reason:t", row->tensor,
                    row->layers, row->n_layers, api_json_text_item, row->channels,
                    row->inserted, row->reason);
}

static json_t *
encode_kept(const void *items, size_t i)
{
    const struct qdq_kept_node *row = (const struct qdq_kept_node *)items + i;
    return api_pack("name:t reason:t", row->name, row->reason);
}

/* Encodes the result of `float`; null when the spec did not ask for it. */
static json_t *
encode_float(const struct qdq_float_report *floats)
{
    if (!floats)
        return json_null();
    return api_pack("type:t nodes:i kept:a", floats->type, floats->n_nodes,
                    floats->kept, floats->n_kept, encode_kept);
}

static json_t *
encode_calibration(const struct qdq_report *report)
{
    if (!report->dataset_id && report->calibration_samples == 0)
        return json_null();
    return api_pack("id:t samples:i inferences:i reused:i", report->dataset_id,
                    report->calibration_samples, report->inferences, report->reused);
}

static json_t *
encode_host(const struct qdq_host_report *host)
{
    return api_pack("name:t reason:t processor:t", host->name, host->reason,
                    host->processor);
}

static json_t *
encode_rule(const void *items, size_t i)
{
    const struct qdq_rule_report *row = (const struct qdq_rule_report *)items + i;
    return api_pack("id:t on:b reason:t", row->id, row->on, row->reason);
}

static json_t *
encode_model(const struct qdq_report *report)
{
    const struct qdq_model_info *model = report->model;
    return api_pack("id:t name:t producer:t ir_version:i opset:i size:i nodes:i "
                    "initializers:i",
                    report->model_id, model->name, model->producer, model->ir_version,
                    model->opset, model->size, model->n_nodes, model->n_initializers);
}

static json_t *
encode_report_summary(const struct qdq_report *report)
{
    const struct qdq_made_by *made = &report->made_by;
    json_t *json =
        encode_summary(report->plan, report->qdq_pairs, report->size_before,
                       json_integer((json_int_t)report->size_after), report->verdict);
    json_t *by = api_pack("engine:t build:t runtime:t processor:t", made->engine,
                          made->build, made->runtime, made->processor);
    const char *judge = report->deployed ? "deployed" : "literal";
    json_t *more =
        api_pack("judged_by:t made_by:j", report->verdict ? judge : NULL, by);
    return api_json_if(json_object_update_new(json, more) == 0, json);
}

enum { MOST_GATES = 64 }; /* in the summary of a job, which its record has */

char *
api_summary_encode(const struct qdq_report *report)
{
    json_t *summary = encode_report_summary(report);
    json_t *gates = report->n_gates > MOST_GATES
                        ? json_null()
                        : api_json_list(report->gates, report->n_gates, encode_gate);
    bool ok = json_object_set_new(summary, "gates", gates) == 0;
    return api_json_dump(api_json_if(ok, summary), 0);
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
        return api_fail_at(problem, API_ACCURACY, where,
                           "%s has no %s (%s), and %s %.9g is asked for%s", what,
                           missed->figure, missed->why, side, missed->bound, more);
    return api_fail_at(problem, API_ACCURACY, where,
                       "%s has %s %.9g, and %s %.9g is asked for%s", what,
                       missed->figure, missed->value, side, missed->bound, more);
}

static json_t *
encode_float_kernel(const void *items, size_t i)
{
    const struct qdq_float_kernel *row = (const struct qdq_float_kernel *)items + i;
    return api_pack("name:t reason:t", row->name, row->reason);
}

static json_t *
encode_fused_kernel(const void *items, size_t i)
{
    const struct qdq_fused_kernel *row = (const struct qdq_fused_kernel *)items + i;
    json_t *nodes = json_array();
    bool ok = nodes;
    for (size_t k = 0; ok && k < row->n_nodes; k++)
        ok = json_array_append_new(nodes, json_string(row->nodes[k])) == 0;
    return api_pack("op:t computes:t nodes:j", row->op, row->computes,
                    api_json_if(ok, nodes));
}

/* Adds what a runtime tells that names all nodes of each kernel, and what planned a result that
   it did not run. Takes the object and returns it, or NULL when out of memory. */
static json_t *
with_plan(json_t *object, const struct qdq_kernels *kernels)
{
    const struct qdq_planner *planner = kernels->planner;
    json_t *more =
        kernels->names_nodes
            ? api_pack("layers:j fused:a",
                       api_pack("planned:i integer:i", kernels->planned_layers,
                                kernels->integer_layers),
                       kernels->fused, kernels->n_fused, encode_fused_kernel)
            : json_object();
    bool ok = object && more && json_object_update(object, more) == 0;
    json_decref(more);
    if (ok && planner)
        ok = json_object_set_new(
                 object, "planned_by",
                 with_text(encode_runtime(planner->name, planner->version), "device",
                           planner->device)) == 0;
    return api_json_if(ok, object);
}

/* Encodes the counts of kernels; null where they were not counted. */
static json_t *
encode_kernels(const struct qdq_kernels *kernels)
{
    if (!kernels)
        return json_null();
    json_t *ops = json_object();
    bool ok = ops;
    for (size_t i = 0; ok && i < kernels->n_ops; i++)
        ok = json_object_set_new(ops, kernels->ops[i].op,
                                 json_integer((json_int_t)kernels->ops[i].count)) == 0;
    json_t *object =
        api_pack("integer:i conversions:i ops:j floats:a", kernels->integer,
                 kernels->conversions, api_json_if(ok, ops), kernels->floats,
                 kernels->n_floats, encode_float_kernel);
    return with_plan(with_text(object, "runner", kernels->runner), kernels);
}

static json_t *
encode_latency(const struct qdq_latency *latency)
{
    return api_pack("p50_ms:r p90_ms:r peak_bytes:n", latency->p50_ms, latency->p90_ms,
                    latency->peak_bytes);
}

static json_t *
encode_op_time(const void *items, size_t i)
{
    const struct qdq_op_time *row = (const struct qdq_op_time *)items + i;
    return api_pack("op:t float_ms:r quantized_ms:r", row->op, row->ms[QDQ_SIDE_FLOAT],
                    row->ms[QDQ_SIDE_QUANTIZED]);
}

static json_t *
encode_node_time(const void *items, size_t i)
{
    const struct qdq_node_time *row = (const struct qdq_node_time *)items + i;
    return api_pack("model:t name:t op:t provider:t ms:r",
                    row->quantized ? "quantized" : "float", row->name, row->op,
                    row->provider, row->ms);
}

/* Encodes the float model with the runtime's own precision; null where that is float32. */
static json_t *
encode_default(const struct qdq_profile *p)
{
    if (!p->default_precision)
        return json_null();
    return api_pack("precision:t p50_ms:r p90_ms:r", p->default_precision,
                    p->default_float.p50_ms, p->default_float.p90_ms);
}

/* Encodes the latency; null where it was not measured. */
static json_t *
encode_profile(const struct qdq_profile *p)
{
    if (!p)
        return json_null();
    return api_pack(
        "processor:t runtime:j runs:i threads:i batch:i float:j quantized:j "
        "default_float:j ratio:r ratio_low:r ratio_high:r operators:a nodes:a",
        p->processor, encode_runtime(p->runtime, p->version), p->runs, p->threads,
        p->batch, encode_latency(&p->sides[QDQ_SIDE_FLOAT]),
        encode_latency(&p->sides[QDQ_SIDE_QUANTIZED]), encode_default(p), p->ratio,
        p->ratio_low, p->ratio_high, p->ops, p->n_ops, encode_op_time, p->nodes,
        p->n_nodes, encode_node_time);
}

static json_t *
encode_count(const void *items, size_t i)
{
    return json_integer((json_int_t)((const uint64_t *)items)[i]);
}

static json_t *
encode_histogram(const void *items, size_t i)
{
    const struct qdq_histogram_report *h =
        (const struct qdq_histogram_report *)items + i;
    return api_pack("tensor:t low:r high:r counts:a magnitudes:b range:j clipped:r "
                    "sqnr_db:r",
                    h->tensor, h->low, h->high, h->counts, h->n, encode_count,
                    h->magnitudes,
                    json_pack("[o, o]", api_json_real(h->min), api_json_real(h->max)),
                    h->clipped, h->sqnr_db);
}

/* Encodes the seconds of each stage, and their sum. */
static json_t *
encode_timings(const struct qdq_report *report)
{
    json_t *timings = json_object();
    double total = 0;
    bool ok = timings;
    for (size_t i = 0; ok && i < report->n_timings; i++) {
        const struct qdq_timing *timing = &report->timings[i];
        total += timing->seconds;
        ok = json_object_set_new(timings, timing->stage,
                                 api_json_seconds(timing->seconds)) == 0;
    }
    ok = ok && json_object_set_new(timings, "total", api_json_seconds(total)) == 0;
    return api_json_if(ok, timings);
}

static json_t *
encode_stage(const void *items, size_t i)
{
    const struct qdq_stage_use *stage = (const struct qdq_stage_use *)items + i;
    return api_pack("name:t seconds:s threads:d bytes:i peak_bytes:i", stage->name,
                    stage->seconds, stage->threads, stage->bytes, stage->peak_bytes);
}

/* Returns a list, or null where there is none. */
static json_t *
list_or_null(const void *items, size_t n, api_json_item_fn item)
{
    return items ? api_json_list(items, n, item) : json_null();
}

/* Encodes the report without its histograms. */
static json_t *
encode_body(const struct qdq_report *report)
{
    char *spec = api_spec_encode(report->spec);
    char *scales = report->kv_cache ? api_genai_scales(report->kv_cache) : NULL;
    json_t *edges = api_encode_edges(report);
    bool all = json_array_size(edges) == report->n_edges;
    json_t *body = api_pack(
        "schema:d engine:t model:j calibration:j spec:j device:t host:j rules:a "
        "summary:j "
        "external_bytes:i layers:a edges:j graph:j tensors:a weights:a float:j "
        "equalization:j "
        "smoothing:j kv_cache:j evaluation:j gates:a refinement:j sensitivity:j "
        "search:j recipe:j "
        "frontier:j costs:t "
        "what_ifs:i kernels:j profile:j timings:j stages:a warnings:a deploy:j",
        SCHEMA, qdq_version(), encode_model(report), encode_calibration(report),
        spec ? json_loads(spec, 0, NULL) : NULL, report->device,
        encode_host(&report->host), report->rules, report->n_rules, encode_rule,
        encode_report_summary(report), report->external_bytes, report->plan,
        report->plan->n_layers, encode_layer, edges, api_encode_graph(&report->graph),
        report->tensors, report->n_tensors, encode_tensor, report->weights,
        report->n_weights, encode_weight, encode_float(report->floats),
        report->spec->equalize ? api_json_list(report->equalization,
                                               report->n_equalization, encode_equalized)
                               : json_null(),
        list_or_null(report->smoothing, report->n_smoothing, encode_smoothed),
        report->kv_cache ? (scales ? json_loads(scales, 0, NULL) : NULL) : json_null(),
        encode_evaluation(report), report->gates, report->n_gates, encode_gate,
        encode_refinement(report->refinement),
        list_or_null(report->sensitivity, report->n_sensitivity, encode_cost),
        encode_search(report->search), api_encode_recipe(report->recipe),
        api_encode_frontier_points(report->frontier), report->costs, report->what_ifs,
        encode_kernels(report->kernels), encode_profile(report->profile),
        encode_timings(report), report->stages, report->stages ? report->n_timings : 0,
        encode_stage, report->warnings, report->n_warnings, encode_warning,
        api_deploy_rows(report));
    free(spec);
    free(scales);
    const bool ok =
        all ||
        (body && json_object_set_new(body, "edges_omitted",
                                     json_integer((json_int_t)report->n_edges)) == 0);
    return api_json_if(ok, body);
}

/* The histograms are the first member, so that api_report_without_histograms() can cut them off. */
char *
api_report_encode(const struct qdq_report *report)
{
    json_t *body = encode_body(report);
    uint64_t model_bytes = report->size_before;
    if (!body || !report->n_histograms)
        return api_json_dump(api_bound_report(body, model_bytes), 0);
    json_t *whole = api_pack(API_REPORT_HISTOGRAMS ":a", report->histograms,
                             report->n_histograms, encode_histogram);
    bool ok = whole && json_object_update(whole, body) == 0;
    json_decref(body);
    return api_json_dump(api_bound_report(api_json_if(ok, whole), model_bytes), 0);
}
