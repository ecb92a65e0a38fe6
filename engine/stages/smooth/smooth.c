/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channel c of an activation is divided by m_c, and the weights that meet it are multiplied
 * by m_c = a_c^alpha / w_c^(1 - alpha), where a_c is the channel's largest magnitude over
 * the calibration samples and w_c that of its weights, over all layers that read it. The
 * geometric mean of an activation's factors is 1. They are rounded to powers of two, so
 * that the float model computes the same bits as before, except for numbers at the ends of
 * float32's range: a channel is off its optimum by at most half a bit.
 *
 * Where nothing can take the factors of an activation in, a Mul of its own does, if the spec
 * allows it.
 */
#include "config.h"
#include "stages/smooth/smooth.h"

#include "transform/equalize/readers.h"
#include "transform/equalize/rescale.h"
#include "stages/smooth/magnitudes.h"

#include <math.h>

/* A channel that needs more is not skewed but unused. The factors of a Mul are stored, and
   float16 has them as normal numbers. */
enum { MAX_EXPONENT = 20, MAX_STORED_EXPONENT = 14 };

struct smoothing {
    struct qdqi_attempt *attempt;
    struct qdqi_chains chains; /* those with a reason are left alone */
    struct qdqi_peaks *peaks;  /* by chain */
    size_t *moved;             /* by chain: channels that are scaled */
    struct qdqi_scaling *scalings;
    size_t n_scalings;
};

/* --- factors -------------------------------------------------------------- */

/* Sets weights[c] to the largest magnitude of the weights that meet channel c. */
static bool
measure_weights(const struct qdqi_chain *chain, struct qdqi_arena *arena,
                double *weights)
{
    const size_t n = chain->channels * chain->block;
    for (size_t r = 0; r < chain->n_readers; r++) {
        const struct qdqi_weight *w = &chain->readers[r].weight;
        double *ones = qdqi_weight_ones(arena, w->n_out);
        double *one = qdqi_arena_array(arena, n, sizeof *one);
        if (!ones || !one)
            return false;
        qdqi_weight_ranges(w, false, ones, one);
        for (size_t i = 0; i < n; i++)
            weights[i] = fmax(weights[i], one[i]);
    }
    qdqi_chain_fold(chain, weights);
    return true;
}

/* Sets exponents[c] to log2(m_c) before its rounding, 0 where a channel or its weights are
   all zero. */
static void
choose_exponents(const double *magnitudes, const double *weights, size_t n,
                 double alpha, double *exponents)
{
    double sum = 0;
    size_t n_used = 0;
    for (size_t c = 0; c < n; c++) {
        bool used = magnitudes[c] > 0 && weights[c] > 0;
        exponents[c] =
            used ? alpha * log2(magnitudes[c]) - (1 - alpha) * log2(weights[c]) : NAN;
        sum += used ? exponents[c] : 0;
        n_used += used;
    }
    for (size_t c = 0; c < n; c++)
        exponents[c] = isnan(exponents[c]) ? 0 : exponents[c] - sum / (double)n_used;
}

/* Sets the factors of a chain, 1 / m_c, and counts the channels that they change. */
static enum qdq_code
choose_factors(struct smoothing *s, size_t i, struct qdq_error *err)
{
    const struct qdqi_chain *chain = &s->chains.all[i];
    struct qdqi_arena *arena = s->attempt->scratch;
    const size_t n = chain->channels * chain->block;
    double *weights = qdqi_arena_array(arena, n, sizeof *weights);
    double *magnitudes = qdqi_arena_array(arena, n, sizeof *magnitudes);
    double *factors = qdqi_arena_array(arena, chain->channels, sizeof *factors);
    if (!weights || !magnitudes || !factors || !measure_weights(chain, arena, weights))
        return qdqi_no_memory(err);
    for (size_t k = 0; k < n; k++)
        magnitudes[k] = (double)s->peaks[i].largest[k];
    qdqi_chain_fold(chain, magnitudes);
    choose_exponents(magnitudes, weights, chain->channels, s->attempt->spec->smooth,
                     factors);
    const double most = chain->is_multiplied ? MAX_STORED_EXPONENT : MAX_EXPONENT;
    for (size_t c = 0; c < chain->channels; c++) {
        double exponent = fmin(fmax(rint(factors[c]), -most), most);
        factors[c] = exp2(-exponent);
        s->moved[i] += exponent != 0;
    }
    if (s->moved[i] > 0)
        s->scalings[s->n_scalings++] = (struct qdqi_scaling){chain, factors};
    return QDQ_OK;
}

