/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A FakeQuant node has one input and one output of the same shape. The engine owns the
 * memory that says how the node quantizes, so it can change that between two runs. ONNX
 * Runtime neither folds such a node when its input is constant nor merges two of them.
 */
#include "config.h"
#include "run/operators/operators.h"

#include "transform/rewrite/blocked.h"
#include "transform/rewrite/insert.h"

enum { PIECE = 1 << 16 }; /* elements of one part, enough to be worth a thread */

struct work {
    const struct qdqi_fake *fake;
    const void *from;
    void *to;
    size_t n;
};

static void
do_piece(void *arg, size_t i)
{
    const struct work *w = arg;
    size_t left = w->n - i * PIECE;
    qdqi_fake_quantize(w->fake, w->from, w->to, i * PIECE, left < PIECE ? left : PIECE);
}

OrtStatusPtr
qdqi_faked_tensors(const struct qdqi_kernel *k, OrtKernelContext *context,
                   const struct qdqi_fake *fake, struct qdqi_op_tensor *ret,
                   void **ret_to)
{
    OrtStatusPtr status = qdqi_op_input(k, context, 0, ret);
    if (status || (status = qdqi_op_output(k, context, 0, ret_to)))
        return status;
    if (ret->n % fake->channels != 0 || ret->n / fake->channels % fake->inner != 0)
        return k->op->api->CreateStatus(ORT_INVALID_ARGUMENT,
                                        "a weight is not of the shape that it had");
    return NULL;
}

static OrtStatusPtr
fake_quantize(const struct qdqi_kernel *k, OrtKernelContext *context)
{
    const struct qdqi_fakes *fakes = k->op->state;
    struct work w = {.fake = &fakes->rows[k->slot]};
    struct qdqi_op_tensor t;
    OrtStatusPtr status = qdqi_faked_tensors(k, context, w.fake, &t, &w.to);
    if (status)
        return status;
    w.from = t.data;
    w.n = t.n;
    if (w.n == 0 || (!w.fake->on && w.from == w.to))
        return NULL;
    return qdqi_op_parallel_for(k, context, do_piece, (w.n + PIECE - 1) / PIECE, &w);
}

void
qdqi_fake_init(struct qdqi_op *op, const OrtApi *api, const struct qdqi_fakes *fakes)
{
    *op = (struct qdqi_op){.api = api,
                           .name = QDQI_FAKE_QUANT,
                           .type = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                           .n_inputs = 1,
                           .n_outputs = 1,
                           .memory = QDQI_OP_INPLACE,
                           .state = (void *)(uintptr_t)fakes,
                           .n_slots = fakes->n,
                           .compute = fake_quantize};
    qdqi_op_init(op);
}

void
qdqi_fake_blocked_init(struct qdqi_op *op, const OrtApi *api,
                       const struct qdqi_fakes *fakes)
{
    qdqi_fake_init(op, api, fakes);
    op->name = QDQI_OBSERVE_BLOCKED;
    qdqi_op_init(op);
}
