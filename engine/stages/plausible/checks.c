/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/plausible/checks.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

typedef bool check_fn(const struct qdqi_data_figures *f, struct qdqi_finding *ret);

static bool found(struct qdqi_finding *ret, const char *node, const char *fmt, ...)
    QDQ_PRINTF(3, 4);

static bool
found(struct qdqi_finding *ret, const char *node, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    ret->node = node;
    vsnprintf(ret->text, sizeof ret->text, fmt, args);
    va_end(args);
    return true;
}

/* --- the inputs ------------------------------------------------------------- */

/* Masks and states may be constant beside an input that is not. */
static bool
is_constant(const struct qdqi_data_figures *f, struct qdqi_finding *ret)
{
    for (size_t i = 0; i < f->n_inputs; i++)
        if (f->inputs[i].n == 0 || f->inputs[i].low < f->inputs[i].high)
            return false;
    return f->n_inputs > 0 &&
           found(ret, f->inputs[0].name,
                 "all elements of the first %zu samples are %.9g: ranges of other data "
                 "cannot be known from them",
                 f->samples, f->inputs[0].low);
}

static bool
has_nonfinite(const struct qdqi_data_figures *f, struct qdqi_finding *ret)
{
    for (size_t i = 0; i < f->n_inputs; i++) {
        const struct qdqi_input_figures *input = &f->inputs[i];
        if (input->n_nonfinite > 0)
            return found(ret, input->name,
                         "%llu of %llu elements of the first %zu samples are NaN or "
                         "infinite",
                         (unsigned long long)input->n_nonfinite,
                         (unsigned long long)input->n, f->samples);
    }
    return false;
}

/* More than half of the samples say nothing that the others have not said. */
static bool
repeats(const struct qdqi_data_figures *f, struct qdqi_finding *ret)
{
    const size_t repeated = qdqi_repeated_samples(f);
    if (f->samples == 1)
        return found(ret, NULL, "the data is a single sample");
    return 2 * repeated > f->samples &&
           found(ret, NULL, "%zu of the first %zu samples are equal to earlier ones",
                 repeated, f->samples);
}

#define LEAST_ROUGHNESS_RATIO 1.5

/*
 * In an image, neighbours along the two axes of places differ by about as much, and channels by
 * another amount. Looks at arrays whose last three axes have one size, where the shape does not
 * tell the layout.
 */
static bool
is_channels_last(const struct qdqi_data_figures *f, struct qdqi_finding *ret)
{
    for (size_t i = 0; i < f->n_inputs; i++) {
        const double *rough = f->inputs[i].rough;
        const double alike =
            rough[0] > rough[1] ? rough[0] / rough[1] : rough[1] / rough[0];
        const double other =
            rough[2] > rough[1] ? rough[2] / rough[1] : rough[1] / rough[2];
        if (rough[1] > 0 && alike < LEAST_ROUGHNESS_RATIO &&
            other > LEAST_ROUGHNESS_RATIO * alike)
            return found(
                ret, f->inputs[i].name,
                "the data looks like NHWC for a model of NCHW: neighbours along "
                "axes 1 and 2 differ by %.3g and %.3g, along axis 3 by %.3g; "
                "numpy.transpose(x, (0, 3, 1, 2)) makes the other layout",
                rough[0], rough[1], rough[2]);
    }
    return false;
}

/* --- what the float model makes of them --------------------------------------- */

#define MOST_DEAD 0.5
#define MOST_SATURATED 0.3
#define SATURATED 0.9 /* share of a channel's elements */

static void
count_stuck(const struct qdqi_probe_figures *p, size_t *ret_dead, size_t *ret_saturated)
{
    *ret_dead = *ret_saturated = 0;
    for (size_t i = 0; i < p->n; i++) {
        const struct qdqi_channel *c = &p->channels[i];
        const bool both = p->probe.low < 0 || p->probe.high <= 1;
        const uint64_t stuck = c->at_high + (both ? c->at_low : 0);
        *ret_dead += c->n > 0 && c->at_low == c->n;
        *ret_saturated += (double)stuck > SATURATED * (double)c->n;
    }
}

