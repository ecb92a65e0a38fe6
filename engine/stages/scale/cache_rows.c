/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both methods compute what calibrate_kv_scales of ONNX Runtime GenAI 0.18 computes with numpy:
 * numbers are rounded to float16 where they are kept, errors of 24 shares from a fifth to the whole
 * are compared as float32, and the smaller share wins among equals.
 */
#include "config.h"
#include "stages/scale/cache_rows.h"

#include "ground/base/arena.h"
#include "numbers/arithmetic/both.h"
#include "numbers/arithmetic/half.h"
#include "numbers/arithmetic/simd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SIGN = 0x8000,
    HIGHEST = 0x7bff,     /* the largest finite float16 */
    HALVES = HIGHEST + 1, /* magnitudes of float16 */
    SHARES = 24,
};

static const float LEAST = 1e-6f; /* magnitude */

/* --- rows -------------------------------------------------------------------------- */

bool
qdqi_cache_rows_grow(struct qdqi_cache_rows *rows, size_t channels, size_t n)
{
    const size_t wanted = rows->n + n;
    if (wanted > rows->room) {
        const size_t room = wanted > 2 * rows->room ? wanted : 2 * rows->room;
        uint16_t *halves = realloc(rows->halves, room * channels * sizeof *halves);
        if (!halves)
            return false;
        rows->halves = halves;
        rows->room = room;
    }
    rows->channels = channels;
    return true;
}

void
qdqi_cache_rows_add(struct qdqi_cache_rows *rows, const float *row)
{
    uint16_t *to = rows->halves + rows->n++ * rows->channels;
    for (size_t i = 0; i < rows->channels; i++) {
        const uint16_t half = qdqi_half_narrowed(row[i]);
        to[i] = (half & ~SIGN) > HIGHEST ? (uint16_t)((half & SIGN) | HIGHEST) : half;
    }
}

void
qdqi_cache_rows_fini(struct qdqi_cache_rows *rows)
{
    free(rows->halves);
    *rows = (struct qdqi_cache_rows){0};
}

size_t
qdqi_cache_rows_place(size_t k, size_t kept, size_t positions)
{
    if (k + 1 == kept && kept > 1)
        return positions - 1;
    return kept < 2
               ? 0
               : (size_t)((double)k * ((double)(positions - 1) / (double)(kept - 1)));
}

/* --- percentile -------------------------------------------------------------------- */

static double
number_of(size_t half)
{
    return (double)qdqi_half_widened((uint16_t)half);
}

/* Returns the magnitude at a place, which need not be whole, among the counted ones in ascending
   order. */
static double
find_place(const uint32_t *counts, double place)
{
    const size_t whole = (size_t)place;
    size_t half = 0, upto = counts[0];
    while (upto <= whole)
        upto += counts[++half];
    const double low = number_of(half);
    if (upto > whole + 1 || place == (double)whole)
        return low;
    while (upto <= whole + 1)
        upto += counts[++half];
    return low + (number_of(half) - low) * (place - (double)whole);
}

void
qdqi_cache_percentile(const struct qdqi_cache_rows *rows, double percent, float *to)
{
    const double place = (double)(rows->n - 1) * (percent / 100);
    for (size_t i = 0; i < rows->channels; i++) {
        uint32_t counts[HALVES] = {0};
        for (size_t r = 0; r < rows->n; r++)
            counts[rows->halves[r * rows->channels + i] & ~SIGN]++;
        to[i] = (float)find_place(counts, place);
    }
}

/* --- mse --------------------------------------------------------------------------- */

/* The errors of a row by one share of the largest magnitudes. */
struct share {
    const float *row, *scales;
    size_t n;
    float lowest, highest;
    double *sums;
};

QDQI_LOOP void
add_errors_loop(const struct share *s)
{
    const float lowest = s->lowest, highest = s->highest;
    for (size_t i = 0; i < s->n; i++) {
        float q = __builtin_rintf(s->row[i] / s->scales[i]);
        q = q < lowest ? lowest : q > highest ? highest : q;
        const float error = q * s->scales[i] - s->row[i];
        s->sums[i] += (double)(error * error);
    }
}

QDQI_VARIANTS(void, add_errors, (const struct share *s), (s))

/* A row, and the scales and errors by each share. */
struct shares {
    float *row, *scales[SHARES];
    double *sums[SHARES];
};

static float
share_of(float largest, int i)
{
    const float by = i + 1 < SHARES ? (float)(0.2 + i * (0.8 / (SHARES - 1))) : 1;
    const float magnitude = largest * by;
    return magnitude > LEAST ? magnitude : LEAST;
}

static bool
allocate(struct shares *s, size_t channels)
{
    bool ok = (s->row = calloc(channels, sizeof *s->row));
    for (size_t i = 0; i < SHARES; i++) {
        s->scales[i] = calloc(channels, sizeof *s->scales[i]);
        s->sums[i] = calloc(channels, sizeof *s->sums[i]);
        ok = ok && s->scales[i] && s->sums[i];
    }
    return ok;
}

static void
release(struct shares *s)
{
    free(s->row);
    for (size_t i = 0; i < SHARES; i++) {
        free(s->scales[i]);
        free(s->sums[i]);
    }
}

static void
add_row(struct shares *s, const struct qdqi_cache_rows *rows, size_t r, float divisor)
{
    qdqi_floats_of_halves(s->row, rows->halves + r * rows->channels, rows->channels);
    for (size_t i = 0; i < SHARES; i++) {
        const struct share share = {s->row,   s->scales[i], rows->channels,
                                    -divisor, divisor - 1,  s->sums[i]};
        add_errors(&share);
    }
}

enum qdq_code
qdqi_cache_mse(const struct qdqi_cache_rows *rows, const float *largest, double divisor,
               float *to, struct qdq_error *err)
{
    struct shares s = {0};
    const bool ok = allocate(&s, rows->channels);
    for (size_t i = 0; ok && i < rows->channels; i++)
        for (int k = 0; k < SHARES; k++)
            s.scales[k][i] = share_of(largest[i], k) / (float)divisor;
    for (size_t r = 0; ok && r < rows->n; r++)
        add_row(&s, rows, r, (float)divisor);
    for (size_t i = 0; ok && i < rows->channels; i++) {
        float least = INFINITY;
        to[i] = largest[i];
        for (int k = 0; k < SHARES; k++) {
            const float error = (float)(s.sums[k][i] / (double)rows->n);
            to[i] = error < least ? share_of(largest[i], k) : to[i];
            least = error < least ? error : least;
        }
        if (largest[i] > qdqi_half_widened(HIGHEST)) /* the rows do not hold it */
            to[i] = largest[i];
    }
    release(&s);
    return ok ? QDQ_OK : qdqi_no_memory(err);
}
