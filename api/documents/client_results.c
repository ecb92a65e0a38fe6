/* SPDX-License-Identifier: Apache-2.0 */
/* Plans, reports and the facts of models, read back into the engine's structs. */
#include "config.h"
#include "documents/client.h"

#include <math.h>
#include <string.h>

/* Reads element `i` of an array into items[i]. Returns false when out of memory. */
typedef bool (*read_fn)(struct api_document *document, const json_t *json, void *items,
                        size_t i);

/* Reads a member that is an array. Returns its elements, or NULL when out of memory. */
static void *
read_list(struct api_document *document, const json_t *object, const char *name,
          size_t size, read_fn read, size_t *ret_n)
{
    const json_t *list = json_object_get(object, name);
    size_t n = json_array_size(list);
    void *items = api_document_alloc(document, n, size);
    bool ok = items;
    for (size_t i = 0; ok && i < n; i++)
        ok = read(document, json_array_get(list, i), items, i);
    *ret_n = ok ? n : 0;
    return ok ? items : NULL;
}

/* --- plans ---------------------------------------------------------------- */

static bool
read_index(struct api_document *document, const json_t *json, void *items, size_t i)
{
    (void)document;
    ((int *)items)[i] = (int)json_integer_value(json);
    return true;
}

/* Returns what a reason says, of the kinds that callers decide by. */
static enum qdq_reason_kind
reason_kind_of(const char *reason)
{
    static const struct {
        const char *reason;
        enum qdq_reason_kind kind;
    } rows[] = {{"default", QDQ_REASON_DEFAULT},
                {"off by default", QDQ_REASON_OFF_BY_DEFAULT},
                {"not selected", QDQ_REASON_NOT_SELECTED}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(reason, rows[i].reason) == 0)
            return rows[i].kind;
    return QDQ_REASON_OTHER;
}

static bool
read_layer(struct api_document *document, const json_t *json, void *items, size_t i)
{
    struct qdq_layer *layer = (struct qdq_layer *)items + i;
    const json_t *axis = json_object_get(json, "weight_axis");
    bool weight = json_is_true(json_object_get(json, "weight_quantized"));
    *layer = (struct qdq_layer){
        .name = api_text_at(json, "name"),
        .op = api_text_at(json, "op"),
        .cls = api_text_at(json, "class"),
        .reason = api_text_at(json, "reason"),
        .weight_input = weight ? 0 : -1, /* the document does not say which input */
        .weight_dtype = json_string_value(json_object_get(json, "weight_dtype")),
        .weight_block = json_integer_value(json_object_get(json, "weight_block")),
        .input_dtype = json_string_value(json_object_get(json, "input_dtype")),
        .weight_axis = json_is_integer(axis) ? (int)json_integer_value(axis) : -1,
        .is_constant = json_is_true(json_object_get(json, "constant")),
    };
    layer->reason_kind = reason_kind_of(layer->reason);
    layer->quantized_inputs = read_list(document, json, "quantized_inputs", sizeof(int),
                                        read_index, &layer->n_inputs);
    layer->quantized_outputs = read_list(document, json, "quantized_outputs",
                                         sizeof(int), read_index, &layer->n_outputs);
    return layer->quantized_inputs && layer->quantized_outputs;
}

static bool
read_warning(struct api_document *document, const json_t *json, void *items, size_t i)
{
    (void)document;
    ((struct qdq_warning *)items)[i] =
        (struct qdq_warning){api_text_at(json, "code"), api_text_at(json, "detail"),
                             api_get_text(json, "node"), api_get_text(json, "rule")};
    return true;
}

const struct qdq_plan_view *
api_document_plan(struct api_document *document, size_t *ret_pairs)
{
    const json_t *json = document->json, *summary = json_object_get(json, "summary");
    struct qdq_plan_view *plan = api_document_alloc(document, 1, sizeof *plan);
    if (!plan)
        return NULL;
    plan->layers = read_list(document, json, "layers", sizeof *plan->layers, read_layer,
                             &plan->n_layers);
    plan->warnings = read_list(document, json, "warnings", sizeof *plan->warnings,
                               read_warning, &plan->n_warnings);
    plan->n_quantized = (size_t)api_get_integer(summary, "quantized_layers");
    *ret_pairs = (size_t)api_get_integer(summary, "qdq_pairs");
    return plan->layers && plan->warnings ? plan : NULL;
}

/* --- models --------------------------------------------------------------- */