static bool
is_stuck(const struct qdqi_data_figures *f, struct qdqi_finding *ret)
{
    enum { LEAST_CHANNELS = 8 };
    for (size_t i = 0; i < f->n_probes; i++) {
        const struct qdqi_probe_figures *p = &f->probes[i];
        size_t dead, saturated;
        if (p->differs || p->n < LEAST_CHANNELS)
            continue;
        count_stuck(p, &dead, &saturated);
        if ((double)dead > MOST_DEAD * (double)p->n ||
            (double)saturated > MOST_SATURATED * (double)p->n)
            return found(ret, p->probe.tensor,
                         "the float model answers the data with %zu dead and %zu "
                         "saturated channels of %zu in one of its first activations: "
                         "check the range of the data",
                         dead, saturated, p->n);
    }
    return false;
}

enum {
    LEAST_TELLING = 16, /* samples whose classes tell something */
    MANY_CLASSES = 10
};

static void
count_classes(const struct qdqi_answer_figures *a, size_t *ret_distinct,
              uint32_t *ret_commonest)
{
    *ret_distinct = *ret_commonest = 0;
    for (size_t i = 0; i < a->classes; i++) {
        *ret_distinct += a->chosen[i] > 0;
        *ret_commonest = a->chosen[i] > *ret_commonest ? a->chosen[i] : *ret_commonest;
    }
}

/* Returns whether the classes are too few, where there are many: one for most samples, or fewer
   than a fifth of those that there could be. Where there are few, data may well have one alone. */
static bool
are_too_few(size_t classes, size_t distinct, uint32_t commonest, size_t samples)
{
    const size_t possible = classes < samples ? classes : samples;
    return samples >= LEAST_TELLING && classes >= MANY_CLASSES &&
           (10 * (size_t)commonest >= 7 * samples || 5 * distinct < possible);
}

static bool
has_places(const struct qdqi_data_figures *f)
{
    bool any = false;
    for (size_t i = 0; i < f->n_inputs; i++)
        any = any || f->inputs[i].has_places;
    return any;
}

static bool
has_one_answer(const struct qdqi_data_figures *f, struct qdqi_finding *ret)
{
    for (size_t i = 0; i < f->n_answers; i++) {
        const struct qdqi_answer_figures *a = &f->answers[i];
        size_t distinct;
        uint32_t commonest;
        if (a->differs || !a->classes)
            continue;
        count_classes(a, &distinct, &commonest);
        if (are_too_few(a->classes, distinct, commonest, f->samples))
            return found(ret, a->name,
                         "the float model finds %zu of %zu classes in the first %zu "
                         "samples, one of them in %u: check the range%s of the "
                         "data, and whether they are of all classes",
                         distinct, a->classes, f->samples, commonest,
                         has_places(f) ? " and the layout" : "");
    }
    return false;
}

#define LEAST_SPREAD 0.02

/* Returns the standard deviation between samples, as a share of the root of the mean square, of the
   elements that are finite in all of them: a mask makes others infinite. */
static double
spread_of(const struct qdqi_answer_figures *a, size_t samples)
{
    const double n = (double)samples;
    double variance = 0, square = 0;
    for (size_t i = 0; i < a->n; i++) {
        if (!isfinite(a->sum2[i]))
            continue;
        variance += a->sum2[i] / n - a->sum[i] / n * (a->sum[i] / n);
        square += a->sum2[i] / n;
    }
    return square > 0 ? sqrt(variance > 0 ? variance / square : 0) : 0;
}

/* A model may have an output that depends on nothing, as a detector's anchors; not all of
   them. */
static bool
hardly_differs(const struct qdqi_data_figures *f, struct qdqi_finding *ret)
{
    enum { LEAST_SAMPLES = 8 };
    const char *name = NULL;
    double largest = 0;
    if (f->samples < LEAST_SAMPLES)
        return false;
    for (size_t i = 0; i < f->n_answers; i++) {
        if (f->answers[i].differs || f->answers[i].n == 0)
            return false;
        const double spread = spread_of(&f->answers[i], f->samples);
        name = spread >= largest ? f->answers[i].name : name;
        largest = spread >= largest ? spread : largest;
    }
    return name && largest < LEAST_SPREAD &&
           found(ret, name,
                 "the float model gives nearly the same outputs for the first %zu "
                 "samples: they differ by %.2g of their size",
                 f->samples, largest);
}

/* --- the table -------------------------------------------------------------- */

static check_fn *const checks[] = {
    is_constant, has_nonfinite,  repeats,        is_channels_last,
    is_stuck,    has_one_answer, hardly_differs,
};

size_t
qdqi_data_checks(void)
{
    return sizeof checks / sizeof *checks;
}

bool
qdqi_data_check(const struct qdqi_data_figures *figures, size_t i,
                struct qdqi_finding *ret)
{
    return checks[i](figures, ret);
}
