/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/data/images/inner.h"
#include "files/data/forms/table.h"
#include "files/data/member_names.h"
#include "files/data/sets.h"
#include "files/images/picture.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LABEL = 24 }; /* bytes of a file with a label */

/* --- names ---------------------------------------------------------------- */

static bool
is_image(const char *name)
{
    return !qdqi_is_hidden(name) &&
           (qdqi_ends_in(name, ".jpg") || qdqi_ends_in(name, ".jpeg") ||
            qdqi_ends_in(name, ".png"));
}

bool
qdqi_images_is_label(const char *name)
{
    return !qdqi_is_hidden(name) && qdqi_ends_in(name, ".cls");
}

bool
qdqi_images_wants(const char *name)
{
    return is_image(name) || qdqi_images_is_label(name);
}

/* Returns the bytes of the name before the first dot of its last part. */
static size_t
key_length(const char *name)
{
    const char *base = qdqi_base_of(name);
    return (size_t)(base - name) + strcspn(base, ".");
}

static size_t
folder_length(const char *name)
{
    return (size_t)(qdqi_base_of(name) - name);
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(((const struct qdqi_image *)a)->name,
                  ((const struct qdqi_image *)b)->name);
}

/* One image of each folder, then the second one of each. */
static int
by_turn(const void *a, const void *b)
{
    const struct qdqi_image *left = a, *right = b;
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
    struct qdqi_image file = {.member = member, .size = size, .label = -1};
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

enum qdq_code
qdqi_image_start(struct qdq_dataset *ds, const struct qdqi_image *file, void *to,
                 size_t size, struct qdq_error *err)
{
    struct qdqi_stream stream;
    if (ds->table)
        return qdqi_table_bytes(ds, file->member, file->page, file->at, to, size, err);
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
read_head(struct qdq_dataset *ds, struct qdqi_image *image, struct qdq_error *err)
{
    const uint64_t tries[] = {QDQI_PICTURE_START, QDQI_PICTURE_MOST_FILE};
    enum qdq_code code = QDQ_OK;
    bool found = false;
    for (size_t i = 0; !code && !found && i < sizeof tries / sizeof *tries; i++) {
        const size_t got = (size_t)(image->size < tries[i] ? image->size : tries[i]);
        unsigned char *start = malloc(got + 1);
        if (!start)
            return qdqi_no_memory(err);
        code = qdqi_image_start(ds, image, start, got, err);
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
read_label(struct qdq_dataset *ds, struct qdqi_image *file, struct qdq_error *err)
{
    char text[MOST_LABEL + 1] = "", *end = text;
    enum qdq_code code = QDQ_OK;
    if (file->size > 0 && file->size <= MOST_LABEL)
        code = qdqi_image_start(ds, file, text, (size_t)file->size, err);
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
    const struct qdqi_image *left = a, *right = b;
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
        const struct qdqi_image *label =
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
is_same_folder(const struct qdqi_image *a, const struct qdqi_image *b)
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
    const struct qdqi_image *left = a, *right = b;
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
        struct qdqi_image *image = &images->rows[i];
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

enum qdq_code
qdqi_images_add_arrays(struct qdq_dataset *ds, bool labels, struct qdq_error *err)
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
                : qdqi_images_add_arrays(
                      ds, ds->images->n_labels > 0 || ds->images->in_turn, err);
}

int64_t
qdqi_images_label(const struct qdq_dataset *ds, size_t i)
{
    return ds->images->rows[i].label;
}
