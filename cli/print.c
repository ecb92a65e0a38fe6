/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "terminal.h"

enum { MAX_COLUMN = 60 };

/* Returns whether the text has the name in quotes. A short one may be a part of any word. */
static bool
is_quoted(const char *text, const char *name)
{
    const size_t len = strlen(name);
    for (const char *at = strstr(text, name); at; at = strstr(at + 1, name))
        if (at > text && at[-1] == '\'' && at[len] == '\'')
            return true;
    return false;
}

/* Returns whether the problem has a place that its text does not name. */
static bool
has_unnamed_place(const struct api_problem *problem)
{
    if (!*qdq_where_name(problem->kind) || !*problem->where)
        return false;
    if (problem->kind == QDQ_AT_OFFSET || problem->kind == QDQ_AT_SAMPLE)
        return true;
    if (problem->kind == QDQ_AT_POINTER)
        return !strstr(problem->detail, problem->where);
    return !is_quoted(problem->detail, problem->where);
}

void
print_problem(const struct api_problem *problem)
{
    fprintf(stderr, "qdq: %s: ", api_problem_slug(problem->code));
    put_text(stderr, problem->detail, 0);
    if (has_unnamed_place(problem)) {
        const char *kind = qdq_where_name(problem->kind);
        bool named = problem->kind !=
                     QDQ_AT_POINTER; /* a JSON pointer needs no word before it */
        fprintf(stderr, " (%s%s", named ? kind : "", named ? " " : "");
        put_text(stderr, problem->where, 0);
        fputc(')', stderr);
    }
    fputc('\n', stderr);
}

void
print_detail(const struct api_problem *problem)
{
    put_text(stderr, problem->detail, 0);
    fputc('\n', stderr);
}

void
print_warnings(const struct qdq_warning *warnings, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        fputs("qdq: warning: ", stderr);
        put_text(stderr, warnings[i].code, 0);
        fputs(": ", stderr);
        put_text(stderr, warnings[i].detail, 0);
        if (warnings[i].node) {
            fputs(" (", stderr);
            put_text(stderr, warnings[i].node, 0);
            fputc(')', stderr);
        }
        fputc('\n', stderr);
    }
}

/* --- plan ----------------------------------------------------------------- */

static void
widen(int *width, const char *text)
{
    size_t len = strlen(text);
    if (len > MAX_COLUMN)
        len = MAX_COLUMN;
    if ((int)len > *width)
        *width = (int)len;
}

/* Formats the indices of the quantized inputs: "0,2", or "-" for none. A very long list ends
   in "...". */
static void
format_indices(const struct qdq_layer *layer, char ret[MAX_COLUMN])
{
    int len = snprintf(ret, MAX_COLUMN, layer->n_inputs ? "" : "-");
    for (size_t i = 0; i < layer->n_inputs; i++) {
        if (len > MAX_COLUMN - 20) {
            snprintf(ret + len, MAX_COLUMN - (size_t)len, ",...");
            return;
        }
        len += snprintf(ret + len, MAX_COLUMN - (size_t)len, "%s%d", i ? "," : "",
                        layer->quantized_inputs[i]);
    }
}

/* Returns whether weights have different formats, which are printed then. */
static bool
is_mixed(const struct qdq_plan_view *plan)
{
    const struct qdq_layer *first = NULL;
    for (size_t i = 0; i < plan->n_layers; i++) {
        const struct qdq_layer *layer = &plan->layers[i];
        if (!layer->weight_dtype)
            continue;
        first = first ? first : layer;
        if (strcmp(first->weight_dtype, layer->weight_dtype) != 0 ||
            first->weight_block != layer->weight_block)
            return true;
    }
    return false;
}

static void
format_weight(const struct qdq_layer *layer, bool mixed, char ret[MAX_COLUMN])
{
    const char *dtype = mixed && layer->weight_dtype ? layer->weight_dtype : "";
    const char *space = *dtype ? " " : "";
    if (layer->weight_input < 0)
        snprintf(ret, MAX_COLUMN, "-");
    else if (layer->weight_axis < 0)
        snprintf(ret, MAX_COLUMN, "%s%sper tensor", dtype, space);
    else if (mixed && layer->weight_block > 0)
        snprintf(ret, MAX_COLUMN, "%s%sin blocks of %lld, axis %d", dtype, space,
                 (long long)layer->weight_block, layer->weight_axis);
    else
        snprintf(ret, MAX_COLUMN, "%s%sper channel, axis %d", dtype, space,
                 layer->weight_axis);
}

