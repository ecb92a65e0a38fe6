/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "run/session/fused_pairs.h"

#include "files/model/constant.h"
#include "ground/base/map.h"
#include "numbers/arithmetic/format.h"
#include "transform/rewrite/blocked.h"
#include "transform/rewrite/insert.h"
#include "transform/rewrite/needed_nodes.h"

#include <math.h>
#include <string.h>

/* Functions here do not report a failed allocation: the arena remembers it, and
   qdqi_fuse_pairs() checks it at its end. */
struct fusing {
    const struct qdqi_runnable *model;
    const Onnx__GraphProto *graph;
    struct qdqi_arena *arena;
    struct qdqi_map *inputs;  /* of the graph */
    struct qdqi_map *tensors; /* initializers that are no inputs, by name */
    struct qdqi_map *makers;  /* nodes, by what they make */
    struct qdqi_map *kept;   /* integers that another node reads, or that are outputs */
    struct qdqi_map *blocks; /* tensors that come from what makes blocks alone */
    bool may_block;
    struct qdqi_fused_pairs *ret;
};

/* The parameters of a pair. */
struct parameters {
    enum qdqi_format format;
    float scale;
    int32_t zero;
};

/* --- parameters ---------------------------------------------------------------- */

/* Reads the only element of an initializer, of up to 4 bytes. */
static bool
read_one(const struct fusing *f, const Onnx__TensorProto *t, void *to, size_t size)
{
    enum { RAW_DATA = 9 };
    const int64_t index = qdqi_tensor_bulk(t, f->model->bulks.n);
    size_t n;
    if (!qdqi_count_elements(t->dims, t->n_dims, &n) || n != 1)
        return false;
    if (index >= 0) {
        const struct qdqi_bulk *bulk = &f->model->bulks.rows[index];
        if (bulk->made || bulk->field != RAW_DATA || bulk->size != size ||
            bulk->file >= f->model->n_files || !f->model->files[bulk->file].map)
            return false;
        memcpy(to, f->model->files[bulk->file].map + bulk->offset, size);
        return true;
    }
    if (!t->has_raw_data || t->raw_data.len != size)
        return false;
    memcpy(to, t->raw_data.data, size);
    return true;
}

static bool
read_zero(const struct fusing *f, const Onnx__TensorProto *t, struct parameters *ret)
{
    union {
        int8_t s8;
        uint8_t u8;
        int16_t s16;
        uint16_t u16;
    } v = {0};
    if (!read_one(f, t, &v, qdqi_dtype_size(t->data_type)))
        return false;
    switch (t->data_type) {
    case QDQI_INT8:
        *ret = (struct parameters){QDQI_TO_INT8, ret->scale, v.s8};
        return true;
    case QDQI_UINT8:
        *ret = (struct parameters){QDQI_TO_UINT8, ret->scale, v.u8};
        return true;
    case QDQI_INT16:
        *ret = (struct parameters){QDQI_TO_INT16, ret->scale, v.s16};
        return true;
    case QDQI_UINT16:
        *ret = (struct parameters){QDQI_TO_UINT16, ret->scale, v.u16};
        return true;
    default:
        return false;
    }
}

/* Reads the scale and the zero point of a node of a pair. */
static bool
read_parameters(const struct fusing *f, const Onnx__NodeProto *node,
                struct parameters *ret)
{
    const Onnx__TensorProto *scale = qdqi_map_get(f->tensors, node->input[1]);
    const Onnx__TensorProto *zero = qdqi_map_get(f->tensors, node->input[2]);
    return scale && zero && scale->data_type == QDQI_FLOAT32 &&
           read_one(f, scale, &ret->scale, sizeof ret->scale) && isfinite(ret->scale) &&
           ret->scale > 0 && read_zero(f, zero, ret);
}

/* Returns whether the node has the operator, all inputs, and no attribute that could change what it
   computes for one scale. */
static bool
is_plain(const Onnx__NodeProto *node, const char *op)
{
    bool plain = qdqi_node_is(node, op) && node->n_input == 3 && node->n_output == 1 &&
                 *node->input[0] && *node->input[1] && *node->input[2];
    for (size_t i = 0; plain && i < node->n_attribute; i++)
        plain = strcmp(node->attribute[i]->name, "axis") == 0 ||
                strcmp(node->attribute[i]->name, "saturate") == 0;
    return plain;
}

/* Returns the QuantizeLinear in front of a DequantizeLinear if the two are a pair, or NULL. */
static const Onnx__NodeProto *
first_of_pair(const struct fusing *f, const Onnx__NodeProto *second,
              struct parameters *ret)
{
    struct parameters p, q;
    const Onnx__NodeProto *first = is_plain(second, "DequantizeLinear")
                                       ? qdqi_map_get(f->makers, second->input[0])
                                       : NULL;
    if (!first || !is_plain(first, "QuantizeLinear") ||
        qdqi_map_get(f->tensors, first->input[0]) || !read_parameters(f, first, &p) ||
        !read_parameters(f, second, &q) || p.format != q.format || p.scale != q.scale ||
        p.zero != q.zero)
        return NULL;
    *ret = p;
    return first;
}

