/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "graph/weights/integers.h"

#include "numbers/arithmetic/half.h"
#include "numbers/arithmetic/packed.h"
#include "numbers/arithmetic/simd.h"
#include "graph/weights/walk.h"

#include <string.h>

struct integers {
    struct qdqi_made made; /* must be the first member: callers have a pointer to it */
    enum qdqi_dtype dtype;
    const uint8_t *bytes;
    struct qdqi_params params;
    const struct qdqi_format_row *row;
    struct qdqi_walk walk;
};

/* --- numbers -------------------------------------------------------------- */

QDQI_LOOP void
one_loop(const float *restrict x, uint8_t *restrict to, size_t n, float scale,
         float low, float high, int32_t zero_point)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (uint8_t)((int32_t)qdqi_quantized(x[i], scale, low, high) + zero_point);
}

QDQI_LOOP void
each_loop(const float *restrict x, const float *restrict scales, uint8_t *restrict to,
          size_t n, float low, float high)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (uint8_t)(int32_t)qdqi_quantized(x[i], scales[i], low, high);
}

QDQI_VARIANTS(void, one,
              (const float *x, uint8_t *to, size_t n, float scale, float low,
               float high, int32_t zero_point),
              (x, to, n, scale, low, high, zero_point))
QDQI_VARIANTS(void, each,
              (const float *x, const float *scales, uint8_t *to, size_t n, float low,
               float high),
              (x, scales, to, n, low, high))

/* Quantizes numbers that share a scale, to one byte each. */
static void
quantize_run(const struct qdqi_format_row *row, const float *x, size_t n, float scale,
             int32_t zero_point, uint8_t *to)
{
    float low = row->lowest - (float)zero_point,
          high = row->highest - (float)zero_point;
    for (size_t i = 0; row->fraction_bits > 0 && i < n; i++)
        to[i] = qdqi_float_code(qdqi_rounded(x[i], scale, row->highest,
                                             row->fraction_bits, row->min_exponent),
                                row->bits, row->fraction_bits, row->min_exponent);
    if (row->fraction_bits > 0)
        return;
    if (n > 1)
        one(x, to, n, scale, low, high, zero_point);
    else
        one_loop(x, to, n, scale, low, high, zero_point);
}

/* Quantizes numbers that have a scale each, to integers with zero point 0. */
static void
quantize_each(const struct qdqi_format_row *row, const float *x, size_t n,
              const float *scales, uint8_t *to)
{
    each(x, scales, to, n, row->lowest, row->highest);
}

/* --- all elements ---------------------------------------------------------- */

enum { PIECE = 8192 };

struct output {
    struct qdqi_sink *sink;
    unsigned bits; /* bits of a code */
    size_t used;
    size_t done; /* elements of the weight */
    uint8_t codes[PIECE], packed[PIECE];
    float floats[PIECE];
};

/* Packs two codes of four bits in each byte. */
QDQI_LOOP void
pairs_loop(const uint8_t *restrict codes, uint8_t *restrict to, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned pair = codes[2 * i] | (unsigned)codes[2 * i + 1] << 8;
        to[i] = (uint8_t)((pair & 0xf) | (pair >> 4 & 0xf0));
    }
}

QDQI_VARIANTS(void, pairs, (const uint8_t *codes, uint8_t *to, size_t n),
              (codes, to, n))

/* Packs four codes of six bits in three bytes, and a rest in as many as it needs. */
static size_t
pack_six(const uint8_t *codes, size_t n, uint8_t *to)
{
    size_t size = 0;
    unsigned bits = 0, all = 0;
    for (size_t i = 0; i < n; i++) {
        all |= (codes[i] & 0x3fU) << bits;
        for (bits += 6; bits >= 8; bits -= 8, all >>= 8)
            to[size++] = (uint8_t)all;
    }
    if (bits > 0)
        to[size++] = (uint8_t)all;
    return size;
}