/* The reasons of layers that no default, case or entry selects. */
static const enum qdq_reason_kind unselected_reasons[] = {QDQ_REASON_OFF_BY_DEFAULT,
                                                          QDQ_REASON_NOT_SELECTED};
enum { N_REASONS = sizeof unselected_reasons / sizeof *unselected_reasons };

/* Returns whether nothing of the layer is quantized, for this reason. */
static bool
is_unselected(const struct qdq_layer *layer, enum qdq_reason_kind kind)
{
    return layer->n_inputs == 0 && layer->weight_input < 0 &&
           layer->reason_kind == kind;
}

static bool
is_shown(const struct qdq_layer *layer, bool all)
{
    for (size_t i = 0; !all && i < N_REASONS; i++)
        if (is_unselected(layer, unselected_reasons[i]))
            return false;
    return true;
}

/* Prints the layers that have a reason of that kind, counted by class: "off by default: 33 Relu, 3 Add" */
static void
put_unselected(const struct qdq_plan_view *plan, enum qdq_reason_kind kind)
{
    struct {
        const char *cls;
        size_t count;
    } counts[64] = {0}; /* more classes than the library has */
    enum { N = sizeof counts / sizeof *counts };
    const char *reason = "";
    size_t n = 0;
    for (size_t i = 0; i < plan->n_layers; i++) {
        if (!is_unselected(&plan->layers[i], kind))
            continue;
        reason = plan->layers[i].reason;
        size_t at = 0;
        while (at < n && strcmp(counts[at].cls, plan->layers[i].cls) != 0)
            at++;
        if (at == N)
            counts[--at].cls = "others";
        else
            counts[at].cls = plan->layers[i].cls;
        counts[at].count++;
        n = at == n ? n + 1 : n;
    }
    for (size_t i = 0; i < n; i++) {
        put_text(stdout, i ? "" : reason, 0);
        printf("%s%zu ", i ? ", " : ": ", counts[i].count);
        put_text(stdout, counts[i].cls, 0);
    }
    if (n)
        putchar('\n');
}

struct columns {
    int name, cls, inputs, weight;
    bool mixed; /* the formats of weights are printed */
};

static struct columns
measure(const struct qdq_plan_view *plan, bool all)
{
    struct columns c = {sizeof "LAYER" - 1, sizeof "CLASS" - 1, sizeof "INPUTS" - 1,
                        sizeof "WEIGHT" - 1, is_mixed(plan)};
    for (size_t i = 0; i < plan->n_layers; i++) {
        const struct qdq_layer *layer = &plan->layers[i];
        char text[MAX_COLUMN];
        if (!is_shown(layer, all))
            continue;
        widen(&c.name, layer->name);
        widen(&c.cls, layer->cls);
        format_indices(layer, text);
        widen(&c.inputs, text);
        format_weight(layer, c.mixed, text);
        widen(&c.weight, text);
    }
    return c;
}

/* Prints one column and two spaces, also behind a text that is longer than the column. */
static void
put_column(const char *text, int width)
{
    put_text(stdout, text, width);
    fputs("  ", stdout);
}

static void
put_layer(const struct qdq_layer *layer, const struct columns *c)
{
    char text[MAX_COLUMN];
    put_column(layer->name, c->name);
    put_column(layer->cls, c->cls);
    format_indices(layer, text);
    put_column(text, c->inputs);
    format_weight(layer, c->mixed, text);
    put_column(text, c->weight);
    put_text(stdout, layer->reason, 0);
    putchar('\n');
}

