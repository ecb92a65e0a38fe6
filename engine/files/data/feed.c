/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/data/feed_inner.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- opening: matching arrays and inputs --------------------------------- */

/* Returns whether the sizes fit the axes of the input from `first` on. */
static bool
axes_fit(const struct qdq_value *input, size_t first, const int64_t *shape)
{
    for (size_t i = first; i < input->rank; i++)
        if (input->dims[i].value > 0 && input->dims[i].value != shape[i - first])
            return false;
    return true;
}

/* Says how a shape of four axes that does not fit differs: `shape` is that of axes 1 to 3. */
static const char *
difference(const struct qdq_value *input, const int64_t *shape, const char *otherwise)
{
    if (input->rank != 4)
        return otherwise;
    const int64_t moved[] = {shape[2], shape[0], shape[1]};
    return axes_fit(input, 1, moved) ? "the data looks like NHWC, and the model is of "
                                       "NCHW; numpy.transpose(x, "
                                       "(0, 3, 1, 2)) makes the other layout"
                                     : otherwise;
}

/* Returns the shape of a sample that is fed unchanged, and its number of elements. */
static const int64_t *
sample_shape(const struct qdqi_feed *feed, const struct qdqi_binding *binding,
             int64_t sample, size_t *ret_n)
{
    const struct qdq_array *whole = binding->fed;
    if (qdqi_dataset_differs(feed->dataset, binding->array))
        return qdqi_dataset_part(feed->dataset, binding->array, sample, ret_n);
    *ret_n = 1;
    /* the product was checked when the dataset was opened */
    for (size_t i = 1; i < whole->rank; i++)
        *ret_n *= (size_t)whole->shape[i];
    return whole->shape + 1;
}

/* Checks samples that are runs of their own: each must fit the input, unchanged or behind a batch
   axis of 1. */
static enum qdq_code
fit_samples(const struct qdqi_feed *feed, const struct qdq_value *input,
            const struct qdqi_binding *binding, struct qdq_error *err)
{
    const struct qdq_array *array = binding->fed;
    size_t n;
    for (int64_t i = 0; i < (feed->cut ? array->shape[0] : 1); i++)
        if (!axes_fit(input, binding->drops_axis0 ? 0 : 1,
                      sample_shape(feed, binding, i, &n))) {
            char what[80] = "the shape of a sample differs";
            if (feed->cut)
                snprintf(what, sizeof what, "the shape of sample %" PRId64 " differs",
                         i);
            return qdqi_feed_mismatch(feed, input, array, what, err);
        }
    return QDQ_OK;
}

/* Finds how the array is cut into samples. *ret_rows is the number of samples that
   the input takes in one run; 0 where it takes any number. */
static enum qdq_code
fit_shape(const struct qdqi_feed *feed, const struct qdq_value *input,
          const struct qdq_array *array, struct qdqi_binding *binding,
          int64_t *ret_rows, struct qdq_error *err)
{
    *ret_rows = feed->cut ? 1 : 0;
    binding->drops_axis0 = qdqi_dataset_is_sets(feed->dataset);
    if (!input->has_shape)
        return QDQ_OK;
    if (array->rank == input->rank + 1) {
        binding->drops_axis0 = true;
        *ret_rows = 1;
        return fit_samples(feed, input, binding, err);
    }
    if (feed->cut && array->rank == input->rank && !binding->drops_axis0) {
        if (input->dims[0].value > 1)
            return qdqi_feed_mismatch(
                feed, input, array,
                "samples of different shapes run one by one, and the batch "
                "of the model is fixed",
                err);
        return fit_samples(feed, input, binding, err);
    }
    if (array->rank != input->rank || feed->cut)
        return qdqi_feed_mismatch(feed, input, array, "the rank differs", err);
    if (!axes_fit(input, 1, array->shape + 1))
        return qdqi_feed_mismatch(
            feed, input, array,
            difference(input, array->shape + 1, "the shape behind axis 0 differs"),
            err);
    if (input->dims[0].value > 0)
        *ret_rows = input->dims[0].value;
    if (*ret_rows > array->shape[0])
        return qdqi_feed_mismatch(feed, input, array,
                                  "fewer samples than the batch of the model", err);
    return QDQ_OK;
}

