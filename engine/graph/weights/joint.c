/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "graph/weights/joint.h"

#include <string.h>

enum {
    SHARES = 29,  /* of the largest scale that are tried */
    FITS = 3,     /* of the best of them by least squares */
    LARGEST = 42, /* share, in fortieths */
};

/* The error of rounding is (v - t)^T C (v - t) apart from a constant, where v are the numbers
   that the integers stand for and t the best ones that real numbers could be. */
struct problem {
    const struct qdqi_joint *j;
    double target[QDQI_MOST_SHARING]; /* t, in the order of the factor */
    double low, high;                 /* integers, less the zero point */
};

struct solution {
    double scale, error;
    double integers
        [QDQI_MOST_SHARING]; /* less the zero point, in the order of the factor */
    int32_t zero;
};

/* --- the moment -------------------------------------------------------------- */

static void
sort_by_diagonal(struct qdqi_joint *j)
{
    for (size_t i = 0; i < j->n; i++) {
        size_t at = i;
        for (; at > 0 && j->c[j->order[at - 1] * (j->n + 1)] > j->c[i * (j->n + 1)];
             at--)
            j->order[at] = j->order[at - 1];
        j->order[at] = i;
    }
}

/* Factorizes the moment, to whose diagonal a little is added: inputs may depend on each
   other. Returns whether that is possible. */
static bool
factorize(struct qdqi_joint *j)
{
    const size_t n = j->n;
    double mean = 0;
    for (size_t i = 0; i < n; i++)
        mean += j->c[i * (n + 1)] / (double)n;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k <= i; k++) {
            double sum =
                j->c[j->order[i] * n + j->order[k]] + (i == k ? 1e-4 * mean : 0);
            for (size_t m = 0; m < k; m++)
                sum -= j->factor[i * n + m] * j->factor[k * n + m];
            if (i == k && !(sum > 0 && isfinite(sum)))
                return false;
            j->factor[i * n + k] = i == k ? sqrt(sum) : sum / j->factor[k * n + k];
        }
    return true;
}

void
qdqi_joint_begin(struct qdqi_joint *j)
{
    sort_by_diagonal(j);
    j->is_usable = factorize(j);
}

/* Replaces x by C^-1 x. */
static void
solve(const struct qdqi_joint *j, double *x)
{
    const size_t n = j->n;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++)
            x[i] -= j->factor[i * n + k] * x[k];
        x[i] /= j->factor[i * n + i];
    }
    for (size_t i = n; i-- > 0;) {
        for (size_t k = i + 1; k < n; k++)
            x[i] -= j->factor[k * n + i] * x[k];
        x[i] /= j->factor[i * n + i];
    }
}

/* --- one scale ---------------------------------------------------------------- */

/* Rounds the targets for a scale, from the last to the first: each makes up for the errors of
   those before it. Sets the solution if its error is less than that of the present one. */
static void
try_scale(const struct problem *p, double scale, int32_t zero, struct solution *best)
{
    const size_t n = p->j->n;
    double off[QDQI_MOST_SHARING], integers[QDQI_MOST_SHARING], error = 0;
    memset(off, 0, n * sizeof *off);
    for (size_t i = n; i-- > 0;) {
        const double *row = p->j->factor + i * n;
        double q = rint((p->target[i] - off[i] / row[i]) / scale);
        q = q < p->low - zero ? p->low - zero : q > p->high - zero ? p->high - zero : q;
        integers[i] = q;
        const double by = q * scale - p->target[i];
        const double step = off[i] + row[i] * by;
        error += step * step;
        if (!(error < best->error))
            return;
        for (size_t k = 0; k < i; k++)
            off[k] += row[k] * by;
    }
    best->scale = scale;
    best->error = error;
    best->zero = zero;
    memcpy(best->integers, integers, n * sizeof *integers);
}

