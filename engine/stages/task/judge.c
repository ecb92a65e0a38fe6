/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/task/judge.h"

#include "stages/evaluate/metrics.h"
#include "stages/task/labelled.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANK = 64, MOST_CLASSES = 1 << 24 };

static const char labels_name[] = "labels";

/* --- what the task reads ------------------------------------------------------ */

static enum qdq_code
add_metric_input(struct qdqi_judge *j, size_t i, const char *name,
                 const struct qdq_dataset *data, struct qdq_error *err)
{
    const size_t place = qdqi_find_output(j->model, name);
    j->sources[i] = (struct qdqi_task_source){false, place};
    if (place < j->model->n_outputs)
        return QDQ_OK;
    if (!qdqi_labelled_has(data, name))
        return qdq_error_set(
            err, QDQ_UNMATCHED, QDQ_AT_POINTER, "/task/model",
            "the metric reads '%.128s', which is neither an output of the "
            "model nor an array of the data to judge by",
            name);
    j->sources[i] = (struct qdqi_task_source){true, j->n_labels};
    j->labels[j->n_labels++] = name;
    return QDQ_OK;
}

static enum qdq_code
init_classification(struct qdqi_judge *j, struct qdq_error *err)
{
    j->sources[1] = (struct qdqi_task_source){.is_label = true};
    j->labels[j->n_labels++] = labels_name;
    if (!j->task->output)
        return QDQ_OK;
    j->knows_output = true;
    j->sources[0].place = qdqi_find_output(j->model, j->task->output);
    return j->sources[0].place < j->model->n_outputs
               ? QDQ_OK
               : qdq_error_set(err, QDQ_UNMATCHED, QDQ_AT_POINTER, "/task/output",
                               "the model has no output '%.128s'", j->task->output);
}

enum qdq_code
qdqi_judge_init(struct qdqi_judge *j, const struct qdq_task *task,
                const struct qdq_model_info *model, const struct qdq_dataset *data,
                struct qdqi_arena *arena, struct qdq_error *err)
{
    const struct qdq_model_info *metric =
        j->metric ? qdqi_metric_info(j->metric) : NULL;
    j->task = task;
    j->model = model;
    j->arena = arena;
    j->n_sources = metric ? metric->n_inputs : 2;
    j->sources = qdqi_arena_array(arena, j->n_sources, sizeof *j->sources);
    j->labels = qdqi_arena_array(arena, j->n_sources, sizeof *j->labels);
    if (!j->sources || !j->labels)
        return qdqi_no_memory(err);
    if (!metric)
        return init_classification(j, err);
    enum qdq_code code = qdqi_gathered_init(&j->gathered, arena, j->n_sources, err);
    for (size_t i = 0; !code && i < metric->n_inputs; i++)
        code = add_metric_input(j, i, metric->inputs[i].name, data, err);
    return code;
}

void
qdqi_judge_fini(struct qdqi_judge *j)
{
    qdqi_gathered_forget(&j->gathered);
}

void
qdqi_judge_begin(struct qdqi_judge *j)
{
    if (j->metric)
        qdqi_metric_begin(j->metric);
    if (j->answers)
        j->answers->n = 0;
}

/* --- one sample --------------------------------------------------------------- */

static enum qdq_code
mismatch(struct qdq_error *err, const char *text)
{
    return qdq_error_set(err, QDQ_CALIBRATION_MISMATCH, QDQ_AT_POINTER, "/task", "%s",
                         text);
}

/* Returns value i of a run as an input, under the name that the metric has for it. */
static struct qdqi_input
value_of(const struct qdqi_judge *j, size_t i, const struct qdqi_output *outputs,
         const struct qdqi_input *labels)
{
    const struct qdqi_task_source source = j->sources[i];
    if (source.is_label)
        return labels[source.place];
    const struct qdqi_output *output = &outputs[source.place];
    return (struct qdqi_input){.name = j->model->outputs[source.place].name,
                               .dtype = output->dtype,
                               .rank = output->rank,
                               .shape = output->shape,
                               .data = output->data,
                               .size = output->n * qdqi_dtype_size(output->dtype)};
}

