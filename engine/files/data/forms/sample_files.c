/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/data/forms/sample_files.h"
#include "files/data/file.h"
#include "files/data/images/images.h"
#include "files/data/member_names.h"
#include "files/data/npy.h"
#include "files/data/reader.h"
#include "ground/base/map.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LABEL = 24, LEAST_ZIP = 22 }; /* bytes */

enum kind { ARRAY, ARCHIVE, LABEL };

/* A file of the archive: of sample KEY, the array FIELD. */
struct file {
    const char *name;
    size_t key; /* bytes of the name */
    const char *field;
    enum kind kind;
    size_t member;
    uint64_t size;
};

struct files {
    struct qdq_dataset *ds;
    struct file *rows;
    size_t n;
    size_t samples, sample; /* all, and the one that is read */
    size_t n_here;          /* arrays of the sample that were read */
    size_t capacity;        /* of the dataset's arrays */
    struct qdqi_map *names; /* index + 1 of each array */
    struct qdq_error *err;
};

/* --- names -------------------------------------------------------------------- */

bool
qdqi_sample_files_wants(const char *name)
{
    return !qdqi_is_hidden(name) &&
           (qdqi_ends_in(name, ".npy") || qdqi_ends_in(name, ".npz"));
}

static int
by_key(const void *a, const void *b)
{
    const struct file *left = a, *right = b;
    const size_t n = left->key < right->key ? left->key : right->key;
    const int order = memcmp(left->name, right->name, n);
    return order                     ? order
           : left->key != right->key ? (left->key < right->key ? -1 : 1)
                                     : strcmp(left->name, right->name);
}

static bool
is_same_key(const struct file *a, const struct file *b)
{
    return a->key == b->key && memcmp(a->name, b->name, a->key) == 0;
}

/* Finds what a member is. False: it is nothing of a sample. */
static enum qdq_code
add_file(struct files *f, const struct qdqi_tar_file *found, size_t member)
{
    const char *base = qdqi_base_of(found->name), *dot = strchr(base, '.');
    const bool is_label = qdqi_images_is_label(found->name);
    if (!is_label && !qdqi_sample_files_wants(found->name))
        return QDQ_OK;
    struct file *file = &f->rows[f->n++];
    const size_t ending = strlen(".npy"), end = strlen(dot) - ending;
    *file = (struct file){.name = found->name,
                          .key = (size_t)(dot - found->name),
                          .kind = is_label                            ? LABEL
                                  : qdqi_ends_in(found->name, ".npy") ? ARRAY
                                                                      : ARCHIVE,
                          .member = member,
                          .size = found->size};
    file->field = file->kind == LABEL ? "labels"
                  : end > 0 ? qdqi_arena_strndup(f->ds->arena, dot + 1, end - 1)
                            : "";
    return file->field ? QDQ_OK : qdqi_no_memory(f->err);
}

static enum qdq_code
find_files(struct files *f)
{
    const size_t n = qdqi_tar_count(f->ds->tar);
    enum qdq_code code = QDQ_OK;
    bool has_arrays = false;
    f->rows = qdqi_arena_array(f->ds->arena, n, sizeof *f->rows);
    f->names = qdqi_map_new(f->ds->arena);
    if (!f->rows || !f->names)
        return qdqi_no_memory(f->err);
    for (size_t i = 0; !code && i < n; i++)
        code = add_file(f, qdqi_tar_file(f->ds->tar, i), i);
    if (code)
        return code;
    qsort(f->rows, f->n, sizeof *f->rows, by_key);
    for (size_t i = 0; i < f->n; i++) {
        f->samples += i == 0 || !is_same_key(&f->rows[i], &f->rows[i - 1]);
        has_arrays |= f->rows[i].kind != LABEL;
    }
    return has_arrays ? QDQ_OK
                      : qdq_error_set(f->err, QDQ_INVALID_DATASET, QDQ_AT_NOTHING, NULL,
                                      "the dataset is a tar archive with labels and "
                                      "without images or arrays");
}