/* Returns the scale with which the integers have the least error, or 0. */
static double
fitted_scale(const struct problem *p, const struct solution *s)
{
    const size_t n = p->j->n;
    double top = 0, bottom = 0;
    for (size_t k = 0; k < n; k++) { /* by columns of the factor */
        double q = 0, t = 0;
        for (size_t i = k; i < n; i++) {
            q += p->j->factor[i * n + k] * s->integers[i];
            t += p->j->factor[i * n + k] * p->target[i];
        }
        top += q * t;
        bottom += q * q;
    }
    return bottom > 0 ? top / bottom : 0;
}

/* --- all scales ------------------------------------------------------------------ */

/* Tries shares of the largest scale, with both signs where the format has room for one
   number more on one side. */
static void
search(const struct problem *p, double largest, int32_t zero, struct solution *best)
{
    const struct qdqi_gptq *r = p->j->r;
    for (int share = LARGEST; share > LARGEST - SHARES; share--)
        for (int sign = 1; sign >= (r->is_signed ? -1 : 1); sign -= 2) {
            const double scale = (double)(float)(sign * largest * share / 40);
            for (int32_t z = zero - 1; z <= zero + 1; z++)
                if (isnormal((float)scale) && z >= r->lowest && z <= r->highest &&
                    (r->zero_points || z == zero))
                    try_scale(p, scale, z, best);
        }
    for (int i = 0; i < FITS && best->error < INFINITY; i++) {
        const double scale = (double)(float)fitted_scale(p, best);
        if (isnormal((float)scale) && (scale > 0 || r->is_signed))
            try_scale(p, scale, best->zero, best);
    }
}

/* Returns the largest scale that could be of use. */
static double
largest_scale(const struct qdqi_joint *j, size_t output)
{
    const struct qdqi_gptq *r = j->r;
    double low = 0, high = 0;
    for (size_t i = 0; i < j->n; i++) {
        const double x = (double)r->weight[qdqi_element(r, output, j->members[i])];
        low = x < low ? x : low;
        high = x > high ? x : high;
    }
    if (r->lowest >= 0)
        return (high - low) / (r->highest - r->lowest);
    return (high > -low ? high : -low) / r->highest;
}

/* Takes the solution if the error is smaller with it. */
static bool
take(const struct qdqi_joint *j, const struct solution *s, size_t output,
     const double *before, double *gradient)
{
    const struct qdqi_gptq *r = j->r;
    double change[QDQI_MOST_SHARING], products[QDQI_MOST_SHARING], error = 0;
    for (size_t i = 0; i < j->n; i++)
        change[j->order[i]] = s->integers[i] * s->scale - before[j->order[i]];
    for (size_t i = 0; i < j->n; i++) {
        products[i] = 0;
        for (size_t k = 0; k < j->n; k++)
            products[i] += j->c[i * j->n + k] * change[k];
        error += change[i] * (products[i] - 2 * gradient[i]);
    }
    if (!(error < 0))
        return false;
    const uint32_t scale = r->scale_of[qdqi_element(r, output, j->members[0])];
    r->scales[scale] = (float)s->scale;
    if (r->zero_points)
        r->zero_points[scale] = s->zero;
    for (size_t i = 0; i < j->n; i++) {
        const size_t at = qdqi_element(r, output, j->members[j->order[i]]);
        r->integers[at] = (int16_t)(s->integers[i] + s->zero);
        gradient[i] -= products[i];
    }
    return true;
}

bool
qdqi_joint_search(const struct qdqi_joint *j, size_t output, double *gradient)
{
    struct problem p = {.j = j, .low = j->r->lowest, .high = j->r->highest};
    struct solution best = {.error = INFINITY};
    double before[QDQI_MOST_SHARING];
    const double largest = largest_scale(j, output);
    if (!j->is_usable || !(largest > 0))
        return false;
    for (size_t i = 0; i < j->n; i++) {
        before[i] = qdqi_value_at(j->r, qdqi_element(j->r, output, j->members[i]));
        p.target[i] = gradient[j->order[i]];
    }
    solve(j, p.target);
    for (size_t i = 0; i < j->n; i++)
        p.target[i] += before[j->order[i]];
    search(&p, largest, qdqi_zero_at(j->r, qdqi_element(j->r, output, j->members[0])),
           &best);
    return best.error < INFINITY && take(j, &best, output, before, gradient);
}
