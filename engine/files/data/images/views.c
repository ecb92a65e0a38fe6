/* SPDX-License-Identifier: Apache-2.0 */
/* How images become the samples of an input. */
#include "config.h"
#include "files/data/images/inner.h"

#include <stdlib.h>
#include <string.h>

/* --- views ---------------------------------------------------------------- */

static const struct qdq_preprocess *
row_of(const struct qdq_dataset *ds, const char *input)
{
    const struct qdq_spec *spec = ds->prepared_by;
    for (size_t i = 0; spec && i < spec->n_preprocess; i++)
        if (strcmp(spec->preprocess[i].input, input) == 0)
            return &spec->preprocess[i];
    return NULL;
}

/* Returns whether an array beside the images has the name. */
static bool
is_beside(const struct qdq_dataset *ds, const char *name)
{
    for (size_t i = 1; i < ds->info.n_arrays; i++)
        if (strcmp(ds->arrays[i].name, name) == 0)
            return true;
    return false;
}

int
qdqi_images_input(const struct qdq_dataset *ds, const struct qdq_model_info *model)
{
    int found = -1;
    for (size_t i = 0; i < model->n_inputs; i++)
        if (model->inputs[i].has_shape && model->inputs[i].rank == 4 &&
            !is_beside(ds, model->inputs[i].name) &&
            (found < 0 || (!row_of(ds, model->inputs[found].name) &&
                           row_of(ds, model->inputs[i].name))))
            found = (int)i;
    return found;
}

static enum qdq_code
mismatch(const struct qdq_value *input, const char *what, struct qdq_error *err)
{
    return qdq_error_set(err, QDQ_CALIBRATION_MISMATCH, QDQ_AT_INPUT, input->name,
                         "input '%.128s' cannot take the images: %s (docs/reference/"
                         "data.md)",
                         input->name, what);
}

/* Chooses gray or color. Returns NULL, or what is wrong. */
static const char *
choose_channels(const struct qdq_dataset *ds, int64_t wanted,
                struct qdqi_image_view *view)
{
    const enum qdq_channels asked = view->row ? view->row->channels : QDQ_CHANNELS_AUTO;
    const int64_t stored = ds->arrays[0].shape[3];
    view->channels = asked != QDQ_CHANNELS_AUTO ? (asked == QDQ_CHANNELS_GRAY ? 1 : 3)
                     : wanted > 0               ? (size_t)wanted
                                                : (stored == 1 ? 1 : 3);
    view->bgr = asked == QDQ_CHANNELS_BGR;
    if (view->channels != 1 && view->channels != 3)
        return view->channels_last
                   ? "its last axis is no 1 or 3 channels; with its channels at axis 1 "
                     "write \"layout\": \"nchw\""
                   : "its axis 1 is no 1 or 3 channels; with its channels at the last "
                     "axis write \"preprocess\": {INPUT: {\"layout\": \"nhwc\"}}";
    return wanted > 0 && (size_t)wanted != view->channels
               ? "\"channels\" gives it another number of channels than it has"
               : NULL;
}

/* Chooses one side of a sample: 0 the height, 1 the width. Returns 0 if nothing tells it. */
static int64_t
choose_side(const struct qdq_dataset *ds, const struct qdqi_image_view *view, int i,
            int64_t wanted)
{
    if (view->row && view->row->crop[0] > 0)
        return view->row->crop[i];
    if (view->row && view->row->n_size == 2)
        return view->row->size[i];
    if (wanted > 0)
        return wanted;
    const int64_t all = ds->arrays[0].shape[1 + i];
    return all > 0 && !(view->row && view->row->n_size == 1) ? all : 0;
}

static const char *
choose_size(const struct qdq_dataset *ds, const int64_t wanted[2],
            struct qdqi_image_view *view)
{
    const bool cuts = view->row && view->row->crop[0] > 0;
    const int64_t height = choose_side(ds, view, 0, wanted[0]);
    const int64_t width = choose_side(ds, view, 1, wanted[1]);
    if (view->row && view->row->n_size == 1 && !cuts)
        return "a \"size\" of one number leaves sizes that differ; write \"crop\": "
               "[height, width] beside it";
    if (cuts && view->row->n_size == 0 && view->row->resize != QDQ_RESIZE_NONE)
        return "write the \"size\" that images have before they are cut, or "
               "\"resize\": \"none\"";
    if (height == 0 || width == 0)
        return "neither the model nor \"size\" says how large they are to be, and they "
               "differ";
    if ((wanted[0] > 0 && wanted[0] != height) || (wanted[1] > 0 && wanted[1] != width))
        return "\"size\" or \"crop\" gives it another height or width than it has";
    view->height = (size_t)height;
    view->width = (size_t)width;
    return NULL;
}

