/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "graph/layers/moment_form.h"

#include "numbers/range/shifts.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_GROUPS = 65536 /* of a convolution */ };

/* Reads an attribute of `axes` integers. Returns false when it has another number. */
static bool
read_ints(const Onnx__NodeProto *node, const char *name, size_t n, int64_t otherwise,
          int64_t *ret)
{
    const Onnx__AttributeProto *a = qdqi_node_attribute(node, name);
    for (size_t i = 0; i < n; i++)
        ret[i] = a && a->n_ints == n ? a->ints[i] : otherwise;
    return !a || a->n_ints == n;
}

static bool
read_window(const Onnx__NodeProto *node, const struct qdqi_tensor *weight,
            struct qdqi_window *w)
{
    int64_t pads[2 * QDQI_PATCH_AXES];
    const Onnx__AttributeProto *pad = qdqi_node_attribute(node, "auto_pad");
    *w = (struct qdqi_window){.axes = weight->view.rank - 2};
    if (weight->view.rank < 3 || w->axes > QDQI_PATCH_AXES ||
        !read_ints(node, "strides", w->axes, 1, w->stride) ||
        !read_ints(node, "dilations", w->axes, 1, w->dilation) ||
        !read_ints(node, "pads", 2 * w->axes, 0, pads))
        return false;
    for (size_t i = 0; i < w->axes; i++) {
        w->kernel[i] = weight->view.dims[i + 2];
        w->begin[i] = pads[i];
        w->end[i] = pads[i + w->axes];
        if (w->stride[i] < 1 || w->dilation[i] < 1 || w->kernel[i] < 1)
            return false;
    }
    if (pad) {
        w->same_upper = pad->s.len == 10 && memcmp(pad->s.data, "SAME_UPPER", 10) == 0;
        w->same_lower = pad->s.len == 10 && memcmp(pad->s.data, "SAME_LOWER", 10) == 0;
    }
    return true;
}

bool
qdqi_layer_window(const struct qdqi_node *node, const struct qdqi_tensor *weight,
                  struct qdqi_window *ret)
{
    *ret = (struct qdqi_window){0};
    return !qdqi_node_is(node->proto, "Conv") || read_window(node->proto, weight, ret);
}

static struct qdqi_moment_form
convolution(const struct qdqi_node *node, const struct qdqi_tensor *weight)
{
    struct qdqi_moment_form f = {.k = 1};
    int64_t groups = qdqi_node_int(node->proto, "group", 1);
    if (!read_window(node->proto, weight, &f.window) || groups < 1 ||
        groups > MAX_GROUPS || weight->view.dims[0] % groups != 0)
        return (struct qdqi_moment_form){.why = "its attributes do not fit its weight"};
    f.groups = (size_t)groups;
    for (size_t i = 1; i < weight->view.rank; i++)
        f.k *= (size_t)weight->view.dims[i];
    if (groups == 1 &&
        qdqi_shifts_pay(&f.window, (size_t)weight->view.dims[1], QDQI_MOMENT_SAMPLED,
                        QDQI_MOMENT_SAMPLED, SIZE_MAX))
        f.more = qdqi_shifts_bytes((size_t)weight->view.dims[1]);
    return f;
}

static struct qdqi_moment_form
layer_form(const struct qdqi_node *node, const struct qdq_layer *layer)
{
    const struct qdqi_tensor *w = node->inputs[layer->weight_input];
    const struct qdqi_tensor *x = node->inputs[0];
    if (!w || !x || w->dtype != QDQI_FLOAT32 || x->dtype != QDQI_FLOAT32)
        return (struct qdqi_moment_form){.why = "it is not computed in float32"};
    if (layer->weight_input != 1)
        return (struct qdqi_moment_form){.why = "its weight is not its second input"};
    if (qdqi_node_is(node->proto, "Conv"))
        return convolution(node, w);
    if (w->view.rank != 2)
        return (struct qdqi_moment_form){.why = "its weight is not a matrix"};
    if (qdqi_node_is(node->proto, "MatMul"))
        return (struct qdqi_moment_form){
            .groups = 1, .k = (size_t)w->view.dims[0], .outputs_last = true};
    if (!qdqi_node_is(node->proto, "Gemm"))
        return (struct qdqi_moment_form){
            .why = "moments are known of Conv, Gemm and MatMul"};
    if (qdqi_node_int(node->proto, "transA", 0))
        return (struct qdqi_moment_form){.why = "it reads its input transposed"};
    bool across = qdqi_node_int(node->proto, "transB", 0);
    return (struct qdqi_moment_form){.groups = 1,
                                     .k = (size_t)w->view.dims[across ? 1 : 0],
                                     .outputs_last = !across};
}

struct qdqi_moment_form
qdqi_moment_form_of(const struct qdqi_node *node, const struct qdq_layer *layer)
{
    struct qdqi_moment_form f = layer_form(node, layer);
    return f.why || f.k > 0 ? f
                            : (struct qdqi_moment_form){.why = "its weight is empty"};
}

uint64_t
qdqi_moment_form_bytes(const struct qdqi_moment_form *f)
{
    return f->groups * qdqi_moment_bytes(f->k) + f->more;
}

const char *
qdqi_moment_source(struct qdqi_arena *arena, const struct qdqi_tensor *input,
                   const struct qdqi_moment_form *f)
{
    const struct qdqi_window *w = &f->window;
    const char *text = qdqi_arena_printf(arena, "%s\n%zu %zu %d%d", input->name,
                                         f->groups, f->k, w->same_upper, w->same_lower);
    for (size_t i = 0; i < w->axes && text; i++)
        text = qdqi_arena_printf(
            arena, "%s %" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64, text,
            w->kernel[i], w->stride[i], w->dilation[i], w->begin[i], w->end[i]);
    return text;
}