static bool
read_dim(struct api_document *document, const json_t *json, void *items, size_t i)
{
    (void)document;
    ((struct qdq_dim *)items)[i] = (struct qdq_dim){
        json_is_integer(json) ? json_integer_value(json) : -1, json_string_value(json)};
    return true;
}

static bool
read_value(struct api_document *document, const json_t *json, void *items, size_t i)
{
    struct qdq_value *value = (struct qdq_value *)items + i;
    const json_t *shape = json_object_get(json, "shape");
    value->name = api_text_at(json, "name");
    value->dtype = api_text_at(json, "dtype");
    value->has_shape = json_is_array(shape);
    value->dims =
        read_list(document, json, "shape", sizeof *value->dims, read_dim, &value->rank);
    return value->dims;
}

static bool
read_op(struct api_document *document, const json_t *json, void *items, size_t i)
{
    (void)document;
    ((struct qdq_op_count *)items)[i] = (struct qdq_op_count){
        api_text_at(json, "op"), (size_t)api_get_integer(json, "count")};
    return true;
}

const struct qdq_model_info *
api_document_model(struct api_document *document, const struct qdq_plan_view **ret_plan)
{
    json_t *json = document->json, *classes = json_object_get(json, "classes"), *counts;
    const char *cls;
    struct qdq_model_info *info = api_document_alloc(document, 1, sizeof *info);
    struct qdq_plan_view *plan = api_document_alloc(document, 1, sizeof *plan);
    if (!info || !plan)
        return NULL;
    info->name = api_text_at(json, "name");
    info->producer = api_text_at(json, "producer");
    info->ir_version = api_get_integer(json, "ir_version");
    info->opset = api_get_integer(json, "opset");
    info->size = (uint64_t)api_get_integer(json, "size");
    info->n_nodes = (size_t)api_get_integer(json, "nodes");
    info->n_initializers = (size_t)api_get_integer(json, "initializers");
    info->inputs = read_list(document, json, "inputs", sizeof *info->inputs, read_value,
                             &info->n_inputs);
    info->outputs = read_list(document, json, "outputs", sizeof *info->outputs,
                              read_value, &info->n_outputs);
    info->ops =
        read_list(document, json, "ops", sizeof *info->ops, read_op, &info->n_ops);
    json_object_foreach (classes, cls, counts) {
        plan->n_layers += (size_t)api_get_integer(counts, "count");
        plan->n_quantized += (size_t)api_get_integer(counts, "quantized");
    }
    *ret_plan = json_is_object(classes) ? plan : NULL;
    return info->inputs && info->outputs && info->ops ? info : NULL;
}

/* --- reports -------------------------------------------------------------- */

static bool
read_output(struct api_document *document, const json_t *json, void *items, size_t i)
{
    (void)document;
    double sqnr = api_get_real(json, "sqnr_db");
    /* null: the outputs are equal, unless an error is not finite */
    bool equal = isnan(sqnr) && !isnan(api_get_real(json, "max_abs_error"));
    ((struct qdq_output_report *)items)[i] = (struct qdq_output_report){
        .name = api_text_at(json, "name"),
        .sqnr_db = equal ? INFINITY : sqnr,
        .nonfinite = api_get_integer(json, "nonfinite"),
        .cosine = api_get_real(json, "cosine"),
        .max_abs_error = api_get_real(json, "max_abs_error"),
        .top1_agreement = api_get_real(json, "top1_agreement"),
        .kl = api_get_real(json, "kl"),
        .nats_per_token = api_get_real(json, "nats_per_token"),
        .float_nats_per_token = api_get_real(json, "float_nats_per_token"),
        .is_logits = !isnan(api_get_real(json, "kl")),
        .worst_slice_db = NAN,
        .centred_db = NAN,
        .samples = {.p5_db = NAN},
    };
    return true;
}

static bool
read_layer_error(struct api_document *document, const json_t *json, void *items,
                 size_t i)
{
    (void)document;
    ((struct qdq_layer_error *)items)[i] = (struct qdq_layer_error){
        api_text_at(json, "name"), api_get_real(json, "sqnr_db")};
    return true;
}

