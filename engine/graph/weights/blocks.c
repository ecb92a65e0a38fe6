/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "graph/weights/blocks.h"

#include "files/model/file_sink.h"
#include "numbers/arithmetic/both.h"
#include "graph/weights/full_range.h"
#include "graph/weights/integers.h"
#include "graph/weights/scales.h"
#include "graph/weights/walk.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { SCALES, ZERO_POINTS, INTEGERS, N_MEMBERS };

enum { PIECE = 1 << 18 }; /* elements of a piece, about */

/* The scales are positive, so their bits are ordered as they are. */
struct blocks_summary {
    atomic_uint low, high, parts[QDQI_BLOCKS_PARTS];
};

struct qdqi_blocks {
    struct qdqi_pieces pieces; /* must be first */
    struct qdqi_place
        places[N_MEMBERS]; /* fd < 0: the model does not have the member */
    struct qdqi_made members[N_MEMBERS];
    struct qdqi_constant w;
    const char *name;
    struct qdqi_params params; /* format, axis and block */
    bool narrow, full;
    size_t n_scales;
    size_t rows;            /* indices of the first axis in a piece, but the last */
    size_t row, row_scales; /* elements of an index; scales of row_block indices */
    size_t row_block;
    struct blocks_summary summary;
    /* whether a piece has a block of zeros, whose scale follows from all others */
    atomic_bool dead;
};

bool
qdqi_blocks_can(const struct qdqi_constant *w, const struct qdqi_params *p)
{
    const struct qdqi_format_row *row = qdqi_format_row((int)p->format);
    return p->block > 0 && row->block == 0 && row->bits <= 8 && w->n > 0 &&
           !qdqi_constant_is_fill(w) &&
           (w->dtype == QDQI_FLOAT32 || w->dtype == QDQI_FLOAT16);
}

/* --- summary --------------------------------------------------------------- */

static void
note_high(atomic_uint *to, uint32_t bits)
{
    unsigned old = atomic_load(to);
    while (bits > old && !atomic_compare_exchange_weak(to, &old, bits))
        ;
}

static void
note_low(atomic_uint *to, uint32_t bits)
{
    unsigned old = atomic_load(to);
    while (bits < old && !atomic_compare_exchange_weak(to, &old, bits))
        ;
}

static void
clear_summary(struct qdqi_blocks *b)
{
    atomic_store(&b->summary.low, UINT32_MAX);
    atomic_store(&b->summary.high, 0);
    for (size_t i = 0; i < QDQI_BLOCKS_PARTS; i++)
        atomic_store(&b->summary.parts[i], 0);
}

static size_t
count_parts(const struct qdqi_blocks *b)
{
    return b->n_scales < QDQI_BLOCKS_PARTS ? b->n_scales : QDQI_BLOCKS_PARTS;
}

/* Adds n scales, from number `first` of the weight on. Part i ends before scale
   (i + 1) * n / parts. */
static void
summarize(struct qdqi_blocks *b, const float *scales, size_t first, size_t n)
{
    size_t parts = count_parts(b);
    size_t part = first * parts / b->n_scales;
    float low = fabsf(scales[0]), high = 0;
    for (size_t i = 0, end; i < n; i = end) {
        while (part + 1 < parts && (part + 1) * b->n_scales / parts <= first + i)
            part++;
        end = (part + 1) * b->n_scales / parts - first;
        end = end < n ? end : n;
        float largest = 0;
        for (size_t k = i; k < end; k++) {
            const float size = fabsf(scales[k]);
            largest = size > largest ? size : largest;
            low = size < low ? size : low;
        }
        high = largest > high ? largest : high;
        note_high(&b->summary.parts[part], qdqi_float_bits(largest));
    }
    note_low(&b->summary.low, qdqi_float_bits(low));
    note_high(&b->summary.high, qdqi_float_bits(high));
}

struct qdqi_blocks_summary
qdqi_blocks_summary(const struct qdqi_blocks *b)
{
    struct qdqi_blocks_summary ret = {
        .low = qdqi_float_of_bits(atomic_load(&b->summary.low)),
        .high = qdqi_float_of_bits(atomic_load(&b->summary.high))};
    for (size_t i = 0; i < count_parts(b); i++)
        ret.parts[i] = qdqi_float_of_bits(atomic_load(&b->summary.parts[i]));
    return ret;
}

/* --- pieces ---------------------------------------------------------------- */

