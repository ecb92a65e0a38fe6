/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/evaluate/output_figures.h"

#include "stages/evaluate/choices.h"
#include "stages/slices/classes.h"

#include <string.h>

const char qdqi_other_size[] =
    "it has other numbers of elements in float and quantized";

enum qdq_code
qdqi_output_figures_init(struct qdqi_output_figures *j, const struct qdq_model *model,
                         struct qdqi_arena *arena, struct qdq_error *err)
{
    const size_t n = model->info.n_outputs;
    enum qdq_code code = qdqi_metrics_init(model, true, arena, &j->metrics, err);
    if (code)
        return code;
    j->measured = qdqi_arena_array(arena, n, sizeof *j->measured);
    j->why = qdqi_arena_array(arena, n, sizeof *j->why);
    j->has_other_size = qdqi_arena_array(arena, n, sizeof *j->has_other_size);
    return j->measured && j->why && j->has_other_size ? QDQ_OK : qdqi_no_memory(err);
}

bool
qdqi_is_known_and_not_float(enum qdqi_dtype dtype)
{
    const char *name = qdqi_dtype_name((int)dtype);
    return *name && strncmp(name, "float", 5) != 0 && strcmp(name, "bfloat16") != 0;
}

/* Returns the reason why the types of an output of one run cannot be compared, or NULL. */
static const char *
why_not_compared(const struct qdqi_output *f, const struct qdqi_output *q)
{
    if (qdqi_is_known_and_not_float(f->dtype))
        return "it holds neither numbers nor Booleans that are compared";
    if (f->dtype != QDQI_FLOAT32 || q->dtype != QDQI_FLOAT32)
        return "it is of a type that is not compared";
    return NULL;
}

void
qdqi_output_figures_add(struct qdqi_output_figures *to, const struct qdqi_output *f,
                        const struct qdqi_output *q, size_t n, int64_t samples,
                        const struct qdqi_input *inputs)
{
    for (size_t i = 0; i < n; i++) {
        if (qdqi_choices_add(&to->metrics[i], &f[i], &q[i], samples)) {
            to->measured[i] = true;
            continue;
        }
        const char *why = why_not_compared(&f[i], &q[i]);
        if (why || f[i].n != q[i].n) {
            to->why[i] = why ? why : qdqi_other_size;
            to->has_other_size[i] = !why;
            continue;
        }
        const struct qdqi_output_shape shape = {f[i].shape, f[i].rank};
        qdqi_metrics_update(&to->metrics[i], f[i].data, q[i].data, f[i].n, samples,
                            &shape);
        qdqi_language_add(&to->metrics[i].language, f[i].data, q[i].data, f[i].shape,
                          f[i].rank, inputs);
        to->measured[i] = true;
    }
}

/* Has the points of a report in its arena. */
static enum qdq_code
copy_points(struct qdq_output_report *output, struct qdqi_arena *arena,
            struct qdq_error *err)
{
    struct qdq_point *copy = qdqi_arena_array(arena, output->n_points, sizeof *copy);
    if (!copy)
        return output->n_points > 0 ? qdqi_no_memory(err) : QDQ_OK;
    if (output->n_points > 0)
        memcpy(copy, output->points, output->n_points * sizeof *copy);
    output->points = copy;
    return QDQ_OK;
}

enum qdq_code
qdqi_output_figures_finish(const struct qdqi_attempt *a,
                           const struct qdqi_output_figures *from,
                           const struct qdq_output_report **ret, size_t *ret_n,
                           struct qdq_error *err)
{
    const struct qdq_model_info *info = &a->model->info;
    struct qdq_output_report *outputs =
        qdqi_arena_array(a->arena, info->n_outputs, sizeof *outputs);
    enum qdq_code code = outputs ? QDQ_OK : qdqi_no_memory(err);
    *ret_n = 0;
    for (size_t i = 0; !code && i < info->n_outputs; i++) {
        if (!from->measured[i] || from->why[i])
            continue;
        struct qdq_output_report *output = &outputs[(*ret_n)++];
        qdqi_metrics_finish(&from->metrics[i], info->outputs[i].name, output);
        if ((code = copy_points(output, a->arena, err)))
            continue;
        output->is_cache = qdqi_output_is_cache(info, i);
        output->lacks_classes =
            !output->is_choice && !qdqi_output_may_list_classes(a->model, i);
        code = qdqi_slice_sums_report(&from->metrics[i].slices, a->arena,
                                      &output->slices, &output->n_slices, err);
    }
    *ret = outputs;
    return code;
}
