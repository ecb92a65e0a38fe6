/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "number/histogram.h"

#include "number/simd.h"

#include <math.h>
#include <string.h>

enum {
    BINS_LOG2 = 11,
    MIN_EXPONENT = -126, /* 2^-exponent is then still a float32 */
    LANES = 4,           /* histograms that are filled in turn */
    BLOCK = 1024,        /* values whose bins are computed together */
    PIECE = 1 << 16,     /* values of one pass over the lanes */
};

_Static_assert(QDQI_BINS == 1 << BINS_LOG2, "the bins' indices have so many bits");
_Static_assert(PIECE / LANES <= UINT16_MAX, "a lane can count as many values");

void
qdqi_histogram_init(struct qdqi_histogram *h)
{
    memset(h, 0, sizeof *h);
    h->exponent = MIN_EXPONENT;
}

/* Returns the smallest exponent for which `amax` lies in a bin. */
static int
exponent_for(float amax)
{
    uint32_t bits;
    memcpy(&bits, &amax, sizeof bits);
    int exponent = (int)(bits >> 23 & 0xff) - 127 - (BINS_LOG2 - 1);
    return exponent > MIN_EXPONENT ? exponent : MIN_EXPONENT;
}

static void
grow(struct qdqi_histogram *h, int exponent)
{
    int shift = exponent - h->exponent;
    if (shift <= 0)
        return;
    h->exponent = exponent;
    for (size_t j = 0; j < QDQI_BINS; j++) {
        uint64_t count = h->counts[j];
        h->counts[j] = 0;
        h->counts[shift < BINS_LOG2 ? j >> shift : 0] += count;
    }
}

/* --- filling -------------------------------------------------------------- */

QDQI_LOOP void
bins_loop(const unsigned char *data, size_t n, float per_width, uint16_t *to)
{
    for (size_t i = 0; i < n; i++) {
        float x;
        memcpy(&x, data + i * sizeof x, sizeof x);
        to[i] = (uint16_t)(int32_t)(fabsf(x) * per_width);
    }
}

QDQI_VARIANTS(void, bins,
              (const unsigned char *data, size_t n, float per_width, uint16_t *to),
              (data, n, per_width, to))

/* Counts few values, without lanes. */
static void
fill_few(struct qdqi_histogram *h, const unsigned char *data, size_t n, float per_width)
{
    uint16_t block[BLOCK];
    while (n > 0) {
        size_t m = n < BLOCK ? n : BLOCK;
        bins(data, m, per_width, block);
        for (size_t i = 0; i < m; i++)
            h->counts[block[i]]++;
        data += m * sizeof(float);
        n -= m;
    }
}

/*
 * Counts many values. Neighbours are often equal (zeros behind a Relu), and it is slow
 * to read a count that was just written, so neighbouring values go into different
 * lanes. Counts of 16 bits let all lanes fit into half of a cache of 32 KiB.
 */
static void
fill_many(struct qdqi_histogram *h, const unsigned char *data, size_t n,
          float per_width)
{
    uint16_t lanes[LANES][QDQI_BINS] = {0};
    uint16_t block[BLOCK];
    for (; n >= BLOCK; n -= BLOCK, data += BLOCK * sizeof(float)) {
        bins(data, BLOCK, per_width, block);
        for (size_t i = 0; i < BLOCK; i += LANES) {
            lanes[0][block[i]]++;
            lanes[1][block[i + 1]]++;
            lanes[2][block[i + 2]]++;
            lanes[3][block[i + 3]]++;
        }
    }
    for (size_t j = 0; j < QDQI_BINS; j++)
        h->counts[j] += (uint32_t)lanes[0][j] + lanes[1][j] + lanes[2][j] + lanes[3][j];
    fill_few(h, data, n, per_width);
}

void
qdqi_histogram_update(struct qdqi_histogram *h, float amax, const void *data, size_t n)
{
    const unsigned char *bytes = data;
    grow(h, exponent_for(amax));
    float per_width = ldexpf(1, -h->exponent);
    for (; n >= PIECE; n -= PIECE, bytes += PIECE * sizeof(float))
        fill_many(h, bytes, PIECE, per_width);
    if (n >= PIECE / 8)
        fill_many(h, bytes, n, per_width);
    else
        fill_few(h, bytes, n, per_width);
}

/* --- reading -------------------------------------------------------------- */

void
qdqi_histogram_merge(struct qdqi_histogram *h, const struct qdqi_histogram *other)
{
    grow(h, other->exponent);
    int shift = h->exponent - other->exponent;
    for (size_t j = 0; j < QDQI_BINS; j++)
        h->counts[shift < BINS_LOG2 ? j >> shift : 0] += other->counts[j];
}

double
qdqi_histogram_width(const struct qdqi_histogram *h)
{
    return ldexp(1, h->exponent);
}

size_t
qdqi_histogram_used(const struct qdqi_histogram *h)
{
    size_t n = QDQI_BINS;
    while (n > 0 && h->counts[n - 1] == 0)
        n--;
    return n;
}

uint64_t
qdqi_histogram_total(const struct qdqi_histogram *h)
{
    uint64_t total = 0;
    for (size_t j = 0; j < QDQI_BINS; j++)
        total += h->counts[j];
    return total;
}
