/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transform/equalize/weight.h"

#include <math.h>

/* A larger number is not a plausible weight, and could overflow when it is scaled. */
#define LARGEST 0x1p64f

bool
qdqi_weight_is_conv(const struct qdqi_node *node)
{
    return qdqi_node_is(node->proto, "Conv") ||
           qdqi_node_is(node->proto, "ConvTranspose");
}

bool
qdqi_weight_has(const struct qdqi_node *node)
{
    return qdqi_weight_is_conv(node) || qdqi_node_is(node->proto, "Gemm") ||
           qdqi_node_is(node->proto, "MatMul");
}

bool
qdqi_weight_is_of_layer(const struct qdqi_graph *graph, const struct qdqi_node *node)
{
    return !graph->scopes[node->scope].is_opaque && qdqi_weight_has(node) &&
           node->proto->n_input > 1 && node->inputs[1] && node->inputs[1]->is_fixed;
}

double *
qdqi_weight_ones(struct qdqi_arena *arena, size_t n)
{
    double *all = qdqi_arena_array(arena, n, sizeof *all);
    for (size_t i = 0; all && i < n; i++)
        all[i] = 1;
    return all;
}

/* --- reading -------------------------------------------------------------- */

static bool
is_usual(const uint8_t *bytes, size_t n)
{
    bool usual = true;
    for (size_t i = 0; i < n; i++)
        usual &= fabsf(qdqi_float_at(bytes, i)) <= LARGEST; /* false for NaN */
    return usual;
}

/* Returns whether the tensor is an initializer, or the tensor value of a Constant. */
static bool
is_replaceable(const struct qdq_model *m, const struct qdqi_tensor *t)
{
    return t->producer < 0 ||
           qdqi_node_attribute(m->graph.nodes[t->producer].proto, "value");
}

const char *
qdqi_weight_check(const struct qdq_model *m, const struct qdqi_tensor *t,
                  struct qdqi_constant *ret)
{
    if (!t->is_fixed)
        return "not constant";
    if (!t->constant)
        return "computed from constants";
    if (t->constant->data_type != QDQI_FLOAT32)
        return "not float32";
    if (!t->uses || t->uses->next || t->is_output || t->is_captured)
        return "used elsewhere, too";
    if (t->is_overridable)
        return "an input, too, which a caller may replace";
    if (!is_replaceable(m, t) || qdqi_stored_read(m, t->constant, t->name, ret, NULL))
        return "kept in a form that is not read";
    if (!is_usual(ret->bytes, ret->n))
        return "not finite, or beyond any usual size";
    return NULL;
}

/* Assigns the axes by the operator's schema. Returns false for a shape that the
   schema does not allow. */
static bool
read_layout(const struct qdqi_node *node, const struct qdqi_constant *c,
            struct qdqi_weight *w)
{
    bool conv = qdqi_weight_is_conv(node);
    int64_t groups = conv ? qdqi_node_int(node->proto, "group", 1) : 1;
    if ((conv ? c->rank < 3 : c->rank != 2) || c->n == 0 || groups < 1 ||
        c->dims[0] % groups != 0)
        return false;
    w->groups = (size_t)groups;
    w->n_major = (size_t)c->dims[0];
    w->minor = (size_t)c->dims[1];
    w->inner = c->n / w->n_major / w->minor;
    w->major_is_out =
        qdqi_node_is(node->proto, "Conv") ||
        (qdqi_node_is(node->proto, "Gemm") && qdqi_node_int(node->proto, "transB", 0));
    size_t n_minor = w->minor * w->groups;
    w->n_out = w->major_is_out ? w->n_major : n_minor;
    w->n_in = w->major_is_out ? n_minor : w->n_major;
    return true;
}

const char *
qdqi_weight_read(const struct qdq_model *m, const struct qdqi_node *node,
                 struct qdqi_weight *ret)
{
    struct qdqi_constant c;
    if (node->proto->n_input < 2 || !node->inputs[1])
        return "missing";
    const char *why = qdqi_weight_check(m, node->inputs[1], &c);
    if (why)
        return why;
    *ret = (struct qdqi_weight){.tensor = node->inputs[1], .bytes = c.bytes};
    return read_layout(node, &c, ret) ? NULL : "of a shape that does not fit";
}

/* --- channels ------------------------------------------------------------- */

/* Returns the channel, on the side of axis 1, that element [a][b] belongs to. */
static size_t
minor_channel(const struct qdqi_weight *w, size_t a, size_t b)
{
    return a / (w->n_major / w->groups) * w->minor + b;
}

static double
peak(const uint8_t *bytes, size_t n)
{
    float largest = 0;
    for (size_t i = 0; i < n; i++) {
        float v = fabsf(qdqi_float_at(bytes, i));
        largest = v > largest ? v : largest;
    }
    return largest;
}

void
qdqi_weight_ranges(const struct qdqi_weight *w, bool of_outputs, const double *other,
                   double *ret)
{
    bool of_major = of_outputs == w->major_is_out;
    const uint8_t *bytes = w->bytes;
    memset(ret, 0, (of_outputs ? w->n_out : w->n_in) * sizeof *ret);
    for (size_t a = 0; a < w->n_major; a++)
        for (size_t b = 0; b < w->minor; b++) {
            size_t minor = minor_channel(w, a, b);
            double *range = &ret[of_major ? a : minor];
            double v = peak(bytes, w->inner) * other[of_major ? minor : a];
            *range = v > *range ? v : *range;
            bytes += w->inner * sizeof(float);
        }
}

/* --- writing -------------------------------------------------------------- */

enum { CHUNK = 1024 }; /* elements that are scaled at once */

struct chunk {
    float data[CHUNK];
    size_t n;
    struct qdqi_sink *sink;
};

static enum qdq_code
put(struct chunk *chunk, float value, struct qdq_error *err)
{
    chunk->data[chunk->n++] = value;
    if (chunk->n < CHUNK)
        return QDQ_OK;
    chunk->n = 0;
    return chunk->sink->bytes(chunk->sink, chunk->data, sizeof chunk->data, err);
}

enum qdq_code
qdqi_weight_write(const struct qdqi_weight *w, const double *out, const double *in,
                  struct qdqi_sink *sink, struct qdq_error *err)
{
    const double *major = w->major_is_out ? out : in;
    const double *minor = w->major_is_out ? in : out;
    struct chunk chunk = {.sink = sink};
    enum qdq_code code = QDQ_OK;
    size_t at = 0;
    for (size_t a = 0; a < w->n_major; a++)
        for (size_t b = 0; b < w->minor; b++) {
            float factor = (float)(major[a] * minor[minor_channel(w, a, b)]);
            for (size_t i = 0; i < w->inner && !code; i++, at++)
                code = put(&chunk, qdqi_float_at(w->bytes, at) * factor, err);
        }
    if (code)
        return code;
    return sink->bytes(sink, chunk.data, chunk.n * sizeof *chunk.data, err);
}
