/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/gates/gates.h"

#include "files/data/tokens.h"
#include "plan/gates/judged.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The figures that a gate can bound. Lookups, messages and reports are made from
   these rows. */
static const struct figure {
    enum qdq_figure kind;
    const char *name, *gate;
    size_t bound; /* offset in qdq_gate */
    bool at_most;
} figures[] = {
    {QDQ_FIGURE_SQNR_DB, "sqnr_db", "min_sqnr_db",
     offsetof(struct qdq_gate, min_sqnr_db), false},
    {QDQ_FIGURE_SLICE_SQNR_DB, "slice_sqnr_db", "min_slice_sqnr_db",
     offsetof(struct qdq_gate, min_slice_sqnr_db), false},
    {QDQ_FIGURE_KL, "kl", "max_kl", offsetof(struct qdq_gate, max_kl), true},
    {QDQ_FIGURE_COSINE, "cosine", "min_cosine", offsetof(struct qdq_gate, min_cosine),
     false},
    {QDQ_FIGURE_MAX_ABS_ERROR, "max_abs_error", "max_abs_error",
     offsetof(struct qdq_gate, max_abs_error), true},
    {QDQ_FIGURE_TOP1_AGREEMENT, "top1_agreement", "min_top1_agreement",
     offsetof(struct qdq_gate, min_top1_agreement), false},
};

enum { N_FIGURES = sizeof figures / sizeof *figures };

static double
bound_of(const struct qdq_gate *gate, const struct figure *figure)
{
    double bound;
    memcpy(&bound, (const char *)gate + figure->bound, sizeof bound);
    return bound;
}

/* Returns the figure. The SQNR is that of the worst slice, too, unless these have a bound of
   their own. */
static double
value_of(const struct qdq_output_report *output, const struct qdq_gate *gate,
         enum qdq_figure kind)
{
    switch (kind) {
    case QDQ_FIGURE_SQNR_DB:
        return isnan(gate->min_slice_sqnr_db) ? qdqi_judged_sqnr(output)
                                              : output->sqnr_db;
    case QDQ_FIGURE_SLICE_SQNR_DB:
        return qdqi_worst_slice(output);
    case QDQ_FIGURE_KL:
        return output->kl;
    case QDQ_FIGURE_COSINE:
        return output->cosine;
    case QDQ_FIGURE_MAX_ABS_ERROR:
        return output->max_abs_error;
    default:
        return output->top1_agreement;
    }
}

static bool
asks(const struct qdq_gate *gate)
{
    for (size_t i = 0; i < N_FIGURES; i++)
        if (!isnan(bound_of(gate, &figures[i])))
            return true;
    return false;
}

bool
qdqi_gates_ask(const struct qdq_accept *accept)
{
    bool any = asks(&accept->all);
    for (size_t i = 0; i < accept->n_outputs; i++)
        any = any || asks(&accept->outputs[i].gate);
    return any;
}

/* Returns the output's own gate, or NULL. */
static const struct qdq_gate *
own_gate(const struct qdq_accept *accept, const char *output)
{
    for (size_t i = 0; i < accept->n_outputs; i++)
        if (strcmp(accept->outputs[i].output, output) == 0)
            return &accept->outputs[i].gate;
    return NULL;
}

/* --- before the work ------------------------------------------------------ */

static bool
is_floating(const char *dtype)
{
    return strncmp(dtype, "float", 5) == 0 || strcmp(dtype, "bfloat16") == 0;
}

/* Returns whether outputs of the type are judged by the share of equal elements. */
static bool
is_choice(const char *dtype)
{
    static const char *const types[] = {"bool",  "int8",   "int16",  "int32", "int64",
                                        "uint8", "uint16", "uint32", "uint64"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(dtype, types[i]) == 0)
            return true;
    return false;
}

static bool
is_compared(const char *dtype)
{
    static const char *const types[] = {"float32", "float16", "float64"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(dtype, types[i]) == 0)
            return true;
    return false;
}

/* Writes the pointer of an output's gate; RFC 6901 escapes two characters. */
static void
point_at(char *to, size_t size, const char *output)
{
    size_t len = (size_t)snprintf(to, size, "/accept/outputs/");
    for (; *output && len + 3 < size; output++) {
        if (*output == '~' || *output == '/') {
            to[len++] = '~';
            to[len++] = *output == '~' ? '0' : '1';
        } else {
            to[len++] = *output;
        }
    }
    to[len] = '\0';
}

static const struct qdq_value *
find_output(const struct qdq_model_info *model, const char *name)
{
    for (size_t i = 0; i < model->n_outputs; i++)
        if (strcmp(model->outputs[i].name, name) == 0)
            return &model->outputs[i];
    return NULL;
}