static bool
read_evaluation(struct api_document *document, const json_t *json,
                struct qdq_report *report)
{
    const json_t *deployed = json_object_get(json, "deployed");
    report->evaluated_samples = api_get_integer(json, "samples");
    report->evaluated_of = api_get_integer(json, "of");
    report->evaluation_rule = api_text_at(json, "rule");
    report->evaluation_is_settled = strcmp(report->evaluation_rule, "settled") == 0;
    report->outputs = read_list(document, json, "outputs", sizeof *report->outputs,
                                read_output, &report->n_outputs);
    report->layer_errors =
        read_list(document, json, "layers", sizeof *report->layer_errors,
                  read_layer_error, &report->n_layer_errors);
    report->layer_samples = api_get_integer(json, "layer_samples");
    if (!report->outputs || !report->layer_errors || !json_is_object(deployed))
        return report->outputs && report->layer_errors;
    struct qdq_deployed *ret = api_document_alloc(document, 1, sizeof *ret);
    if (!ret)
        return false;
    const json_t *runtime = json_object_get(deployed, "runtime");
    ret->processor = api_text_at(deployed, "processor");
    ret->runtime = api_text_at(runtime, "name");
    ret->version = api_text_at(runtime, "version");
    ret->device = api_get_text(runtime, "device");
    ret->outputs = read_list(document, deployed, "outputs", sizeof *ret->outputs,
                             read_output, &ret->n_outputs);
    report->deployed = ret;
    return ret->outputs;
}

static bool
read_gate(struct api_document *document, const json_t *json, void *items, size_t i)
{
    (void)document;
    const char *gate = api_text_at(json, "name");
    bool at_most = strncmp(gate, "max_", 4) == 0;
    ((struct qdq_gate_report *)items)[i] = (struct qdq_gate_report){
        .output = api_get_text(json, "output"),
        .gate = gate,
        .figure = at_most || strncmp(gate, "min_", 4) == 0 ? gate + 4 : gate,
        .at_most = at_most,
        .bound = api_get_real(json, "wanted"),
        .value = api_get_real(json, "measured"),
        .met = json_is_true(json_object_get(json, "met")),
    };
    return true;
}

static bool
read_profile(struct api_document *document, const json_t *json,
             struct qdq_report *report)
{
    static const char *const sides[QDQ_N_SIDES] = {
        [QDQ_SIDE_FLOAT] = "float", [QDQ_SIDE_QUANTIZED] = "quantized"};
    if (!json_is_object(json))
        return true;
    struct qdq_profile *profile = api_document_alloc(document, 1, sizeof *profile);
    if (!profile)
        return false;
    profile->processor = api_text_at(json, "processor");
    profile->runs = api_get_integer(json, "runs");
    profile->threads = api_get_integer(json, "threads");
    profile->ratio = api_get_real(json, "ratio");
    profile->ratio_low = api_get_real(json, "ratio_low");
    profile->ratio_high = api_get_real(json, "ratio_high");
    for (int side = 0; side < QDQ_N_SIDES; side++)
        profile->sides[side].p50_ms =
            api_get_real(json_object_get(json, sides[side]), "p50_ms");
    const json_t *own = json_object_get(json, "default_float");
    profile->default_precision = api_get_text(own, "precision");
    profile->default_float.p50_ms = api_get_real(own, "p50_ms");
    report->profile = profile;
    return true;
}

/* Reads the sum of the times of all stages. */
static bool
read_timings(struct api_document *document, const json_t *json,
             struct qdq_report *report)
{
    struct qdq_timing *timing = api_document_alloc(document, 1, sizeof *timing);
    if (!timing)
        return false;
    double total = api_get_real(json, "total");
    *timing = (struct qdq_timing){"total", isnan(total) ? 0 : total};
    report->timings = timing;
    report->n_timings = 1;
    return true;
}

const struct qdq_report *
api_document_report(struct api_document *document)
{
    const json_t *json = document->json, *summary = json_object_get(json, "summary");
    struct qdq_report *report = api_document_alloc(document, 1, sizeof *report);
    if (!report)
        return NULL;
    report->plan = api_document_plan(document, &report->qdq_pairs);
    report->size_before = (uint64_t)api_get_integer(summary, "size_before");
    report->size_after = (uint64_t)api_get_integer(summary, "size_after");
    report->external_bytes = (uint64_t)api_get_integer(json, "external_bytes");
    report->verdict = api_get_text(summary, "verdict");
    if (!report->plan)
        return NULL;
    report->warnings = report->plan->warnings;
    report->n_warnings = report->plan->n_warnings;
    report->gates = read_list(document, json, "gates", sizeof *report->gates, read_gate,
                              &report->n_gates);
    return report->gates &&
                   read_evaluation(document, json_object_get(json, "evaluation"),
                                   report) &&
                   read_profile(document, json_object_get(json, "profile"), report) &&
                   read_timings(document, json_object_get(json, "timings"), report)
               ? report
               : NULL;
}
