/* SPDX-License-Identifier: Apache-2.0 */
/* Which array of the data feeds an input of the model, and the errors where none fits. */
#include "config.h"
#include "files/data/feed_inner.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The type and shape that the model wants, or that the data has, as "float32
   [N,3,32]". */
struct shape_text {
    char text[160];
};

static struct shape_text
describe(const char *dtype, bool has_shape, size_t rank, const struct qdq_dim *dims,
         const int64_t *shape)
{
    struct shape_text s;
    size_t len = (size_t)snprintf(s.text, sizeof s.text, "%.20s%s",
                                  *dtype ? dtype : "any type", has_shape ? " [" : "");
    if (!has_shape)
        return s;
    for (size_t i = 0; i < rank; i++) {
        char one[40];
        /* -1: open, or different between samples */
        int64_t value = dims ? dims[i].value : shape ? shape[i] : -1;
        if (value > 0 || (value == 0 && !dims))
            snprintf(one, sizeof one, "%s%" PRId64, i ? "," : "", value);
        else
            snprintf(one, sizeof one, "%s?", i ? "," : "");
        if (len + strlen(one) + sizeof ",...]" > sizeof s.text) {
            len += (size_t)snprintf(s.text + len, sizeof s.text - len, ",...");
            break;
        }
        len += (size_t)snprintf(s.text + len, sizeof s.text - len, "%s", one);
    }
    snprintf(s.text + len, sizeof s.text - len, "]");
    return s;
}

/* Axis 0 of an array that is cut counts the samples; it is no axis of what they hold. */
enum qdq_code
qdqi_feed_mismatch(const struct qdqi_feed *feed, const struct qdq_value *input,
                   const struct qdq_array *array, const char *what,
                   struct qdq_error *err)
{
    size_t first = feed->cut ? 1 : 0;
    struct shape_text wanted =
        describe(input->dtype, input->has_shape, input->rank, input->dims, NULL);
    struct shape_text given =
        describe(array->dtype, true, array->rank - first, NULL, array->shape + first);
    return qdq_error_set(err, QDQ_CALIBRATION_MISMATCH, QDQ_AT_INPUT, input->name,
                         "input '%s' wants %s, %s %s: %s", input->name, wanted.text,
                         !feed->cut                            ? "the data has"
                         : qdqi_dataset_is_sets(feed->dataset) ? "the sets have"
                                                               : "the samples have",
                         given.text, what);
}

/* Returns the array that an input has by its name or its place; NULL: none. */
static const struct qdq_array *
named_array(const struct qdq_dataset *dataset, const struct qdq_model_info *model,
            size_t input)
{
    const struct qdq_dataset_info *info = qdq_dataset_info(dataset);
    if (qdqi_dataset_has_images(dataset) &&
        qdqi_images_input(dataset, model) == (int)input)
        return info->arrays;
    for (size_t i = 0; i < info->n_arrays; i++) {
        int place = qdqi_dataset_input(dataset, i);
        if (place >= 0 ? (size_t)place == input
                       : strcmp(info->arrays[i].name, model->inputs[input].name) == 0)
            return &info->arrays[i];
    }
    return NULL;
}

/* Returns the array that feeds an input although it has no name, or another one; NULL: none. */
static const struct qdq_array *
lone_array(const struct qdq_dataset *dataset, const struct qdq_model_info *model,
           size_t input)
{
    const struct qdq_dataset_info *info = qdq_dataset_info(dataset);
    const struct qdq_array *lone = NULL;
    for (size_t i = 0; i < info->n_arrays && !lone; i++)
        if (qdqi_dataset_is_alone(dataset, i))
            lone = &info->arrays[i];
    for (size_t i = 0; lone && i < model->n_inputs; i++) {
        const struct qdq_array *named =
            i == input ? NULL : named_array(dataset, model, i);
        /* where several inputs have no array, nothing says for which of them it is, but that of
           the tokens comes first */
        if (named == lone ||
            (i != input && !named && input != qdqi_tokens_input(model)))
            return NULL;
    }
    return lone;
}

