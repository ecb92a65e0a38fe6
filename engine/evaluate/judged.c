/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "evaluate/judged.h"

#include <string.h>

/* --- the same model ---------------------------------------------------------- */

/* The fields of a ModelProto in a file. */
struct fields {
    const uint8_t *data;
    size_t size, at;
};

static bool
read_varint(struct fields *f, uint64_t *ret)
{
    *ret = 0;
    for (unsigned shift = 0; shift < 64 && f->at < f->size; shift += 7) {
        const uint8_t byte = f->data[f->at++];
        *ret |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* Skips the value of a field. Returns false when it is not whole. */
static bool
skip_value(struct fields *f, unsigned wire_type)
{
    enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };
    uint64_t n;
    switch (wire_type) {
    case VARINT:
        return read_varint(f, &n);
    case FIXED64:
        n = 8;
        break;
    case BYTES:
        if (!read_varint(f, &n))
            return false;
        break;
    case FIXED32:
        n = 4;
        break;
    default:
        return false;
    }
    if (n > f->size - f->at)
        return false;
    f->at += (size_t)n;
    return true;
}

/* Finds the next field that is not metadata. Returns false at the end, and before a field that
   is not whole, where `at` is not the end. */
static bool
next_field(struct fields *f, const uint8_t **ret, size_t *ret_size)
{
    enum { METADATA = 14 };
    uint64_t tag;
    while (f->at < f->size) {
        const size_t first = f->at;
        if (!read_varint(f, &tag) || !skip_value(f, tag & 7)) {
            f->at = first;
            return false;
        }
        *ret = f->data + first;
        *ret_size = f->at - first;
        if (tag >> 3 != METADATA)
            return true;
    }
    return false;
}

/* Returns whether the files of two models differ in nothing but their metadata. */
static bool
are_same(const struct qdq_model *a, const struct qdq_model *b)
{
    if (a->n_files != 1 || b->n_files != 1 || !a->files->map || !b->files->map)
        return false;
    struct fields x = {.data = a->files->map, .size = a->files->size};
    struct fields y = {.data = b->files->map, .size = b->files->size};
    const uint8_t *p, *q;
    size_t n, m;
    for (;;) {
        const bool more = next_field(&x, &p, &n);
        if (more != next_field(&y, &q, &m))
            return false;
        if (!more)
            return x.at == x.size && y.at == y.size;
        if (n != m || memcmp(p, q, n) != 0)
            return false;
    }
}

/* --- what is kept ------------------------------------------------------------- */

void
qdqi_judged_drop(struct qdqi_job *job)
{
    qdqi_deployed_model_close(&job->judged->deployed);
    qdq_model_free(&job->judged->model);
}

void
qdqi_judged_keep(struct qdqi_job *job, struct qdq_model **model,
                 struct qdqi_deployed_model *deployed)
{
    if (!deployed->ops || !deployed->ops->opens_slowly || !deployed->ops->nodes)
        return;
    qdqi_judged_drop(job);
    *job->judged = (struct qdqi_judged){*model, *deployed};
    *model = NULL;
    *deployed = (struct qdqi_deployed_model){0};
}

/* Returns whether the process that has the model answers: by the nodes of its last run. */
static bool
is_there(const struct qdqi_job *job, const struct qdqi_deployed_model *deployed)
{
    struct qdqi_trace ignored;
    struct qdq_error why = {0};
    return deployed->ops->nodes(deployed->model, job->scratch, &ignored, &why) ==
           QDQ_OK;
}

bool
qdqi_judged_take(struct qdqi_job *job, const struct qdq_model *result,
                 struct qdqi_deployed_model *ret)
{
    struct qdqi_judged *judged = job->judged;
    if (judged->deployed.ops && are_same(judged->model, result) &&
        is_there(job, &judged->deployed)) {
        *ret = judged->deployed;
        judged->deployed = (struct qdqi_deployed_model){0};
        return true;
    }
    qdqi_judged_drop(job);
    return false;
}
