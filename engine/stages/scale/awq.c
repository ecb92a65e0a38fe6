/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channel c of an activation is divided by m_c = h_c^p, and the weights that meet it are multiplied
 * by m_c, where h_c = E[x_c^2] is the diagonal of the activation's second moment H. The power p is
 * one of a few, 0 among them: the one with which the nearest integers of the weights cost least,
 * tr(dW H dW^T), summed over the layers that read the activation. (AWQ, Lin et al. 2023, which
 * takes mean magnitudes and measures the error of outputs.) The node that makes the activation takes
 * the divisors in, so no node is added. Behind grouped attention that is the layer of the values, and
 * heads of a group share their divisors; the cache of values has them, too.
 *
 * The error is that of LINES outputs of each layer: the power is common to all of them.
 */
#include "config.h"
#include "stages/scale/awq.h"

#include "graph/weights/scales.h"
#include "graph/weights/updates.h"
#include "transform/equalize/rescale.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINES = QDQI_PANEL, /* outputs of a layer whose error is computed, at most */
    N_POWERS = 7
};

/* They are powers of squares: 0.5 makes all channels alike. */
static const double powers[N_POWERS] = {0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4};

/* A layer that reads an activation. */
struct reader {
    const struct qdqi_weight *weight;
    const struct qdqi_planned_weight *planned;
    struct qdqi_moment *moment;
};

/* An activation whose channels may get factors. */
struct choice {
    struct qdqi_chain *chain;
    struct reader *readers; /* as many as the chain has; all have the same moment */
    double *factors;        /* by channel: what the activation is multiplied by */
    size_t moved;           /* channels whose factor is not 1 */
};

struct awq {
    struct qdqi_attempt *attempt;
    struct qdqi_chains chains;
    struct choice *all; /* by chain */
};

/* --- which activations ------------------------------------------------------ */

static const struct qdqi_planned_weight *
planned_of(const struct qdqi_attempt *a, const struct qdqi_tensor *weight)
{
    for (size_t i = 0; i < a->plan->view.n_weights; i++)
        if (a->plan->weights[i].tensor == weight)
            return &a->plan->weights[i];
    return NULL;
}

/* Fills in a reader. Returns NULL, or the reason why its activation gets no factors. */
static const char *
find_reader(const struct qdqi_attempt *a, const struct qdqi_reader *from,
            struct reader *to)
{
    const struct qdqi_planned_weight *planned = planned_of(a, from->weight.tensor);
    const struct qdqi_layer_moments *m =
        qdqi_map_get(a->moments->by_weight, from->weight.tensor->name);
    if (!planned || !m)
        return "a layer that reads it stays in float";
    if (m->why)
        return m->why;
    if (m->groups != 1 || m->moments->k != from->weight.n_in || from->weight.inner != 1)
        return "a layer that reads it is a convolution";
    if (m->moments->block != m->moments->k)
        return "its moment is cut into blocks";
    if (m->moments->rows == 0)
        return "no sample came to it";
    if (planned->next_axis != QDQI_NONE)
        return "a weight that it meets has scales along more than one axis";
    *to = (struct reader){&from->weight, planned, m->moments};
    return NULL;
}

static const char *
find_readers(const struct qdqi_attempt *a, struct choice *choice)
{
    const struct qdqi_chain *chain = choice->chain;
    for (size_t i = 0; i < chain->n_readers; i++) {
        const char *why = find_reader(a, &chain->readers[i], &choice->readers[i]);
        if (why)
            return why;
        if (choice->readers[i].moment != choice->readers[0].moment)
            return "layers that read it have moments of their own";
    }
    return NULL;
}

static enum qdq_code
find(struct awq *w, struct qdq_error *err)
{
    struct qdqi_attempt *a = w->attempt;
    enum qdq_code code = qdqi_chains_find(a->model, a->scratch, &w->chains, err);
    if (code)
        return code;
    w->all = qdqi_arena_array(a->scratch, w->chains.n, sizeof *w->all);
    for (size_t i = 0; w->all && i < w->chains.n; i++) {
        struct qdqi_chain *chain = &w->chains.all[i];
        struct choice *choice = &w->all[i];
        choice->chain = chain;
        if (chain->is_cached)
            chain->reason = NULL;
        if (!chain->reason && chain->block > 1)
            chain->reason = "a Flatten lies on the way to it";
        if (chain->reason)
            continue;
        choice->readers =
            qdqi_arena_array(a->scratch, chain->n_readers, sizeof *choice->readers);
        choice->factors =
            qdqi_arena_array(a->scratch, chain->channels, sizeof *choice->factors);
        if (choice->readers && choice->factors)
            chain->reason = find_readers(a, choice);
    }
    return qdqi_arena_exhausted(a->scratch) ? qdqi_no_memory(err) : QDQ_OK;
}

/* --- the error of some outputs ------------------------------------------------ */

/* Memory for the search of one activation, [k], [k][k] and [k][LINES]. */
struct search {
    size_t k;
    size_t *places;
    double *diagonal, *by_power;
    float *moment, (*errors)[LINES], (*products)[LINES];
};

