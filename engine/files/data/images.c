/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/data/images.h"
#include "files/data/sets.h"
#include "files/images/picture.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MOST_LABEL = 24 }; /* bytes of a file with a label */

struct image {
    const char *name;
    size_t member;
    uint64_t size;
    struct qdqi_picture_head head;
    int64_t label;
    size_t turn; /* the number of the image in its folder */
};

struct qdqi_images {
    struct image *rows;
    size_t n;
    struct image *labels; /* the files KEY.cls; size and member alone are set */
    size_t n_labels;
    bool in_turn; /* labels are folders */
    const char **classes;
};

/* --- names ---------------------------------------------------------------- */

static const char *
base_of(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

static bool
ends_in(const char *name, const char *ending)
{
    const size_t n = strlen(name), m = strlen(ending);
    return n > m && strcasecmp(name + n - m, ending) == 0;
}

/* Hidden files are none of the user's images: some systems put one beside each. */
static bool
is_hidden(const char *name)
{
    return *base_of(name) == '.' || strncmp(name, "__MACOSX/", 9) == 0;
}

static bool
is_image(const char *name)
{
    return !is_hidden(name) &&
           (ends_in(name, ".jpg") || ends_in(name, ".jpeg") || ends_in(name, ".png"));
}

static bool
is_label(const char *name)
{
    return !is_hidden(name) && ends_in(name, ".cls");
}

bool
qdqi_images_wants(const char *name)
{
    return is_image(name) || is_label(name);
}

/* Returns the bytes of the name before the first dot of its last part. */
static size_t
key_length(const char *name)
{
    const char *base = base_of(name);
    return (size_t)(base - name) + strcspn(base, ".");
}

static size_t
folder_length(const char *name)
{
    return (size_t)(base_of(name) - name);
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(((const struct image *)a)->name, ((const struct image *)b)->name);
}

/* One image of each folder, then the second one of each. */
static int
by_turn(const void *a, const void *b)
{
    const struct image *left = a, *right = b;
    if (left->turn != right->turn)
        return left->turn < right->turn ? -1 : 1;
    return left->label < right->label ? -1 : left->label > right->label;
}

/* --- the files of the archive ---------------------------------------------- */

static enum qdq_code
add_file(struct qdq_dataset *ds, const char *name, size_t member, uint64_t size,
         struct qdq_error *err)
{
    struct qdqi_images *images = ds->images;
    struct image file = {.member = member, .size = size, .label = -1};
    if (!qdqi_images_wants(name))
        return QDQ_OK;
    file.name = qdqi_arena_strdup(ds->arena, name);
    if (!file.name)
        return qdqi_no_memory(err);
    if (is_image(name))
        images->rows[images->n++] = file;
    else
        images->labels[images->n_labels++] = file;
    return QDQ_OK;
}

static enum qdq_code
find_in_zip(struct qdq_dataset *ds, bool *ret_arrays, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; !code && i < qdqi_npz_count(ds->npz); i++) {
        struct qdqi_npz_entry entry;
        code = qdqi_npz_entry(ds->npz, i, &entry, err);
        *ret_arrays |= !code && entry.npy;
        if (!code && !entry.folder && !entry.npy)
            code = add_file(ds, entry.name, i, entry.size, err);
    }
    return code;
}

static enum qdq_code
find_files(struct qdq_dataset *ds, bool *ret_arrays, struct qdq_error *err)
{
    const size_t n = ds->tar ? qdqi_tar_count(ds->tar) : qdqi_npz_count(ds->npz);
    enum qdq_code code = QDQ_OK;
    ds->images->rows = qdqi_arena_array(ds->arena, n, sizeof *ds->images->rows);
    ds->images->labels = qdqi_arena_array(ds->arena, n, sizeof *ds->images->labels);
    if (!ds->images->rows || !ds->images->labels)
        return qdqi_no_memory(err);
    if (!ds->tar)
        return find_in_zip(ds, ret_arrays, err);
    for (size_t i = 0; !code && i < n; i++) {
        const struct qdqi_tar_file *file = qdqi_tar_file(ds->tar, i);
        code = add_file(ds, file->name, i, file->size, err);
    }
    return code;
}

/* Reads the first `size` bytes of a file. */
static enum qdq_code
read_start(struct qdq_dataset *ds, const struct image *file, void *to, size_t size,
           struct qdq_error *err)
{
    struct qdqi_stream stream;
    enum qdq_code code = qdqi_sets_open(ds, file->member, file->name, &stream, err);
    if (code)
        return code;
    code = qdqi_stream_read(&stream, to, size, err);
    if (!code && size == file->size)
        code = qdqi_stream_end(&stream, err);
    qdqi_stream_close(&stream);
    return code;
}