/* --- blocks -------------------------------------------------------------------- */

/* Operators whose outputs may be in blocks: those that make blocks, and those that keep them. */
static const char *const making_blocks[] = {
    "AveragePool", "BatchNormalization", "Conv", "GlobalAveragePool",
    "MaxPool",     "GlobalMaxPool",      NULL};
static const char *const keeping_blocks[] = {"Clip",      "Concat", "HardSigmoid",
                                             "HardSwish", "Relu",   "LeakyRelu",
                                             "Sigmoid",   "Tanh",   NULL};
static const char *const joining[] = {"Add", "Mul", "Sum", NULL};

/* Notes of a node's outputs whether they come from what makes blocks alone. */
static void
note_blocks(struct fusing *f, const Onnx__NodeProto *node)
{
    struct parameters p;
    const Onnx__NodeProto *first = first_of_pair(f, node, &p);
    const Onnx__NodeProto *from = first ? first : node;
    const size_t n =
        first ? 1 : node->n_input; /* behind it are a scale and a zero point */
    bool blocks = qdqi_node_is_one_of(node, making_blocks);
    if (!blocks && (first || qdqi_node_is_one_of(node, keeping_blocks) ||
                    qdqi_node_is_one_of(node, joining))) {
        blocks = n > 0;
        for (size_t i = 0; i < n && blocks; i++)
            blocks = qdqi_map_get(f->blocks, from->input[i]) ||
                     (qdqi_node_is(node, "Clip") && i > 0); /* its bounds */
    }
    for (size_t i = 0; blocks && i < node->n_output; i++)
        (void)!qdqi_map_put(f->blocks, node->output[i], f);
}

/* Returns whether a node may make its output in blocks. A sum does of blocks alone: the runtime fuses one with a
   vector, and what it takes for its own operator, whether the vector is an initializer or computed. */
static bool
may_be_blocked(const struct fusing *f, const char *tensor)
{
    const Onnx__NodeProto *maker = qdqi_map_get(f->makers, tensor);
    if (!f->may_block || !maker)
        return false;
    return qdqi_node_is_one_of(maker, joining)
               ? qdqi_map_get(f->blocks, tensor) != NULL
               : qdqi_node_is_one_of(maker, making_blocks) ||
                     qdqi_node_is_one_of(maker, keeping_blocks);
}

/* Returns whether the runtime has its own operator of that name in the model, or makes one. */
static bool
has_own_operator(const Onnx__GraphProto *graph)
{
    static const char *const making[] = {"Erf", "Gelu", NULL};
    bool any = false, convolves = false;
    for (size_t i = 0; i < graph->n_node; i++) {
        const Onnx__NodeProto *node = graph->node[i];
        any = any || qdqi_node_is_one_of(node, making) ||
              (node->domain && strcmp(node->domain, QDQI_MS_DOMAIN) == 0);
        convolves = convolves || qdqi_node_is(node, "Conv");
    }
    return any || !convolves;
}

/* --- the graph ------------------------------------------------------------------ */

static void
add_fake(struct fusing *f, const struct parameters *p)
{
    struct qdqi_fake *fake = &f->ret->fakes.rows[f->ret->fakes.n];
    float *scale = qdqi_arena_copy(f->arena, &p->scale, 1, sizeof p->scale);
    int32_t *zero = qdqi_arena_copy(f->arena, &p->zero, 1, sizeof p->zero);
    *fake = (struct qdqi_fake){.on = true,
                               .format = p->format,
                               .scales = scale,
                               .zero_points = zero,
                               .channels = 1,
                               .inner = 1};
    f->ret->fakes.n++;
}

/* Returns the node in the place of a pair. */
static Onnx__NodeProto *
fuse(struct fusing *f, const Onnx__NodeProto *first, const Onnx__NodeProto *second,
     const struct parameters *p)
{
    const bool blocked = may_be_blocked(f, first->input[0]);
    const char *const input[] = {first->input[0]};
    Onnx__NodeProto *node =
        qdqi_node_new(f->arena, blocked ? QDQI_OBSERVE_BLOCKED : QDQI_FAKE_QUANT,
                      second->name, input, 1, second->output[0]);
    if (!node || !qdqi_node_add_int(f->arena, node, "slot", (int64_t)f->ret->fakes.n))
        return node;
    node->domain = (char *)(uintptr_t)(blocked ? QDQI_MS_DOMAIN : QDQI_DOMAIN);
    f->ret->any_blocked |= blocked;
    add_fake(f, p);
    return node;
}