static enum qdq_code
choose_all(struct smoothing *s, struct qdq_error *err)
{
    struct qdqi_arena *arena = s->attempt->scratch;
    s->moved = qdqi_arena_array(arena, s->chains.n, sizeof *s->moved);
    s->scalings = qdqi_arena_array(arena, s->chains.n, sizeof *s->scalings);
    if (!s->moved || !s->scalings)
        return qdqi_no_memory(err);
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < s->chains.n && !code; i++)
        if (!s->chains.all[i].reason)
            code = choose_factors(s, i, err);
    return code;
}

/* --- the stage ------------------------------------------------------------ */

/* Returns what the report says of an activation. */
static const char *
reason_of(const struct smoothing *s, size_t i)
{
    const struct qdqi_chain *chain = &s->chains.all[i];
    if (chain->reason)
        return chain->reason;
    if (s->moved[i] == 0)
        return "smooth already";
    return chain->is_multiplied ? "smoothed by a Mul" : "smoothed";
}

static enum qdq_code
fill_rows(struct smoothing *s, struct qdq_error *err)
{
    struct qdqi_arena *arena = s->attempt->arena;
    struct qdq_smoothing *rows = qdqi_arena_array(arena, s->chains.n, sizeof *rows);
    if (!rows)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < s->chains.n; i++) {
        const struct qdqi_chain *chain = &s->chains.all[i];
        const char **layers = qdqi_arena_array(arena, chain->n_readers, sizeof *layers);
        const char *reason = qdqi_arena_strdup(arena, reason_of(s, i));
        if (!layers || !reason)
            return qdqi_no_memory(err);
        for (size_t r = 0; r < chain->n_readers; r++)
            layers[r] = s->attempt->model->graph.nodes[chain->readers[r].node].name;
        rows[i] = (struct qdq_smoothing){chain->at->name,
                                         chain->n_readers,
                                         layers,
                                         s->moved[i],
                                         s->moved[i] > 0 && chain->is_multiplied,
                                         reason};
    }
    s->attempt->rows.smoothing = rows;
    s->attempt->rows.n_smoothing = s->chains.n;
    return QDQ_OK;
}

/* Lets a Mul take the factors in where nothing else can. */
static enum qdq_code
multiply(struct smoothing *s, struct qdq_error *err)
{
    for (size_t i = 0; i < s->chains.n; i++)
        if (s->chains.all[i].reason)
            qdqi_readers_multiply(s->attempt->model, &s->chains.all[i],
                                  s->attempt->scratch);
    return qdqi_arena_exhausted(s->attempt->scratch) ? qdqi_no_memory(err) : QDQ_OK;
}

/* Finds the activations. Those in nested graphs cannot be observed. */
static enum qdq_code
find(struct smoothing *s, struct qdq_error *err)
{
    struct qdqi_arena *scratch = s->attempt->scratch;
    enum qdq_code code = qdqi_chains_find(s->attempt->model, scratch, &s->chains, err);
    if (!code && s->attempt->spec->smooth_insert)
        code = multiply(s, err);
    if (code)
        return code;
    for (size_t i = 0; i < s->chains.n; i++)
        if (s->chains.all[i].at->scope != 0)
            s->chains.all[i].reason = "it is in a nested graph";
    s->peaks = qdqi_arena_array(scratch, s->chains.n, sizeof *s->peaks);
    return s->peaks ? QDQ_OK : qdqi_no_memory(err);
}

enum qdq_code
qdqi_smooth(struct qdqi_attempt *a, struct qdq_error *err)
{
    struct smoothing s = {.attempt = a};
    if (a->spec->smooth == 0)
        return QDQ_OK;
    if (!a->context->dataset)
        return qdq_error_set(err, QDQ_NO_CALIBRATION, QDQ_AT_POINTER, "/smooth",
                             "smoothing needs calibration data, and there is none");
    enum qdq_code code = find(&s, err);
    if (code || (code = qdqi_magnitudes_observe(a, &s.chains, s.peaks, err)) ||
        (code = choose_all(&s, err)) || (code = fill_rows(&s, err)))
        return code;
    if (s.n_scalings == 0)
        return qdqi_attempt_warn(
            a, err, "nothing_smoothed", NULL,
            "no activation of the model could be smoothed%s",
            a->spec->smooth_insert
                ? ""
                : " without a Mul of its own, which smooth.insert adds");
    code =
        qdqi_rescale(a->model, s.scalings, s.n_scalings, a->scratch, &a->smoothed, err);
    if (!code)
        a->model = a->smoothed;
    return code;
}
