/* SPDX-License-Identifier: Apache-2.0 */
/* How the moments of what a layer multiplies its weight by are taken, and what they need. */
#ifndef QDQI_GRAPH_LAYERS_MOMENT_FORM_H
#define QDQI_GRAPH_LAYERS_MOMENT_FORM_H

#include "qdq/plan.h"

#include "files/model/model.h"
#include "ground/base/arena.h"
#include "numbers/range/patches.h"

/* Rows that are taken of each layer's input, spread over all samples. */
enum { QDQI_MOMENT_SAMPLED = 32768 };

struct qdqi_moment_form {
    struct qdqi_window window;
    size_t groups, k;
    bool outputs_last; /* axis of the weight's outputs; else they are the first */
    uint64_t more;     /* bytes besides those of the moments */
    const char *why;   /* there are none; NULL: there are */
};

struct qdqi_moment_form qdqi_moment_form_of(const struct qdqi_node *node,
                                            const struct qdq_layer *layer);

/* Returns the bytes that the moments take while rows are taken in. */
uint64_t qdqi_moment_form_bytes(const struct qdqi_moment_form *form);

/* Returns what the layer reads and how, as text: layers with equal texts have equal moments. NULL: out
   of memory. */
const char *qdqi_moment_source(struct qdqi_arena *arena,
                               const struct qdqi_tensor *input,
                               const struct qdqi_moment_form *form);

/* Sets *ret to how a layer of this weight moves over its input: one without axes unless it is a Conv.
   Returns false where its attributes do not fit its weight. */
bool qdqi_layer_window(const struct qdqi_node *node, const struct qdqi_tensor *weight,
                       struct qdqi_window *ret);

#endif
