/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transform/rewrite/nbits.h"

#include "graph/weights/integers.h"

#include <stdlib.h>

enum {
    LEAST_BLOCK = 16,
    MOST_BLOCK = 256,
    /* products are summed in 8-bit integers, as ONNX Runtime does by default where it makes the
       node itself */
    ACCURACY_LEVEL = 4
};

static bool
multiply_alone(const struct qdqi_pairs *p, size_t row)
{
    const struct qdq_plan_view *view = &p->plan->view;
    for (size_t i = 0; i < view->n_layers; i++) {
        const struct qdq_layer *layer = &view->layers[i];
        if (layer->weight_input >= 0 && layer->weight_row == row &&
            (layer->weight_input != 1 ||
             !qdqi_node_is(p->source->graph.nodes[layer->node].proto, "MatMul")))
            return false;
    }
    return true;
}

bool
qdqi_nbits_can(const struct qdqi_pairs *p, size_t row, const struct qdqi_quantized *q)
{
    const struct qdqi_params *w = q->params;
    const struct qdqi_format_row *format = qdqi_format_row((int)w->format);
    return (w->rounded || p->plan->decoder_takes_nearest) && w->integers && w->scales &&
           q->rank == 2 && w->axis == 0 && w->block >= LEAST_BLOCK &&
           w->block <= MOST_BLOCK && (w->block & (w->block - 1)) == 0 &&
           q->dtype == QDQI_FLOAT32 && (format->bits == 4 || format->bits == 8) &&
           format->fraction_bits == 0 && format->block == 0 && q->dims[0] > 0 &&
           multiply_alone(p, row);
}

/* Writes a number of so many bits at place i. */
static void
put(uint8_t *to, size_t i, int bits, int number)
{
    if (bits == 8)
        to[i] = (uint8_t)number;
    else
        to[i / 2] = (uint8_t)(to[i / 2] | number << (i % 2 * 4));
}

/* Returns number i of a weight whose integers are packed, the first one in the lowest bits. */
static int
get(const uint8_t *from, size_t i, int bits)
{
    return bits == 8 ? from[i] : from[i / 2] >> (i % 2 * 4) & 15;
}

/* Writes the integers of one output, whose blocks are filled up with zero points. `codes`: all
   integers of the weight, [K, N], as the result's own form has them. With a sign they have `offset`
   added, which turns over their highest bit. */
static void
write_output(const struct qdqi_quantized *q, const struct qdqi_nbits *w, size_t output,
             int offset, const uint8_t *codes, uint8_t *integers, float *scales,
             uint8_t *zeros)
{
    const struct qdqi_params *params = q->params;
    for (size_t b = 0; b < (size_t)w->blocks; b++) {
        const size_t scale = b * (size_t)w->n + output;
        const int zero =
            (params->zero_points ? params->zero_points[scale] : 0) + offset;
        scales[b] = params->scales[scale];
        put(zeros, b, w->bits, zero);
        for (size_t i = b * (size_t)w->block; i < (b + 1) * (size_t)w->block; i++)
            put(integers, i, w->bits,
                i < (size_t)w->k
                    ? get(codes, i * (size_t)w->n + output, w->bits) ^ offset
                    : zero);
    }
}

/* Returns whether rule C35 leaves out the zero points. With a sign they have `offset` added. */
static bool
has_middles(const struct qdqi_pairs *p, const struct qdqi_params *params, int bits,
            int offset)
{
    bool ret = p->plan->leaves_out_middles;
    for (size_t i = 0; i < params->n && ret; i++)
        ret = qdqi_zero_point(params, i) + offset == 1 << (bits - 1);
    return ret;
}

