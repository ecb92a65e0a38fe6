/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/slices/slice_sums.h"

#include <math.h>
#include <string.h>

enum {
    LEAST_VALUES = 16,
    LANES = 4,     /* sums that a processor adds to at the same time */
    MOST_RUNS = 8, /* of one magnitude along an axis */
};

/* Standard deviations of one run lie within this factor. */
static const double magnitude = 5;

/* The largest standard deviation of a constant, in parts of its root of mean squares, and of
   noise, in parts of that of the output's largest slice. */
static const double constant = 0x1p-20, noise = 0x1p-24, dead = 0x1p-20;

enum qdq_code
qdqi_slice_sums_init(struct qdqi_slice_sums *s, const struct qdqi_cuts *cuts,
                     struct qdqi_arena *arena, struct qdq_error *err)
{
    *s = (struct qdqi_slice_sums){
        cuts->n, qdqi_arena_array(arena, cuts->n + 1, sizeof *s->cuts)};
    for (size_t i = 0; s->cuts && i < cuts->n; i++) {
        s->cuts[i].cut = &cuts->cuts[i];
        s->cuts[i].rows =
            qdqi_arena_array(arena, cuts->cuts[i].n, sizeof *s->cuts[i].rows);
        if (!s->cuts[i].rows)
            return qdqi_no_memory(err);
    }
    return s->cuts ? QDQ_OK : qdqi_no_memory(err);
}

void
qdqi_slice_sums_clear(struct qdqi_slice_sums *s)
{
    for (size_t i = 0; i < s->n; i++) {
        memset(s->cuts[i].rows, 0, s->cuts[i].cut->n * sizeof *s->cuts[i].rows);
        s->cuts[i].is_broken = false;
    }
}

/* --- adding a run ------------------------------------------------------------ */

static inline void
add_one(double *sum, double *ff, double *ee, float f, float q)
{
    const double a = (double)f, e = a - (double)q;
    *sum += a;
    *ff += a * a;
    *ee += e * e;
}

/* Adds neighbours in memory to one slice. */
static void
add_block(struct qdqi_slice_sum *to, const float *f, const float *q, size_t n)
{
    double sum[LANES] = {0}, ff[LANES] = {0}, ee[LANES] = {0};
    const size_t whole = n - n % LANES;
    for (size_t i = 0; i < whole; i += LANES)
        for (size_t k = 0; k < LANES; k++)
            add_one(&sum[k], &ff[k], &ee[k], f[i + k], q[i + k]);
    for (size_t i = whole; i < n; i++)
        add_one(&sum[0], &ff[0], &ee[0], f[i], q[i]);
    to->n += (double)n;
    for (size_t k = 0; k < LANES; k++) {
        to->f += sum[k];
        to->ff += ff[k];
        to->ee += ee[k];
    }
}

/* Adds each of `n` neighbours in memory to a slice of its own. */
static void
add_row(struct qdqi_slice_sum *to, const float *f, const float *q, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const double a = (double)f[i], e = a - (double)q[i];
        to[i].n++;
        to[i].f += a;
        to[i].ff += a * a;
        to[i].ee += e * e;
    }
}

/* Adds one period along the axis, with `inner` elements behind each place. */
static void
add_period(struct qdqi_cut_sums *c, int64_t period, size_t inner, const float *f,
           const float *q)
{
    const struct qdqi_cut *cut = c->cut;
    if (cut->by_values && inner == 1) {
        add_row(c->rows, f, q, cut->n);
        return;
    }
    for (size_t i = 0; i < cut->n; i++) {
        const int64_t begin = cut->by_values ? (int64_t)i : cut->begins[i];
        const int64_t end = cut->by_values   ? begin + 1
                            : i + 1 < cut->n ? cut->begins[i + 1]
                                             : period;
        if (end > begin)
            add_block(&c->rows[i], f + (size_t)begin * inner, q + (size_t)begin * inner,
                      (size_t)(end - begin) * inner);
    }
}

