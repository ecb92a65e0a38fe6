/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/slices/joined_parts.h"

#include "files/model/constant.h"

#include <string.h>

enum { MOST_STEPS = QDQI_MOST_PARTS + 8 }; /* nodes from a sequence back to its begin */

static const struct qdqi_node *
producer(const struct qdq_model *model, const struct qdqi_tensor *t)
{
    return t && t->producer >= 0 ? &model->graph.nodes[t->producer] : NULL;
}

/* Inserts a part of a sequence in front of place `at`. */
static bool
insert(struct qdqi_joined *to, struct qdqi_tensor *part, size_t at)
{
    if (!part || to->n == QDQI_MOST_PARTS || at > to->n)
        return false;
    memmove(&to->own[at + 1], &to->own[at],
            (to->n - at) * sizeof(struct qdqi_tensor *));
    to->own[at] = part;
    to->n++;
    return true;
}

static bool
add_inputs(const struct qdqi_node *node, struct qdqi_joined *ret)
{
    bool ok = true;
    for (size_t i = 0; ok && i < node->proto->n_input; i++)
        ok = insert(ret, node->inputs[i], ret->n);
    return ok;
}

/* Reads a position in a sequence of n tensors, of which `most` is the last one that may be named; without an input
   it is the end. Returns false where it is not known. */
static bool
read_position(const struct qdq_model *model, const struct qdqi_node *node, size_t input,
              size_t n, size_t most, size_t *ret)
{
    int64_t at;
    size_t found;
    *ret = n;
    if (input >= node->proto->n_input || !node->inputs[input])
        return true;
    if (!qdqi_constant_ints(model, node->inputs[input], &at, 1, &found) || found != 1)
        return false;
    at = at < 0 ? at + (int64_t)n : at;
    *ret = (size_t)at;
    return at >= 0 && (size_t)at <= most;
}

/* Finds the tensors of a sequence that SequenceConstruct, SequenceEmpty and SequenceInsert make (ONNX's operators,
   opset 11). */
static bool
sequence_parts(const struct qdq_model *model, const struct qdqi_tensor *sequence,
               struct qdqi_joined *ret)
{
    const struct qdqi_node *inserts[MOST_STEPS];
    size_t n = 0, at;
    const struct qdqi_node *node = producer(model, sequence);
    while (node && qdqi_node_is(node->proto, "SequenceInsert") && n < MOST_STEPS) {
        inserts[n++] = node;
        node = producer(model, node->inputs[0]);
    }
    if (!node ||
        !(qdqi_node_is(node->proto, "SequenceEmpty") ||
          (qdqi_node_is(node->proto, "SequenceConstruct") && add_inputs(node, ret))))
        return false;
    while (n-- > 0)
        if (!read_position(model, inserts[n], 2, ret->n, ret->n, &at) ||
            !insert(ret, inserts[n]->inputs[1], at))
            return false;
    return ret->n > 0;
}

bool
qdqi_joined_parts(const struct qdq_model *model, const struct qdqi_node *node,
                  struct qdqi_joined *ret)
{
    *ret = (struct qdqi_joined){.tensors = ret->own};
    if (!qdqi_node_is(node->proto, "Concat"))
        return qdqi_node_is(node->proto, "ConcatFromSequence") &&
               sequence_parts(model, node->inputs[0], ret);
    ret->tensors = node->inputs;
    ret->n = node->proto->n_input;
    for (size_t i = 0; i < ret->n; i++)
        if (!node->inputs[i])
            return false;
    return ret->n > 0;
}

bool
qdqi_stacks(const struct qdqi_node *node)
{
    return qdqi_node_is(node->proto, "ConcatFromSequence") &&
           qdqi_node_int(node->proto, "new_axis", 0) != 0;
}

const struct qdqi_tensor *
qdqi_taken_part(const struct qdq_model *model, const struct qdqi_node *node)
{
    struct qdqi_joined parts = {0};
    size_t at;
    return qdqi_node_is(node->proto, "SequenceAt") && node->proto->n_input == 2 &&
                   node->inputs[1] && sequence_parts(model, node->inputs[0], &parts) &&
                   read_position(model, node, 1, parts.n, parts.n - 1, &at)
               ? parts.own[at]
               : NULL;
}