void
print_plan(const struct qdq_plan_view *plan, bool all, const size_t *pairs)
{
    struct columns c = measure(plan, all);
    printf("%-*s  %-*s  %-*s  %-*s  %s\n", c.name, "LAYER", c.cls, "CLASS", c.inputs,
           "INPUTS", c.weight, "WEIGHT", "REASON");
    for (size_t i = 0; i < plan->n_layers; i++)
        if (is_shown(&plan->layers[i], all))
            put_layer(&plan->layers[i], &c);
    putchar('\n');
    for (size_t i = 0; !all && i < N_REASONS; i++)
        put_unselected(plan, unselected_reasons[i]);
    printf("%zu of %zu layers are quantized", plan->n_quantized, plan->n_layers);
    if (pairs)
        printf(" with %zu Q/DQ pairs\n", *pairs);
    else
        printf(": %zu activations and %zu weights get a Q/DQ pair\n", plan->n_tensors,
               plan->n_weights);
}

/* --- info ----------------------------------------------------------------- */

static void
put_size(uint64_t bytes)
{
    static const char *const units[] = {"bytes", "KB", "MB", "GB", "TB"};
    double size = (double)bytes;
    size_t unit = 0;
    for (; size >= 1000 && unit + 1 < sizeof units / sizeof *units; unit++)
        size /= 1000;
    printf(unit ? "%.2f %s" : "%.0f %s", size, units[unit]);
}

static void
put_value(const char *what, const struct qdq_value *value)
{
    printf("%-10s", what);
    put_text(stdout, value->name, 0);
    fputs("  ", stdout);
    put_text(stdout, *value->dtype ? value->dtype : "?", 0);
    for (size_t i = 0; value->has_shape && i < value->rank; i++) {
        const struct qdq_dim *dim = &value->dims[i];
        fputs(i ? ", " : " [", stdout);
        if (dim->value >= 0)
            printf("%lld", (long long)dim->value);
        else
            put_text(stdout, dim->symbol ? dim->symbol : "?", 0);
    }
    puts(!value->has_shape ? "" : value->rank ? "]" : " []");
}

void
print_info(const struct qdq_model_info *model, const struct qdq_plan_view *plan)
{
    printf("%-10s", "graph");
    put_text(stdout, *model->name ? model->name : "(unnamed)", 0);
    if (*model->producer) {
        fputs(", by ", stdout);
        put_text(stdout, model->producer, 0);
    }
    printf("\n%-10s%lld (IR version %lld)\n", "opset", (long long)model->opset,
           (long long)model->ir_version);
    printf("%-10s", "size");
    put_size(model->size);
    if (model->external_size > 0) {
        fputs(" and ", stdout);
        put_size(model->external_size);
        fputs(" of external data", stdout);
    }
    printf(", %zu nodes, %zu initializers\n", model->n_nodes, model->n_initializers);
    for (size_t i = 0; i < model->n_inputs; i++)
        put_value("input", &model->inputs[i]);
    for (size_t i = 0; i < model->n_outputs; i++)
        put_value("output", &model->outputs[i]);
    for (size_t i = 0; i < model->n_ops; i++) {
        printf("%-10s", i ? "" : "nodes");
        put_text(stdout, model->ops[i].op, 24);
        printf("%8zu\n", model->ops[i].count);
    }
    if (plan)
        printf("%-10s%zu of %zu layers by default\n", "quantizes", plan->n_quantized,
               plan->n_layers);
}

/* --- jobs ----------------------------------------------------------------- */

/* Prints "calibrate 16/64", or "place 3" in the queue. */
static void
put_job_progress(const struct api_job_facts *job)
{
    char text[64] = "";
    if (job->state == API_JOB_RUNNING && job->stage && job->total > 0)
        snprintf(text, sizeof text, "%.20s %llu/%llu", job->stage,
                 (unsigned long long)job->done, (unsigned long long)job->total);
    else if (job->state == API_JOB_RUNNING && job->stage)
        snprintf(text, sizeof text, "%.20s", job->stage);
    else if (job->position > 0)
        snprintf(text, sizeof text, "place %lld", (long long)job->position);
    else if (job->error.set)
        snprintf(text, sizeof text, "%s", api_problem_slug(job->error.code));
    put_column(text, 18);
}