/* Cuts sample i out of the value of a run; `shape` has room for its shape. */
static enum qdq_code
cut(struct qdqi_input *value, size_t samples, size_t i, int64_t shape[MOST_RANK],
    struct qdq_error *err)
{
    if (value->rank > MOST_RANK ||
        (samples > 1 && (value->rank == 0 || value->shape[0] != (int64_t)samples)))
        return qdq_error_set(
            err, QDQ_UNSUPPORTED, QDQ_AT_POINTER, "/task",
            "'%.128s' cannot be cut into the %zu samples of a run: its "
            "axis 0 has another size",
            value->name, samples);
    if (samples == 1)
        return QDQ_OK;
    memcpy(shape, value->shape, value->rank * sizeof *shape);
    shape[0] = 1;
    value->shape = shape;
    value->size /= samples;
    value->data = (const unsigned char *)value->data + i * value->size;
    return QDQ_OK;
}

/* --- classification ----------------------------------------------------------- */

static size_t
elements_of(const struct qdqi_input *value)
{
    const size_t size = qdqi_dtype_size(value->dtype);
    return size ? value->size / size : 0;
}

static size_t
last_of(const struct qdqi_input *value)
{
    return value->rank > 0 ? (size_t)value->shape[value->rank - 1] : 0;
}

static bool
is_floating(enum qdqi_dtype dtype)
{
    return dtype == QDQI_FLOAT32 || dtype == QDQI_FLOAT16 || dtype == QDQI_FLOAT64;
}

/* Finds the output whose rows are as many as the labels. */
static enum qdq_code
find_rows(struct qdqi_judge *j, const struct qdqi_output *outputs,
          const struct qdqi_input *labels, struct qdq_error *err)
{
    const size_t wanted = elements_of(labels);
    for (size_t i = 0; i < j->model->n_outputs; i++) {
        j->sources[0].place = i;
        const struct qdqi_input value = value_of(j, 0, outputs, labels);
        const size_t last = last_of(&value);
        if (is_floating(value.dtype) && last >= 2 &&
            elements_of(&value) / last == wanted) {
            j->knows_output = true;
            return QDQ_OK;
        }
    }
    return mismatch(err,
                    "no floating-point output has as many rows of classes as there are "
                    "labels; name one by task.output, or judge by a metric");
}

/* Makes room for the counts of classes. */
static enum qdq_code
begin_counts(struct qdqi_judge *j, size_t classes, struct qdq_error *err)
{
    struct qdqi_class_counts *counts = &j->counts;
    if (counts->n == classes)
        return QDQ_OK;
    if (counts->n > 0 || classes > MOST_CLASSES)
        return mismatch(err, "the number of classes differs between samples, or is too "
                             "large");
    counts->n = classes;
    counts->chosen = qdqi_arena_array(j->arena, classes, sizeof *counts->chosen);
    counts->labels = qdqi_arena_array(j->arena, classes, sizeof *counts->labels);
    return counts->chosen && counts->labels ? QDQ_OK : qdqi_no_memory(err);
}

/* Reads label i. Returns false where its type is none of a label. */
static bool
read_label(const struct qdqi_input *labels, size_t i, int64_t *ret)
{
    switch (labels->dtype) {
#define CASE(name, type)                                 \
    case QDQI_##name:                                    \
        *ret = (int64_t)((const type *)labels->data)[i]; \
        return true;
        CASE(INT64, int64_t)
        CASE(INT32, int32_t)
        CASE(INT16, int16_t)
        CASE(INT8, int8_t)
        CASE(UINT8, uint8_t)
        CASE(UINT16, uint16_t)
        CASE(UINT32, uint32_t)
        CASE(BOOL, uint8_t)
#undef CASE
    default:
        return false;
    }
}

/* Keeps an answer, unless they are too many or there is no room. */
static void
note_answer(struct qdqi_answers *to, int64_t label, size_t chosen)
{
    enum { MOST_ANSWERS = 1 << 22, FIRST = 256 };
    if (!to || to->are_lost)
        return;
    if (to->n == to->room) {
        const size_t room = to->room ? 2 * to->room : FIRST;
        struct qdqi_answered *rows =
            room <= MOST_ANSWERS ? realloc(to->rows, room * sizeof *rows) : NULL;
        if (!rows) {
            to->are_lost = true;
            return;
        }
        to->rows = rows;
        to->room = room;
    }
    to->rows[to->n++] = (struct qdqi_answered){(uint32_t)label, (uint32_t)chosen};
}

