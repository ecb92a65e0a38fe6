/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "numbers/range/observer.h"

#include "numbers/arithmetic/half.h"

enum {
    PIECE = 1 << 16, /* elements that are still in the cache during the second pass */
    /* Smallest numbers of elements for which it pays to wake a thread: about 15
       microseconds of work. */
    MIN_SHARE_EXTREMES = 1 << 18,
    MIN_SHARE_HISTOGRAM = 1 << 15,
};

/* The weight that onnxruntime's calibrators give to a new sample. */
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

/* Adds a piece of float32 data. A NaN or an infinity stays in the extremes and has
   no bin. */
static struct qdqi_extremes
add_piece(struct qdqi_accumulator *a, const unsigned char *data, size_t n)
{
    struct qdqi_extremes piece = QDQI_NO_EXTREMES;
    qdqi_extremes_update(&piece, data, n);
    qdqi_extremes_merge(&a->extremes, &piece);
    if (a->histogram && qdqi_extremes_finite(&piece))
        qdqi_histogram_update(a->histogram, qdqi_extremes_amax(&piece), data, n);
    return piece;
}

/* Adds float16 data, which it converts to float32 piece by piece. */
static struct qdqi_extremes
add_halves(struct qdqi_accumulator *a, const unsigned char *data, size_t n)
{
    enum { HALVES = 1 << 12 };
    struct qdqi_extremes taken = QDQI_NO_EXTREMES;
    float floats[HALVES];
    for (size_t m; n > 0; n -= m, data += m * sizeof(uint16_t)) {
        m = n < HALVES ? n : HALVES;
        qdqi_floats_of_halves(floats, data, m);
        struct qdqi_extremes piece = add_piece(a, (const unsigned char *)floats, m);
        qdqi_extremes_merge(&taken, &piece);
    }
    return taken;
}

/* Adds elements `at` … end - 1 and returns their extremes. */
static struct qdqi_extremes
add_elements(struct qdqi_accumulator *a, const struct qdqi_reached *r, size_t at,
             size_t end)
{
    const unsigned char *data =
        (const unsigned char *)r->data + at * qdqi_dtype_size(r->dtype);
    size_t n = end - at;
    if (r->dtype == QDQI_FLOAT16)
        return add_halves(a, data, n);
    struct qdqi_extremes taken = QDQI_NO_EXTREMES;
    for (size_t m; n > 0; n -= m, data += m * sizeof(float)) {
        m = n < PIECE ? n : PIECE;
        struct qdqi_extremes piece = add_piece(a, data, m);
        qdqi_extremes_merge(&taken, &piece);
    }
    return taken;
}

/* Moves the observations of a part to the whole, and empties the part. */
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

/* Updates the average with one sample. An empty sample, or one that is not finite,
   does not count. */
static void
average(struct qdqi_average *a, const struct qdqi_extremes *sample)
{
    if (qdqi_extremes_empty(sample) || !qdqi_extremes_finite(sample))
        return;
    double min = (double)qdqi_float_of_key(sample->min);
    double max = (double)qdqi_float_of_key(sample->max);
    *a = a->begun
             ? (struct qdqi_average){a->min + AVERAGE_WEIGHT * (min - a->min),
                                     a->max + AVERAGE_WEIGHT * (max - a->max), true}
             : (struct qdqi_average){min, max, true};
}

/* --- observers ------------------------------------------------------------ */

bool
qdqi_observers_init(struct qdqi_observers *observers, const char *const *tensors,
                    size_t n, unsigned needs, size_t n_parts, struct qdqi_arena *arena)
{
    struct qdqi_observer *rows = qdqi_arena_array(arena, n, sizeof *rows);
    struct qdqi_thread_share *parts = qdqi_arena_array(arena, n_parts, sizeof *parts);
    bool ok = rows && parts;
    for (size_t i = 0; ok && i < n; i++) {
        rows[i] = (struct qdqi_observer){.tensor = tensors[i]};
        ok = accumulator_init(&rows[i].all, needs, arena);
    }
    for (size_t i = 0; ok && i < n_parts; i++)
        ok = accumulator_init(&parts[i].all, needs, arena);
    *observers = (struct qdqi_observers){.rows = rows,
                                         .n = n,
                                         .needs = needs,
                                         .parts = parts,
                                         .n_parts = n_parts,
                                         .arena = arena};
    return ok && qdqi_observers_begin(observers, 1);
}

