/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channel c of an activation is divided by m_c, and the weights that meet it are multiplied
 * by m_c = a_c^alpha / w_c^(1 - alpha), where a_c is the channel's largest magnitude over
 * the calibration samples and w_c that of its weights, over all layers that read it. The
 * geometric mean of an activation's factors is 1. They are rounded to powers of two, so
 * that the float model computes the same bits as before, except for numbers at the ends of
 * float32's range: a channel is off its optimum by at most half a bit.
 */
#include "config.h"
#include "smooth/smooth.h"

#include "equalize/rescale.h"
#include "smooth/absorb.h"
#include "smooth/magnitudes.h"

#include <math.h>

enum { MAX_EXPONENT = 20 }; /* a channel that needs more is not skewed but unused */

/* The factors of a layer's output and input channels; NULL: none. */
struct layer_factors {
    double *out, *in;
    const struct qdqi_weight *weight;
};

struct smoothing {
    struct qdqi_job *job;
    struct qdqi_absorption *all; /* those with a reason are left alone */
    size_t n;
    struct qdqi_peaks *peaks;     /* by index into `all` */
    double **divisors;            /* by index into `all`: 1 / m_c */
    size_t *moved;                /* by index into `all`: channels that are scaled */
    struct layer_factors *layers; /* by node */
    struct qdqi_rescaled *changes;
    size_t n_changes;
};

/* --- factors -------------------------------------------------------------- */

static double *
array_of_ones(struct qdqi_arena *arena, size_t n)
{
    double *all = qdqi_arena_array(arena, n, sizeof *all);
    for (size_t i = 0; all && i < n; i++)
        all[i] = 1;
    return all;
}

/* Sets weights[c] to the largest magnitude of the weights that meet channel c. */
static bool
measure_weights(const struct qdqi_absorption *a, struct qdqi_arena *arena,
                double *weights)
{
    for (size_t r = 0; r < a->n_readers; r++) {
        const struct qdqi_weight *w = &a->readers[r].weight;
        double *ones = array_of_ones(arena, w->n_out);
        double *one = qdqi_arena_array(arena, a->channels, sizeof *one);
        if (!ones || !one)
            return false;
        qdqi_weight_ranges(w, false, ones, one);
        for (size_t c = 0; c < a->channels; c++)
            weights[c] = fmax(weights[c], one[c]);
    }
    return true;
}

/* Sets exponents[c] to log2(m_c) before its rounding, 0 where a channel or its weights are
   all zero. */
static void
choose_exponents(const struct qdqi_peaks *peaks, const double *weights, double alpha,
                 double *exponents)
{
    double sum = 0;
    size_t n = 0;
    for (size_t c = 0; c < peaks->channels; c++) {
        bool used = peaks->largest[c] > 0 && weights[c] > 0;
        exponents[c] = used ? alpha * log2((double)peaks->largest[c]) -
                                  (1 - alpha) * log2(weights[c])
                            : NAN;
        sum += used ? exponents[c] : 0;
        n += used;
    }
    for (size_t c = 0; c < peaks->channels; c++)
        exponents[c] = isnan(exponents[c]) ? 0 : exponents[c] - sum / (double)n;
}

static enum qdq_code
choose_divisors(struct smoothing *s, size_t i, struct qdq_error *err)
{
    const struct qdqi_absorption *a = &s->all[i];
    struct qdqi_arena *arena = s->job->scratch;
    double *weights = qdqi_arena_array(arena, a->channels, sizeof *weights);
    double *divisors = qdqi_arena_array(arena, a->channels, sizeof *divisors);
    if (!weights || !divisors || !measure_weights(a, arena, weights))
        return qdqi_no_memory(err);
    choose_exponents(&s->peaks[i], weights, s->job->work->spec->smooth, divisors);
    for (size_t c = 0; c < a->channels; c++) {
        double exponent = fmin(fmax(rint(divisors[c]), -MAX_EXPONENT), MAX_EXPONENT);
        divisors[c] = exp2(-exponent);
        s->moved[i] += exponent != 0;
    }
    s->divisors[i] = divisors;
    return QDQ_OK;
}

/* --- the smoothed model --------------------------------------------------- */

/* Returns the factors of a layer, made if it has none yet; NULL when out of memory. */
static struct layer_factors *
factors_of(struct smoothing *s, size_t node, const struct qdqi_weight *w)
{
    struct layer_factors *layer = &s->layers[node];
    if (!layer->out) {
        layer->out = array_of_ones(s->job->scratch, w->n_out);
        layer->in = array_of_ones(s->job->scratch, w->n_in);
        layer->weight = w;
        s->changes[s->n_changes++] = (struct qdqi_rescaled){*w, layer->out, layer->in};
    }
    return layer->out && layer->in ? layer : NULL;
}