void
print_jobs(const struct api_job_facts *jobs, size_t n)
{
    int width = (int)strlen("JOB");
    for (size_t i = 0; i < n; i++)
        widen(&width, jobs[i].id ? jobs[i].id : "");
    printf("%-*s  %-9s  %-20s  %-18s  %s\n", width, "JOB", "STATE", "QUEUED",
           "PROGRESS", "NAME");
    for (size_t i = 0; i < n; i++) {
        char created[32];
        snprintf(created, sizeof created, "%.19sZ",
                 jobs[i].created ? jobs[i].created : "");
        put_column(jobs[i].id ? jobs[i].id : "", width);
        put_column(api_job_state_name(jobs[i].state), 9);
        put_column(created, 20);
        put_job_progress(&jobs[i]);
        put_text(stdout, jobs[i].name ? jobs[i].name : "-", 0);
        putchar('\n');
    }
}

/* --- summary -------------------------------------------------------------- */

static void
put_output(const struct qdq_output_report *output)
{
    fputs("    ", stdout);
    put_text(stdout, output->name, 0);
    if (isinf(output->sqnr_db))
        fputs(": equal", stdout);
    else if (isnan(output->sqnr_db))
        fputs(": an element is not finite in one of the models alone", stdout);
    else
        printf(": SQNR %.2f dB", output->sqnr_db);
    if (isfinite(output->cosine))
        printf(", cosine %.5f", output->cosine);
    if (isfinite(output->kl))
        printf(", KL %.4f", output->kl);
    if (isfinite(output->nats_per_token))
        printf(", %.3f nats per token (float %.3f)", output->nats_per_token,
               output->float_nats_per_token);
    if (isfinite(output->top1_agreement))
        printf(", top-1 agreement %.1f %%", 100 * output->top1_agreement);
    if (isfinite(output->max_abs_error))
        printf(", largest error %.3g", output->max_abs_error);
    if (output->nonfinite > 0)
        printf(", without %lld elements that are not finite in both",
               (long long)output->nonfinite);
    putchar('\n');
}

enum { WORST = 3 };

/* Finds the layers with the lowest SQNR; the lowest is first. *ret_n is their number. */
static void
find_worst_layers(const struct qdq_report *report,
                  const struct qdq_layer_error *ret[WORST], size_t *ret_n)
{
    size_t n = 0;
    for (size_t i = 0; i < report->n_layer_errors; i++) {
        const struct qdq_layer_error *layer = &report->layer_errors[i];
        if (!isfinite(layer->sqnr_db))
            continue;
        size_t at = n < WORST ? n++ : WORST;
        for (; at > 0 && layer->sqnr_db < ret[at - 1]->sqnr_db; at--)
            if (at < WORST)
                ret[at] = ret[at - 1];
        if (at < WORST)
            ret[at] = layer;
    }
    *ret_n = n;
}

static void
put_worst_layers(const struct qdq_report *report)
{
    const struct qdq_layer_error *worst[WORST];
    size_t n;
    find_worst_layers(report, worst, &n);
    for (size_t i = 0; i < n; i++) {
        fputs(i ? ", " : "    layers furthest from float: ", stdout);
        put_text(stdout, worst[i]->name, 0);
        printf(" %.2f dB", worst[i]->sqnr_db);
    }
    if (n)
        putchar('\n');
}

/* Prints the figures of the outputs, those of the result as deployed if it was run in
   that way. */
static void
put_evaluation(const struct qdq_report *report)
{
    const struct qdq_deployed *deployed = report->deployed;
    const struct qdq_output_report *outputs =
        deployed ? deployed->outputs : report->outputs;
    size_t n = deployed ? deployed->n_outputs : report->n_outputs;
    if (report->evaluated_samples > 0) {
        fputs("  float against quantized", stdout);
        if (deployed) {
            fputs(" as run by ", stdout);
            put_text(stdout, deployed->runtime, 0);
            putchar(' ');
            put_text(stdout, deployed->version, 0);
        }
        if (report->evaluation_is_settled)
            printf(", %lld of %lld samples, which settle its figures:\n",
                   (long long)report->evaluated_samples,
                   (long long)report->evaluated_of);
        else
            printf(", %lld samples:\n", (long long)report->evaluated_samples);
    }
    for (size_t i = 0; i < n; i++)
        put_output(&outputs[i]);
}

