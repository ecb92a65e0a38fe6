/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/attempt/kept_times.h"

#include "ground/base/build_id.h"
#include "qdq/quantize.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t HASH_BEGIN = 0xcbf29ce484222325ULL;
static const uint64_t HASH_BY = 0x100000001b3ULL;

static uint64_t
add_bytes(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ p[i]) * HASH_BY;
    return hash;
}

static uint64_t
add_number(uint64_t hash, int64_t number)
{
    return add_bytes(hash, &number, sizeof number);
}

static uint64_t
add_text(uint64_t hash, const char *text)
{
    return text ? add_bytes(hash, text, strlen(text) + 1) : add_number(hash, 0);
}

static uint64_t
add_constant(uint64_t hash, const struct qdqi_tensor *t)
{
    hash = add_number(hash, t->constant->data_type);
    for (size_t i = 0; i < t->constant->n_dims; i++)
        hash = add_number(hash, t->constant->dims[i]);
    return hash;
}

static uint64_t
add_node(uint64_t hash, const struct qdqi_node *node)
{
    hash = add_text(add_text(hash, node->proto->op_type), node->name);
    for (size_t i = 0; i < node->proto->n_input; i++) {
        const struct qdqi_tensor *t = node->inputs[i];
        hash = add_text(hash, t ? t->name : NULL);
        if (t && t->constant)
            hash = add_constant(hash, t);
    }
    for (size_t i = 0; i < node->proto->n_output; i++)
        hash = add_text(hash, node->outputs[i] ? node->outputs[i]->name : NULL);
    return hash;
}

uint64_t
qdqi_kept_times_key(const struct qdq_model *model, const struct qdqi_input *inputs,
                    size_t n_inputs)
{
    uint64_t hash = HASH_BEGIN;
    for (size_t i = 0; i < model->graph.n_nodes; i++)
        hash = add_node(hash, &model->graph.nodes[i]);
    for (size_t i = 0; i < n_inputs; i++) {
        hash = add_number(hash, inputs[i].dtype);
        for (size_t k = 0; k < inputs[i].rank; k++)
            hash = add_number(hash, inputs[i].shape[k]);
    }
    return hash;
}

uint64_t
qdqi_kept_hash(const void *bytes, size_t n)
{
    return add_bytes(HASH_BEGIN, bytes, n);
}

uint64_t
qdqi_kept_key_of_data(const struct qdqi_attempt *a)
{
    const struct qdq_work *work = a->context->work;
    char build[QDQI_BUILD_ID_SIZE];
    qdqi_build_id(build);
    char *fed = qdq_observations_identity(a->spec, work->model_id, work->dataset_id);
    uint64_t key = add_text(add_text(HASH_BEGIN, build), fed);
    if (!fed) /* out of memory: a key by which nothing is kept */
        key = add_number(key, (int64_t)(uintptr_t)a);
    free(fed);
    key = add_number(key, a->spec->calibration.cast);
    return add_text(key, work->judging ? work->judging->data_id : NULL);
}

uint64_t
qdqi_kept_key_add(uint64_t key, int64_t number)
{
    return add_number(key, number);
}

/* Adds eight bytes at a time, because a model may have gigabytes. The shift brings down the upper
   bits, to which a product carries the others. */
static uint64_t
add_file(uint64_t hash, const unsigned char *bytes, size_t n)
{
    uint64_t word;
    size_t i = 0;
    for (; i + sizeof word <= n; i += sizeof word) {
        memcpy(&word, bytes + i, sizeof word);
        hash = (hash ^ word) * HASH_BY;
        hash ^= hash >> 29;
    }
    return add_number(add_bytes(hash, bytes + i, n - i), (int64_t)n);
}

uint64_t
qdqi_kept_key_add_model(uint64_t key, const struct qdq_model *model)
{
    for (size_t i = 0; i < model->n_files; i++)
        key = add_file(key, model->files[i].map, model->files[i].size);
    return key;
}