static enum qdq_code
bind_dtype(struct qdqi_feed *feed, size_t i, const struct qdq_value *wanted,
           const struct qdq_array *array, enum qdqi_dtype from, struct qdq_error *err)
{
    struct qdqi_binding *binding = &feed->bindings[i];
    struct qdqi_input *input = &feed->inputs[i];
    input->dtype = qdqi_feed_dtype(wanted, from);
    binding->cast = qdqi_cast_find(from, input->dtype);
    if (!binding->cast.fn)
        return qdqi_feed_mismatch(feed, wanted, array,
                                  "this cast may lose, so it is not made", err);
    if (binding->cast.lossy)
        qdqi_feed_warn(feed, "float64_cast", input->name,
                       qdqi_arena_printf(
                           feed->arena,
                           "input '%s': %s data is rounded to %s for the model",
                           input->name, array->dtype, qdqi_dtype_name(input->dtype)));
    binding->from_size = qdqi_dtype_size(from);
    binding->to_size = qdqi_dtype_size(input->dtype);
    return QDQ_OK;
}

/* Sets the shape of an input in a run; axis 0 is set again for each run. */
static enum qdq_code
bind_shape(struct qdqi_feed *feed, const struct qdq_array *array,
           struct qdqi_binding *binding, struct qdqi_input *input,
           struct qdq_error *err)
{
    size_t skip = binding->drops_axis0 ? 1 : 0;
    int64_t *shape = qdqi_arena_array(feed->arena, array->rank, sizeof *shape);
    if (!shape)
        return qdqi_no_memory(err);
    memcpy(shape, array->shape + skip, (array->rank - skip) * sizeof *shape);
    input->rank = array->rank - skip;
    input->shape = binding->shape = shape;
    for (int64_t i = 0; i < (feed->cut ? array->shape[0] : 1); i++) {
        size_t n;
        sample_shape(feed, binding, i, &n);
        if (n > binding->row)
            binding->row = n;
    }
    return QDQ_OK;
}

/* Finds out how the elements are scaled. The shape of the input is known. */
static enum qdq_code
bind_scaling(struct qdqi_feed *feed, size_t i, const struct qdq_value *wanted,
             const struct qdq_array *array, enum qdqi_dtype from, struct qdq_error *err)
{
    struct qdqi_binding *binding = &feed->bindings[i];
    const struct qdqi_input *input = &feed->inputs[i];
    char text[256];
    const char *why =
        qdqi_scaling_find(feed->dataset, feed->cut, input->name, input->dtype,
                          input->rank, input->shape, &binding->scaling);
    if (!why && !binding->scaling.row &&
        qdqi_scaling_is_missing(feed->dataset, from, input->dtype)) {
        snprintf(
            text, sizeof text,
            "write \"calibration\": {\"cast\": true} into the spec if these integers "
            "are the values that the model wants, or scale them by \"preprocess\": "
            "{\"%.64s\": {\"scale\": 0.00392156862745098}}",
            input->name);
        why = text;
    }
    return why ? qdqi_feed_mismatch(feed, wanted, array, why, err) : QDQ_OK;
}

/* Sets the array as the input gets it, which differs from the stored one for images and for
   columns of numbers that the input's shape lays out. */
static enum qdq_code
view_array(struct qdqi_feed *feed, const struct qdq_value *input,
           struct qdqi_binding *binding, const struct qdq_array **array,
           struct qdq_error *err)
{
    binding->fed = *array;
    if (!qdqi_dataset_has_images(feed->dataset) || binding->array != 0) {
        enum qdq_code code = qdqi_table_lay_out(feed->dataset, binding->array, input,
                                                feed->arena, &binding->fed, err);
        *array = binding->fed;
        return code;
    }
    struct qdq_array *fed = qdqi_arena_alloc(feed->arena, sizeof *fed);
    if (!fed)
        return qdqi_no_memory(err);
    binding->fed = *array = fed;
    return qdqi_images_fit(feed->dataset, input, feed->arena, &binding->view, fed, err);
}

