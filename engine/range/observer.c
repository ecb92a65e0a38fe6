/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "range/observer.h"

enum {
    PIECE = 1 << 16, /* elements that are still in the cache at the second pass */
    /* Elements for which a thread is worth waking: 15 microseconds or so. */
    MIN_SHARE_EXTREMES = 1 << 18,
    MIN_SHARE_HISTOGRAM = 1 << 15,
};

/* As onnxruntime's calibrators weigh a new sample. */
static const double AVERAGE_WEIGHT = 0.01;

/* --- accumulators --------------------------------------------------------- */

static bool
accumulator_init(struct qdqi_accumulator *a, unsigned needs, struct qdqi_arena *arena)
{
    *a = (struct qdqi_accumulator){.extremes = QDQI_NO_EXTREMES};
    if (!(needs & QDQI_NEEDS_HISTOGRAM))
        return true;
    a->histogram = qdqi_arena_alloc(arena, sizeof *a->histogram);
    if (a->histogram)
        qdqi_histogram_init(a->histogram);
    return a->histogram != NULL;
}

/* A NaN or an infinity is in the extremes for good and has no bin. */
static void
take_piece(struct qdqi_accumulator *a, const unsigned char *data, size_t n)
{
    struct qdqi_extremes piece = QDQI_NO_EXTREMES;
    qdqi_extremes_update(&piece, data, n);
    qdqi_extremes_merge(&a->extremes, &piece);
    if (a->histogram && qdqi_extremes_finite(&piece))
        qdqi_histogram_update(a->histogram, qdqi_extremes_amax(&piece), data, n);
}

static void
take(struct qdqi_accumulator *a, const void *data, size_t n)
{
    const unsigned char *bytes = data;
    for (; n > PIECE; n -= PIECE, bytes += PIECE * sizeof(float))
        take_piece(a, bytes, PIECE);
    if (n > 0)
        take_piece(a, bytes, n);
}

/* Moves what a part has taken in. */
static void
collect(struct qdqi_accumulator *to, struct qdqi_accumulator *part)
{
    qdqi_extremes_merge(&to->extremes, &part->extremes);
    part->extremes = QDQI_NO_EXTREMES;
    if (!to->histogram)
        return;
    qdqi_histogram_merge(to->histogram, part->histogram);
    qdqi_histogram_init(part->histogram);
}

/* --- observers ------------------------------------------------------------ */

bool
qdqi_observers_init(struct qdqi_observers *observers, const char *const *tensors,
                    size_t n, unsigned needs, size_t n_parts, struct qdqi_arena *arena)
{
    struct qdqi_observer *rows = qdqi_arena_array(arena, n, sizeof *rows);
    struct qdqi_accumulator *parts = qdqi_arena_array(arena, n_parts, sizeof *parts);
    bool ok = rows && parts;
    for (size_t i = 0; ok && i < n; i++) {
        rows[i] = (struct qdqi_observer){.tensor = tensors[i], .needs = needs};
        ok = accumulator_init(&rows[i].all, needs, arena);
    }
    for (size_t i = 0; ok && i < n_parts; i++)
        ok = accumulator_init(&parts[i], needs, arena);
    *observers = (struct qdqi_observers){
        .rows = rows, .n = n, .samples = 1, .parts = parts, .n_parts = n_parts};
    return ok;
}

/* Samples are averaged in their order, one after the other. */
static size_t
shares(unsigned needs, size_t n, size_t threads)
{
    size_t least =
        needs & QDQI_NEEDS_HISTOGRAM ? MIN_SHARE_HISTOGRAM : MIN_SHARE_EXTREMES;
    size_t most = needs & QDQI_NEEDS_AVERAGE ? 1 : n / least;
    return most < 2 ? 1 : most < threads ? most : threads;
}

struct qdqi_reached
qdqi_reached(struct qdqi_observers *observers, size_t slot, const void *data, size_t n,
             int64_t axis0)
{
    struct qdqi_observer *o = &observers->rows[slot];
    bool each = o->needs & QDQI_NEEDS_AVERAGE && axis0 == observers->samples;
    return (struct qdqi_reached){
        .observer = o,
        .data = data,
        .n = n,
        .samples = each && n > 0 ? (size_t)axis0 : 1,
        .parts = observers->parts,
        .n_parts = shares(o->needs, n, observers->n_parts),
    };
}

static void
take_sample(struct qdqi_observer *o, const unsigned char *data, size_t n)
{
    struct qdqi_extremes sample = QDQI_NO_EXTREMES;
    struct qdqi_average *a = &o->average;
    qdqi_extremes_update(&sample, data, n);
    qdqi_extremes_merge(&o->all.extremes, &sample);
    if (qdqi_extremes_empty(&sample) || !qdqi_extremes_finite(&sample))
        return;
    double min = (double)qdqi_float_of_key(sample.min);
    double max = (double)qdqi_float_of_key(sample.max);
    *a = a->begun
             ? (struct qdqi_average){a->min + AVERAGE_WEIGHT * (min - a->min),
                                     a->max + AVERAGE_WEIGHT * (max - a->max), true}
             : (struct qdqi_average){min, max, true};
}

void
qdqi_observers_copy(struct qdqi_observers *to, const struct qdqi_observers *from)
{
    for (size_t i = 0; i < from->n; i++) {
        struct qdqi_histogram *own = to->rows[i].all.histogram;
        to->rows[i] = from->rows[i];
        to->rows[i].all.histogram = own;
        if (own)
            *own = *from->rows[i].all.histogram;
    }
}

void
qdqi_reached_part(const struct qdqi_reached *r, size_t i)
{
    const unsigned char *bytes = r->data;
    size_t n = r->n / r->samples;
    if (r->observer->needs & QDQI_NEEDS_AVERAGE) {
        for (size_t k = 0; k < r->samples; k++)
            take_sample(r->observer, bytes + k * n * sizeof(float), n);
        return;
    }
    size_t share = r->n / r->n_parts, first = i * share;
    take(r->n_parts > 1 ? &r->parts[i] : &r->observer->all,
         bytes + first * sizeof(float), i + 1 < r->n_parts ? share : r->n - first);
}

void
qdqi_reached_end(const struct qdqi_reached *r)
{
    for (size_t i = 0; r->n_parts > 1 && i < r->n_parts; i++)
        collect(&r->observer->all, &r->parts[i]);
    r->observer->runs++;
}