static double
element(const struct qdqi_weight *w, size_t output, size_t input)
{
    return (double)qdqi_float_at(w->bytes, w->major_is_out ? output * w->minor + input
                                                           : input * w->minor + output);
}

/* Rounds elements `first` to end - 1 of an output, which share a scale, and writes by how much each
   is off in the model that was given. */
static void
round_shared(const struct reader *r, size_t output, const double *by, size_t first,
             size_t end, float (*errors)[LINES], size_t line)
{
    const enum qdqi_format format = r->planned->format;
    const struct qdqi_format_row *row = qdqi_format_row((int)format);
    double low = 0, high = 0;
    float scale;
    int32_t zero;
    for (size_t i = first; i < end; i++) {
        const double x = element(r->weight, output, i) * by[i];
        low = x < low ? x : low;
        high = x > high ? x : high;
    }
    qdqi_range_params(format, qdqi_weight_is_symmetric(format), QDQI_FLOAT32, low, high,
                      &scale, &zero);
    for (size_t i = first; i < end; i++) {
        const double x = element(r->weight, output, i);
        double q = rint(x * by[i] / (double)scale) + zero;
        q = fmin(fmax(q, (double)row->lowest), (double)row->highest);
        errors[i][line] = (float)(x - (q - zero) * (double)scale / by[i]);
    }
}

/* Returns dW H dW^T of a layer, as a sum over its outputs. */
static double
error_of(const struct search *s, const struct reader *r, const double *by)
{
    const size_t k = s->k, outputs = r->weight->n_out;
    const size_t lines = outputs < LINES ? outputs : LINES;
    /* Scales along another axis than that of the inputs are those of whole outputs here. */
    const size_t block = r->planned->block > 0 ? (size_t)r->planned->block : k;
    double sum = 0;
    for (size_t line = 0; line < lines; line++)
        for (size_t i = 0; i < k; i += block)
            round_shared(r, line * outputs / lines, by, i,
                         i + block < k ? i + block : k, s->errors, line);
    memset(s->products, 0, k * sizeof *s->products);
    for (size_t i = 0; i < k; i += QDQI_AT_ONCE) {
        struct qdqi_update u = {.n = k - i < QDQI_AT_ONCE ? k - i : QDQI_AT_ONCE,
                                .end = k};
        for (size_t n = 0; n < u.n; n++)
            u.rows[n] = s->moment + (i + n) * k;
        qdqi_update_panel(&u, s->errors + i, lines, s->products);
    }
    for (size_t i = 0; i < k; i++)
        for (size_t line = 0; line < lines; line++)
            sum += (double)s->errors[i][line] * (double)s->products[i][line];
    return sum * (double)outputs / (double)lines;
}

/* Gives channels that come from the same output of a layer the mean of their squares. */
static bool
share_diagonal(const struct qdqi_chain *chain, double *diagonal)
{
    const size_t n = chain->maker.weight.n_out;
    double *sums = calloc(n + 1, sizeof *sums);
    size_t *counts = calloc(n + 1, sizeof *counts);
    const bool ok = sums && counts;
    for (size_t c = 0; ok && c < chain->channels; c++) {
        sums[qdqi_chain_output(chain, c)] += diagonal[c];
        counts[qdqi_chain_output(chain, c)]++;
    }
    for (size_t c = 0; ok && c < chain->channels; c++) {
        const size_t output = qdqi_chain_output(chain, c);
        diagonal[c] = sums[output] / (double)counts[output];
    }
    free(sums);
    free(counts);
    return ok;
}

/* --- the best power -------------------------------------------------------------- */

/* Sets by[c] to h_c^p over the geometric mean of all. A channel that was always 0 keeps 1. */
static void
raise_diagonal(const struct search *s, double power, double *by)
{
    double sum = 0;
    size_t n = 0;
    for (size_t c = 0; c < s->k; c++) {
        by[c] = s->diagonal[c] > 0 ? power * log(s->diagonal[c]) : NAN;
        sum += isnan(by[c]) ? 0 : by[c];
        n += !isnan(by[c]);
    }
    for (size_t c = 0; c < s->k; c++)
        by[c] = isnan(by[c]) ? 1 : exp(by[c] - sum / (double)n);
}

static void
try_power(const struct search *s, struct choice *choice, double power, double *least)
{
    double error = 0;
    raise_diagonal(s, power, s->by_power);
    for (size_t i = 0; i < choice->chain->n_readers; i++)
        error += error_of(s, &choice->readers[i], s->by_power);
    if (!(error < *least))
        return;
    *least = error;
    choice->moved = 0;
    for (size_t c = 0; c < s->k; c++) {
        choice->factors[c] = 1 / s->by_power[c];
        choice->moved += choice->factors[c] != 1;
    }
}

static void
close_search(struct search *s)
{
    free(s->places);
    free(s->diagonal);
    free(s->by_power);
    free(s->moment);
    free(s->errors);
    free(s->products);
}