static void
add_cut(struct qdqi_cut_sums *c, const float *f, const float *q, const int64_t *shape,
        size_t rank, int64_t samples)
{
    const struct qdqi_cut *cut = c->cut;
    const int64_t size = cut->axis < rank ? shape[cut->axis] : 0;
    const int64_t period = cut->period ? cut->period : size;
    size_t inner = 1, n = 1;
    for (size_t i = 0; i < rank; i++)
        n *= (size_t)shape[i];
    for (size_t i = cut->axis + 1; i < rank; i++)
        inner *= (size_t)shape[i];
    c->size = size;
    if (n == 0)
        return;
    c->is_broken = c->is_broken || period < 1 || size < 1 || size % period != 0 ||
                   (cut->axis == 0 && samples > 1 && cut->period == 0) ||
                   (!cut->by_values && cut->begins[cut->n - 1] >= period);
    const size_t step = (size_t)(period > 0 ? period : 1) * inner;
    for (size_t at = 0; !c->is_broken && at + step <= n; at += step)
        add_period(c, period, inner, f + at, q + at);
}

void
qdqi_slice_sums_add(struct qdqi_slice_sums *s, const float *f, const float *q,
                    const int64_t *shape, size_t rank, int64_t samples)
{
    for (size_t i = 0; i < s->n; i++)
        add_cut(&s->cuts[i], f, q, shape, rank, samples);
}

/* --- figures ------------------------------------------------------------------ */

static double
variance(const struct qdqi_slice_sum *s)
{
    return s->n > 0 ? fmax(0, (s->ff - s->f * s->f / s->n) / s->n) : 0;
}

static double
mean_square(const struct qdqi_slice_sum *s)
{
    return s->n > 0 ? s->ff / s->n : 0;
}

double
qdqi_slice_sqnr(const struct qdqi_slice_sum *s, const char **ret_why)
{
    const double v = variance(s);
    *ret_why = NULL;
    if (s->n < LEAST_VALUES)
        *ret_why = "few values";
    else if (!(v > constant * constant * mean_square(s)))
        *ret_why = isfinite(s->ff) ? "constant" : "not finite";
    if (*ret_why)
        return NAN;
    const double db = s->ee == 0 ? (double)INFINITY : 10 * log10(v * s->n / s->ee);
    return isnan(db) ? -(double)INFINITY : db;
}

/* A slice of the report before it has its figures. */
struct slice {
    const struct qdqi_cut_sums *from;
    size_t first, end; /* rows */
    struct qdqi_slice_sum sum;
};

static void
join(struct slice *s)
{
    s->sum = (struct qdqi_slice_sum){0};
    for (size_t i = s->first; i < s->end; i++) {
        const struct qdqi_slice_sum *row = &s->from->rows[i];
        s->sum.n += row->n;
        s->sum.f += row->f;
        s->sum.ff += row->ff;
        s->sum.ee += row->ee;
    }
}

/* A run of neighbours of one magnitude: their smallest and largest standard deviation. */
struct run {
    size_t first;
    double low, high; /* 0: only constants so far */
};

/* Cuts an axis into runs of one magnitude. Returns their number; 0 where the magnitudes are
   those of single elements. */
static size_t
find_runs(const struct qdqi_cut_sums *c, struct run *runs)
{
    size_t n = 0;
    for (size_t i = 0; i < c->cut->n; i++) {
        const double rms = sqrt(mean_square(&c->rows[i]));
        double d = sqrt(variance(&c->rows[i]));
        struct run *last = n ? &runs[n - 1] : NULL;
        if (!(d > constant * rms) && last)
            continue;
        d = d > constant * rms ? d : 0;
        if (!last || (last->high > 0 &&
                      (d > magnitude * last->low || last->high > magnitude * d))) {
            if (n == MOST_RUNS)
                return 0;
            runs[n++] = (struct run){i, d, d};
            continue;
        }
        last->low = last->high > 0 ? fmin(last->low, d) : d;
        last->high = fmax(last->high, d);
    }
    for (size_t i = 1; i < n; i++) {
        const struct run *a = &runs[i - 1], *b = &runs[i];
        if (!(a->low > magnitude * b->high) && !(b->low > magnitude * a->high))
            return 0;
    }
    return n;
}