static enum qdq_code
add_changes(struct smoothing *s, size_t i, struct qdq_error *err)
{
    const struct qdqi_absorption *a = &s->all[i];
    struct layer_factors *layer = NULL;
    for (size_t r = 0; r < a->n_readers; r++) {
        if (!(layer = factors_of(s, a->readers[r].node, &a->readers[r].weight)))
            return qdqi_no_memory(err);
        for (size_t c = 0; c < a->channels; c++)
            layer->in[c] = 1 / s->divisors[i][c];
    }
    if (a->maker < s->job->model->graph.n_nodes) {
        if (!(layer = factors_of(s, a->maker, &a->maker_weight)))
            return qdqi_no_memory(err);
        for (size_t c = 0; c < a->channels; c++)
            layer->out[a->outputs ? a->outputs[c] : c] = s->divisors[i][c];
    }
    for (size_t k = 0; k < a->n_constants; k++)
        s->changes[s->n_changes++] = qdqi_rescaled_bias(
            a->tensors[k], &a->constants[k], a->outputs ? layer->out : s->divisors[i]);
    return QDQ_OK;
}

static enum qdq_code
list_changes(struct smoothing *s, struct qdq_error *err)
{
    size_t n_nodes = s->job->model->graph.n_nodes;
    struct qdqi_arena *arena = s->job->scratch;
    s->layers = qdqi_arena_array(arena, n_nodes, sizeof *s->layers);
    s->changes = qdqi_arena_array(arena, n_nodes + s->n * QDQI_MAX_ABSORBING,
                                  sizeof *s->changes);
    s->divisors = qdqi_arena_array(arena, s->n, sizeof *s->divisors);
    s->moved = qdqi_arena_array(arena, s->n, sizeof *s->moved);
    if (!s->layers || !s->changes || !s->divisors || !s->moved)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < s->n; i++) {
        if (s->all[i].reason)
            continue;
        enum qdq_code code = choose_divisors(s, i, err);
        if (!code && s->moved[i] > 0)
            code = add_changes(s, i, err);
        if (code)
            return code;
    }
    return QDQ_OK;
}

/* --- the stage ------------------------------------------------------------ */

static enum qdq_code
fill_rows(struct smoothing *s, struct qdq_error *err)
{
    struct qdqi_arena *arena = s->job->arena;
    struct qdq_smoothing *rows = qdqi_arena_array(arena, s->n, sizeof *rows);
    if (!rows)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < s->n; i++) {
        const struct qdqi_absorption *a = &s->all[i];
        const char **layers = qdqi_arena_array(arena, a->n_readers, sizeof *layers);
        const char *reason = a->reason     ? a->reason
                             : s->moved[i] ? "smoothed"
                                           : "smooth already";
        if (!layers || !(reason = qdqi_arena_strdup(arena, reason)))
            return qdqi_no_memory(err);
        for (size_t r = 0; r < a->n_readers; r++)
            layers[r] = s->job->model->graph.nodes[a->readers[r].node].name;
        rows[i] = (struct qdq_smoothing){a->at->name, a->n_readers, layers, s->moved[i],
                                         reason};
    }
    s->job->report->view.smoothing = rows;
    s->job->report->view.n_smoothing = s->n;
    return QDQ_OK;
}

enum qdq_code
qdqi_smooth(struct qdqi_job *job, struct qdq_error *err)
{
    struct smoothing s = {.job = job};
    if (job->work->spec->smooth == 0)
        return QDQ_OK;
    if (!job->dataset)
        return qdq_error_set(err, QDQ_NO_CALIBRATION, QDQ_AT_POINTER, "/smooth",
                             "smoothing needs calibration data, and there is none");
    enum qdq_code code =
        qdqi_absorptions_find(job->model, job->scratch, &s.all, &s.n, err);
    s.peaks = code ? NULL : qdqi_arena_array(job->scratch, s.n, sizeof *s.peaks);
    if (!code && !s.peaks)
        code = qdqi_no_memory(err);
    if (code || (code = qdqi_magnitudes_observe(job, s.all, s.n, s.peaks, err)) ||
        (code = list_changes(&s, err)) || (code = fill_rows(&s, err)))
        return code;
    if (s.n_changes == 0)
        return qdqi_warn(&job->warnings, job->arena, err, "nothing_smoothed", NULL,
                         "no activation of the model could be smoothed");
    code = qdqi_rescale(job->model, s.changes, s.n_changes, job->scratch,
                        &job->report->smoothed, err);
    if (!code)
        job->model = job->report->smoothed;
    return code;
}
