/* SPDX-License-Identifier: Apache-2.0 */
/* The names that a runtime gives to its kernels, and the nodes that each computes. */
#ifndef QDQI_RUNTIMES_COMMON_KERNEL_NAMES_H
#define QDQI_RUNTIMES_COMMON_KERNEL_NAMES_H

#include "run/session/trace.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * The functions get nodes as the runtime runs them, from its profile or from the model that it
 * writes, which names no provider: it is "" then.
 */
struct qdqi_kernel_names {
    /* Returns whether the node computes with integers. */
    bool (*is_integer)(const struct qdqi_traced_node *node);
    /* Returns whether the node converts between integers and floating point alone. */
    bool (*is_conversion)(const struct qdqi_traced_node *node);
    /* Returns whether the node can be a layer that computes in floating point. */
    bool (*is_float_layer)(const struct qdqi_traced_node *node);
    /* Returns how many characters of a node's name are the model's, without a suffix of the
       runtime's own. */
    size_t (*own_length)(const char *name);
    const char *why_none; /* why a layer with its pairs is not computed with integers */
};

/* Returns whether a node is of this kind: by what its runtime says of it, or else by the
   names. */
bool qdqi_node_is_of(const struct qdqi_kernel_names *names,
                     const struct qdqi_traced_node *node, enum qdq_node_kind kind);

/* The row of a runtime that says the kind of each node, and keeps the model's names. */
extern const struct qdqi_kernel_names qdqi_told_kernels;

#endif