enum qdq_code
qdqi_nbits_store(struct qdqi_pairs *p, const struct qdqi_quantized *q,
                 struct qdqi_nbits *ret, struct qdq_error *err)
{
    const struct qdqi_format_row *format = qdqi_format_row((int)q->params->format);
    struct qdqi_nbits w = {.integers = qdqi_pairs_name(p, q->tensor, "_quantized"),
                           .scales = qdqi_pairs_name(p, q->tensor, "_scale"),
                           .zeros = qdqi_pairs_name(p, q->tensor, "_zero_point"),
                           .k = q->dims[0],
                           .n = q->dims[1],
                           .block = q->params->block,
                           .bits = format->bits};
    w.blocks = (w.k + w.block - 1) / w.block;
    const size_t n = (size_t)w.n, blocks = (size_t)w.blocks;
    const size_t row = blocks * (size_t)w.block * (size_t)w.bits / 8;
    const size_t zeros_row = (blocks * (size_t)w.bits + 7) / 8;
    uint8_t *integers = qdqi_arena_array(p->arena, n * row, 1);
    uint8_t *zeros = qdqi_arena_array(p->arena, n * zeros_row, 1);
    float *scales = qdqi_arena_array(p->arena, n * blocks, sizeof *scales);
    uint8_t *codes =
        malloc((size_t)qdqi_integers_size(q->params->format, (size_t)w.k * n));
    /* a signed integer becomes one without a sign */
    const int offset = format->lowest < 0 ? 1 << (w.bits - 1) : 0;
    enum qdq_code code = QDQ_OK;
    if (!integers || !zeros || !scales || !codes || !w.integers || !w.scales ||
        !w.zeros)
        code = qdqi_no_memory(err);
    else
        code = qdqi_made_copy(q->params->integers, codes, err);
    for (size_t i = 0; i < n && !code; i++)
        write_output(q, &w, i, offset, codes, integers + i * row, scales + i * blocks,
                     zeros + i * zeros_row);
    free(codes);
    if (code)
        return code;
    qdqi_edit_add_tensor(p->edit, w.integers, QDQI_UINT8, 3,
                         (const int64_t[]){w.n, w.blocks, (int64_t)row / w.blocks},
                         integers, n * row);
    qdqi_edit_add_tensor(p->edit, w.scales, QDQI_FLOAT32, 2,
                         (const int64_t[]){w.n, w.blocks}, scales,
                         n * blocks * sizeof *scales);
    if (has_middles(p, q->params, w.bits, offset))
        w.zeros = NULL;
    else
        qdqi_edit_add_tensor(p->edit, w.zeros, QDQI_UINT8, 2,
                             (const int64_t[]){w.n, (int64_t)zeros_row}, zeros,
                             n * zeros_row);
    *ret = w;
    return QDQ_OK;
}

void
qdqi_nbits_multiply(struct qdqi_pairs *p, size_t row, const struct qdqi_nbits *w)
{
    const struct qdq_plan_view *view = &p->plan->view;
    const Onnx__ModelProto *model = p->source->proto;
    const struct {
        const char *name;
        int64_t value;
    } attributes[] = {{"K", w->k},
                      {"N", w->n},
                      {"bits", w->bits},
                      {"block_size", w->block},
                      {"accuracy_level", ACCURACY_LEVEL}};
    for (size_t i = 0; i < view->n_layers; i++) {
        const size_t node = view->layers[i].node;
        if (view->layers[i].weight_input < 0 || view->layers[i].weight_row != row)
            continue;
        qdqi_edit_set_input(p->edit, node, 1, w->integers);
        qdqi_edit_put_input(p->edit, node, 2, w->scales);
        if (w->zeros)
            qdqi_edit_put_input(p->edit, node, 3, w->zeros);
        qdqi_edit_retype(p->edit, node, "MatMulNBits", QDQI_MS_DOMAIN, "");
        for (size_t a = 0; a < sizeof attributes / sizeof *attributes; a++)
            qdqi_edit_set_int(p->edit, node, attributes[a].name, attributes[a].value);
    }
    if (!qdqi_import_of(model->opset_import, model->n_opset_import, QDQI_MS_DOMAIN))
        qdqi_edit_import(p->edit, QDQI_MS_DOMAIN, 1);
}