/* --- arrays ------------------------------------------------------------------- */

static enum qdq_code
invalid(const struct files *f, const struct file *file, const char *what)
{
    return qdq_error_set(f->err, QDQ_INVALID_DATASET, QDQ_AT_INPUT, file->name,
                         "member '%.200s' of the tar archive: %s (docs/reference/"
                         "data.md)",
                         file->name, what);
}

/* Makes an array as the first sample has it. */
static enum qdq_code
add_array(struct files *f, const char *name, const struct qdqi_npy *npy)
{
    struct qdq_dataset *ds = f->ds;
    const size_t n = ds->info.n_arrays;
    size_t same = f->capacity;
    enum qdq_code code = qdqi_dataset_check_arrays(n + 1, f->err);
    if (code)
        return code;
    if (f->samples > QDQI_MAX_PARTS / (n + 1))
        return qdq_error_set(f->err, QDQ_LIMIT_EXCEEDED, QDQ_AT_NOTHING, NULL,
                             "the tar archive has more than %d arrays of samples",
                             QDQI_MAX_PARTS);
    ds->arrays =
        qdqi_arena_grow(ds->arena, ds->arrays, n, &f->capacity, sizeof *ds->arrays);
    ds->items = qdqi_arena_grow(ds->arena, ds->items, n, &same, sizeof *ds->items);
    const char *own = qdqi_arena_strdup(ds->arena, name);
    int64_t *shape = qdqi_arena_array(ds->arena, npy->rank + 1, sizeof *shape);
    struct qdqi_sample_file *parts =
        qdqi_arena_array(ds->arena, f->samples, sizeof *parts);
    if (!ds->arrays || !ds->items || !own || !shape || !parts ||
        !qdqi_map_put(f->names, own, (void *)(uintptr_t)(n + 1)))
        return qdqi_no_memory(f->err);
    shape[0] = (int64_t)f->samples;
    memcpy(shape + 1, npy->shape, npy->rank * sizeof *shape);
    ds->arrays[n] =
        (struct qdq_array){own, qdqi_dtype_name((int)npy->dtype), npy->rank + 1, shape};
    ds->items[n] = (struct qdqi_item){
        .dtype = npy->dtype, .input = QDQI_NAMED, .is_alone = !*name, .parts = parts};
    ds->info.arrays = ds->arrays;
    ds->info.n_arrays++;
    return QDQ_OK;
}

/* Compares an array of a later sample with the first; sizes that differ become open. */
static enum qdq_code
match_array(struct files *f, size_t i, const struct file *file,
            const struct qdqi_npy *npy)
{
    struct qdq_array *array = &f->ds->arrays[i];
    int64_t *shape = (int64_t *)(uintptr_t)array->shape;
    if (npy->dtype != f->ds->items[i].dtype || npy->rank + 1 != array->rank)
        return qdq_error_set(f->err, QDQ_INVALID_DATASET, QDQ_AT_INPUT, file->name,
                             "member '%.200s' of the tar archive: array '%.128s' is %s "
                             "of %zu axes, and %s of %zu in the first sample",
                             file->name, array->name, qdqi_dtype_name((int)npy->dtype),
                             npy->rank, array->dtype, array->rank - 1);
    for (size_t k = 0; k < npy->rank; k++)
        if (shape[k + 1] != npy->shape[k]) {
            shape[k + 1] = QDQ_DIFFERS;
            f->ds->items[i].differs = true;
        }
    return QDQ_OK;
}