bool
qdqi_observers_begin(struct qdqi_observers *observers, int64_t samples)
{
    size_t n = (size_t)samples;
    observers->samples = samples;
    if (!(observers->needs & QDQI_NEEDS_AVERAGE) || n <= observers->room)
        return true;
    observers->each = qdqi_arena_array(observers->arena, n, sizeof *observers->each);
    observers->room = observers->each ? n : 0;
    return observers->each != NULL;
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
qdqi_observers_reset(struct qdqi_observers *observers, const bool *which)
{
    for (size_t i = 0; i < observers->n; i++) {
        struct qdqi_observer *o = &observers->rows[i];
        if (!which[i])
            continue;
        o->all.extremes = QDQI_NO_EXTREMES;
        if (o->all.histogram)
            qdqi_histogram_init(o->all.histogram);
        o->average = (struct qdqi_average){0};
        o->runs = 0;
    }
}

void
qdqi_observer_average(struct qdqi_observer *observer,
                      const struct qdqi_extremes *samples, size_t n)
{
    for (size_t k = 0; k < n; k++)
        average(&observer->average, &samples[k]);
}

bool
qdqi_observers_postpone(struct qdqi_observers *observers, size_t samples)
{
    if (!(observers->needs & QDQI_NEEDS_AVERAGE))
        return true;
    const size_t n = observers->n;
    struct qdqi_extremes *all =
        qdqi_arena_array(observers->arena, n * samples + 1, sizeof *all);
    struct qdqi_postponed *rows =
        qdqi_arena_array(observers->arena, n + 1, sizeof *rows);
    for (size_t i = 0; all && rows && i < n; i++)
        rows[i].samples = all + i * samples;
    observers->postponed = rows;
    observers->most_postponed = samples;
    return all && rows;
}

bool
qdqi_observers_can_merge(const struct qdqi_observers *observers)
{
    for (size_t i = 0; i < observers->n; i++) {
        const struct qdqi_extremes *e = &observers->rows[i].all.extremes;
        if ((!qdqi_extremes_empty(e) && !qdqi_extremes_finite(e)) ||
            (observers->postponed &&
             observers->postponed[i].n > observers->most_postponed))
            return false;
    }
    return true;
}

void
qdqi_observers_average(struct qdqi_observers *to, struct qdqi_observers *from)
{
    for (size_t i = 0; from->postponed && i < to->n; i++) {
        struct qdqi_postponed *p = &from->postponed[i];
        qdqi_observer_average(&to->rows[i], p->samples, p->n);
        p->n = 0;
    }
}

void
qdqi_observers_merge(struct qdqi_observers *to, struct qdqi_observers *from)
{
    for (size_t i = 0; i < to->n; i++) {
        collect(&to->rows[i].all, &from->rows[i].all);
        to->rows[i].runs += from->rows[i].runs;
        from->rows[i].runs = 0;
    }
}

/* --- a tensor ------------------------------------------------------------- */

static size_t
shares(unsigned needs, size_t n, size_t threads)
{
    size_t least =
        needs & QDQI_NEEDS_HISTOGRAM ? MIN_SHARE_HISTOGRAM : MIN_SHARE_EXTREMES;
    size_t most = n / least;
    return most < 2 ? 1 : most < threads ? most : threads;
}

struct qdqi_reached
qdqi_reached(struct qdqi_observers *observers, size_t slot, enum qdqi_dtype dtype,
             const void *data, size_t n, int64_t axis0)
{
    bool each = observers->each && axis0 == observers->samples && n > 0;
    return (struct qdqi_reached){
        .observer = &observers->rows[slot],
        .dtype = dtype,
        .data = data,
        .n = n,
        .samples = each ? (size_t)axis0 : 1,
        .each = observers->each,
        .postponed = observers->postponed ? &observers->postponed[slot] : NULL,
        .most_postponed = observers->most_postponed,
        .parts = observers->parts,
        .n_parts = shares(observers->needs, n, observers->n_parts),
    };
}

/* Returns the first element of part i, or the end of the last part if i is n_parts. */
static size_t
begin_of(const struct qdqi_reached *r, size_t i)
{
    return r->n_parts > 0 && i < r->n_parts ? i * (r->n / r->n_parts) : r->n;
}

/* Returns whether part i begins within a sample. */
static bool
goes_on(const struct qdqi_reached *r, size_t i)
{
    return begin_of(r, i) % (r->n / r->samples) != 0;
}

/* Adds part i and stores the extremes of each of its samples. The rest of a sample
   that began in an earlier part is stored separately. */
static void
add_samples(const struct qdqi_reached *r, size_t i, struct qdqi_accumulator *a)
{
    size_t at = begin_of(r, i), end = begin_of(r, i + 1), size = r->n / r->samples;
    while (at < end) {
        size_t k = at / size, stop = (k + 1) * size < end ? (k + 1) * size : end;
        struct qdqi_extremes *to = at % size ? &r->parts[i].rest : &r->each[k];
        *to = add_elements(a, r, at, stop);
        at = stop;
    }
}

void
qdqi_reached_part(const struct qdqi_reached *r, size_t i)
{
    struct qdqi_accumulator *a = r->n_parts > 1 ? &r->parts[i].all : &r->observer->all;
    if (r->each && r->n > 0)
        add_samples(r, i, a);
    else
        (void)add_elements(a, r, begin_of(r, i), begin_of(r, i + 1));
}

/* Lets the average wait for the samples. */
static void
postpone(const struct qdqi_reached *r)
{
    struct qdqi_postponed *to = r->postponed;
    for (size_t k = 0; k < r->samples; k++, to->n++)
        if (to->n < r->most_postponed)
            to->samples[to->n] = r->each[k];
}

/* Completes the extremes of samples that cross parts, and updates the average in the
   order of the samples. */
static void
update_averages(const struct qdqi_reached *r)
{
    for (size_t i = 1; i < r->n_parts; i++)
        if (goes_on(r, i))
            qdqi_extremes_merge(&r->each[begin_of(r, i) / (r->n / r->samples)],
                                &r->parts[i].rest);
    if (r->postponed)
        postpone(r);
    else
        qdqi_observer_average(r->observer, r->each, r->samples);
}

void
qdqi_reached_end(const struct qdqi_reached *r)
{
    for (size_t i = 0; r->n_parts > 1 && i < r->n_parts; i++)
        collect(&r->observer->all, &r->parts[i].all);
    if (r->each && r->n > 0)
        update_averages(r);
    r->observer->runs++;
}