static bool
open_search(struct search *s, const struct qdqi_moment *m)
{
    const size_t k = m->k;
    *s = (struct search){.k = k,
                         .places = calloc(k, sizeof *s->places),
                         .diagonal = calloc(k, sizeof *s->diagonal),
                         .by_power = calloc(k, sizeof *s->by_power),
                         .moment = calloc(k, k * sizeof *s->moment),
                         .errors = calloc(k, sizeof *s->errors),
                         .products = calloc(k, sizeof *s->products)};
    if (!s->places || !s->diagonal || !s->by_power || !s->moment || !s->errors ||
        !s->products)
        return false;
    for (size_t i = 0; i < k; i++)
        s->places[i] = i;
    const struct qdqi_moment_matrix to = {
        .m = m, .places = s->places, .ld = k, .to_floats = s->moment};
    for (size_t i = 0; i < qdqi_moment_matrix_parts(m); i++)
        qdqi_moment_write(&to, i);
    qdqi_moment_diagonal(m, false, s->diagonal);
    return true;
}

static enum qdq_code
choose(void *arg, size_t i, struct qdq_error *err)
{
    const struct awq *w = arg;
    struct choice *choice = &w->all[i];
    struct search s;
    double least = INFINITY;
    if (choice->chain->reason)
        return QDQ_OK;
    const bool ok =
        open_search(&s, choice->readers->moment) &&
        (!choice->chain->maker.outputs || share_diagonal(choice->chain, s.diagonal));
    for (size_t p = 0; ok && p < N_POWERS; p++)
        try_power(&s, choice, powers[p], &least);
    close_search(&s);
    return ok ? QDQ_OK : qdqi_no_memory(err);
}

/* --- the model --------------------------------------------------------------------- */

static enum qdq_code
fill_rows(const struct awq *w, struct qdq_error *err)
{
    struct qdqi_attempt *a = w->attempt;
    struct qdq_smoothing *rows = qdqi_arena_array(a->arena, w->chains.n, sizeof *rows);
    for (size_t i = 0; rows && i < w->chains.n; i++) {
        const struct qdqi_chain *chain = &w->chains.all[i];
        const size_t moved = w->all[i].moved;
        const char **layers =
            qdqi_arena_array(a->arena, chain->n_readers, sizeof *layers);
        for (size_t r = 0; layers && r < chain->n_readers; r++)
            layers[r] = a->model->graph.nodes[chain->readers[r].node].name;
        rows[i] = (struct qdq_smoothing){
            .tensor = chain->at->name,
            .n_layers = chain->n_readers,
            .layers = layers,
            .channels = moved,
            .reason = qdqi_arena_strdup(a->arena, chain->reason ? chain->reason
                                                  : moved       ? "smoothed"
                                                                : "smooth already")};
    }
    a->rows.smoothing = rows;
    a->rows.n_smoothing = rows ? w->chains.n : 0;
    return qdqi_arena_exhausted(a->arena) ? qdqi_no_memory(err) : QDQ_OK;
}

/* Makes the plan of the new model. Its warnings are those of the one before. */
static enum qdq_code
plan_again(struct qdqi_attempt *a, struct qdq_error *err)
{
    const size_t n = a->warnings->list.n;
    qdq_plan_free(&a->plan);
    enum qdq_code code = qdqi_attempt_plan(a, err);
    a->warnings->list.n = n;
    return code;
}

static enum qdq_code
rescale(struct awq *w, struct qdq_error *err)
{
    struct qdqi_attempt *a = w->attempt;
    struct qdqi_scaling *scalings =
        qdqi_arena_array(a->scratch, w->chains.n, sizeof *scalings);
    size_t n = 0;
    for (size_t i = 0; scalings && i < w->chains.n; i++)
        if (w->all[i].moved > 0)
            scalings[n++] = (struct qdqi_scaling){w->all[i].chain, w->all[i].factors};
    if (!scalings)
        return qdqi_no_memory(err);
    if (n == 0)
        return qdqi_attempt_warn(a, err, "nothing_smoothed", NULL,
                                 "no activation of the model could be smoothed");
    enum qdq_code code =
        qdqi_rescale(a->model, scalings, n, a->scratch, &a->smoothed, err);
    if (code)
        return code;
    for (size_t i = 0; i < w->chains.n; i++)
        if (w->all[i].moved > 0)
            qdqi_moment_scale(w->all[i].readers->moment, w->all[i].factors);
    qdqi_model_forget(a->model);
    a->model = a->smoothed;
    return plan_again(a, err);
}

enum qdq_code
qdqi_awq(struct qdqi_attempt *a, struct qdq_error *err)
{
    struct awq w = {.attempt = a};
    if (!a->spec->smooth_awq)
        return QDQ_OK;
    if (!a->moments)
        return qdq_error_set(err, QDQ_NO_CALIBRATION, QDQ_AT_POINTER, "/smooth",
                             "\"awq\" needs calibration data, and there is none");
    const struct qdqi_tasks tasks = {.executor = a->context->engine->executor,
                                     .threads = a->context->engine->threads};
    enum qdq_code code = find(&w, err);
    if (!code)
        code = qdqi_tasks_run(&tasks, w.chains.n, choose, &w, err);
    if (!code)
        code = fill_rows(&w, err);
    return code ? code : rescale(&w, err);
}
