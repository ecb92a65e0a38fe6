/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/data/scaling.h"

#include "files/data/dataset.h"

#include <string.h>

void
qdqi_dataset_prepare(struct qdq_dataset *dataset, const struct qdq_spec *spec)
{
    dataset->prepared_by = spec;
}

static const struct qdq_preprocess *
find_row(const struct qdq_dataset *dataset, const char *input)
{
    const struct qdq_spec *spec = dataset->prepared_by;
    for (size_t i = 0; spec && i < spec->n_preprocess; i++)
        if (strcmp(spec->preprocess[i].input, input) == 0)
            return &spec->preprocess[i];
    return NULL;
}

static bool
is_integer(enum qdqi_dtype dtype)
{
    return (dtype >= QDQI_UINT8 && dtype <= QDQI_INT64) || dtype == QDQI_UINT32 ||
           dtype == QDQI_UINT64;
}

static bool
is_floating(enum qdqi_dtype dtype)
{
    return dtype == QDQI_FLOAT32 || dtype == QDQI_FLOAT16 || dtype == QDQI_FLOAT64 ||
           dtype == QDQI_BFLOAT16;
}

/* Finds the channels of an array, where they differ. Returns NULL, or what is wrong. */
static const char *
find_channels(bool cut, size_t rank, const int64_t *shape, struct qdqi_affine *ret)
{
    const struct qdq_preprocess *row = ret->row;
    const size_t n = row->n_mean > row->n_std ? row->n_mean : row->n_std;
    const size_t axis = row->channels_last ? rank - 1 : 1;
    if (n <= 1)
        return NULL;
    if (cut && !row->channels_last)
        return "a mean for each channel needs samples of one shape, or the layout nhwc";
    if (rank < 2 || shape[axis] != (int64_t)n)
        return row->channels_last
                   ? "preprocess has another number of channels than the last axis "
                     "(layout nhwc)"
                   : "preprocess has another number of channels than axis 1 (layout "
                     "nchw)";
    ret->channels = n;
    for (size_t i = axis + 1; i < rank; i++)
        ret->inner *= (size_t)shape[i];
    return NULL;
}

static bool
is_of_images(const struct qdq_preprocess *row)
{
    return row->n_size > 0 || row->crop[0] > 0 || row->channels != QDQ_CHANNELS_AUTO ||
           row->resize != QDQ_RESIZE_BILINEAR;
}

const char *
qdqi_scaling_find(const struct qdq_dataset *dataset, bool cut, const char *input,
                  enum qdqi_dtype to, size_t rank, const int64_t *shape,
                  struct qdqi_affine *ret)
{
    *ret = (struct qdqi_affine){
        .row = find_row(dataset, input), .channels = 1, .inner = 1};
    if (!ret->row)
        return NULL;
    if (is_of_images(ret->row) && !dataset->images && !dataset->draws)
        return "\"size\", \"crop\", \"resize\" and \"channels\" of preprocess are for "
               "images, and the data holds arrays (docs/reference/data.md)";
    return to == QDQI_FLOAT32 ? find_channels(cut, rank, shape, ret)
                              : "preprocess scales inputs of float32 alone";
}

bool
qdqi_scaling_is_missing(const struct qdq_dataset *dataset, enum qdqi_dtype from,
                        enum qdqi_dtype to)
{
    const struct qdq_spec *spec = dataset->prepared_by;
    return is_integer(from) && is_floating(to) && !(spec && spec->calibration.cast);
}

static float
of_channel(const double *values, size_t n, size_t channel, float without)
{
    return n == 0 ? without : (float)values[n > 1 ? channel : 0];
}

void
qdqi_scaling_apply(const struct qdqi_affine *scaling, float *x, size_t n, size_t first)
{
    const struct qdq_preprocess *row = scaling->row;
    const float scale = (float)row->scale;
    for (size_t i = 0; i < n; i++) {
        const size_t channel = (first + i) / scaling->inner % scaling->channels;
        x[i] = (x[i] * scale - of_channel(row->mean, row->n_mean, channel, 0)) /
               of_channel(row->std, row->n_std, channel, 1);
    }
}
