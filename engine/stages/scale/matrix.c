/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/scale/matrix.h"

#include "numbers/arithmetic/half.h"
#include "graph/weights/walk.h"

#include <stdlib.h>
#include <string.h>

/* Copies the elements in C order, each with its scale. */
static void
copy_elements(const struct qdqi_walk *walk, const struct qdqi_constant *c,
              struct qdqi_matrix *m)
{
    const struct qdqi_step *step = qdqi_walk_last(walk);
    float *to = m->copied;
    uint32_t *scale_of = m->scale_of;
    for (size_t row = 0; row < walk->n_rows; row++) {
        size_t element, scale;
        qdqi_walk_row(walk, row, &element, &scale);
        for (size_t i = 0; i < step->n; i++) {
            if (to)
                qdqi_load_floats(
                    to++, c->dtype,
                    c->bytes + (element + i * step->elements) * sizeof(float), 1);
            *scale_of++ = (uint32_t)(scale + i / step->block * step->scales);
        }
    }
}

/* Returns whether the elements lie in memory as they are needed. */
static bool
is_plain(const struct qdqi_constant *c)
{
    return c->dtype == QDQI_FLOAT32 && !c->strides &&
           (uintptr_t)c->bytes % _Alignof(float) == 0;
}

bool
qdqi_matrix_open(const struct qdqi_attempt *a, const struct qdqi_planned_weight *w,
                 const struct qdqi_constant *c, const struct qdqi_params *p,
                 struct qdqi_matrix *ret)
{
    const struct qdqi_layer_moments *moments =
        qdqi_map_get(a->moments->by_weight, w->tensor->name);
    size_t k = moments->moments[0].k;
    struct qdqi_walk walk;
    *ret = (struct qdqi_matrix){.moments = moments,
                                .outputs = c->n / k / moments->groups,
                                .k = k,
                                .row = moments->outputs_last ? 1 : k,
                                .column = moments->outputs_last ? c->n / k : 1};
    if (!is_plain(c))
        ret->copied = calloc(c->n, sizeof *ret->copied);
    ret->elements = ret->copied ? ret->copied : (const float *)(const void *)c->bytes;
    ret->scale_of = calloc(c->n, sizeof *ret->scale_of);
    if ((!ret->copied && !is_plain(c)) || !ret->scale_of ||
        !qdqi_walk_init(&walk, a->scratch, c, p))
        return false;
    copy_elements(&walk, c, ret);
    return true;
}

bool
qdqi_matrix_copy(struct qdqi_matrix *m, size_t n)
{
    if (m->copied)
        return true;
    m->copied = calloc(n, sizeof *m->copied);
    if (!m->copied)
        return false;
    memcpy(m->copied, m->elements, n * sizeof *m->copied);
    m->elements = m->copied;
    return true;
}

void
qdqi_matrix_close(struct qdqi_matrix *m)
{
    free(m->copied);
    free(m->scale_of);
}
