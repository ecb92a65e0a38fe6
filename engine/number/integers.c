/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "number/integers.h"

#include "number/half.h"
#include "number/quantize.h"

#include <string.h>

/* An axis of the walk in C order: its size, and what one step on it skips. */
struct step {
    size_t n, elements, scales;
};

struct integers {
    struct qdqi_made made; /* first: the caller's pointer */
    enum qdqi_dtype dtype;
    const uint8_t *bytes;
    const float *scales;
    size_t n_rows; /* rows of the last step */
    size_t n_steps;
    struct step *steps; /* at least one, from the outermost to the innermost */
};

/* --- the walk ------------------------------------------------------------- */

/* Adds an axis further in; joined with the one outside it where it goes on from it. */
static void
push_step(struct integers *it, struct step step)
{
    struct step *outer = it->n_steps ? &it->steps[it->n_steps - 1] : NULL;
    if (outer && outer->elements == step.n * step.elements &&
        outer->scales == step.n * step.scales)
        *outer = (struct step){outer->n * step.n, step.elements, step.scales};
    else
        it->steps[it->n_steps++] = step;
}

static void
find_steps(struct integers *it, const struct qdqi_constant *w, int axis)
{
    size_t elements = w->n;
    for (size_t i = 0; i < w->rank; i++) {
        size_t n = (size_t)w->dims[i];
        elements /= n;
        if (n != 1)
            push_step(it,
                      (struct step){n, w->strides ? (size_t)w->strides[i] : elements,
                                    (int)i == axis});
    }
    if (!it->n_steps)
        push_step(it, (struct step){1, 1, 0});
    it->n_rows = w->n / it->steps[it->n_steps - 1].n;
}

/* Where a row begins: its first element, its first scale. */
static void
find_row(const struct integers *it, size_t row, size_t *ret_element, size_t *ret_scale)
{
    *ret_element = *ret_scale = 0;
    for (size_t i = it->n_steps - 1; i-- > 0; row /= it->steps[i].n) {
        *ret_element += row % it->steps[i].n * it->steps[i].elements;
        *ret_scale += row % it->steps[i].n * it->steps[i].scales;
    }
}

/* --- writing -------------------------------------------------------------- */

static float
float_at(const uint8_t *bytes, size_t i)
{
    float value;
    memcpy(&value, bytes + i * sizeof value, sizeof value);
    return value;
}

static int8_t
quantized(float x, float scale)
{
    return (int8_t)qdqi_quantized(x, scale, -QDQI_INT8_MAX - 1, QDQI_INT8_MAX);
}

static void
quantize_halves(const uint8_t *bytes, const float *scales, const struct step *step,
                size_t n, int8_t *ret)
{
    for (size_t i = 0; i < n; i++) {
        float x;
        qdqi_floats_of_halves(&x, bytes + i * step->elements * sizeof(uint16_t), 1);
        ret[i] = quantized(x, scales[i * step->scales]);
    }
}

static void
quantize_run(const uint8_t *bytes, const float *scales, const struct step *step,
             size_t n, int8_t *ret)
{
    if (step->elements == 1 &&
        step->scales == 0) { /* the usual case, which vectorizes */
        float scale = scales[0];
        for (size_t i = 0; i < n; i++)
            ret[i] = quantized(float_at(bytes, i), scale);
        return;
    }
    for (size_t i = 0; i < n; i++)
        ret[i] =
            quantized(float_at(bytes, i * step->elements), scales[i * step->scales]);
}

enum { PIECE = 8192 };

struct output {
    struct qdqi_sink *sink;
    size_t used;
    int8_t piece[PIECE];
};

static enum qdq_code
flush(struct output *out, struct qdq_error *err)
{
    size_t used = out->used;
    out->used = 0;
    return out->sink->bytes(out->sink, out->piece, used, err);
}

static enum qdq_code
write_row(const struct integers *it, size_t row, struct output *out,
          struct qdq_error *err)
{
    const struct step *step = &it->steps[it->n_steps - 1];
    size_t element, scale, n;
    enum qdq_code code;
    find_row(it, row, &element, &scale);
    for (size_t i = 0; i < step->n; i += n) {
        if (out->used == PIECE && (code = flush(out, err)))
            return code;
        n = step->n - i < PIECE - out->used ? step->n - i : PIECE - out->used;
        (it->dtype == QDQI_FLOAT16 ? quantize_halves : quantize_run)(
            it->bytes + (element + i * step->elements) * qdqi_dtype_size(it->dtype),
            it->scales + scale + i * step->scales, step, n, out->piece + out->used);
        out->used += n;
    }
    return QDQ_OK;
}

static enum qdq_code
write_integers(const struct qdqi_made *made, struct qdqi_sink *sink,
               struct qdq_error *err)
{
    const struct integers *it = (const struct integers *)made;
    struct output out = {.sink = sink, .used = 0};
    for (size_t row = 0; row < it->n_rows; row++) {
        enum qdq_code code = write_row(it, row, &out, err);
        if (code)
            return code;
    }
    return flush(&out, err);
}

const struct qdqi_made *
qdqi_integers_new(struct qdqi_arena *arena, const struct qdqi_constant *w, int axis,
                  const float *scales)
{
    struct integers *it = qdqi_arena_alloc(arena, sizeof *it);
    if (!it || !(it->steps = qdqi_arena_array(arena, w->rank + 1, sizeof *it->steps)))
        return NULL;
    it->made.write = write_integers;
    it->dtype = w->dtype;
    it->bytes = w->bytes;
    it->scales = scales;
    if (w->n)
        find_steps(it, w, axis);
    return &it->made;
}