/* Returns the columns of one number as the features of the model's only input, which has a row of them
   for each sample; NULL: they are not as many, or the input is another one. */
static const struct qdq_array *
features(const struct qdq_dataset *dataset, const struct qdq_model_info *model)
{
    const struct qdq_value *input = model->inputs;
    const struct qdq_array *joined = qdqi_dataset_joined(dataset);
    return joined && model->n_inputs == 1 && input->has_shape && input->rank == 2 &&
                   (input->dims[1].value <= 0 ||
                    input->dims[1].value == joined->shape[1])
               ? joined
               : NULL;
}

const struct qdq_array *
qdqi_feed_array(const struct qdq_dataset *dataset, const struct qdq_model_info *model,
                size_t input)
{
    const struct qdq_array *array = named_array(dataset, model, input);
    if (!array)
        array = lone_array(dataset, model, input);
    return array ? array : features(dataset, model);
}

enum qdq_code
qdqi_feed_no_array(const struct qdqi_feed *feed, const struct qdq_value *input,
                   struct qdq_error *err)
{
    const struct qdq_dataset_info *info = qdq_dataset_info(feed->dataset);
    struct shape_text wanted =
        describe(input->dtype, input->has_shape, input->rank, input->dims, NULL);
    const char *why = qdqi_table_why_not(feed->dataset, input->name);
    if (why)
        return qdq_error_set(err, QDQ_CALIBRATION_MISMATCH, QDQ_AT_INPUT, input->name,
                             "input '%s' wants %s, and the column of that name cannot "
                             "be used: %s",
                             input->name, wanted.text, why);
    const struct qdq_array *joined = qdqi_dataset_joined(feed->dataset);
    if (joined && feed->n == 1 && input->has_shape && input->rank == 2 &&
        input->dims[1].value != 1)
        return qdq_error_set(err, QDQ_CALIBRATION_MISMATCH, QDQ_AT_INPUT, input->name,
                             "input '%s' wants %s, and the Parquet file has %" PRId64
                             " columns of numbers: leave those in it that are the "
                             "features, in their order, "
                             "and the labels as 'label'",
                             input->name, wanted.text, joined->shape[1]);
    if (!*info->arrays[0].name)
        return qdq_error_set(err, QDQ_CALIBRATION_MISMATCH, QDQ_AT_INPUT, input->name,
                             "the model has several inputs, '%s' (%s) among them: an "
                             ".npy file holds one array; send an .npz file (in a shard "
                             "of samples, KEY.npz)",
                             input->name, wanted.text);
    return qdq_error_set(err, QDQ_CALIBRATION_MISMATCH, QDQ_AT_INPUT, input->name,
                         "input '%s' wants %s, the data has no array of that name (but "
                         "'%s'%s)%s",
                         input->name, wanted.text, info->arrays[0].name,
                         info->n_arrays > 1 ? " and others" : "",
                         input->has_shape && input->rank == 0
                             ? ": give a scalar as an array of rank 1 with one value "
                               "for each sample"
                             : "");
}

void
qdqi_feed_warn(struct qdqi_feed *feed, const char *code, const char *node,
               const char *detail)
{
    if (detail) /* a warning is dropped when there is no memory for it */
        feed->warnings[feed->n_warnings++] =
            (struct qdq_warning){code, detail, node, NULL};
}

enum qdqi_dtype
qdqi_feed_dtype(const struct qdq_value *input, enum qdqi_dtype given)
{
    if (!*input->dtype)
        return given;
    for (int i = 1; i < QDQI_N_DTYPES; i++)
        if (strcmp(qdqi_dtype_name(i), input->dtype) == 0)
            return (enum qdqi_dtype)i;
    return QDQI_UNKNOWN;
}