/* Counts the right rows of one sample. A row whose label is negative does not count. */
static enum qdq_code
count_right(struct qdqi_judge *j, const float *rows, size_t classes,
            const struct qdqi_input *labels, struct qdqi_fraction *ret,
            struct qdq_error *err)
{
    enum qdq_code code = begin_counts(j, classes, err);
    *ret = (struct qdqi_fraction){0};
    for (size_t i = 0; !code && i < elements_of(labels); i++) {
        const size_t chosen = qdqi_argmax(rows + i * classes, classes);
        int64_t label;
        if (!read_label(labels, i, &label))
            return mismatch(err, "labels are to be integers");
        if (label < 0)
            continue;
        if ((size_t)label >= classes)
            return qdq_error_set(err, QDQ_CALIBRATION_MISMATCH, QDQ_AT_POINTER, "/task",
                                 "there is a label %" PRId64
                                 ", and the output has %zu classes",
                                 label, classes);
        j->counts.chosen[chosen]++;
        j->counts.labels[label]++;
        note_answer(j->answers, label, chosen);
        ret->numerator += (size_t)label == chosen;
        ret->denominator++;
    }
    return code;
}

static enum qdq_code
classify(struct qdqi_judge *j, const struct qdqi_input values[2],
         struct qdqi_fraction *ret, struct qdq_error *err)
{
    const size_t classes = last_of(&values[0]);
    struct qdqi_arena *arena = qdqi_arena_new();
    struct qdqi_output output = {.dtype = values[0].dtype,
                                 .rank = values[0].rank,
                                 .shape = values[0].shape,
                                 .n = elements_of(&values[0]),
                                 .data = values[0].data};
    if (!arena)
        return qdqi_no_memory(err);
    enum qdq_code code = qdqi_output_to_float32(&output, arena, err);
    if (!code && (output.dtype != QDQI_FLOAT32 || classes < 2 ||
                  output.n / classes != elements_of(&values[1])))
        code = mismatch(
            err, "the output has another number of rows of classes than there are "
                 "labels");
    if (!code)
        code = count_right(j, output.data, classes, &values[1], ret, err);
    qdqi_arena_free(&arena);
    return code;
}

/* --- a run -------------------------------------------------------------------- */

static enum qdq_code
judge_sample(struct qdqi_judge *j, size_t samples, size_t i,
             const struct qdqi_output *outputs, const struct qdqi_input *labels,
             struct qdqi_input *values, struct qdqi_fraction *ret,
             struct qdq_error *err)
{
    int64_t(*shapes)[MOST_RANK] = calloc(j->n_sources, sizeof *shapes);
    if (!shapes)
        return qdqi_no_memory(err);
    enum qdq_code code = QDQ_OK;
    for (size_t k = 0; !code && k < j->n_sources; k++) {
        values[k] = value_of(j, k, outputs, labels);
        code = cut(&values[k], samples, i, shapes[k], err);
    }
    if (!code)
        code = j->metric ? qdqi_metric_call(j->metric, values, ret, err)
                         : classify(j, values, ret, err);
    free(shapes);
    return code;
}

enum qdq_code
qdqi_judge_run(struct qdqi_judge *j, size_t samples, const struct qdqi_output *outputs,
               const struct qdqi_input *labels, struct qdqi_fraction *ret,
               struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    if (!j->metric && !j->knows_output)
        code = find_rows(j, outputs, labels, err);
    struct qdqi_input *values = calloc(j->n_sources + 1, sizeof *values);
    if (!values)
        return qdqi_no_memory(err);
    for (size_t i = 0; !code && j->task->once && i < j->n_sources; i++) {
        values[i] = value_of(j, i, outputs, labels);
        code = qdqi_gathered_add(&j->gathered, i, &values[i], samples, err);
    }
    for (size_t i = 0; !code && !j->task->once && i < samples; i++)
        code = judge_sample(j, samples, i, outputs, labels, values, &ret[i], err);
    free(values);
    return code;
}