/* Notes an array of the current sample. */
static enum qdq_code
add_part(struct files *f, const struct file *file, const char *name,
         const struct qdqi_npy *npy, const struct qdqi_sample_file *part)
{
    struct qdq_dataset *ds = f->ds;
    const uint64_t bytes = npy->size;
    size_t i = (size_t)(uintptr_t)qdqi_map_get(f->names, name);
    enum qdq_code code = QDQ_OK;
    if (i == 0 && f->sample > 0)
        return invalid(f, file, "it has an array that the first sample has not");
    if (i == 0) {
        code = add_array(f, name, npy);
        i = ds->info.n_arrays;
    } else {
        code = match_array(f, i - 1, file, npy);
    }
    if (code)
        return code;
    struct qdqi_item *item = &ds->items[i - 1];
    if (item->parts[f->sample].shape)
        return invalid(f, file, "the sample has an array of this name already");
    if (bytes == 0)
        return invalid(f, file, "an array without elements");
    if (bytes > INT64_MAX - item->size)
        return invalid(f, file, "the samples are too large together");
    int64_t *shape = qdqi_arena_array(ds->arena, npy->rank, sizeof *shape);
    if (!shape)
        return qdqi_no_memory(f->err);
    memcpy(shape, npy->shape, npy->rank * sizeof *shape);
    item->size += bytes;
    item->parts[f->sample] = *part;
    item->parts[f->sample].n = bytes / qdqi_dtype_size((int)npy->dtype);
    item->parts[f->sample].shape = shape;
    item->parts[f->sample].offset = npy->offset;
    item->parts[f->sample].big_endian = npy->big_endian;
    item->parts[f->sample].fortran = npy->fortran;
    f->n_here++;
    return QDQ_OK;
}

/* Reads the head of an .npy file of `size` bytes. */
static enum qdq_code
read_npy(struct files *f, const struct file *file, struct qdqi_stream *stream,
         uint64_t size, struct qdqi_npy *ret)
{
    enum qdq_code code = qdqi_npy_read(stream, ret, f->err);
    if (code)
        return code;
    if (size < ret->offset || size - ret->offset != ret->size)
        return invalid(f, file, "it has another size than its head says");
    if (ret->fortran && ret->size > QDQI_FORTRAN_MAX)
        return invalid(f, file, "it is in Fortran order and too large to be reordered");
    return ret->rank < QDQI_NPY_MAX_RANK ? QDQ_OK
                                         : invalid(f, file, "it has too many axes");
}

static enum qdq_code
read_array(struct files *f, const struct file *file)
{
    struct qdqi_stream stream;
    struct qdqi_npy npy;
    const struct qdqi_tar_file *found = qdqi_tar_file(f->ds->tar, file->member);
    qdqi_stream_span(qdqi_tar_fd(f->ds->tar), found->offset, found->size, file->name,
                     &stream);
    enum qdq_code code = read_npy(f, file, &stream, file->size, &npy);
    return code ? code
                : add_part(f, file, file->field, &npy,
                           &(struct qdqi_sample_file){.member = file->member,
                                                      .kind = QDQI_SAMPLE_NPY});
}

/* Reads the array of member i of an .npz file. */
static enum qdq_code
read_inner(struct files *f, const struct file *file, struct qdqi_npz *npz, size_t i)
{
    struct qdqi_npz_entry entry;
    struct qdqi_stream stream;
    struct qdqi_npy npy;
    enum qdq_code code = qdqi_npz_entry(npz, i, &entry, f->err);
    if (code || !entry.npy)
        return code;
    code = qdqi_stream_open(-1, npz, i, file->name, &stream, f->err);
    if (code)
        return code;
    code = read_npy(f, file, &stream, entry.size, &npy);
    qdqi_stream_close(&stream);
    return code ? code
                : add_part(f, file, entry.name, &npy,
                           &(struct qdqi_sample_file){.member = file->member,
                                                      .kind = QDQI_SAMPLE_IN_NPZ,
                                                      .inner = i});
}

static enum qdq_code
open_inner(struct qdq_dataset *ds, size_t member, struct qdqi_npz **ret,
           struct qdq_error *err)
{
    const struct qdqi_tar_file *found = qdqi_tar_file(ds->tar, member);
    if (found->size < LEAST_ZIP)
        return qdq_error_set(err, QDQ_INVALID_DATASET, QDQ_AT_INPUT, found->name,
                             "member '%.200s' of the tar archive is no .npz file",
                             found->name);
    return qdqi_npz_open_within(qdqi_tar_fd(ds->tar), found->offset, found->size, ret,
                                err);
}

