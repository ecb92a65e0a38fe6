/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/report/report.h"

#include "ground/base/host.h"
#include "stages/attempt/leave.h"
#include "stages/report/histograms.h"
#include "plan/placement/rules.h"

static bool
copy_text(struct qdqi_arena *arena, const char **text)
{
    return !*text || (*text = qdqi_arena_strdup(arena, *text));
}

static bool
copy_task(struct qdqi_arena *arena, struct qdq_task *task)
{
    return copy_text(arena, &task->model) && copy_text(arena, &task->output);
}

static const double *
copy_numbers(struct qdqi_arena *arena, const double *from, size_t n)
{
    double *copy = qdqi_arena_array(arena, n, sizeof *copy);
    for (size_t i = 0; copy && i < n; i++)
        copy[i] = from[i];
    return copy;
}

static bool
copy_preprocess(struct qdqi_arena *arena, const struct qdq_spec *from,
                struct qdq_spec *to)
{
    struct qdq_preprocess *rows =
        qdqi_arena_array(arena, from->n_preprocess, sizeof *rows);
    for (size_t i = 0; rows && i < from->n_preprocess; i++) {
        rows[i] = from->preprocess[i];
        rows[i].mean = copy_numbers(arena, rows[i].mean, rows[i].n_mean);
        rows[i].std = copy_numbers(arena, rows[i].std, rows[i].n_std);
        if (!copy_text(arena, &rows[i].input) || !rows[i].mean || !rows[i].std)
            return false;
    }
    to->preprocess = rows;
    return rows;
}

/* Copies the spec, because the report outlives the caller's. The copy has room for
   `more` ranges behind those that were given. */
static struct qdq_spec *
copy_spec(struct qdqi_arena *arena, const struct qdq_spec *spec, size_t more,
          struct qdq_given_range **ret_ranges)
{
    struct qdq_spec *copy = qdqi_arena_alloc(arena, sizeof *copy);
    const struct qdq_calibration_spec *c = &spec->calibration;
    size_t n = c->n_ranges;
    struct qdq_given_range *ranges = qdqi_arena_array(arena, n + more, sizeof *ranges);
    struct qdq_dim_value *dims = qdqi_arena_array(arena, c->n_dims, sizeof *dims);
    struct qdq_random_input *random =
        qdqi_arena_array(arena, c->n_random, sizeof *random);
    if (!copy || !ranges || !dims || !random)
        return NULL;
    *copy = *spec;
    copy->calibration.ranges = ranges;
    copy->calibration.method = qdqi_arena_strdup(arena, spec->calibration.method);
    for (size_t i = 0; i < n; i++) {
        ranges[i] = spec->calibration.ranges[i];
        ranges[i].tensor = qdqi_arena_strdup(arena, ranges[i].tensor);
        if (!ranges[i].tensor)
            return NULL;
    }
    *ret_ranges = ranges;
    copy->calibration.dims = dims;
    copy->calibration.random = random;
    for (size_t i = 0; i < c->n_dims; i++) {
        dims[i] = c->dims[i];
        if (!(dims[i].symbol = qdqi_arena_strdup(arena, dims[i].symbol)))
            return NULL;
    }
    for (size_t i = 0; i < c->n_random; i++) {
        random[i] = c->random[i];
        if (!(random[i].input = qdqi_arena_strdup(arena, random[i].input)))
            return NULL;
    }
    return copy->calibration.method && copy_task(arena, &copy->task) &&
                   copy_preprocess(arena, spec, copy)
               ? copy
               : NULL;
}

