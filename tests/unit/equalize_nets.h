/* SPDX-License-Identifier: Apache-2.0 */
/* Models whose layers are equalized, and the call that equalizes them. */
#ifndef TESTS_UNIT_EQUALIZE_NETS_H
#define TESTS_UNIT_EQUALIZE_NETS_H

#include "builder.h"
#include "transform/equalize/equalize.h"

#include <math.h>

enum { LENGTH = 9 }; /* size of the input's last axis, where it has one */

/* Adds a weight of random values whose channels along `axis` differ greatly in size. */
static inline Onnx__TensorProto *
skewed(struct builder *b, const char *name, int axis, size_t rank, const int64_t *dims)
{
    Onnx__TensorProto *t = builder_weight(b, name, rank, dims);
    float *data = (float *)t->raw_data.data;
    uint32_t state = (uint32_t)name[0] * 2654435761U + (uint32_t)name[1];
    size_t step = 1;
    for (size_t i = rank; axis >= 0 && i-- > (size_t)axis + 1;)
        step *= (size_t)dims[i];
    for (size_t i = 0; i < t->raw_data.len / sizeof *data; i++) {
        state = state * 1664525U + 1013904223U;
        size_t channel = axis < 0 ? 0 : i / step % (size_t)dims[axis];
        data[i] = ((float)(state >> 8) / (1 << 23) - 1) *
                  powf(5, (float)(channel * 3 % 5) - 2);
    }
    return t;
}
#define DIMS(...)     \
    (const int64_t[]) \
    {                 \
        __VA_ARGS__   \
    }
#define N_DIMS(...) (sizeof(DIMS(__VA_ARGS__)) / sizeof(int64_t))
#define SKEWED(b, name, axis, ...) \
    skewed(b, name, axis, N_DIMS(__VA_ARGS__), DIMS(__VA_ARGS__))

static inline void
begin(struct builder *b)
{
    builder_init(b, 13);
    builder_input(b, "x", QDQI_FLOAT32);
    builder_output(b, "y", QDQI_FLOAT32);
}

/* Builds x -> Conv -> h with five channels. */
static inline void
first_conv(struct builder *b)
{
    begin(b);
    SKEWED(b, "w1", 0, 5, 3, 2);
    SKEWED(b, "b1", 0, 5);
    builder_node(b, "Conv", "first", "x,w1,b1", "h");
}

static inline void
second_conv(struct builder *b, const char *input)
{
    SKEWED(b, "w2", -1, 4, 5, 2);
    SKEWED(b, "b2", -1, 4);
    char inputs[64];
    snprintf(inputs, sizeof inputs, "%s,w2,b2", input);
    builder_node(b, "Conv", "second", inputs, "y");
}

static inline void
conv_relu_conv(struct builder *b)
{
    first_conv(b);
    builder_node(b, "Relu", "relu", "h", "r");
    second_conv(b, "r");
}

/* Builds two ConvTransposes, the first in two groups. */
static inline void
transposed(struct builder *b)
{
    begin(b);
    SKEWED(b, "w1", 1, 4, 3, 2);
    SKEWED(b, "b1", -1, 6);
    SKEWED(b, "w2", -1, 6, 2, 3);
    builder_int(b, builder_node(b, "ConvTranspose", "first", "x,w1,b1", "h"), "group",
                2);
    builder_node(b, "Relu", "relu", "h", "r");
    builder_node(b, "ConvTranspose", "second", "r,w2", "y");
}

struct result {
    struct qdq_model *source, *equalized;
    struct qdqi_arena *arena;
    const struct qdq_equalization *rows;
    size_t n;
};

static inline struct result
equalize(struct builder *b)
{
    struct result r = {.arena = qdqi_arena_new()};
    struct qdq_error err = {0};
    ck_assert_msg(builder_open(b, &r.source, &err) == QDQ_OK, "%s", err.text);
    ck_assert_msg(qdqi_equalize(r.source, r.arena, &r.rows, &r.n, &r.equalized, &err) ==
                      QDQ_OK,
                  "%s", err.text);
    return r;
}

static inline void
finish(struct builder *b, struct result *r)
{
    qdq_model_free(&r->equalized);
    qdq_model_free(&r->source);
    qdqi_arena_free(&r->arena);
    builder_fini(b);
}

static inline float *
weight_data(struct builder *b, const char *name)
{
    for (size_t i = 0; i < b->graph.n_initializer; i++)
        if (strcmp(b->weights[i]->name, name) == 0)
            return (float *)b->weights[i]->raw_data.data;
    ck_abort_msg("no weight %s", name);
    return NULL;
}

#endif