static enum qdq_code
read_archive(struct files *f, const struct file *file)
{
    struct qdqi_npz *npz = NULL;
    enum qdq_code code = open_inner(f->ds, file->member, &npz, f->err);
    for (size_t i = 0; !code && i < qdqi_npz_count(npz); i++)
        code = read_inner(f, file, npz, i);
    qdqi_npz_close(&npz);
    return code;
}

static enum qdq_code
read_label(struct files *f, const struct file *file)
{
    char text[MOST_LABEL + 1] = "", *end = text;
    size_t got = 0;
    const struct qdqi_tar_file *found = qdqi_tar_file(f->ds->tar, file->member);
    struct qdqi_sample_file part = {.member = file->member, .kind = QDQI_SAMPLE_LABEL};
    const struct qdqi_npy npy = {.dtype = QDQI_INT64, .size = sizeof part.label};
    enum qdq_code code = QDQ_OK;
    if (file->size > 0 && file->size <= MOST_LABEL)
        code = qdqi_data_read(qdqi_tar_fd(f->ds->tar), found->offset, text,
                              (size_t)file->size, &got, f->err);
    if (code)
        return code;
    part.label = strtoll(text, &end, 10);
    while (isspace((unsigned char)*end))
        end++;
    if (end == text || end != text + file->size || part.label < -1 ||
        part.label > INT32_MAX)
        return invalid(f, file, "a label is one whole number in a text file");
    return add_part(f, file, file->field, &npy, &part);
}

static enum qdq_code
read_sample(struct files *f, size_t from, size_t to)
{
    enum qdq_code code = QDQ_OK;
    f->n_here = 0;
    for (size_t i = from; !code && i < to; i++)
        code = f->rows[i].kind == ARRAY     ? read_array(f, &f->rows[i])
               : f->rows[i].kind == ARCHIVE ? read_archive(f, &f->rows[i])
                                            : read_label(f, &f->rows[i]);
    if (!code && f->n_here != f->ds->info.n_arrays)
        code = invalid(f, &f->rows[from], "its sample lacks an array of the first one");
    return code;
}

enum qdq_code
qdqi_sample_files_read(struct qdq_dataset *ds, struct qdq_error *err)
{
    struct files f = {.ds = ds, .err = err};
    enum qdq_code code = find_files(&f);
    ds->arrays = NULL;
    ds->items = NULL;
    for (size_t from = 0, to; !code && from < f.n; from = to, f.sample++) {
        for (to = from + 1; to < f.n && is_same_key(&f.rows[to], &f.rows[from]);)
            to++;
        code = read_sample(&f, from, to);
    }
    ds->info.samples = (int64_t)f.samples;
    if (!code && ds->info.n_arrays == 0)
        code = invalid(&f, &f.rows[0], "it holds no array");
    return code;
}

enum qdq_code
qdqi_sample_files_open(struct qdq_dataset *ds, const struct qdqi_sample_file *part,
                       const char *name, struct qdqi_stream *ret,
                       struct qdqi_npz **ret_npz, struct qdq_error *err)
{
    const struct qdqi_tar_file *found = qdqi_tar_file(ds->tar, part->member);
    enum qdq_code code = QDQ_OK;
    if (part->kind == QDQI_SAMPLE_NPY)
        qdqi_stream_span(qdqi_tar_fd(ds->tar), found->offset, found->size, name, ret);
    else
        code = open_inner(ds, part->member, ret_npz, err);
    if (!code && part->kind == QDQI_SAMPLE_IN_NPZ)
        code = qdqi_stream_open(-1, *ret_npz, part->inner, name, ret, err);
    return code ? code : qdqi_stream_skip(ret, part->offset, err);
}