/* Adds the ranges of planned activations for which none was given. */
static enum qdq_code
add_found_ranges(const struct qdqi_attempt *a, struct qdq_calibration_spec *c,
                 struct qdq_given_range *ranges, struct qdq_error *err)
{
    struct qdqi_map *given = qdqi_map_new(a->scratch);
    if (!given)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < c->n_ranges; i++)
        if (!qdqi_map_put(given, ranges[i].tensor, &ranges[i]))
            return qdqi_no_memory(err);
    for (size_t i = 0; i < qdqi_plan_tensors(a->plan); i++) {
        const char *tensor = a->plan->view.tensors[i];
        if (!qdqi_map_get(given, tensor))
            ranges[c->n_ranges++] =
                (struct qdq_given_range){tensor, a->ranges[i].min, a->ranges[i].max};
    }
    return QDQ_OK;
}

/* Returns the id of the data that the ranges come from: the job's data if it
   calibrated with them, or else the source that the spec names. */
static const char *
source_of(const struct qdqi_attempt *a)
{
    const char *known = a->spec->calibration.source;
    return known && a->calibrated.samples == 0 ? known : a->context->work->dataset_id;
}

/* Clears the questions that only this job answers. The answers are in other members
   of the frozen spec. */
static void
clear_questions(struct qdq_spec *frozen)
{
    struct qdq_spec none;
    qdq_spec_init(&none);
    frozen->search = none.search;
    if (frozen->recipe >= QDQ_RECIPE_AUTO)
        frozen->recipe = QDQ_RECIPE_NONE; /* the rules state the outcome */
    frozen->recipe_sqnr_db = none.recipe_sqnr_db;
    frozen->recipe_top1_agreement = none.recipe_top1_agreement;
    frozen->recipe_task_drop = none.recipe_task_drop;
    frozen->recipe_size_ratio = none.recipe_size_ratio;
    frozen->recipe_latency_ratio = none.recipe_latency_ratio;
    frozen->recipe_bytes = none.recipe_bytes;
    frozen->recipe_formats = none.recipe_formats;
    frozen->recipe_seconds = none.recipe_seconds;
    frozen->frontier_points = none.frontier_points;
    frozen->sensitivity_samples = none.sensitivity_samples;
    frozen->sensitivity_seconds = none.sensitivity_seconds;
    frozen->calibration.max_seconds = none.calibration.max_seconds;
    frozen->evaluate_seconds = none.evaluate_seconds;
    frozen->profile = none.profile;
    frozen->task = none.task;
    frozen->accept.max_task_drop = none.accept.max_task_drop;
}

enum qdq_code
qdqi_report_freeze(const struct qdqi_attempt *a, const struct qdqi_result *result,
                   const char **ret_source, struct qdq_error *err)
{
    struct qdq_given_range *ranges = NULL;
    struct qdq_spec *frozen =
        copy_spec(result->arena, a->planned_by, a->plan->view.n_tensors, &ranges);
    const char *source = source_of(a);
    *ret_source = source ? qdqi_arena_strdup(result->arena, source) : NULL;
    if (!frozen || (source && !*ret_source))
        return qdqi_no_memory(err);
    enum qdq_code code = add_found_ranges(a, &frozen->calibration, ranges, err);
    if (code)
        return code;
    frozen->calibration.source = *ret_source;
    clear_questions(frozen);
    result->report->frozen = frozen;
    return QDQ_OK;
}

const struct qdq_spec *
qdqi_report_leaving(const struct qdqi_result *result, const struct qdq_spec *spec,
                    const char *const *layers, size_t n)
{
    struct qdq_given_range *ranges = NULL;
    const struct qdq_spec *leaving =
        n ? qdqi_spec_leaving(spec, layers, n, result->arena) : spec;
    struct qdq_spec *copy =
        leaving ? copy_spec(result->arena, leaving, 0, &ranges) : NULL;
    if (copy)
        clear_questions(copy);
    return copy;
}

/* Returns why the spec has its host. A worker sees only the effective spec, in which
   this processor's class looks the same whether it was asked for or not. */
static const char *
host_reason(enum qdq_host host)
{
    if (host == QDQ_HOST_UNSTATED)
        return "the spec is a frozen one of version 0.1, which states no host";
    if (qdq_host_is_accelerator(host))
        return "it is the spec's, or that of the target, which computes on no "
               "processor";
    return host == qdqi_host_here() ? "it is the class of this processor"
                                    : "the spec asks for it";
}

