/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "numbers/arithmetic/histogram.h"

#include "numbers/arithmetic/both.h"
#include "numbers/arithmetic/simd.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif
#include <math.h>
#include <string.h>

enum {
    BINS_LOG2 = 11,
    MIN_EXPONENT = -126,   /* 2^-exponent is then still a float32 */
    LANES = 4,             /* histograms that are filled in turn */
    BLOCK = 1024,          /* values whose bins are computed together */
    PIECE = 1 << 16,       /* values of one pass over the lanes */
    FEW_ZEROS = BLOCK / 8, /* so few are not worth being left out */
    WHOLE = 15,            /* blocks for which that is believed */
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
    for (size_t i = 0; i < n; i++)
        to[i] = (uint16_t)(int32_t)(fabsf(qdqi_float_at(data, i)) * per_width);
}

QDQI_VARIANTS(void, bins,
              (const unsigned char *data, size_t n, float per_width, uint16_t *to),
              (data, n, per_width, to))

/*
 * Leaves out the bins that are 0 of a block, where that can be done for eight of them at a
 * time: behind a Relu they are the half, and one by one they are the slowest to count. Returns
 * how many are left; what is behind them has any value.
 */
#if defined(__x86_64__) && defined(__GNUC__)
/* The control of PSHUFB that moves lanes together. */
__extension__ typedef unsigned __int128 control;

/* For each set of the lanes of eight numbers of 16 bits, bit 0 for the first one: the lanes
   that are in it, in their order. */
#define WITH(lane, row) ((row) << 16 | (2 * (lane) | (2 * (lane) + 1) << 8))
#define OF_1(row) row, WITH(0, row)
#define OF_2(row) OF_1(row), OF_1(WITH(1, row))
#define OF_3(row) OF_2(row), OF_2(WITH(2, row))
#define OF_4(row) OF_3(row), OF_3(WITH(3, row))
#define OF_5(row) OF_4(row), OF_4(WITH(4, row))
#define OF_6(row) OF_5(row), OF_5(WITH(5, row))
#define OF_7(row) OF_6(row), OF_6(WITH(6, row))
static const control pack_lanes[256] = {OF_7((control)0), OF_7(WITH(7, (control)0))};

QDQI_AVX2 static size_t
pack_eight(__m128i eight, unsigned set, uint16_t *to)
{
    const __m128i *lanes = (const __m128i *)&pack_lanes[set];
    _mm_storeu_si128((__m128i *)to, _mm_shuffle_epi8(eight, _mm_load_si128(lanes)));
    return (size_t)__builtin_popcount(set);
}

QDQI_AVX2 static size_t
leave_out_zeros_avx2(uint16_t *block)
{
    const __m128i zero = _mm_setzero_si128();
    size_t n = 0;
    for (size_t i = 0; i < BLOCK; i += 16) {
        const __m128i *from = (const __m128i *)(block + i);
        __m128i first = _mm_loadu_si128(from), second = _mm_loadu_si128(from + 1);
        __m128i zeros = _mm_packs_epi16(_mm_cmpeq_epi16(first, zero),
                                        _mm_cmpeq_epi16(second, zero));
        unsigned set = ~(unsigned)_mm_movemask_epi8(zeros) & 0xffff;
        n += pack_eight(first, set & 0xff, block + n);
        n += pack_eight(second, set >> 8, block + n);
    }
    return n;
}

/* The same with an instruction for it, which some processors with AVX-512 have. */
__attribute__((target("avx512f,avx512bw,avx512vbmi2"))) static size_t
leave_out_zeros_vbmi2(uint16_t *block)
{
    size_t n = 0;
    for (size_t i = 0; i < BLOCK; i += 32) {
        __m512i from = _mm512_loadu_si512(block + i);
        __mmask32 set = _mm512_test_epi16_mask(from, from);
        _mm512_storeu_si512(block + n, _mm512_maskz_compress_epi16(set, from));
        n += (size_t)__builtin_popcount(set);
    }
    return n;
}

static size_t
leave_out_zeros(uint16_t *block)
{
    if (qdqi_simd() == QDQI_SIMD_AVX512 && __builtin_cpu_supports("avx512vbmi2"))
        return leave_out_zeros_vbmi2(block);
    return qdqi_simd() >= QDQI_SIMD_AVX2 ? leave_out_zeros_avx2(block) : BLOCK;
}
#else
static size_t
leave_out_zeros(uint16_t *block)
{
    (void)block;
    return BLOCK;
}
#endif

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

/* Counts bins, in four lanes by turns. They are read by fours, which takes fewer loads. */
static void
count_in_lanes(uint16_t lanes[LANES][QDQI_BINS], const uint16_t *block, size_t n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        uint64_t four;
        memcpy(&four, block + i, sizeof four);
        lanes[0][four & 0xffff]++;
        lanes[1][four >> 16 & 0xffff]++;
        lanes[2][four >> 32 & 0xffff]++;
        lanes[3][four >> 48]++;
    }
    for (; i < n; i++)
        lanes[i % LANES][block[i]]++;
}

/*
 * Counts many values. Neighbours are often equal, and it is slow to read a count that was
 * just written, so neighbouring values go into different lanes. Counts of 16 bits let all
 * lanes fit into half of a cache of 32 KiB. After a block with few zeros, the next ones are
 * counted with theirs.
 */
static void
fill_many(struct qdqi_histogram *h, const unsigned char *data, size_t n,
          float per_width)
{
    uint16_t lanes[LANES][QDQI_BINS] = {0};
    uint16_t block[BLOCK];
    int whole = 0; /* blocks that are counted whole */
    for (; n >= BLOCK; n -= BLOCK, data += BLOCK * sizeof(float)) {
        bins(data, BLOCK, per_width, block);
        size_t left = whole > 0 ? BLOCK : leave_out_zeros(block);
        h->counts[0] += BLOCK - left;
        whole = whole > 0 ? whole - 1 : left > BLOCK - FEW_ZEROS ? WHOLE : 0;
        count_in_lanes(lanes, block, left);
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