static enum qdq_code
check_named(const struct qdq_spec *spec, const struct qdq_model_info *model,
            const char *name, struct qdqi_warnings *warnings, struct qdqi_arena *arena,
            struct qdq_error *err)
{
    char pointer[sizeof err->where];
    const struct qdq_value *output = find_output(model, name);
    point_at(pointer, sizeof pointer, name);
    const struct qdq_gate *own = own_gate(&spec->accept, name);
    if (output && is_choice(output->dtype) && own && !isnan(own->min_top1_agreement))
        return QDQ_OK;
    if (output && *output->dtype && !is_floating(output->dtype))
        return qdq_error_set(err, QDQ_INVALID_SPEC, QDQ_AT_POINTER, pointer,
                             "accept.outputs names '%.128s', which is %s: only "
                             "floating outputs can be compared, and integers and "
                             "Booleans by min_top1_agreement",
                             name, output->dtype);
    if (output)
        return QDQ_OK;
    if (spec->unmatched_is_error)
        return qdq_error_set(err, QDQ_UNMATCHED, QDQ_AT_POINTER, pointer,
                             "accept.outputs names '%.128s', and the model has no "
                             "output of that name",
                             name);
    return qdqi_warn(warnings, arena, err, "unmatched", name,
                     "accept.outputs names an output that the model lacks");
}

/* Checks that each output with a bound is of a type that is compared, as far as the model
   says. *ret_any is whether there is such an output. */
static enum qdq_code
check_types(const struct qdq_accept *accept, const struct qdq_model_info *model,
            bool *ret_any, struct qdq_error *err)
{
    *ret_any = false;
    for (size_t i = 0; i < model->n_outputs; i++) {
        const struct qdq_value *output = &model->outputs[i];
        const struct qdq_gate *own = own_gate(accept, output->name);
        *ret_any |= is_choice(output->dtype) &&
                    !isnan((own ? own : &accept->all)->min_top1_agreement);
        if (!asks(own ? own : &accept->all) ||
            (*output->dtype && !is_floating(output->dtype)))
            continue;
        *ret_any = true;
        if (*output->dtype && !is_compared(output->dtype))
            return qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_POINTER, "/accept",
                                 "output '%.128s' is %s, and this version compares "
                                 "float32, float16 and float64; a gate of its own that "
                                 "is empty leaves it out",
                                 output->name, output->dtype);
    }
    return QDQ_OK;
}

static bool
has_logits(const struct qdq_model_info *model)
{
    for (size_t i = 0; i < model->n_outputs; i++)
        if (qdqi_tokens_are_logits(model, i))
            return true;
    return false;
}

enum qdq_code
qdqi_gates_check(const struct qdq_spec *spec, const struct qdq_model_info *model,
                 struct qdqi_warnings *warnings, struct qdqi_arena *arena,
                 struct qdq_error *err)
{
    const struct qdq_accept *accept = &spec->accept;
    enum qdq_code code = QDQ_OK;
    bool any;
    for (size_t i = 0; !code && i < accept->n_outputs; i++)
        code =
            check_named(spec, model, accept->outputs[i].output, warnings, arena, err);
    if (code || (code = check_types(accept, model, &any, err)))
        return code;
    if (!isnan(accept->all.max_kl) && !has_logits(model))
        return qdq_error_set(
            err, QDQ_INVALID_SPEC, QDQ_AT_POINTER, "/accept/max_kl",
            "max_kl is about a language model's output 'logits' "
            "[batch, length, vocabulary] beside its input 'input_ids', "
            "and the model has none");
    if (!any && asks(&accept->all))
        return qdq_error_set(err, QDQ_INVALID_SPEC, QDQ_AT_POINTER, "/accept",
                             "the model has no floating output that accept could be "
                             "about");
    return QDQ_OK;
}

/* --- after the work ------------------------------------------------------- */

const struct qdq_output_report *
qdqi_deciding_outputs(const struct qdq_report *report, size_t *ret_n)
{
    const struct qdq_deployed *deployed = report->deployed;
    *ret_n = deployed ? deployed->n_outputs : report->n_outputs;
    return deployed ? deployed->outputs : report->outputs;
}

static const struct qdq_output_report *
find_measured(const struct qdq_report *report, const char *name)
{
    size_t n;
    const struct qdq_output_report *outputs = qdqi_deciding_outputs(report, &n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(outputs[i].name, name) == 0)
            return &outputs[i];
    return NULL;
}

