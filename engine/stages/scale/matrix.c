/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/scale/matrix.h"

#include "numbers/arithmetic/half.h"
#include "graph/weights/walk.h"

#include <stdlib.h>

/* Copies the elements in C order, each with its scale. */
static void
copy_elements(const struct qdqi_walk *walk, const struct qdqi_constant *c,
              struct qdqi_matrix *m)
{
    const struct qdqi_step *step = qdqi_walk_last(walk);
    float *to = m->elements;
    uint32_t *scale_of = m->scale_of;
    for (size_t row = 0; row < walk->n_rows; row++) {
        size_t element, scale;
        qdqi_walk_row(walk, row, &element, &scale);
        for (size_t i = 0; i < step->n; i++) {
            qdqi_load_floats(to++, c->dtype,
                             c->bytes + (element + i * step->elements) * sizeof(float),
                             1);
            *scale_of++ = (uint32_t)(scale + i / step->block * step->scales);
        }
    }
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
    ret->elements = calloc(c->n, sizeof *ret->elements);
    ret->scale_of = calloc(c->n, sizeof *ret->scale_of);
    if (!ret->elements || !ret->scale_of || !qdqi_walk_init(&walk, a->scratch, c, p))
        return false;
    copy_elements(&walk, c, ret);
    return true;
}

void
qdqi_matrix_close(struct qdqi_matrix *m)
{
    free(m->elements);
    free(m->scale_of);
}