/* Binds input i to its array and updates the number of samples of one run. */
static enum qdq_code
bind_input(struct qdqi_feed *feed, const struct qdq_model_info *model, size_t i,
           struct qdq_error *err)
{
    const struct qdq_dataset_info *info = qdq_dataset_info(feed->dataset);
    const struct qdq_value *input = &model->inputs[i];
    const struct qdq_array *array = qdqi_feed_array(feed->dataset, model, i);
    struct qdqi_binding *binding = &feed->bindings[i];
    int64_t rows;
    if (!array && feed->fills && qdqi_tokens_give(model, i) != QDQI_NOT_FROM_TOKENS)
        return qdqi_feed_bind_filled(feed, model, i, err);
    if (!array)
        return qdqi_feed_no_array(feed, input, err);
    size_t at = (size_t)(array - info->arrays);
    binding->array = at;
    feed->used[at] = true;
    feed->inputs[i].name = qdqi_arena_strdup(feed->arena, input->name);
    if (!feed->inputs[i].name)
        return qdqi_no_memory(err);
    enum qdq_code code = view_array(feed, input, binding, &array, err);
    if (code == QDQ_OK)
        code = bind_dtype(feed, i, input, array, qdqi_dataset_dtype(feed->dataset, at),
                          err);
    if (code == QDQ_OK)
        code = fit_shape(feed, input, array, binding, &rows, err);
    if (code == QDQ_OK)
        code = bind_shape(feed, array, binding, &feed->inputs[i], err);
    if (code == QDQ_OK)
        code = bind_scaling(feed, i, input, array,
                            qdqi_dataset_dtype(feed->dataset, at), err);
    if (code != QDQ_OK)
        return code;
    if (rows > 0 && feed->fixed && rows != feed->rows)
        return qdqi_feed_mismatch(feed, input, array,
                                  "other inputs take another number of samples", err);
    if (rows > 0) {
        feed->fixed = true;
        feed->rows = rows;
    }
    return at == 0 && qdqi_dataset_has_images(feed->dataset)
               ? qdqi_reader_open_images(feed->dataset, &binding->view,
                                         &binding->reader, err)
               : qdqi_reader_open(feed->dataset, at, &binding->reader, err);
}

static void
warn_ignored(struct qdqi_feed *feed)
{
    const struct qdq_dataset_info *info = qdq_dataset_info(feed->dataset);
    for (size_t i = 0; i < info->n_arrays; i++)
        if (!feed->used[i] && !qdqi_dataset_has_images(feed->dataset) &&
            !(feed->used[info->n_arrays] && qdqi_dataset_is_joined(feed->dataset, i)))
            qdqi_feed_warn(feed, "array_ignored", info->arrays[i].name,
                           qdqi_arena_printf(feed->arena, "the model has no input '%s'",
                                             info->arrays[i].name));
}

/* --- opening: samples and memory ------------------------------------------ */

/* Skips samples of an input from `first` on. */
static enum qdq_code
skip_samples(const struct qdqi_feed *feed, struct qdqi_binding *b, int64_t first,
             int64_t samples, struct qdq_error *err)
{
    uint64_t elements = (uint64_t)samples * b->row;
    if (feed->cut) {
        elements = 0;
        for (int64_t i = first; i < first + samples; i++) {
            size_t n;
            sample_shape(feed, b, i, &n);
            elements += n;
        }
    }
    return qdqi_reader_skip(b->reader, elements * b->from_size, err);
}

/* Chooses the samples of the runs, and moves the readers to the first of them. */
static enum qdq_code
choose_samples(struct qdqi_feed *feed, const struct qdqi_feed_options *options,
               struct qdq_error *err)
{
    int64_t there = qdq_dataset_info(feed->dataset)->samples;
    int64_t rows = feed->rows;
    int64_t first = options->first < there ? options->first : there;
    int64_t dropped = feed->fixed ? there % rows : 0;
    feed->available = there - dropped;
    if (dropped > 0)
        qdqi_feed_warn(feed, "remainder_dropped", NULL,
                       qdqi_arena_printf(feed->arena,
                                         "the last %" PRId64 " of %" PRId64
                                         " samples do not fill "
                                         "the model's batch of %" PRId64,
                                         dropped, there, rows));
    /* the boundaries of fixed batches do not move */
    if (feed->fixed && first % rows != 0)
        first += rows - first % rows;
    feed->samples = feed->available > first ? feed->available - first : 0;
    int64_t most = options->max_samples;
    if (feed->fixed && most > 0)
        most = most < rows ? rows : most - most % rows;
    if (most > 0 && most < feed->samples)
        feed->samples = most;
    feed->first = first;
    for (size_t i = 0; i < feed->n && feed->samples > 0; i++) {
        if (!feed->bindings[i].reader)
            continue;
        enum qdq_code code =
            skip_samples(feed, &feed->bindings[i], 0, feed->first, err);
        if (code != QDQ_OK)
            return code;
    }
    return QDQ_OK;
}

static enum qdq_code
make_buffers(struct qdqi_feed *feed, struct qdq_error *err)
{
    int64_t rows = feed->rows < feed->samples ? feed->rows : feed->samples;
    for (size_t i = 0; i < feed->n && rows > 0; i++) {
        struct qdqi_binding *b = &feed->bindings[i];
        size_t size;
        if (__builtin_mul_overflow(b->row, b->to_size, &size) ||
            __builtin_mul_overflow(size, (size_t)rows, &size) ||
            size > QDQI_FEED_MAX_INPUT)
            return qdq_error_set(
                err, QDQ_LIMIT_EXCEEDED, QDQ_AT_INPUT, feed->inputs[i].name,
                "input '%s': %" PRId64 " samples of one run are larger "
                "than %d bytes",
                feed->inputs[i].name, rows, QDQI_FEED_MAX_INPUT);
        enum qdq_code code = qdqi_buffer_new(size, QDQI_BUFFER_LARGE, &b->data, err);
        if (code != QDQ_OK)
            return code;
        feed->inputs[i].data = b->data.data;
    }
    return QDQ_OK;
}