/* Reports the class of processors, and the rules that depend on it. */
static enum qdq_code
report_host(const struct qdqi_attempt *a, const struct qdqi_result *result,
            struct qdq_error *err)
{
    struct qdq_report *r = result->report;
    const struct qdq_spec *spec = a->spec;
    const struct qdqi_host_row *row = qdqi_host_row(spec->host);
    struct qdq_rule_report *rules =
        qdqi_arena_array(result->arena, spec->target->n_rules, sizeof *rules);
    char processor[64];
    qdqi_host_processor(processor, sizeof processor);
    r->host = (struct qdq_host_report){row ? row->name : NULL, host_reason(spec->host),
                                       qdqi_arena_strdup(result->arena, processor)};
    if (!rules || !r->host.processor)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < spec->target->n_rules; i++) {
        bool on;
        const char *reason = qdqi_rule_reason(spec, (int)i, &on);
        if (reason)
            rules[r->n_rules++] = (struct qdq_rule_report){
                .id = spec->target->rules[i].id, .reason = reason, .on = on};
    }
    r->rules = rules;
    return QDQ_OK;
}

/* The graph while it is reported. */
struct graph_rows {
    const struct qdqi_graph *graph;
    const char **nodes, **tensors;
    struct qdq_edge *edges;
    struct qdq_graph_edge *numbered;
    struct qdqi_map
        *numbers; /* from a tensor's name to its number, which is in `room` */
    size_t *room;
    size_t n_edges, n_tensors;
};

/* Returns the number of a tensor that a node makes. SIZE_MAX: out of memory. */
static size_t
number_of(struct graph_rows *rows, const char *tensor)
{
    size_t *known = qdqi_map_get(rows->numbers, tensor);
    if (known)
        return *known;
    size_t number = rows->n_tensors;
    rows->room[number] = number;
    if (!qdqi_map_put(rows->numbers, tensor, &rows->room[number]))
        return SIZE_MAX;
    rows->tensors[rows->n_tensors++] = tensor;
    return number;
}

static bool
add_edges_to(struct graph_rows *rows, size_t to)
{
    const struct qdqi_node *node = &rows->graph->nodes[to];
    for (size_t k = 0; k < node->proto->n_input; k++) {
        const struct qdqi_tensor *tensor = node->inputs[k];
        if (!tensor || tensor->producer < 0)
            continue;
        size_t from = (size_t)tensor->producer, number = number_of(rows, tensor->name);
        if (number == SIZE_MAX)
            return false;
        rows->numbered[rows->n_edges] =
            (struct qdq_graph_edge){(uint32_t)from, (uint32_t)to, (uint32_t)number};
        rows->edges[rows->n_edges++] =
            (struct qdq_edge){rows->graph->nodes[from].name, node->name, tensor->name};
    }
    return true;
}

