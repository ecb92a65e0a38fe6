/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/evaluate/literal.h"

#include "plan/placement/rules.h"
#include "stages/attempt/float_outputs.h"
#include "transform/rewrite/twin.h"

/* --- layers ------------------------------------------------------------------ */

static bool
is_compared(enum qdqi_dtype dtype)
{
    return dtype == QDQI_FLOAT32 || dtype == QDQI_FLOAT16;
}

const char *
qdqi_literal_hindrance(const struct qdqi_literal *l, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = &l->attempt->model->graph.nodes[layer->node];
    const struct qdqi_tensor *f = node->proto->n_output ? node->outputs[0] : NULL;
    if (!f)
        return "it has no first output";
    if (f->scope > 0)
        return "it is in a nested graph";
    if (f->is_fixed)
        return "its output is a constant";
    if (!is_compared(f->dtype))
        return "its output is neither float32 nor float16";
    const struct qdqi_tensor *q = qdqi_map_get(l->quantized->graph.tensors, f->name);
    return q && q->producer >= 0 && is_compared(q->dtype)
               ? NULL
               : "the quantized model has no such tensor of float32 or float16";
}

/* Returns the output of a layer if it can be compared, or NULL. */
static const char *
comparable(const struct qdqi_literal *l, const struct qdq_layer *layer)
{
    if (!qdqi_layer_is_quantized(layer) || qdqi_literal_hindrance(l, layer))
        return NULL;
    return l->attempt->model->graph.nodes[layer->node].outputs[0]->name;
}

/* Warns about quantized layers in nested graphs: they show only in the outputs of
   the model. */
static enum qdq_code
warn_nested(const struct qdqi_literal *l, struct qdq_error *err)
{
    struct qdqi_attempt *a = l->attempt;
    const struct qdq_plan_view *plan = &a->plan->view;
    const char *first = NULL;
    size_t n = 0;
    for (size_t i = 0; i < plan->n_layers; i++) {
        const struct qdq_layer *layer = &plan->layers[i];
        if (qdqi_layer_is_quantized(layer) &&
            a->model->graph.nodes[layer->node].scope > 0 && n++ == 0)
            first = layer->name;
    }
    if (n == 0)
        return QDQ_OK;
    return qdqi_attempt_warn(
        a, err, "layers_not_compared", first,
        "%zu layers, this one first, are in nested graphs, and were not "
        "compared one by one",
        n);
}

static enum qdq_code
choose_layers(struct qdqi_literal *l, struct qdq_error *err)
{
    struct qdqi_attempt *a = l->attempt;
    const struct qdq_plan_view *plan = &a->plan->view;
    size_t n = 0;
    l->layers = qdqi_arena_array(a->scratch, plan->n_layers, sizeof *l->layers);
    l->tensors = qdqi_arena_array(a->scratch, plan->n_layers, sizeof *l->tensors);
    if (!l->layers || !l->tensors)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < plan->n_layers; i++) {
        const char *tensor = comparable(l, &plan->layers[i]);
        if (!tensor)
            continue;
        l->layers[n] = plan->layers[i].name;
        l->tensors[n++] = tensor;
    }
    if (!qdqi_comparisons_init(&l->comparisons, n, a->scratch))
        return qdqi_no_memory(err);
    return warn_nested(l, err);
}

/* --- sessions ------------------------------------------------------------------ */

static enum qdq_code
open_twin(struct qdqi_literal *l, struct qdq_error *err)
{
    struct qdqi_attempt *a = l->attempt;
    struct qdqi_session_options options = l->options;
    struct qdqi_twin twin;
    options.unpacked = false;
    options.comparisons = &l->comparisons;
    enum qdq_code code = choose_layers(l, err);
    if (code || (code = qdqi_twin(a->model, l->quantized, l->tensors, l->comparisons.n,
                                  a->scratch, &twin, err)))
        return code;
    return qdqi_session_load(l->runtime, &twin.model, &options, &l->twin, err);
}

/* Opens the twin. If it cannot be opened, layers are not compared, and a warning
   says so. */
static enum qdq_code
try_twin(struct qdqi_literal *l, struct qdq_error *err)
{
    struct qdq_error why = {0};
    enum qdq_code code = open_twin(l, &why);
    if (!code || (code != QDQ_UNSUPPORTED && code != QDQ_RUN_FAILED))
        return code ? qdq_error_set(err, code, why.kind, why.where, "%s", why.text)
                    : QDQ_OK;
    l->comparisons.n = 0;
    l->no_twin = "the two models could not be run as halves of one graph";
    return qdqi_attempt_warn(l->attempt, err, "layers_not_compared", NULL,
                             "float and quantized layers were not compared: %s",
                             why.text);
}

static enum qdq_code
open_float(struct qdqi_literal *l, struct qdq_error *err)
{
    const struct qdq_model *given = l->attempt->context->original;
    return qdqi_session_open(l->runtime, given, given->proto, &l->options, &l->f, err);
}