static enum qdq_code
open_feed(struct qdqi_feed *feed, const struct qdq_model_info *model,
          const struct qdqi_feed_options *options, struct qdq_error *err)
{
    size_t n_arrays = qdq_dataset_info(feed->dataset)->n_arrays;
    if (model->n_inputs == 0)
        return qdq_error_set(err, QDQ_CALIBRATION_MISMATCH, QDQ_AT_NOTHING, NULL,
                             "the model has no input, so no data can be fed to it");
    feed->n = model->n_inputs;
    feed->rows = options->batch;
    feed->bindings = qdqi_arena_array(feed->arena, feed->n, sizeof *feed->bindings);
    feed->inputs = qdqi_arena_array(feed->arena, feed->n, sizeof *feed->inputs);
    feed->warnings =
        qdqi_arena_array(feed->arena, feed->n + n_arrays + 2, sizeof *feed->warnings);
    feed->used = qdqi_arena_array(feed->arena, n_arrays + 1, sizeof *feed->used);
    if (!feed->bindings || !feed->inputs || !feed->warnings || !feed->used)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < feed->n; i++) {
        const struct qdq_array *array = qdqi_feed_array(feed->dataset, model, i);
        feed->cut |=
            array && qdqi_dataset_differs(
                         feed->dataset,
                         (size_t)(array - qdq_dataset_info(feed->dataset)->arrays));
    }
    qdqi_feed_find_filled(feed, model);
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < feed->n && code == QDQ_OK; i++)
        code = bind_input(feed, model, i, err);
    if (code != QDQ_OK)
        return code;
    warn_ignored(feed);
    qdqi_feed_warn_filled(feed);
    code = choose_samples(feed, options, err);
    return code == QDQ_OK ? make_buffers(feed, err) : code;
}

enum qdq_code
qdqi_feed_open(const struct qdq_model_info *model, struct qdq_dataset *dataset,
               const struct qdqi_feed_options *options, struct qdqi_feed **ret,
               struct qdq_error *err)
{
    struct qdqi_feed *feed = calloc(1, sizeof *feed);
    if (!feed)
        return qdqi_no_memory(err);
    feed->dataset = dataset;
    feed->cut = qdqi_dataset_is_sets(dataset);
    feed->arena = qdqi_arena_new();
    enum qdq_code code =
        feed->arena ? open_feed(feed, model, options, err) : qdqi_no_memory(err);
    if (code != QDQ_OK) {
        qdqi_feed_close(&feed);
        return code;
    }
    *ret = feed;
    return QDQ_OK;
}

void
qdqi_feed_close(struct qdqi_feed **feed)
{
    if (!feed || !*feed)
        return;
    for (size_t i = 0; (*feed)->bindings && i < (*feed)->n; i++) {
        qdqi_reader_close(&(*feed)->bindings[i].reader);
        qdqi_buffer_free(&(*feed)->bindings[i].data);
    }
    qdqi_arena_free(&(*feed)->arena);
    free(*feed);
    *feed = NULL;
}

int64_t
qdqi_feed_samples(const struct qdqi_feed *feed)
{
    return feed->samples;
}

int64_t
qdqi_feed_runs(const struct qdqi_feed *feed)
{
    return feed->samples / feed->rows + (feed->samples % feed->rows != 0);
}

int64_t
qdqi_feed_run_samples(const struct qdqi_feed *feed)
{
    return feed->rows;
}

size_t
qdqi_feed_run_bytes(const struct qdqi_feed *feed)
{
    size_t sum = 0;
    for (size_t i = 0; i < feed->n; i++)
        sum += feed->bindings[i].row * feed->bindings[i].to_size * (size_t)feed->rows;
    return sum;
}

int64_t
qdqi_feed_available(const struct qdqi_feed *feed)
{
    return feed->available;
}

size_t
qdqi_feed_warnings(const struct qdqi_feed *feed, const struct qdq_warning **ret)
{
    *ret = feed->warnings;
    return feed->n_warnings;
}

/* --- running -------------------------------------------------------------- */