/* A part of a weight: an interval of indices of its first axis. */
struct part {
    struct qdqi_constant w;
    int64_t *dims;
    size_t first_scale, first_element;
    struct qdqi_params params;
};

static enum qdq_code
open_part(const struct qdqi_blocks *b, size_t first, size_t n, struct qdqi_arena *arena,
          struct part *ret, struct qdq_error *err)
{
    const struct qdqi_constant *w = &b->w;
    size_t stride = w->strides ? (size_t)w->strides[0] : b->row;
    *ret = (struct part){.w = *w,
                         .dims = qdqi_arena_array(arena, w->rank, sizeof *ret->dims),
                         .first_scale = first / b->row_block * b->row_scales,
                         .first_element = first * b->row,
                         .params = b->params};
    if (!ret->dims)
        return qdqi_no_memory(err);
    memcpy(ret->dims, w->dims, w->rank * sizeof *ret->dims);
    ret->dims[0] = (int64_t)n;
    ret->w.dims = ret->dims;
    ret->w.n = n * b->row;
    ret->w.bytes = w->bytes + first * stride * qdqi_dtype_size((int)w->dtype);
    return QDQ_OK;
}

static struct qdqi_place
place_of(const struct qdqi_blocks *b, int member, uint64_t bytes)
{
    return (struct qdqi_place){b->places[member].fd, b->places[member].offset + bytes};
}

static enum qdq_code
write_scales(const struct qdqi_blocks *b, const struct part *part,
             struct qdqi_file_sink *f, struct qdq_error *err)
{
    const struct qdqi_params *p = &part->params;
    size_t size = qdqi_dtype_size((int)b->w.dtype);
    enum qdq_code code =
        qdqi_file_sink_seek(f, place_of(b, SCALES, part->first_scale * size), err);
    if (!code && b->w.dtype == QDQI_FLOAT32)
        return f->sink.bytes(&f->sink, p->scales, p->n * size, err);
    for (size_t i = 0; i < p->n && !code; i++) {
        uint16_t half = qdqi_half_narrowed(p->scales[i]);
        code = f->sink.bytes(&f->sink, &half, sizeof half, err);
    }
    return code;
}

static enum qdq_code
write_zero_points(const struct qdqi_blocks *b, const struct part *part,
                  struct qdqi_arena *arena, struct qdqi_file_sink *f,
                  struct qdq_error *err)
{
    const struct qdqi_params *p = &part->params;
    if (b->places[ZERO_POINTS].fd < 0)
        return QDQ_OK;
    uint64_t at = qdqi_integers_size(p->format, part->first_scale);
    size_t size = (size_t)qdqi_integers_size(p->format, p->n);
    uint8_t *bytes = qdqi_arena_array(arena, size, 1); /* zeros */
    if (!bytes)
        return qdqi_no_memory(err);
    if (p->zero_points)
        qdqi_store_integers(p->format, p->zero_points, p->n, bytes);
    enum qdq_code code = qdqi_file_sink_seek(f, place_of(b, ZERO_POINTS, at), err);
    return code ? code : f->sink.bytes(&f->sink, bytes, size, err);
}

static enum qdq_code
write_integers(const struct qdqi_blocks *b, const struct part *part,
               struct qdqi_arena *arena, struct qdqi_file_sink *f,
               struct qdq_error *err)
{
    const struct qdqi_params *p = &part->params;
    const struct qdqi_made *made = qdqi_integers_new(arena, &part->w, p);
    uint64_t at = qdqi_integers_size(p->format, part->first_element);
    if (!made)
        return qdqi_no_memory(err);
    enum qdq_code code = qdqi_file_sink_seek(f, place_of(b, INTEGERS, at), err);
    if (!code)
        code = made->write(made, &f->sink, err);
    return code ? code : qdqi_file_sink_flush(f, err);
}

/* Writes the members' bytes of some indices. */
static enum qdq_code
write_part(struct qdqi_blocks *b, size_t first, size_t n, struct qdqi_file_sink *f,
           struct qdq_error *err)
{
    struct qdqi_arena *arena = qdqi_arena_new();
    struct part part;
    size_t dead = 0;
    enum qdq_code code =
        arena ? open_part(b, first, n, arena, &part, err) : qdqi_no_memory(err);
    if (!code)
        code = qdqi_weight_params_new(&part.w, b->name, arena, &part.params, err);
    if (!code)
        code = qdqi_weight_params_find(&part.w, b->name, part.first_scale, &part.params,
                                       &dead, err);
    if (!code && b->full)
        code = qdqi_weight_fill_range(&part.w, b->narrow, &part.params, err);
    else if (!code && b->narrow)
        code = qdqi_weight_narrow(&part.w, &part.params, err);
    if (!code) {
        if (dead > 0)
            atomic_store(&b->dead, true);
        summarize(b, part.params.scales, part.first_scale, part.params.n);
        code = write_scales(b, &part, f, err);
    }
    if (!code)
        code = write_zero_points(b, &part, arena, f, err);
    if (!code)
        code = write_integers(b, &part, arena, f, err);
    qdqi_arena_free(&arena);
    return code;
}