enum qdq_code
qdqi_images_fit(const struct qdq_dataset *ds, const struct qdq_value *input,
                struct qdqi_arena *arena, struct qdqi_image_view *ret,
                struct qdq_array *ret_array, struct qdq_error *err)
{
    *ret = (struct qdqi_image_view){.row = row_of(ds, input->name)};
    ret->channels_last = ret->row && ret->row->channels_last;
    if (!input->has_shape || input->rank != 4)
        return mismatch(input, "it has no four axes", err);
    const size_t c = ret->channels_last ? 3 : 1, h = ret->channels_last ? 1 : 2;
    const int64_t wanted[] = {input->dims[h].value, input->dims[h + 1].value};
    const char *why = choose_channels(ds, input->dims[c].value, ret);
    if (!why)
        why = choose_size(ds, wanted, ret);
    if (why)
        return mismatch(input, why, err);
    const int64_t pixels = (int64_t)ret->height * (int64_t)ret->width;
    if (pixels > QDQI_PICTURE_MOST_PIXELS)
        return mismatch(input, "a sample has more than 67108864 pixels", err);
    int64_t *shape = qdqi_arena_array(arena, 4, sizeof *shape);
    if (!shape)
        return qdqi_no_memory(err);
    shape[0] = ds->info.samples;
    shape[c] = (int64_t)ret->channels;
    shape[h] = (int64_t)ret->height;
    shape[h + 1] = (int64_t)ret->width;
    ret->size = (size_t)pixels * ret->channels;
    *ret_array = (struct qdq_array){"images", "uint8", 4, shape};
    return QDQ_OK;
}

/* --- samples -------------------------------------------------------------- */

static enum qdq_code
decode(struct qdq_dataset *ds, const struct qdqi_image *image, size_t channels,
       struct qdqi_picture *ret, struct qdq_error *err)
{
    unsigned char *file = malloc((size_t)image->size);
    if (!file)
        return qdqi_no_memory(err);
    enum qdq_code code = qdqi_image_start(ds, image, file, (size_t)image->size, err);
    if (!code)
        code = qdqi_picture_decode(image->name, file, (size_t)image->size,
                                   (unsigned)channels, ret, err);
    free(file);
    return code;
}

/* Finds the size that a picture is resized to. */
static void
target_size(const struct qdqi_image_view *view, const struct qdqi_picture *picture,
            size_t *ret_width, size_t *ret_height)
{
    const struct qdq_preprocess *row = view->row;
    *ret_width = view->width;
    *ret_height = view->height;
    if (row && row->resize == QDQ_RESIZE_NONE) {
        *ret_width = picture->width;
        *ret_height = picture->height;
    } else if (row && row->n_size == 2) {
        *ret_height = (size_t)row->size[0];
        *ret_width = (size_t)row->size[1];
    } else if (row && row->n_size == 1) {
        const size_t side = (size_t)row->size[0];
        const bool upright = picture->width < picture->height;
        *ret_width = upright ? side : side * picture->width / picture->height;
        *ret_height = upright ? side * picture->height / picture->width : side;
    }
}

static enum qdq_code
resize(const struct qdqi_image_view *view, const char *name,
       struct qdqi_picture *picture, struct qdq_error *err)
{
    struct qdqi_picture resized;
    size_t width, height;
    target_size(view, picture, &width, &height);
    if (width == picture->width && height == picture->height)
        return QDQ_OK;
    if (width > QDQI_PICTURE_MOST_PIXELS / height)
        return qdqi_picture_limit(name, err, "pixels after resizing",
                                  (uint64_t)width * height, QDQI_PICTURE_MOST_PIXELS);
    enum qdq_code code = qdqi_picture_resize(
        picture, width, height, view->row ? view->row->resize : QDQ_RESIZE_BILINEAR,
        &resized, err);
    if (code)
        return code;
    qdqi_picture_free(picture);
    *picture = resized;
    return QDQ_OK;
}

/* Half of what is left over, rounded to the even number where it lies between two. */
static size_t
margin_of(size_t there, size_t kept)
{
    const size_t rest = there - kept;
    return rest / 2 + (rest % 2 && rest / 2 % 2);
}

static void
lay_out(const struct qdqi_image_view *view, const struct qdqi_picture *from,
        unsigned char *to)
{
    const size_t top = margin_of(from->height, view->height);
    const size_t left = margin_of(from->width, view->width);
    const size_t c = view->channels, plane = view->height * view->width;
    for (size_t y = 0; y < view->height; y++) {
        const unsigned char *row =
            from->pixels + ((top + y) * from->width + left) * from->channels;
        for (size_t x = 0; x < view->width; x++)
            for (size_t k = 0; k < c; k++) {
                const size_t pixel = y * view->width + x;
                to[view->channels_last ? pixel * c + k : k * plane + pixel] =
                    row[x * c + (view->bgr ? c - 1 - k : k)];
            }
    }
}

enum qdq_code
qdqi_images_sample(struct qdq_dataset *ds, const struct qdqi_image_view *view, size_t i,
                   unsigned char *to, struct qdq_error *err)
{
    const struct qdqi_image *image = &ds->images->rows[i];
    const bool cuts = view->row && view->row->crop[0] > 0;
    struct qdqi_picture picture = {0};
    enum qdq_code code = decode(ds, image, view->channels, &picture, err);
    if (!code)
        code = resize(view, image->name, &picture, err);
    if (!code &&
        (picture.width < view->width || picture.height < view->height ||
         (!cuts && (picture.width != view->width || picture.height != view->height))))
        code = qdqi_picture_invalid(
            image->name, err,
            "it is %zux%zu, and the model gets %zux%zu (width "
            "and height): %s",
            picture.width, picture.height, view->width, view->height,
            cuts ? "\"crop\" is larger than it" : "let \"resize\" change it");
    if (!code)
        lay_out(view, &picture, to);
    qdqi_picture_free(&picture);
    return code;
}