/* Packs n codes of fewer than 8 bits. Returns the number of bytes. */
static size_t
pack(const uint8_t *codes, size_t n, unsigned bits, uint8_t *to)
{
    const size_t per_byte = 8 / bits;
    const unsigned mask = (1U << bits) - 1;
    size_t size = 0;
    if (bits == 4 && n % 2 == 0) {
        pairs(codes, to, n / 2);
        return n / 2;
    }
    if (bits == 6)
        return pack_six(codes, n, to);
    for (size_t i = 0; i < n; i += per_byte) {
        unsigned byte = 0;
        for (size_t k = 0; k < per_byte && i + k < n; k++)
            byte |= (codes[i + k] & mask) << (k * bits);
        to[size++] = (uint8_t)byte;
    }
    return size;
}

/* Writes the codes. All pieces except the last one fill whole bytes. */
static enum qdq_code
flush(struct output *out, struct qdq_error *err)
{
    const uint8_t *bytes = out->codes;
    size_t size = out->used;
    if (out->bits < 8) {
        size = pack(out->codes, out->used, out->bits, out->packed);
        bytes = out->packed;
    }
    out->used = 0;
    return out->sink->bytes(out->sink, bytes, size, err);
}

static void
load(const struct integers *it, size_t element, size_t step, size_t n, float *to)
{
    size_t size = qdqi_dtype_size((int)it->dtype);
    const uint8_t *from = it->bytes + element * size;
    if (step == 1)
        qdqi_load_floats(to, it->dtype, from, n);
    else
        for (size_t i = 0; i < n; i++)
            qdqi_load_floats(to + i, it->dtype, from + i * step * size, 1);
}

/* Quantizes elements i … i + n - 1 of a row. */
static void
quantize_part(const struct integers *it, size_t element, size_t scale, size_t i,
              size_t n, struct output *out)
{
    const struct qdqi_step *step = qdqi_walk_last(&it->walk);
    uint8_t *to = out->codes + out->used;
    out->done += n;
    if (it->params.rounded) {
        for (size_t k = 0; k < n; k++)
            to[k] = (uint8_t)qdqi_packed_get(it->row, it->params.rounded,
                                             out->done - n + k);
        out->used += n;
        return;
    }
    load(it, element + i * step->elements, step->elements, n, out->floats);
    out->used += n;
    if (step->scales == 1 && step->block == 1 && !it->params.zero_points &&
        it->row->fraction_bits == 0) {
        quantize_each(it->row, out->floats, n, it->params.scales + scale + i, to);
        return;
    }
    for (size_t k = 0, run; k < n; k += run) {
        size_t s = scale + (i + k) / step->block * step->scales;
        run = qdqi_step_run(step, i + k, n - k);
        quantize_run(it->row, out->floats + k, run, it->params.scales[s],
                     qdqi_zero_point(&it->params, s), to + k);
    }
}

static enum qdq_code
write_row(const struct integers *it, size_t row, struct output *out,
          struct qdq_error *err)
{
    const struct qdqi_step *step = qdqi_walk_last(&it->walk);
    size_t element, scale, n;
    enum qdq_code code;
    qdqi_walk_row(&it->walk, row, &element, &scale);
    for (size_t i = 0; i < step->n; i += n) {
        if (out->used == PIECE && (code = flush(out, err)))
            return code;
        n = step->n - i < PIECE - out->used ? step->n - i : PIECE - out->used;
        quantize_part(it, element, scale, i, n, out);
    }
    return QDQ_OK;
}

static enum qdq_code
write_integers(const struct qdqi_made *made, struct qdqi_sink *sink,
               struct qdq_error *err)
{
    const struct integers *it = (const struct integers *)made;
    struct output out = {.sink = sink, .bits = (unsigned)it->row->bits};
    for (size_t row = 0; row < it->walk.n_rows; row++) {
        enum qdq_code code = write_row(it, row, &out, err);
        if (code)
            return code;
    }
    return flush(&out, err);
}

/* --- floats of integers ---------------------------------------------------- */

/* Writes elements i … i + n - 1 of a row as the numbers that their integers stand for; element i is
   the weight's element `at`. */