/* Lists what is known by name. */
static void
collect(struct fusing *f)
{
    const Onnx__GraphProto *g = f->graph;
    struct parameters p;
    for (size_t i = 0; i < g->n_input; i++) /* for which a caller gives other values */
        (void)!qdqi_map_put(f->inputs, g->input[i]->name, f);
    for (size_t i = 0; i < g->n_initializer; i++)
        if (!qdqi_map_get(f->inputs, g->initializer[i]->name))
            (void)!qdqi_map_put(f->tensors, g->initializer[i]->name, g->initializer[i]);
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_output; k++)
            (void)!qdqi_map_put(f->makers, g->node[i]->output[k], g->node[i]);
    for (size_t i = 0; i < g->n_node; i++)
        note_blocks(f, g->node[i]);
    for (size_t i = 0; i < g->n_output; i++)
        (void)!qdqi_map_put(f->kept, g->output[i]->name, f);
    for (size_t i = 0; i < g->n_node; i++) {
        const bool is_second = first_of_pair(f, g->node[i], &p) != NULL;
        for (size_t k = is_second; k < g->node[i]->n_input; k++)
            (void)!qdqi_map_put(f->kept, g->node[i]->input[k], f);
    }
}

/* Returns the nodes with those of pairs replaced. */
static Onnx__NodeProto **
fuse_nodes(struct fusing *f, size_t *ret_n)
{
    const Onnx__GraphProto *g = f->graph;
    Onnx__NodeProto **nodes = qdqi_arena_array(f->arena, g->n_node, sizeof *nodes);
    struct qdqi_map *left_out = qdqi_map_new(f->arena);
    struct parameters p;
    size_t n = 0;
    *ret_n = 0;
    if (!nodes || !left_out)
        return NULL;
    for (size_t i = 0; i < g->n_node; i++) {
        const Onnx__NodeProto *first = first_of_pair(f, g->node[i], &p);
        if (first && !qdqi_map_get(f->kept, first->output[0]))
            (void)!qdqi_map_put(left_out, first->output[0], f);
    }
    for (size_t i = 0; i < g->n_node; i++) {
        Onnx__NodeProto *node = g->node[i];
        const Onnx__NodeProto *first = first_of_pair(f, node, &p);
        if (first)
            nodes[n++] = fuse(f, first, node, &p);
        else if (node->n_output != 1 || !qdqi_map_get(left_out, node->output[0]))
            nodes[n++] = node;
    }
    *ret_n = n;
    return nodes;
}

/* Adds the imports of both domains. */
static bool
import(struct fusing *f, Onnx__ModelProto *model)
{
    static const char *const domains[] = {QDQI_DOMAIN, QDQI_MS_DOMAIN};
    const size_t n = model->n_opset_import;
    Onnx__OperatorSetIdProto **all = qdqi_arena_array(f->arena, n + 2, sizeof *all);
    if (!all)
        return false;
    memcpy(all, model->opset_import, n * sizeof *all);
    model->opset_import = all;
    for (size_t i = 0; i < 2; i++) {
        if (qdqi_import_of(all, model->n_opset_import, domains[i]))
            continue;
        Onnx__OperatorSetIdProto *id = qdqi_arena_alloc(f->arena, sizeof *id);
        if (!id)
            return false;
        onnx__operator_set_id_proto__init(id);
        id->domain = (char *)(uintptr_t)domains[i];
        id->has_version = 1;
        id->version = 1;
        all[model->n_opset_import++] = id;
    }
    return true;
}

enum qdq_code
qdqi_fuse_pairs(const struct qdqi_runnable *model, struct qdqi_arena *arena,
                struct qdqi_fused_pairs *ret, struct qdq_error *err)
{
    struct fusing f = {.model = model,
                       .graph = model->proto->graph,
                       .arena = arena,
                       .inputs = qdqi_map_new(arena),
                       .tensors = qdqi_map_new(arena),
                       .makers = qdqi_map_new(arena),
                       .kept = qdqi_map_new(arena),
                       .blocks = qdqi_map_new(arena),
                       .ret = ret};
    *ret = (struct qdqi_fused_pairs){.proto = model->proto};
    if (qdqi_has_nested_graphs(f.graph))
        return QDQ_OK;
    Onnx__ModelProto *copy = qdqi_arena_copy(arena, model->proto, 1, sizeof *copy);
    Onnx__GraphProto *graph = qdqi_arena_copy(arena, f.graph, 1, sizeof *graph);
    ret->fakes.rows =
        qdqi_arena_array(arena, f.graph->n_node + 1, sizeof *ret->fakes.rows);
    if (!f.inputs || !f.tensors || !f.makers || !f.kept || !f.blocks || !copy ||
        !graph || !ret->fakes.rows)
        return qdqi_no_memory(err);
    f.may_block = !has_own_operator(f.graph);
    collect(&f);
    graph->node = fuse_nodes(&f, &graph->n_node);
    copy->graph = graph;
    if (!import(&f, copy) || qdqi_arena_exhausted(arena))
        return qdqi_no_memory(err);
    if (ret->fakes.n > 0)
        ret->proto = copy;
    return QDQ_OK;
}