/* Reads the head of an image, which rarely needs more than the file's first bytes. */
static enum qdq_code
read_head(struct qdq_dataset *ds, struct image *image, struct qdq_error *err)
{
    const uint64_t tries[] = {QDQI_PICTURE_START, QDQI_PICTURE_MOST_FILE};
    enum qdq_code code = QDQ_OK;
    bool found = false;
    for (size_t i = 0; !code && !found && i < sizeof tries / sizeof *tries; i++) {
        const size_t got = (size_t)(image->size < tries[i] ? image->size : tries[i]);
        unsigned char *start = malloc(got + 1);
        if (!start)
            return qdqi_no_memory(err);
        code = read_start(ds, image, start, got, err);
        if (!code)
            code = qdqi_picture_head(image->name, start, got, image->size, &image->head,
                                     &found, err);
        free(start);
    }
    return code;
}

static enum qdq_code
read_heads(struct qdq_dataset *ds, struct qdq_error *err)
{
    struct qdqi_images *images = ds->images;
    enum qdq_code code = QDQ_OK;
    qsort(images->rows, images->n, sizeof *images->rows, by_name);
    for (size_t i = 0; !code && i < images->n; i++) {
        if (i > 0 && by_name(&images->rows[i], &images->rows[i - 1]) == 0)
            return qdqi_picture_invalid(images->rows[i].name, err,
                                        "the archive holds it twice");
        code = read_head(ds, &images->rows[i], err);
    }
    return code;
}

/* --- labels --------------------------------------------------------------- */

static enum qdq_code
read_label(struct qdq_dataset *ds, struct image *file, struct qdq_error *err)
{
    char text[MOST_LABEL + 1] = "", *end = text;
    enum qdq_code code = QDQ_OK;
    if (file->size > 0 && file->size <= MOST_LABEL)
        code = read_start(ds, file, text, (size_t)file->size, err);
    if (code)
        return code;
    file->label = strtoll(text, &end, 10);
    while (isspace((unsigned char)*end))
        end++;
    if (end == text || end != text + file->size || file->label < -1 ||
        file->label > INT32_MAX)
        return qdqi_picture_invalid(file->name, err,
                                    "a label is one whole number in a text file");
    return QDQ_OK;
}

static int
by_key(const void *a, const void *b)
{
    const struct image *left = a, *right = b;
    const size_t n = key_length(left->name), m = key_length(right->name);
    const int order = memcmp(left->name, right->name, n < m ? n : m);
    return order ? order : n < m ? -1 : n > m;
}

/* Gives each image the label of its key. */
static enum qdq_code
take_labels(struct qdq_dataset *ds, struct qdq_error *err)
{
    struct qdqi_images *images = ds->images;
    enum qdq_code code = QDQ_OK;
    qsort(images->labels, images->n_labels, sizeof *images->labels, by_key);
    for (size_t i = 0; !code && i < images->n_labels; i++)
        code = i > 0 && by_key(&images->labels[i], &images->labels[i - 1]) == 0
                   ? qdqi_picture_invalid(images->labels[i].name, err,
                                          "the archive has two labels of this name")
                   : read_label(ds, &images->labels[i], err);
    for (size_t i = 0; !code && i < images->n; i++) {
        const struct image *label =
            bsearch(&images->rows[i], images->labels, images->n_labels,
                    sizeof *images->labels, by_key);
        if (!label)
            code = qdqi_picture_invalid(
                images->rows[i].name, err,
                "no file '%.*s.cls' with its label lies beside it, and other images "
                "have one",
                (int)key_length(images->rows[i].name), images->rows[i].name);
        else
            images->rows[i].label = label->label;
    }
    return code;
}

static size_t
depth_of(const char *name)
{
    size_t depth = 0;
    for (const char *at = name; (at = strchr(at, '/')); at++)
        depth++;
    return depth;
}

static bool
is_same_folder(const struct image *a, const struct image *b)
{
    const size_t n = folder_length(a->name);
    return n == folder_length(b->name) && memcmp(a->name, b->name, n) == 0;
}

/* Compares paths of folders part by part, so that "cat" precedes "cat-big", as it does in a sorted
   list of their names. */
static int
compare_folders(const char *a, size_t n, const char *b, size_t m)
{
    size_t i = 0;
    while (i < n && i < m && a[i] == b[i])
        i++;
    /* a slash ends a part, and what is shorter comes first */
    const int left = i < n && a[i] != '/' ? (unsigned char)a[i] : 0;
    const int right = i < m && b[i] != '/' ? (unsigned char)b[i] : 0;
    return left != right ? left - right : (i < n) - (i < m);
}

static int
by_folder(const void *a, const void *b)
{
    const struct image *left = a, *right = b;
    const int order = compare_folders(left->name, folder_length(left->name),
                                      right->name, folder_length(right->name));
    return order ? order : strcmp(left->name, right->name);
}

/* Returns the number of folders; 0 where the images lie in various depths. */
static size_t
count_folders(struct qdqi_images *images)
{
    size_t n = 1;
    qsort(images->rows, images->n, sizeof *images->rows, by_folder);
    for (size_t i = 1; i < images->n; i++) {
        if (depth_of(images->rows[i].name) != depth_of(images->rows[0].name))
            return 0;
        n += !is_same_folder(&images->rows[i], &images->rows[i - 1]);
    }
    return n;
}