static enum qdq_code
fill(struct qdqi_feed *feed, struct qdqi_binding *b, size_t elements,
     struct qdq_error *err)
{
    size_t most =
        QDQI_FEED_PIECE / (b->from_size > b->to_size ? b->from_size : b->to_size);
    for (size_t done = 0; done < elements;) {
        size_t n = elements - done < most ? elements - done : most;
        enum qdq_code code =
            qdqi_reader_read(b->reader, feed->piece, n * b->from_size, err);
        if (code != QDQ_OK)
            return code;
        b->cast.fn(feed->wide, feed->piece, n);
        if (b->scaling.row)
            qdqi_scaling_apply(&b->scaling, (float *)feed->wide, n, done);
        code = qdqi_buffer_write(&b->data, done * b->to_size, feed->wide,
                                 n * b->to_size, err);
        if (code != QDQ_OK)
            return code;
        done += n;
    }
    return QDQ_OK;
}

enum qdq_code
qdqi_feed_next(struct qdqi_feed *feed, const struct qdqi_input **ret,
               int64_t *ret_samples, struct qdq_error *err)
{
    int64_t left = feed->samples - feed->done;
    int64_t rows = left < feed->rows ? left : feed->rows;
    for (size_t i = 0; i < feed->n && rows > 0; i++) {
        struct qdqi_binding *b = &feed->bindings[i];
        struct qdqi_input *input = &feed->inputs[i];
        size_t elements = b->row * (size_t)rows;
        if (b->filled != QDQI_NOT_FROM_TOKENS)
            continue;
        if (feed->ends_at_negative)
            b->shape[input->rank - 1] = (int64_t)b->row;
        if (feed->cut) {
            const size_t batch =
                b->drops_axis0 ? 0 : 1; /* axes in front of the sample */
            memcpy(b->shape + batch,
                   sample_shape(feed, b, feed->first + feed->done, &elements),
                   (input->rank - batch) * sizeof *b->shape);
        }
        enum qdq_code code = fill(feed, b, elements, err);
        if (code != QDQ_OK)
            return code;
        if (!b->drops_axis0)
            b->shape[0] = rows;
        input->data = b->data.data;
        input->size = elements * b->to_size;
    }
    enum qdq_code code = feed->fills && rows > 0 ? qdqi_feed_fill(feed, err) : QDQ_OK;
    if (code)
        return code;
    feed->done += rows;
    feed->in_run = rows;
    *ret = feed->inputs;
    *ret_samples = rows;
    return QDQ_OK;
}

int64_t
qdqi_feed_run_first(const struct qdqi_feed *feed)
{
    return feed->first + feed->done - feed->in_run;
}

enum qdq_code
qdqi_feed_skip(struct qdqi_feed *feed, int64_t runs, struct qdq_error *err)
{
    const int64_t left = feed->samples - feed->done, wanted = runs * feed->rows;
    const int64_t samples = wanted < left ? wanted : left;
    for (size_t i = 0; i < feed->n && samples > 0; i++) {
        if (!feed->bindings[i].reader)
            continue;
        enum qdq_code code = skip_samples(feed, &feed->bindings[i],
                                          feed->first + feed->done, samples, err);
        if (code != QDQ_OK)
            return code;
    }
    feed->done += samples;
    return QDQ_OK;
}

enum qdq_code
qdqi_name_samples(int64_t first, int64_t n, enum qdq_code code, struct qdq_error *err)
{
    if (code != QDQ_RUN_FAILED || !err)
        return code;
    const struct qdq_error why = *err;
    *err = (struct qdq_error){0};
    return n > 1 ? qdq_error_set(err, code, why.kind, why.where,
                                 "samples %lld to %lld: %s", (long long)first,
                                 (long long)(first + n - 1), why.text)
                 : qdq_error_set(err, code, why.kind, why.where, "sample %lld: %s",
                                 (long long)first, why.text);
}

enum qdq_code
qdqi_feed_name_samples(const struct qdqi_feed *feed, enum qdq_code code,
                       struct qdq_error *err)
{
    return qdqi_name_samples(qdqi_feed_run_first(feed), feed->in_run, code, err);
}

const struct qdqi_input *
qdqi_feed_sample(struct qdqi_feed *feed, int64_t i)
{
    if (feed->fixed || i < 0 || i >= feed->in_run)
        return NULL;
    for (size_t k = 0; k < feed->n; k++) {
        struct qdqi_binding *b = &feed->bindings[k];
        size_t size = b->row * b->to_size;
        b->shape[0] = 1;
        feed->inputs[k].data = b->data.data + (size_t)i * size;
        feed->inputs[k].size = size;
    }
    return feed->inputs;
}
