/* SPDX-License-Identifier: Apache-2.0 */
/* The names of pairs, and what lies beside their nodes: scales, zero points, stored integers. */
#include "config.h"
#include "transform/rewrite/pairs.h"

#include "files/model/constant.h"
#include "graph/edit/edit.h"
#include "graph/weights/blocks.h"
#include "graph/weights/integers.h"
#include "numbers/arithmetic/both.h"

#include <string.h>

/* A longer name of a tensor does not begin other names where those may be short: a pair
   would repeat it a dozen times. */
enum { LONG_NAME = 32 };

/* Returns the beginning of the names that are made from a tensor's. */
static const char *
stem_of(struct qdqi_pairs *p, const char *tensor)
{
    if (!p->plan->short_names || strlen(tensor) <= LONG_NAME)
        return tensor;
    const char *stem = qdqi_map_get(p->stems, tensor);
    if (!stem) {
        stem = qdqi_arena_printf(p->arena, "t%zu", p->n_stems++);
        if (!stem || !qdqi_map_put(p->stems, tensor, (void *)(uintptr_t)stem))
            return NULL;
    }
    return stem;
}

const char *
qdqi_pairs_name(struct qdqi_pairs *p, const char *tensor, const char *suffix)
{
    const char *stem = stem_of(p, tensor);
    return stem ? qdqi_edit_name(p->edit, stem, suffix) : NULL;
}

/* The bytes of scales or zero points: given, or generated. */
struct content {
    const void *data;
    const struct qdqi_made *made; /* NULL: they are given */
    uint64_t size;
};

/* Adds scales or zero points. Their shape depends on whether there are blocks,
   channels or neither. */
static bool
add_each(struct qdqi_pairs *p, const struct qdqi_quantized *q, const char *name,
         enum qdqi_dtype dtype, struct content content)
{
    const struct qdqi_params *params = q->params;
    bool blocks = params->block > 0;
    size_t rank = blocks ? q->rank : params->axis < 0 ? 0 : 1;
    int64_t *dims = qdqi_arena_array(p->arena, rank, sizeof *dims);
    if (!dims)
        return false;
    for (size_t i = 0; i < rank; i++)
        dims[i] = blocks ? q->dims[i] : (int64_t)params->n;
    if (blocks)
        dims[params->axis] = (dims[params->axis] + params->block - 1) / params->block;
    if (blocks && q->is_gates)
        dims[1] = dims[--rank];
    if (content.made)
        qdqi_edit_add_made(p->edit, name, dtype, rank, dims, content.size,
                           content.made);
    else
        qdqi_edit_add_tensor(p->edit, name, dtype, rank, dims, content.data,
                             content.size);
    return true;
}

/* Adds scales of a type of their own, by their bits. */
static bool
add_codes(struct qdqi_pairs *p, const struct qdqi_quantized *q, const char *name)
{
    const struct qdqi_params *params = q->params;
    const bool powers =
        qdqi_format_row((int)params->format)->scales == QDQI_SCALES_E8M0;
    return add_each(p, q, name, powers ? QDQI_FLOAT8E8M0 : QDQI_FLOAT8E4M3FN,
                    (struct content){params->scale_codes, NULL, params->n});
}

static bool
add_scales(struct qdqi_pairs *p, const struct qdqi_quantized *q, const char *name)
{
    const struct qdqi_params *params = q->params;
    uint16_t *halves = NULL;
    if (params->scale_codes)
        return add_codes(p, q, name);
    if (params->blocks) {
        const struct qdqi_blocks_bulks b = qdqi_blocks_bulks(params->blocks);
        return add_each(p, q, name, q->dtype,
                        (struct content){NULL, b.scales, b.scales_size});
    }
    if (q->dtype != QDQI_FLOAT16)
        return add_each(
            p, q, name, QDQI_FLOAT32,
            (struct content){params->scales, NULL, params->n * sizeof *params->scales});
    if (!(halves = qdqi_arena_array(p->arena, params->n, sizeof *halves)))
        return false;
    for (size_t i = 0; i < params->n; i++)
        halves[i] = qdqi_half_narrowed(params->scales[i]);
    return add_each(p, q, name, QDQI_FLOAT16,
                    (struct content){halves, NULL, params->n * sizeof *halves});
}

/* Adds zero points, whose type is that of the quantized integers. */
static bool
add_zero_points(struct qdqi_pairs *p, const struct qdqi_quantized *q, const char *name)
{
    const struct qdqi_params *params = q->params;
    enum qdqi_dtype dtype = qdqi_format_row((int)params->format)->dtype;
    if (params->blocks) {
        const struct qdqi_blocks_bulks b = qdqi_blocks_bulks(params->blocks);
        return add_each(p, q, name, dtype,
                        (struct content){NULL, b.zero_points, b.zero_points_size});
    }
    size_t size = (size_t)qdqi_integers_size(params->format, params->n);
    uint8_t *bytes = qdqi_arena_array(p->arena, size, 1); /* zeros */
    if (!bytes)
        return false;
    if (params->zero_points)
        qdqi_store_integers(params->format, params->zero_points, params->n, bytes);
    return add_each(p, q, name, dtype, (struct content){bytes, NULL, size});
}

bool
qdqi_pairs_add_beside(struct qdqi_pairs *p, const struct qdqi_quantized *q,
                      struct qdqi_beside *ret)
{
    *ret = (struct qdqi_beside){.scale = qdqi_pairs_name(p, q->tensor, "_scale")};
    if (!ret->scale || !add_scales(p, q, ret->scale))
        return false;
    if (q->is_typed || q->params->scale_codes)
        return true;
    ret->zero = qdqi_pairs_name(p, q->tensor, "_zero_point");
    return ret->zero && add_zero_points(p, q, ret->zero);
}

const char *
qdqi_pairs_store(struct qdqi_pairs *p, const struct qdqi_quantized *q,
                 struct qdqi_beside *ret)
{
    enum qdqi_format format = q->params->format;
    size_t n = 0;
    const char *integers = qdqi_pairs_name(p, q->tensor, "_quantized");
    if (!integers || !qdqi_count_elements(q->dims, q->rank, &n) ||
        !qdqi_pairs_add_beside(p, q, ret))
        return NULL;
    qdqi_edit_add_made(p->edit, integers, qdqi_format_row((int)format)->dtype, q->rank,
                       q->dims, qdqi_integers_size(format, n), q->params->integers);
    return integers;
}