static enum qdq_code
write_piece(struct qdqi_pieces *pieces, size_t i, struct qdqi_file_sink *f,
            struct qdq_error *err)
{
    struct qdqi_blocks *b = (struct qdqi_blocks *)pieces;
    size_t all = (size_t)b->w.dims[0], first = i * b->rows;
    return write_part(b, first, all - first < b->rows ? all - first : b->rows, f, err);
}

/* Writes a weight with blocks of zeros once more, in one piece: their scale is the median
   of all others. */
static enum qdq_code
finish(struct qdqi_pieces *pieces, struct qdq_error *err)
{
    struct qdqi_blocks *b = (struct qdqi_blocks *)pieces;
    if (!atomic_load(&b->dead) || b->pieces.n == 1)
        return QDQ_OK;
    struct qdqi_file_sink *f = malloc(sizeof *f);
    if (!f)
        return qdqi_no_memory(err);
    clear_summary(b);
    qdqi_file_sink_init(f, NULL, b->places[0].fd, 0);
    enum qdq_code code = write_part(b, 0, (size_t)b->w.dims[0], f, err);
    qdqi_file_sink_fini(f);
    free(f);
    return code;
}

/* --- the generator --------------------------------------------------------- */

/* Chooses the size of the pieces: whole blocks, and whole bytes of all members. */
static void
choose_pieces(struct qdqi_blocks *b)
{
    size_t all = (size_t)b->w.dims[0];
    size_t bits = (size_t)qdqi_format_row((int)b->params.format)->bits, unit;
    b->row = b->w.n / all;
    b->row_block = b->params.axis == 0 ? (size_t)b->params.block : 1;
    b->row_scales = b->n_scales / ((all + b->row_block - 1) / b->row_block);
    unit = b->row_block;
    while (unit / b->row_block * b->row_scales * bits % 8 || unit * b->row * bits % 8)
        unit += b->row_block;
    size_t units = PIECE / (unit * b->row);
    b->rows = unit * (units > 0 ? units : 1);
    b->pieces.n = (all + b->rows - 1) / b->rows;
}

struct qdqi_blocks *
qdqi_blocks_new(struct qdqi_arena *arena, const struct qdqi_constant *w,
                const char *name, const struct qdqi_params *p, bool narrow, bool full)
{
    struct qdqi_blocks *b = qdqi_arena_alloc(arena, sizeof *b);
    if (!b || !qdqi_count_scales(w, p->axis, p->block, &b->n_scales))
        return NULL;
    b->w = *w;
    b->name = name;
    b->params =
        (struct qdqi_params){.format = p->format, .axis = p->axis, .block = p->block};
    b->narrow = narrow;
    b->full = full;
    choose_pieces(b);
    b->pieces.places = b->places;
    b->pieces.write = write_piece;
    b->pieces.finish = finish;
    for (size_t i = 0; i < N_MEMBERS; i++) {
        b->places[i].fd = -1;
        b->members[i] = (struct qdqi_made){
            .pieces = &b->pieces, .member = i, .inside = i != INTEGERS};
    }
    clear_summary(b);
    return b;
}

uint64_t
qdqi_blocks_bytes(const struct qdqi_blocks *b)
{
    return (uint64_t)b->w.n * qdqi_dtype_size((int)b->w.dtype);
}

struct qdqi_blocks_bulks
qdqi_blocks_bulks(const struct qdqi_blocks *b)
{
    enum qdqi_format format = b->params.format;
    return (struct qdqi_blocks_bulks){
        .scales = &b->members[SCALES],
        .zero_points = &b->members[ZERO_POINTS],
        .integers = &b->members[INTEGERS],
        .scales_size = (uint64_t)b->n_scales * qdqi_dtype_size((int)b->w.dtype),
        .zero_points_size = qdqi_integers_size(format, b->n_scales),
        .integers_size = qdqi_integers_size(format, b->w.n),
    };
}