static enum qdq_code
open_result(struct qdqi_literal *l, struct qdq_error *err)
{
    return qdqi_session_open(l->runtime, l->quantized, l->quantized->proto, &l->options,
                             &l->q, err);
}

/* Returns whether the float half of a twin would be the model that was given. */
static bool
is_given(const struct qdqi_literal *l)
{
    return l->attempt->model->proto == l->attempt->context->original->proto;
}

enum qdq_code
qdqi_literal_open(struct qdqi_literal *l, struct qdqi_attempt *a,
                  const struct qdq_model *quantized, struct qdqi_runtime *runtime,
                  const struct qdqi_literal_options *options, struct qdq_error *err)
{
    /*
     * Behind what-ifs, which have no others, the sessions have only the runtime's basic
     * optimizations: fusions and layouts change the order of sums, whose results are then
     * rounded to other integers, and figures differ by up to 0.1 dB where one of the two has them
     * and the other has not.
     */
    const bool behind = options->behind_what_ifs;
    *l = (struct qdqi_literal){
        .attempt = a,
        .quantized = quantized,
        .runtime = runtime,
        .options = {.dev = a->context->dev,
                    .basic = qdqi_plan_has_float_pairs(a->plan) || behind,
                    .one_thread = qdqi_attempt_runs_fast(a),
                    .one_of_many = behind && !a->context->dev,
                    .unpacked = a->spec->decoder != QDQ_DECODER_AS_IS &&
                                qdqi_attempt_is_large(a),
                    .fuses_pairs = true},
        .no_twin = options->no_result,
        .most_layer_samples = options->most_layer_samples};
    enum qdq_code code = options->no_result ? QDQ_OK : try_twin(l, err);
    if (!code && (!l->twin || !is_given(l)))
        code = open_float(l, err);
    if (!code && !l->twin && !options->no_result)
        code = open_result(l, err);
    return code;
}

enum qdq_code
qdqi_literal_prepare(struct qdqi_literal *l, struct qdqi_attempt *a,
                     const struct qdq_model *quantized, struct qdq_error *err)
{
    *l = (struct qdqi_literal){.attempt = a, .quantized = quantized};
    return choose_layers(l, err);
}

void
qdqi_literal_close(struct qdqi_literal *l)
{
    qdqi_session_close(&l->twin);
    qdqi_session_close(&l->f);
    qdqi_session_close(&l->q);
}

/* --- running ------------------------------------------------------------------- */

/* Goes on without layers. The twin's memory is free before the result takes any. */
static enum qdq_code
leave_layers(struct qdqi_literal *l, struct qdq_error *err)
{
    qdqi_session_close(&l->twin);
    return open_result(l, err);
}

/* Returns the outputs of the float model: those that the job has already, or those of a run. */
static enum qdq_code
run_float(struct qdqi_literal *l, const struct qdqi_input *inputs, int64_t first,
          int64_t samples, const struct qdqi_output **ret, size_t *ret_n,
          struct qdq_error *err)
{
    const struct qdqi_context *c = l->attempt->context;
    const struct qdqi_output *kept =
        c->evaluation ? NULL : qdqi_float_outputs_of(c->float_outputs, first, samples);
    if (kept) {
        *ret = kept;
        *ret_n = c->float_outputs->n_outputs;
        return QDQ_OK;
    }
    enum qdq_code code = l->f ? QDQ_OK : open_float(l, err);
    return code ? code
                : qdqi_session_run(l->f, inputs, l->attempt->model->info.n_inputs, ret,
                                   ret_n, err);
}

enum qdq_code
qdqi_literal_run(struct qdqi_literal *l, const struct qdqi_input *inputs, int64_t first,
                 int64_t samples, const struct qdqi_output **ret_f,
                 const struct qdqi_output **ret_q, size_t *ret_n, struct qdq_error *err)
{
    const size_t n_inputs = l->attempt->model->info.n_inputs;
    size_t n_q = SIZE_MAX, n_f = 0;
    enum qdq_code code = QDQ_OK;
    if (l->twin && l->layer_samples >= l->most_layer_samples)
        code = leave_layers(l, err);
    if (!code && l->twin) {
        code = qdqi_session_run(l->twin, inputs, n_inputs, ret_f, &n_f, err);
        n_f = n_q = n_f / 2;
        *ret_q = *ret_f + n_f;
        l->layer_samples += samples;
        if (!code && !l->attempt->context->evaluation)
            qdqi_attempt_put_outputs(l->attempt, first, samples, *ret_f, n_f);
    }
    if (!code && (!l->twin || !is_given(l)))
        code = run_float(l, inputs, first, samples, ret_f, &n_f, err);
    if (!code && l->q)
        code = qdqi_session_run(l->q, inputs, n_inputs, ret_q, &n_q, err);
    *ret_n = n_f < n_q ? n_f : n_q;
    return code;
}

enum qdq_code
qdqi_literal_collect(const struct qdqi_literal *l, struct qdq_error *err)
{
    return l->twin ? qdqi_session_collect(l->twin, err) : QDQ_OK;
}