/* Adds the bounds of a gate, with the output's figures. */
static void
judge_output(const char *name, const struct qdq_gate *gate, bool own,
             const struct qdq_output_report *measured, struct qdq_gate_report *gates,
             size_t *n)
{
    for (size_t i = 0; i < N_FIGURES; i++) {
        const struct figure *figure = &figures[i];
        double bound = bound_of(gate, figure);
        double value = measured ? value_of(measured, gate, figure->kind) : NAN;
        /* An output that has no slices meets every bound for them, one of integers or Booleans has
           a top-1 agreement alone, and outputs beside the logits have no divergence. */
        if (isnan(bound) ||
            (measured && measured->is_choice &&
             figure->kind != QDQ_FIGURE_TOP1_AGREEMENT) ||
            (figure->kind == QDQ_FIGURE_SLICE_SQNR_DB && measured && isnan(value)) ||
            (figure->kind == QDQ_FIGURE_KL && !own && measured && isnan(value)))
            continue;
        const char *why = !isnan(value) ? NULL
                          : !measured   ? "the output could not be compared"
                          : figure->kind == QDQ_FIGURE_KL
                              ? "it holds no logits of a language model"
                          : figure->kind == QDQ_FIGURE_TOP1_AGREEMENT
                              ? "its last axis has fewer than two values"
                              : "it holds values that are not finite";
        gates[(*n)++] = (struct qdq_gate_report){
            .output = name,
            .figure = figure->name,
            .gate = figure->gate,
            .at_most = figure->at_most,
            .own = own,
            .bound = bound,
            .value = value,
            .why = why,
            .met = figure->at_most ? value <= bound : value >= bound,
            .kind = figure->kind,
        };
    }
}

static double
size_ratio(const struct qdq_report *report)
{
    return report->size_before
               ? (double)report->size_after / (double)report->size_before
               : NAN;
}

static double
latency_ratio(const struct qdq_report *report)
{
    return report->profile ? report->profile->ratio : NAN;
}

static double
quantized_layers(const struct qdq_report *report)
{
    return report->plan ? (double)report->plan->n_quantized : NAN;
}

static double
max_size_ratio(const struct qdq_accept *accept)
{
    return accept->max_size_ratio;
}

static double
max_latency_ratio(const struct qdq_accept *accept)
{
    return accept->max_latency_ratio;
}

static double
min_quantized_layers(const struct qdq_accept *accept)
{
    return accept->min_quantized_layers > 0 ? (double)accept->min_quantized_layers
                                            : NAN;
}

static double
max_task_drop(const struct qdq_accept *accept)
{
    return accept->max_task_drop;
}

static double
task_drop(const struct qdq_report *report)
{
    return report->task ? report->task->drop : NAN;
}

/* The figures of the whole model that a bound can be set for. */
static const struct whole {
    enum qdq_figure kind;
    const char *name, *gate;
    double (*bound)(const struct qdq_accept *accept); /* NaN: there is none */
    double (*value)(const struct qdq_report *report);
    const char *why; /* the reason when there is no figure */
    bool at_most;
} wholes[] = {
    {QDQ_FIGURE_SIZE_RATIO, "size_ratio", "max_size_ratio", max_size_ratio, size_ratio,
     "the model is empty", true},
    {QDQ_FIGURE_LATENCY_RATIO, "latency_ratio", "max_latency_ratio", max_latency_ratio,
     latency_ratio, "the latency was not measured", true},
    {QDQ_FIGURE_QUANTIZED_LAYERS, "quantized_layers", "min_quantized_layers",
     min_quantized_layers, quantized_layers, "there is no plan", false},
    {QDQ_FIGURE_TASK_DROP, "task_drop", "max_task_drop", max_task_drop, task_drop,
     "the task was not measured", true},
};

enum { N_WHOLES = sizeof wholes / sizeof *wholes };

static void
judge_whole(const struct qdq_accept *accept, const struct qdq_report *report,
            struct qdq_gate_report *gates, size_t *n)
{
    for (size_t i = 0; i < N_WHOLES; i++) {
        const double bound = wholes[i].bound(accept), value = wholes[i].value(report);
        if (isnan(bound))
            continue;
        gates[(*n)++] = (struct qdq_gate_report){
            .figure = wholes[i].name,
            .gate = wholes[i].gate,
            .at_most = wholes[i].at_most,
            .bound = bound,
            .value = value,
            .why = isnan(value) ? wholes[i].why : NULL,
            .met = wholes[i].at_most ? value <= bound : value >= bound,
            .kind = wholes[i].kind,
        };
    }
}

enum qdq_code
qdqi_gates_judge(const struct qdq_accept *accept, const struct qdq_model_info *model,
                 const bool *not_float, struct qdq_report *report,
                 struct qdqi_arena *arena, struct qdq_error *err)
{
    size_t n = 0;
    struct qdq_gate_report *gates =
        qdqi_arena_array(arena, model->n_outputs * N_FIGURES + N_WHOLES, sizeof *gates);
    if (!gates)
        return qdqi_no_memory(err);
    for (size_t i = 0; not_float && i < model->n_outputs; i++) {
        const char *name = model->outputs[i].name;
        const struct qdq_gate *own = own_gate(accept, name);
        const struct qdq_output_report *measured = find_measured(report, name);
        if (!not_float[i] || (measured && measured->is_choice))
            judge_output(name, own ? own : &accept->all, own, measured, gates, &n);
    }
    judge_whole(accept, report, gates, &n);
    report->gates = gates;
    report->n_gates = n;
    return QDQ_OK;
}