/* Prints how many layers a runtime that named its kernels computes with integers. */
static void
put_kernels(const struct qdq_kernels *kernels)
{
    const struct qdq_planner *planner = kernels ? kernels->planner : NULL;
    if (!kernels || !kernels->names_nodes)
        return;
    printf("  %zu of %zu layers that multiply quantized tensors are integers",
           kernels->integer_layers, kernels->planned_layers);
    if (planner) {
        fputs(" in the plan of ", stdout);
        put_text(stdout, planner->name, 0);
        putchar(' ');
        put_text(stdout, planner->version, 0);
        fputs(", which ran nothing: ", stdout);
        put_text(stdout, planner->device, 0);
    }
    putchar('\n');
}

static void
put_profile(const struct qdq_profile *p)
{
    if (!p)
        return;
    printf("  latency, median of %lld runs by turns with %lld threads in ",
           (long long)p->runs, (long long)p->threads);
    put_text(stdout, p->runtime, 0);
    fputs(" ", stdout);
    put_text(stdout, p->version, 0);
    fputs(" on ", stdout);
    put_text(stdout, p->processor, 0);
    printf(":\n    float %.4g ms, quantized %.4g ms: %.3f times (%.3f to %.3f)\n",
           p->sides[QDQ_SIDE_FLOAT].p50_ms, p->sides[QDQ_SIDE_QUANTIZED].p50_ms,
           p->ratio, p->ratio_low, p->ratio_high);
    if (!p->default_precision)
        return;
    fputs("    float in ", stdout);
    put_text(stdout, p->default_precision, 0);
    printf(", the runtime's own precision, %.4g ms%s\n", p->default_float.p50_ms,
           p->default_float.p50_ms <= p->sides[QDQ_SIDE_QUANTIZED].p50_ms
               ? ": deploy the float model, unless size or exactness decides"
               : "");
}

/* Prints the bounds of `accept`, all of which were met when this is called. */
static void
put_gates(const struct qdq_report *report)
{
    for (size_t i = 0; i < report->n_gates; i++) {
        const struct qdq_gate_report *gate = &report->gates[i];
        fputs("    ", stdout);
        put_text(stdout, gate->output ? gate->output : "model", 0);
        fputs(": ", stdout);
        put_text(stdout, gate->figure, 0);
        printf(" %.6g, %s %.6g was asked for\n", gate->value,
               gate->at_most ? "at most" : "at least", gate->bound);
    }
}

void
print_program(char *text, const char *target)
{
    char *rest = text;
    if (!text)
        return;
    fputs("  how to run it with ", stdout);
    put_text(stdout, target, 0);
    fputs(":\n", stdout);
    for (char *line; (line = strsep(&rest, "\n")) && rest;) {
        fputs(*line ? "    " : "", stdout);
        put_text(stdout, line, 0);
        putchar('\n');
    }
    free(text);
}

void
print_summary(const struct qdq_report *report, const char *out)
{
    double seconds = 0;
    for (size_t i = 0; i < report->n_timings; i++)
        seconds += report->timings[i].seconds;
    put_text(stdout, out, 0);
    printf("\n  %zu of %zu layers quantized with %zu Q/DQ pairs, ",
           report->plan->n_quantized, report->plan->n_layers, report->qdq_pairs);
    put_size(report->size_before);
    fputs(" became ", stdout);
    put_size(report->size_after);
    if (report->external_bytes > 0)
        fputs(" with its data file", stdout);
    printf(", in %.1f s\n", seconds);
    put_evaluation(report);
    put_worst_layers(report);
    put_kernels(report->kernels);
    put_profile(report->profile);
    put_gates(report);
    if (report->verdict) {
        fputs("  verdict: ", stdout);
        put_text(stdout, report->verdict, 0);
        puts(report->deployed
                 ? ""
                 : ", by the literal arithmetic: not run in the target's runtime");
    }
}
