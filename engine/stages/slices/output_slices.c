/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/slices/output_slices.h"

#include "stages/slices/classes.h"
#include "stages/slices/marks.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_VISITS = 2048, /* nodes that are looked at for one output */
    MOST_VALUES = 4096, /* elements along an axis that are observed one by one */
};

static int
compare_marks(const void *a, const void *b)
{
    const struct qdqi_mark *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

/* Makes the cut of an axis that has at least two parts. */
static enum qdq_code
add_cut(const struct qdqi_marks *m, size_t axis, const char *output,
        struct qdqi_arena *arena, struct qdqi_cuts *to, struct qdq_error *err)
{
    struct qdqi_mark rows[QDQI_MOST_MARKS + 1];
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++)
        if (m->rows[i].axis == axis)
            rows[n++] = m->rows[i];
    qsort(rows, n, sizeof *rows, compare_marks);
    if (n > 0 && rows[0].at > 0) {
        memmove(rows + 1, rows, n++ * sizeof *rows);
        rows[0] = (struct qdqi_mark){axis, 0, output};
    }
    const int64_t period = m->period[axis] > 0       ? m->period[axis]
                           : m->shape.dims[axis] > 0 ? m->shape.dims[axis]
                                                     : 0;
    while (n > 0 && period > 0 && rows[n - 1].at >= period)
        n--;
    if (n < 2)
        return QDQ_OK;
    struct qdqi_cut *cut = &to->cuts[to->n++];
    *cut = (struct qdqi_cut){.axis = axis,
                             .period = period,
                             .n = n,
                             .begins = qdqi_arena_array(arena, n, sizeof *cut->begins),
                             .names = qdqi_arena_array(arena, n, sizeof *cut->names)};
    if (!cut->begins || !cut->names)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        cut->begins[i] = rows[i].at;
        cut->names[i] = rows[i].name;
    }
    return QDQ_OK;
}

/* Adds the axes along which the values may tell slices. */
static void
add_by_values(const struct qdq_model *model, size_t i, struct qdqi_cuts *to)
{
    const struct qdq_value *output = &model->info.outputs[i];
    const bool places = qdqi_output_is_of_places(model, i);
    if (!output->has_shape || output->rank > QDQI_SHAPE_AXES ||
        qdqi_output_compares_its_elements(model, i))
        return;
    for (size_t axis = 1; axis < (places && output->rank > 2 ? 2 : output->rank);
         axis++) {
        const int64_t size = output->dims[axis].value;
        if (size >= 2 && size <= MOST_VALUES)
            to->cuts[to->n++] = (struct qdqi_cut){
                .axis = axis, .period = size, .by_values = true, .n = (size_t)size};
    }
}

enum qdq_code
qdqi_output_cuts(const struct qdq_model *model, size_t i, struct qdqi_arena *arena,
                 struct qdqi_cuts *ret, struct qdq_error *err)
{
    const char *name = model->info.outputs[i].name;
    const struct qdqi_tensor *tensor = qdqi_map_get(model->graph.tensors, name);
    struct qdqi_shapes shapes = {.model = model, .visits = MOST_VISITS};
    struct qdqi_marks marks = {0};
    enum qdq_code code = QDQ_OK;
    *ret = (struct qdqi_cuts){0};
    if (tensor)
        qdqi_find_marks(&shapes, tensor, &marks);
    for (size_t axis = 0; !code && marks.n < QDQI_MOST_MARKS && axis < marks.shape.rank;
         axis++)
        code = add_cut(&marks, axis, name, arena, ret, err);
    if (!code && ret->n == 0)
        add_by_values(model, i, ret);
    return code;
}