/* Returns the last part of the folder's name. */
static const char *
class_of(struct qdq_dataset *ds, const char *name)
{
    size_t end = folder_length(name) - 1, start = end;
    while (start > 0 && name[start - 1] != '/')
        start--;
    return qdqi_arena_printf(ds->arena, "%.*s", (int)(end - start), name + start);
}

/* Makes labels of the folders. */
static enum qdq_code
number_folders(struct qdq_dataset *ds, struct qdq_error *err)
{
    struct qdqi_images *images = ds->images;
    const size_t folders = count_folders(images);
    size_t class = 0, turn = 0;
    if (folders < 2) {
        qsort(images->rows, images->n, sizeof *images->rows, by_name);
        return QDQ_OK;
    }
    images->classes = qdqi_arena_array(ds->arena, folders, sizeof *images->classes);
    if (!images->classes)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < images->n; i++, turn++) {
        struct image *image = &images->rows[i];
        if (i > 0 && !is_same_folder(image, image - 1)) {
            class ++;
            turn = 0;
        }
        if (turn == 0 && !(images->classes[class] = class_of(ds, image->name)))
            return qdqi_no_memory(err);
        image->label = (int64_t) class;
        image->turn = turn;
    }
    qsort(images->rows, images->n, sizeof *images->rows, by_turn);
    images->in_turn = true;
    ds->info.classes = images->classes;
    ds->info.n_classes = folders;
    return QDQ_OK;
}

/* --- arrays --------------------------------------------------------------- */

static enum qdq_code
add_array(struct qdq_dataset *ds, const char *name, enum qdqi_dtype dtype, size_t rank,
          const int64_t *shape, uint64_t size, struct qdq_error *err)
{
    const int64_t *copy = qdqi_arena_copy(ds->arena, shape, rank, sizeof *copy);
    if (!copy)
        return qdqi_no_memory(err);
    const size_t i = ds->info.n_arrays++;
    ds->arrays[i] = (struct qdq_array){name, qdqi_dtype_name((int)dtype), rank, copy};
    ds->items[i] =
        (struct qdqi_item){.dtype = dtype, .size = size, .input = QDQI_NAMED};
    return QDQ_OK;
}

static void
meet(int64_t *size, int64_t other)
{
    if (*size != other)
        *size = QDQ_DIFFERS;
}

static enum qdq_code
add_arrays(struct qdq_dataset *ds, bool labels, struct qdq_error *err)
{
    const struct qdqi_images *images = ds->images;
    const struct qdqi_picture_head *first = &images->rows[0].head;
    int64_t shape[] = {(int64_t)images->n, first->height, first->width,
                       first->channels};
    for (size_t i = 1; i < images->n; i++) {
        meet(&shape[1], images->rows[i].head.height);
        meet(&shape[2], images->rows[i].head.width);
        meet(&shape[3], images->rows[i].head.channels);
    }
    ds->arrays = qdqi_arena_array(ds->arena, 2, sizeof *ds->arrays);
    ds->items = qdqi_arena_array(ds->arena, 2, sizeof *ds->items);
    if (!ds->arrays || !ds->items)
        return qdqi_no_memory(err);
    ds->info.arrays = ds->arrays;
    ds->info.samples = shape[0];
    ds->info.has_images = true;
    enum qdq_code code = add_array(ds, "images", QDQI_UINT8, 4, shape, 0, err);
    return code || !labels ? code
                           : add_array(ds, "labels", QDQI_INT64, 1, shape,
                                       images->n * sizeof(int64_t), err);
}

enum qdq_code
qdqi_images_read(struct qdq_dataset *ds, struct qdq_error *err)
{
    bool has_arrays = false;
    ds->images = qdqi_arena_alloc(ds->arena, sizeof *ds->images);
    if (!ds->images)
        return qdqi_no_memory(err);
    *ds->images = (struct qdqi_images){0};
    enum qdq_code code = find_files(ds, &has_arrays, err);
    if (code || ds->images->n == 0) {
        ds->images = NULL;
        return code;
    }
    if (has_arrays)
        return qdqi_picture_invalid(ds->images->rows[0].name, err,
                                    "the archive holds images and .npy files; send "
                                    "either");
    code = read_heads(ds, err);
    if (!code)
        code =
            ds->images->n_labels > 0 ? take_labels(ds, err) : number_folders(ds, err);
    return code ? code
                : add_arrays(ds, ds->images->n_labels > 0 || ds->images->in_turn, err);
}

int64_t
qdqi_images_label(const struct qdq_dataset *ds, size_t i)
{
    return ds->images->rows[i].label;
}

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

int
qdqi_images_input(const struct qdq_dataset *ds, const struct qdq_model_info *model)
{
    int found = -1;
    for (size_t i = 0; i < model->n_inputs; i++)
        if (model->inputs[i].has_shape && model->inputs[i].rank == 4 &&
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
decode(struct qdq_dataset *ds, const struct image *image, size_t channels,
       struct qdqi_picture *ret, struct qdq_error *err)
{
    unsigned char *file = malloc((size_t)image->size);
    if (!file)
        return qdqi_no_memory(err);
    enum qdq_code code = read_start(ds, image, file, (size_t)image->size, err);
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
    const struct image *image = &ds->images->rows[i];
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