static enum qdq_code
write_numbers(const struct integers *it, size_t scale, size_t i, size_t n, size_t at,
              struct qdqi_sink *sink, struct qdq_error *err)
{
    const struct qdqi_step *step = qdqi_walk_last(&it->walk);
    float numbers[PIECE];
    for (size_t k = 0; k < n; k++) {
        size_t s = scale + (i + k) / step->block * step->scales;
        numbers[k] = (float)(qdqi_packed_get(it->row, it->params.rounded, at + k) -
                             qdqi_zero_point(&it->params, s)) *
                     it->params.scales[s];
    }
    return sink->bytes(sink, numbers, n * sizeof *numbers, err);
}

static enum qdq_code
write_floats(const struct qdqi_made *made, struct qdqi_sink *sink,
             struct qdq_error *err)
{
    const struct integers *it = (const struct integers *)made;
    const struct qdqi_step *step = qdqi_walk_last(&it->walk);
    size_t at = 0;
    enum qdq_code code = QDQ_OK;
    for (size_t row = 0; row < it->walk.n_rows; row++) {
        size_t element, scale, n;
        qdqi_walk_row(&it->walk, row, &element, &scale);
        for (size_t i = 0; !code && i < step->n; i += n, at += n) {
            n = step->n - i < PIECE ? step->n - i : PIECE;
            code = write_numbers(it, scale, i, n, at, sink, err);
        }
    }
    return code;
}

static const struct qdqi_made *
new_integers(struct qdqi_arena *arena, const struct qdqi_constant *w,
             const struct qdqi_params *params,
             enum qdq_code (*write)(const struct qdqi_made *, struct qdqi_sink *,
                                    struct qdq_error *))
{
    struct integers *it = qdqi_arena_alloc(arena, sizeof *it);
    if (!it || !qdqi_walk_init(&it->walk, arena, w, params))
        return NULL;
    it->made.write = write;
    it->dtype = w->dtype;
    it->bytes = w->bytes;
    it->params = *params;
    it->row = qdqi_format_row((int)params->format);
    return &it->made;
}

const struct qdqi_made *
qdqi_integers_new(struct qdqi_arena *arena, const struct qdqi_constant *w,
                  const struct qdqi_params *params)
{
    return new_integers(arena, w, params, write_integers);
}

const uint8_t *
qdqi_rounded_pack(struct qdqi_arena *arena, enum qdqi_format format,
                  const int16_t *integers, size_t n)
{
    const struct qdqi_format_row *row = qdqi_format_row((int)format);
    uint8_t *packed = qdqi_arena_alloc(arena, qdqi_packed_size(row, n));
    for (size_t i = 0; packed && i < n; i++)
        qdqi_packed_put(row, packed, i, integers[i]);
    return packed;
}

const struct qdqi_made *
qdqi_rounded_new(struct qdqi_arena *arena, const struct qdqi_constant *w,
                 const struct qdqi_params *params)
{
    return new_integers(arena, w, params, write_floats);
}

/* --- given integers --------------------------------------------------------- */

uint64_t
qdqi_integers_size(enum qdqi_format format, size_t n)
{
    uint64_t bits = (uint64_t)qdqi_format_row((int)format)->bits;
    return n / 8 * bits + (n % 8 * bits + 7) / 8;
}

void
qdqi_store_integers(enum qdqi_format format, const int32_t *from, size_t n, uint8_t *to)
{
    size_t bits = (size_t)qdqi_format_row((int)format)->bits;
    const size_t per_byte = bits < 8 ? 8 / bits : 1;
    for (size_t i = 0; bits < 8 && i < n; i++) {
        unsigned code = (unsigned)from[i] & ((1U << bits) - 1);
        unsigned others = i % per_byte ? to[i / per_byte] : 0;
        to[i / per_byte] = (uint8_t)(others | code << (i % per_byte * bits));
    }
    for (size_t i = 0; bits >= 8 && i < n; i++)
        memcpy(to + i * (bits / 8), &from[i], bits / 8); /* little-endian */
}
