/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "graph/weights/walk.h"

/* Returns whether one step of `outer` continues where the steps of `inner` end, both
   in elements and in scales, so that the two can be joined. */
static bool
goes_on(const struct qdqi_step *outer, const struct qdqi_step *inner)
{
    bool whole = outer->block == 1 && inner->block == 1;
    return outer->elements == inner->n * inner->elements &&
           ((outer->scales == 0 && inner->scales == 0) ||
            (whole && outer->scales == inner->n * inner->scales));
}

static void
push_step(struct qdqi_walk *walk, struct qdqi_step step)
{
    struct qdqi_step *outer = walk->n_steps ? &walk->steps[walk->n_steps - 1] : NULL;
    if (outer && goes_on(outer, &step))
        *outer = (struct qdqi_step){outer->n * step.n, step.elements, step.scales, 1};
    else
        walk->steps[walk->n_steps++] = step;
}

bool
qdqi_walk_init(struct qdqi_walk *walk, struct qdqi_arena *arena,
               const struct qdqi_constant *w, const struct qdqi_params *p)
{
    size_t elements = w->n, scales = p->n;
    *walk = (struct qdqi_walk){
        .steps = qdqi_arena_array(arena, w->rank + 1, sizeof *walk->steps)};
    if (!walk->steps)
        return false;
    for (size_t i = 0; i < w->rank && w->n; i++) {
        size_t n = (size_t)w->dims[i], n_scales = qdqi_scale_dim(w, p, i);
        bool blocks = p->block > 0 && (int)i == p->axis;
        elements /= n;
        scales /= n_scales;
        if (n != 1)
            push_step(walk,
                      (struct qdqi_step){
                          n, w->strides ? (size_t)w->strides[i] : elements,
                          n_scales > 1 ? scales : 0, blocks ? (size_t)p->block : 1});
    }
    if (!walk->n_steps)
        push_step(walk, (struct qdqi_step){w->n ? 1 : 0, 1, 0, 1});
    walk->n_rows = w->n ? w->n / qdqi_walk_last(walk)->n : 0;
    return true;
}

void
qdqi_walk_row(const struct qdqi_walk *walk, size_t row, size_t *ret_element,
              size_t *ret_scale)
{
    *ret_element = *ret_scale = 0;
    for (size_t i = walk->n_steps - 1; i-- > 0; row /= walk->steps[i].n) {
        const struct qdqi_step *step = &walk->steps[i];
        size_t index = row % step->n;
        *ret_element += index * step->elements;
        *ret_scale += index / step->block * step->scales;
    }
}

bool
qdqi_count_scales(const struct qdqi_constant *w, int axis, int64_t block, size_t *ret)
{
    const struct qdqi_params p = {.axis = axis, .block = block};
    size_t n = 1;
    for (size_t i = 0; i < w->rank; i++)
        if (__builtin_mul_overflow(n, qdqi_scale_dim(w, &p, i), &n))
            return false;
    *ret = n;
    return true;
}