/* Reports the graph that was planned. Nodes of all nested graphs are in it. */
static enum qdq_code
report_edges(const struct qdqi_attempt *a, const struct qdqi_result *result,
             struct qdq_error *err)
{
    struct qdq_report *r = result->report;
    struct qdqi_arena *arena = result->arena;
    struct graph_rows rows = {.graph = &a->model->graph};
    size_t n = rows.graph->n_nodes, inputs = 0, outputs = 0;
    for (size_t i = 0; i < n; i++) {
        inputs += rows.graph->nodes[i].proto->n_input;
        outputs += rows.graph->nodes[i].proto->n_output;
    }
    rows.nodes = qdqi_arena_array(arena, n, sizeof *rows.nodes);
    rows.tensors = qdqi_arena_array(arena, outputs, sizeof *rows.tensors);
    rows.room = qdqi_arena_array(arena, outputs, sizeof *rows.room);
    rows.edges = qdqi_arena_array(arena, inputs, sizeof *rows.edges);
    rows.numbered = qdqi_arena_array(arena, inputs, sizeof *rows.numbered);
    rows.numbers = qdqi_map_new(arena);
    uint32_t *constants = qdqi_arena_array(arena, n, sizeof *constants);
    size_t n_constants = 0;
    bool ok = rows.nodes && rows.tensors && rows.room && rows.edges && rows.numbered &&
              rows.numbers && constants;
    for (size_t i = 0; ok && i < n; i++) {
        rows.nodes[i] = rows.graph->nodes[i].name;
        if (qdqi_node_is_fixed(&rows.graph->nodes[i]))
            constants[n_constants++] = (uint32_t)i;
        ok = add_edges_to(&rows, i);
    }
    if (!ok)
        return qdqi_no_memory(err);
    r->edges = rows.edges;
    r->n_edges = rows.n_edges;
    r->graph = (struct qdq_graph_report){.n_nodes = n,
                                         .n_tensors = rows.n_tensors,
                                         .n_edges = rows.n_edges,
                                         .nodes = rows.nodes,
                                         .tensors = rows.tensors,
                                         .edges = rows.numbered,
                                         .n_constants = n_constants,
                                         .constants = constants};
    return QDQ_OK;
}

static void
add_rows(const struct qdqi_attempt_rows *from, struct qdq_report *to)
{
    to->equalization = from->equalization;
    to->n_equalization = from->n_equalization;
    to->smoothing = from->smoothing;
    to->n_smoothing = from->n_smoothing;
    to->kv_cache = from->kv_cache;
    to->tensors = from->tensors;
    to->n_tensors = from->n_tensors;
    to->weights = from->weights;
    to->n_weights = from->n_weights;
    to->floats = from->floats;
}

enum qdq_code
qdqi_report_fill(const struct qdqi_attempt *a, const struct qdqi_result *result,
                 struct qdq_error *err)
{
    struct qdq_report *r = result->report;
    const struct qdq_work *work = a->context->work;
    struct qdq_given_range *ranges;
    r->model = &a->context->original->info;
    r->dataset_id =
        work->dataset_id ? qdqi_arena_strdup(result->arena, work->dataset_id) : NULL;
    const char *judged_by = work->judging ? work->judging->data_id : NULL;
    r->evaluation_id = judged_by ? qdqi_arena_strdup(result->arena, judged_by) : NULL;
    r->calibration_samples = a->calibrated.samples - a->calibrated.skipped;
    r->inferences = a->calibrated.inferences;
    r->reused = a->calibrated.reused;
    r->spec = copy_spec(result->arena, a->context->asked, 0, &ranges);
    r->device = a->context->device;
    r->plan = &a->plan->view;
    r->size_before = qdqi_model_bytes(a->context->original);
    r->warnings = a->warnings->list.rows;
    r->n_warnings = a->warnings->list.n;
    add_rows(&a->rows, r);
    if (!r->spec || (work->dataset_id && !r->dataset_id) ||
        (judged_by && !r->evaluation_id))
        return qdqi_no_memory(err);
    enum qdq_code code = report_edges(a, result, err);
    if (!code)
        code = qdqi_report_histograms(a, result, err);
    return code ? code : report_host(a, result, err);
}

struct qdqi_report *
qdqi_report_new(void)
{
    struct qdqi_arena *arena = qdqi_arena_new();
    struct qdqi_report *report = arena ? qdqi_arena_alloc(arena, sizeof *report) : NULL;
    if (report)
        report->arena = arena;
    else
        qdqi_arena_free(&arena);
    return report;
}

void
qdq_report_free(struct qdq_report **report)
{
    if (!report || !*report)
        return;
    struct qdqi_report *r = (struct qdqi_report *)*report;
    qdqi_attempt_free(&r->attempt);
    qdq_model_free(&r->model);
    struct qdqi_arena *arena = r->arena; /* the report itself is in the arena */
    qdqi_arena_free(&arena);
    *report = NULL;
}