/* Fills in the slices of a cut, and returns their number: none where there is one. */
static size_t
find_slices(const struct qdqi_cut_sums *c, struct slice *to)
{
    struct run runs[MOST_RUNS];
    const size_t n = c->is_broken        ? 0
                     : c->cut->by_values ? find_runs(c, runs)
                                         : c->cut->n;
    for (size_t i = 0; n > 1 && i < n; i++) {
        const size_t first = c->cut->by_values ? runs[i].first : i;
        const size_t end = i + 1 == n          ? c->cut->n
                           : c->cut->by_values ? runs[i + 1].first
                                               : i + 1;
        to[i] = (struct slice){.from = c, .first = first, .end = end};
        join(&to[i]);
    }
    return n > 1 ? n : 0;
}

/* Returns the SQNR of a slice beside the others of its cut. */
static double
sqnr_beside(const struct slice *rows, size_t n, size_t i, const char **ret_why)
{
    double largest = 0;
    const double db = qdqi_slice_sqnr(&rows[i].sum, ret_why);
    for (size_t k = 0; k < n; k++)
        largest = fmax(largest, mean_square(&rows[k].sum));
    const double least = rows[i].from->cut->by_values ? dead : noise;
    if (!*ret_why && !(variance(&rows[i].sum) > least * least * largest))
        *ret_why = "noise";
    return *ret_why ? NAN : db;
}

enum { MOST_SLICES = 96 }; /* of one cut: as many as a tensor has marks, or runs */

double
qdqi_slice_sums_worst(const struct qdqi_slice_sums *s)
{
    double worst = NAN;
    for (size_t i = 0; i < s->n; i++) {
        struct slice rows[MOST_SLICES + 1];
        const char *why;
        const size_t n = find_slices(&s->cuts[i], rows);
        for (size_t k = 0; k < n; k++)
            worst = fmin(worst, sqnr_beside(rows, n, k, &why));
    }
    return worst;
}

static bool
report_slice(const struct slice *rows, size_t n, size_t i, struct qdqi_arena *arena,
             struct qdq_slice_report *to)
{
    const struct qdqi_cut *cut = rows[i].from->cut;
    double all = 0;
    for (size_t k = 0; k < n; k++)
        all += rows[k].sum.ff;
    const bool named = !cut->by_values;
    const int64_t last = cut->period ? cut->period : rows[i].from->size;
    to->axis = cut->axis;
    to->begin = named ? cut->begins[rows[i].first] : (int64_t)rows[i].first;
    to->end = !named                 ? (int64_t)rows[i].end
              : rows[i].end < cut->n ? cut->begins[rows[i].end]
                                     : last;
    to->name = named ? qdqi_arena_strdup(arena, cut->names[rows[i].first])
                     : qdqi_arena_printf(arena, "%lld to %lld", (long long)to->begin,
                                         (long long)to->end - 1);
    to->share = all > 0 ? rows[i].sum.ff / all : NAN;
    to->sqnr_db = sqnr_beside(rows, n, i, &to->left_out);
    return to->name;
}

enum qdq_code
qdqi_slice_sums_report(const struct qdqi_slice_sums *s, struct qdqi_arena *arena,
                       const struct qdq_slice_report **ret, size_t *ret_n,
                       struct qdq_error *err)
{
    struct qdq_slice_report *to =
        qdqi_arena_array(arena, s->n * MOST_SLICES + 1, sizeof *to);
    *ret_n = 0;
    if (!to)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < s->n; i++) {
        struct slice rows[MOST_SLICES + 1];
        const size_t n = find_slices(&s->cuts[i], rows);
        for (size_t k = 0; k < n; k++)
            if (!report_slice(rows, n, k, arena, &to[(*ret_n)++]))
                return qdqi_no_memory(err);
    }
    *ret = to;
    return QDQ_OK;
}
