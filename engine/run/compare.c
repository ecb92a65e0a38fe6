/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "run/compare_op.h"

#include "number/half.h"
#include "rewrite/twin.h"

#include <string.h>

enum {
    MIN_PART = 1 << 16, /* elements for which a thread is worth waking: 15 us or so */
    MAX_PARTS = 64,
};

bool
qdqi_comparisons_init(struct qdqi_comparisons *comparisons, size_t n,
                      struct qdqi_arena *arena)
{
    struct qdqi_comparison *rows = qdqi_arena_array(arena, n, sizeof *rows);
    *comparisons = (struct qdqi_comparisons){rows, n};
    return rows != NULL;
}

/* --- Compare -------------------------------------------------------------- */

struct parts {
    bool half; /* float16 */
    const unsigned char *f, *q;
    size_t n, size; /* elements; of a part */
    struct qdqi_noise sums[MAX_PARTS];
};

/* Halves become float32 piece by piece. */
static void
add_halves(struct qdqi_noise *sums, const unsigned char *f, const unsigned char *q,
           size_t n)
{
    enum { PIECE = 1 << 11 };
    float f_piece[PIECE], q_piece[PIECE];
    for (size_t at = 0, m; at < n; at += m) {
        m = n - at < PIECE ? n - at : PIECE;
        qdqi_floats_of_halves(f_piece, f + at * sizeof(uint16_t), m);
        qdqi_floats_of_halves(q_piece, q + at * sizeof(uint16_t), m);
        qdqi_noise_add(sums, f_piece, q_piece, m);
    }
}

static void
add_part(void *arg, size_t i)
{
    struct parts *p = arg;
    size_t first = i * p->size, left = p->n - first;
    if (p->half) {
        add_halves(&p->sums[i], p->f + first * sizeof(uint16_t),
                   p->q + first * sizeof(uint16_t), left < p->size ? left : p->size);
        return;
    }
    qdqi_noise_add(&p->sums[i], p->f + first * sizeof(float),
                   p->q + first * sizeof(float), left < p->size ? left : p->size);
}

static OrtStatusPtr
add_noise(const struct qdqi_kernel *k, OrtKernelContext *context,
          struct qdqi_comparison *row, struct parts *p)
{
    size_t n_parts = p->n / MIN_PART;
    n_parts = n_parts < 1 ? 1 : n_parts > MAX_PARTS ? MAX_PARTS : n_parts;
    p->size = (p->n + n_parts - 1) / n_parts;
    OrtStatusPtr status = qdqi_op_share(k, context, add_part, n_parts, p);
    for (size_t i = 0; !status && i < n_parts; i++) {
        row->sums.signal += p->sums[i].signal;
        row->sums.noise += p->sums[i].noise;
    }
    return status;
}

static OrtStatusPtr
compare(const struct qdqi_kernel *k, OrtKernelContext *context)
{
    struct qdqi_comparisons *comparisons = k->op->state;
    struct qdqi_comparison *row = &comparisons->rows[k->slot];
    struct qdqi_op_tensor f, q;
    OrtStatusPtr status;
    if ((status = qdqi_op_input(k, context, 0, &f)) ||
        (status = qdqi_op_input(k, context, 1, &q)))
        return status;
    row->runs++;
    bool half = f.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16;
    row->differs |= (!half && f.type != ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT) ||
                    f.type != q.type || f.n != q.n;
    if (row->differs)
        return NULL;
    struct parts parts = {.half = half, .f = f.data, .q = q.data, .n = f.n};
    return add_noise(k, context, row, &parts);
}

void
qdqi_compare_init(struct qdqi_op *op, const OrtApi *api,
                  struct qdqi_comparisons *comparisons)
{
    *op = (struct qdqi_op){.api = api,
                           .name = QDQI_COMPARE,
                           .type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED,
                           .n_inputs = 2,
                           .state = comparisons,
                           .n_slots = comparisons->n,
                           .compute = compare};
    qdqi_op_init(op);
}

/* --- Pass ----------------------------------------------------------------- */

static OrtStatusPtr
pass(const struct qdqi_kernel *k, OrtKernelContext *context)
{
    struct qdqi_op_tensor input;
    void *output;
    OrtStatusPtr status;
    if ((status = qdqi_op_input(k, context, 0, &input)) ||
        (status = qdqi_op_output(k, context, 0, &output)))
        return status;
    if (output != input.data && input.n > 0)
        memcpy(output, input.data, input.n * qdqi_dtype_size((int)input.type));
    return NULL;
}

void
qdqi_pass_init(struct qdqi_op *op, const OrtApi *api)
{
    *op = (struct qdqi_op){.api = api,
                           .name = QDQI_PASS,
                           .type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED,
                           .n_inputs = 1,
                           .n_outputs = 1,
                           .memory = QDQI_OP_ALIAS,
                           .n_slots = 1,
                           .compute = pass};
    qdqi_op_init(op);
}
