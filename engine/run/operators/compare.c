/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "run/operators/operators.h"

#include "numbers/arithmetic/half.h"
#include "transform/rewrite/twin.h"

#include <string.h>

enum {
    /* the fewest elements that are worth another thread: about 15 us of work */
    MIN_PART = 1 << 16,
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
    enum qdqi_dtype f_dtype, q_dtype; /* each is float32 or float16 */
    const unsigned char *f, *q;
    size_t n, size; /* elements of the tensors, and of one part */
    struct qdqi_noise sums[MAX_PARTS];
};

/* Adds n elements from `first` on to the sums. float16 is converted to float32 piece
   by piece. */
static void
add_pieces(struct qdqi_noise *sums, const struct parts *p, size_t first, size_t n)
{
    enum { PIECE = 1 << 11 };
    float f_piece[PIECE], q_piece[PIECE];
    for (size_t at = first, end = first + n, m; at < end; at += m) {
        m = end - at < PIECE ? end - at : PIECE;
        qdqi_load_floats(f_piece, p->f_dtype,
                         p->f + at * qdqi_dtype_size((int)p->f_dtype), m);
        qdqi_load_floats(q_piece, p->q_dtype,
                         p->q + at * qdqi_dtype_size((int)p->q_dtype), m);
        qdqi_noise_add(sums, f_piece, q_piece, m);
    }
}

static void
add_part(void *arg, size_t i)
{
    struct parts *p = arg;
    size_t first = i * p->size, left = p->n - first;
    if (p->f_dtype == QDQI_FLOAT16 || p->q_dtype == QDQI_FLOAT16) {
        add_pieces(&p->sums[i], p, first, left < p->size ? left : p->size);
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
    OrtStatusPtr status = qdqi_op_parallel_for(k, context, add_part, n_parts, p);
    for (size_t i = 0; !status && i < n_parts; i++) {
        row->sums.signal += p->sums[i].signal;
        row->sums.noise += p->sums[i].noise;
    }
    return status;
}

static bool
is_compared(ONNXTensorElementDataType type)
{
    return type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT ||
           type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16;
}

OrtStatusPtr
qdqi_compared_inputs(const struct qdqi_kernel *k, OrtKernelContext *context,
                     struct qdqi_comparison *row, struct qdqi_op_tensor *f,
                     struct qdqi_op_tensor *q, bool *ret)
{
    OrtStatusPtr status;
    if ((status = qdqi_op_input(k, context, 0, f)) ||
        (status = qdqi_op_input(k, context, 1, q)))
        return status;
    row->runs++;
    row->differs |= !is_compared(f->type) || !is_compared(q->type) || f->n != q->n;
    *ret = !row->differs;
    return NULL;
}

/* Computes one Compare node. The casts are valid because ONNX Runtime's element
   types have the numbers of ONNX's. */
static OrtStatusPtr
compare(const struct qdqi_kernel *k, OrtKernelContext *context)
{
    struct qdqi_comparisons *comparisons = k->op->state;
    struct qdqi_comparison *row = &comparisons->rows[k->slot];
    struct qdqi_op_tensor f, q;
    bool may;
    OrtStatusPtr status = qdqi_compared_inputs(k, context, row, &f, &q, &may);
    if (status || !may)
        return status;
    struct parts parts = {.f_dtype = (enum qdqi_dtype)f.type,
                          .q_dtype = (enum qdqi_dtype)q.type,
                          .f = f.data,
                          .q = q.data,
                          .n = f.n};
    return add_noise(k, context, row, &parts);
}

void
qdqi_compare_add(struct qdqi_noise *sums, enum qdqi_dtype f_dtype, const void *f,
                 enum qdqi_dtype q_dtype, const void *q, size_t n)
{
    const struct parts parts = {
        .f_dtype = f_dtype, .q_dtype = q_dtype, .f = f, .q = q, .n = n};
    add_pieces(sums, &parts, 0, n);
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
