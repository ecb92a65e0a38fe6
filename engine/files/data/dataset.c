/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/data/dataset.h"
#include "ground/base/map.h"
#include "files/data/file.h"
#include "files/data/forms/safetensors.h"
#include "files/data/forms/sample_files.h"
#include "files/data/forms/table.h"
#include "files/data/images/images.h"
#include "files/data/npy.h"
#include "files/data/parquet/footer.h"
#include "files/data/reader.h"
#include "files/data/sets.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum qdq_code
invalid_file(struct qdq_error *err, const char *what)
{
    return qdq_error_set(err, QDQ_INVALID_DATASET, QDQ_AT_NOTHING, NULL,
                         "the dataset %s", what);
}

static enum qdq_code
adopt_file(struct qdq_dataset *ds, int fd, struct qdq_error *err)
{
    struct stat st;
    ds->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (ds->fd < 0 || fstat(ds->fd, &st) != 0)
        return qdqi_data_failed(errno, err);
    if (!S_ISREG(st.st_mode))
        return qdq_error_set(err, QDQ_IO, QDQ_AT_NOTHING, NULL,
                             "the dataset is not a regular file");
    ds->info.size = (uint64_t)st.st_size;
    return QDQ_OK;
}

enum { TAR_MAGIC_AT = 257 };

/* Bytes that a packed tar archive may unpack to by default. It is unpacked into a
   file, because its members are read in any order. */
static const uint64_t UNPACKED_MAX = 8ull << 30;

static bool
is_set_or_image(const char *name)
{
    return qdqi_sets_is_input(name) || qdqi_images_wants(name);
}

static bool
is_sample(const char *name)
{
    return qdqi_sample_files_wants(name) || qdqi_images_wants(name);
}

/* Returns whether the archive holds more than labels. */
static bool
has_samples(const struct qdqi_tar *tar)
{
    for (size_t i = 0; i < qdqi_tar_count(tar); i++)
        if (!qdqi_images_is_label(qdqi_tar_file(tar, i)->name))
            return true;
    return false;
}

/* Opens a tar archive of sets or images, beside which other files are passed over; or else of
   arrays. */
static enum qdq_code
open_tar(struct qdq_dataset *ds, bool gzip, struct qdq_error *err)
{
    bool (*const wants[])(const char *) = {is_set_or_image, is_sample};
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < 2 && !code && !(ds->tar && has_samples(ds->tar)); i++) {
        const struct qdqi_tar_options options = {gzip, ds->most_unpacked, wants[i]};
        qdqi_tar_close(&ds->tar);
        code = qdqi_tar_open(ds->fd, ds->info.size, &options, ds->arena, &ds->tar, err);
    }
    if (code == QDQ_OK && qdqi_tar_count(ds->tar) == 0)
        code = invalid_file(err, "is a tar archive without images (.jpg, .jpeg, .png), "
                                 "without samples (.npy, .npz) and without "
                                 "test_data_set_N/input_M.pb (docs/reference/data.md)");
    return code;
}

/* Recognizes the form by the first bytes and opens the archive, if it is one. */
static enum qdq_code
open_form(struct qdq_dataset *ds, struct qdq_error *err)
{
    unsigned char start[TAR_MAGIC_AT + 5];
    size_t got;
    enum qdq_code code = qdqi_data_read(ds->fd, 0, start, sizeof start, &got, err);
    if (code != QDQ_OK)
        return code;
    if (got == 0)
        return invalid_file(err, "is empty");
    if (got >= QDQI_NPY_MAGIC_SIZE &&
        memcmp(start, QDQI_NPY_MAGIC, QDQI_NPY_MAGIC_SIZE) == 0)
        return QDQ_OK;
    if (got >= 4 &&
        (memcmp(start, "PK\3\4", 4) == 0 || memcmp(start, "PK\5\6", 4) == 0))
        return qdqi_npz_open(ds->fd, ds->info.size, &ds->npz, err);
    if (got >= 2 && memcmp(start, "\x1f\x8b", 2) == 0)
        return open_tar(ds, true, err);
    if (got == sizeof start && memcmp(start + TAR_MAGIC_AT, "ustar", 5) == 0)
        return open_tar(ds, false, err);
    if (qdqi_parquet_starts(start, got)) {
        ds->is_parquet = true;
        return QDQ_OK;
    }
    if (qdqi_safetensors_starts(start, got, ds->info.size)) {
        ds->is_safetensors = true;
        return QDQ_OK;
    }
    return invalid_file(err, "starts neither like an .npz (or .zip) nor like an .npy, "
                             "a .tar, a .tar.gz, a .parquet or a .safetensors file; of "
                             "a text, qdq and the Python client make ids of tokens; "
                             "docs/reference/data.md says how data is made");
}

static enum qdq_code
check_array(const struct qdqi_npy *npy, const char *name, uint64_t size,
            struct qdq_error *err)
{
    if (npy->rank == 0)
        return qdqi_array_invalid(name, err,
                                  "a scalar; samples lie along axis 0 of an array");
    if (npy->shape[0] == 0)
        return qdqi_array_invalid(name, err,
                                  "it has no samples: axis 0 has the size 0");
    if (npy->fortran && npy->size > QDQI_FORTRAN_MAX)
        return qdq_error_set(err, QDQ_LIMIT_EXCEEDED, QDQ_AT_INPUT, name,
                             "array '%s': %" PRIu64
                             " bytes in Fortran order; at most %d can be "
                             "reordered (numpy.ascontiguousarray does it)",
                             name, npy->size, QDQI_FORTRAN_MAX);
    uint64_t there = size < npy->offset ? 0 : size - npy->offset;
    if (there < npy->size)
        return qdqi_array_invalid(
            name, err, "truncated: %" PRIu64 " bytes of %" PRIu64 " are there", there,
            npy->size);
    if (there > npy->size)
        return qdqi_array_invalid(
            name, err, "%" PRIu64 " bytes follow its last element", there - npy->size);
    return QDQ_OK;
}

/* Reads the header of one array, from a stream of `size` bytes, into arrays[n]. */
static enum qdq_code
add_array(struct qdq_dataset *ds, size_t member, const char *name, uint64_t size,
          struct qdq_error *err)
{
    struct qdqi_stream stream;
    struct qdqi_npy npy;
    name = qdqi_arena_strdup(ds->arena, name);
    if (!name)
        return qdqi_no_memory(err);
    enum qdq_code code = qdqi_stream_open(ds->fd, ds->npz, member, name, &stream, err);
    if (code != QDQ_OK)
        return code;
    code = qdqi_npy_read(&stream, &npy, err);
    qdqi_stream_close(&stream);
    if (code == QDQ_OK)
        code = check_array(&npy, name, size, err);
    if (code != QDQ_OK)
        return code;
    int64_t *shape = qdqi_arena_copy(ds->arena, npy.shape, npy.rank, sizeof *shape);
    if (!shape)
        return qdqi_no_memory(err);
    size_t n = ds->info.n_arrays++;
    ds->arrays[n] =
        (struct qdq_array){name, qdqi_dtype_name(npy.dtype), npy.rank, shape};
    ds->items[n] = (struct qdqi_item){
        .dtype = npy.dtype,
        .big_endian = npy.big_endian,
        .fortran = npy.fortran,
        .member = member,
        .offset = npy.offset,
        .size = npy.size,
        .input = QDQI_NAMED,
        .is_alone = !*name,
    };
    return QDQ_OK;
}

static enum qdq_code
add_members(struct qdq_dataset *ds, struct qdq_error *err)
{
    struct qdqi_map *names = qdqi_map_new(ds->arena);
    if (!names)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < qdqi_npz_count(ds->npz); i++) {
        struct qdqi_npz_entry entry;
        enum qdq_code code = qdqi_npz_entry(ds->npz, i, &entry, err);
        if (code != QDQ_OK)
            return code;
        if (entry.folder)
            continue;
        if (qdqi_map_get(names, entry.name))
            return qdqi_array_invalid(entry.name, err, "the name is there twice");
        code = qdqi_dataset_check_arrays(ds->info.n_arrays + 1, err);
        if (code == QDQ_OK)
            code = add_array(ds, i, entry.name, entry.size, err);
        if (code != QDQ_OK)
            return code;
        struct qdq_array *array = &ds->arrays[ds->info.n_arrays - 1];
        if (!qdqi_map_put(names, array->name, array))
            return qdqi_no_memory(err);
    }
    return QDQ_OK;
}

/* Checks that axis 0, which counts samples, has the same size in all arrays. */
static enum qdq_code
check_samples(struct qdq_dataset *ds, struct qdq_error *err)
{
    const struct qdq_array *first = ds->arrays;
    if (ds->info.n_arrays == 0)
        return invalid_file(err, "holds no array");
    for (size_t i = 1; i < ds->info.n_arrays; i++) {
        const struct qdq_array *array = &ds->arrays[i];
        if (array->shape[0] != first->shape[0])
            return qdqi_array_invalid(array->name, err,
                                      "%" PRId64 " samples along axis 0, but array "
                                      "'%s' has %" PRId64,
                                      array->shape[0], first->name, first->shape[0]);
    }
    ds->info.samples = first->shape[0];
    return QDQ_OK;
}

/* Reads an archive of samples that are files of their own. *ret_found is false where it holds
   none. */
static enum qdq_code
read_sample_files(struct qdq_dataset *ds, bool *ret_found, struct qdq_error *err)
{
    enum qdq_code code = qdqi_sets_read(ds, err);
    if (!code && !ds->is_sets)
        code = qdqi_images_read(ds, err);
    if (!code && !ds->is_sets && !ds->images && ds->tar)
        code = qdqi_sample_files_read(ds, err);
    *ret_found = ds->is_sets || ds->images || ds->tar;
    return code;
}

static enum qdq_code
read_arrays(struct qdq_dataset *ds, struct qdq_error *err)
{
    bool found = false;
    if (ds->is_parquet)
        return qdqi_table_read(ds, err);
    if (ds->is_safetensors) {
        enum qdq_code code = qdqi_safetensors_read(ds, err);
        return code ? code : check_samples(ds, err);
    }
    size_t n = ds->npz   ? qdqi_npz_count(ds->npz)
               : ds->tar ? qdqi_tar_count(ds->tar)
                         : 1;
    ds->arrays = qdqi_arena_array(ds->arena, n, sizeof *ds->arrays);
    ds->items = qdqi_arena_array(ds->arena, n, sizeof *ds->items);
    if (!ds->arrays || !ds->items)
        return qdqi_no_memory(err);
    ds->info.arrays = ds->arrays;
    enum qdq_code code =
        ds->npz || ds->tar ? read_sample_files(ds, &found, err) : QDQ_OK;
    if (code != QDQ_OK || found)
        return code;
    code = ds->npz ? add_members(ds, err) : add_array(ds, 0, "", ds->info.size, err);
    return code == QDQ_OK ? check_samples(ds, err) : code;
}

enum qdq_code
qdq_dataset_open(int fd, struct qdq_dataset **ret, struct qdq_error *err)
{
    return qdq_dataset_open_within(fd, &(struct qdq_limits){0}, ret, err);
}

enum qdq_code
qdq_dataset_open_within(int fd, const struct qdq_limits *limits,
                        struct qdq_dataset **ret, struct qdq_error *err)
{
    struct qdq_dataset *ds = calloc(1, sizeof *ds);
    if (!ds)
        return qdqi_no_memory(err);
    ds->fd = -1;
    ds->most_unpacked = limits->archive_bytes ? limits->archive_bytes : UNPACKED_MAX;
    ds->arena = qdqi_arena_new();
    enum qdq_code code = ds->arena ? adopt_file(ds, fd, err) : qdqi_no_memory(err);
    if (code == QDQ_OK)
        code = open_form(ds, err);
    if (code == QDQ_OK)
        code = read_arrays(ds, err);
    if (code != QDQ_OK) {
        qdq_dataset_free(&ds);
        return code;
    }
    *ret = ds;
    return QDQ_OK;
}

void
qdq_dataset_free(struct qdq_dataset **dataset)
{
    if (!dataset || !*dataset)
        return;
    struct qdq_dataset *ds = *dataset;
    qdqi_npz_close(&ds->npz);
    qdqi_tar_close(&ds->tar);
    qdqi_table_free(&ds->table);
    if (ds->fd >= 0)
        close(ds->fd);
    qdqi_arena_free(&ds->arena);
    free(ds);
    *dataset = NULL;
}

const struct qdq_dataset_info *
qdq_dataset_info(const struct qdq_dataset *dataset)
{
    return &dataset->info;
}

enum qdqi_dtype
qdqi_dataset_dtype(const struct qdq_dataset *dataset, size_t i)
{
    return dataset->items[i].dtype;
}

int
qdqi_dataset_input(const struct qdq_dataset *dataset, size_t i)
{
    return dataset->items[i].input;
}

bool
qdqi_dataset_differs(const struct qdq_dataset *dataset, size_t i)
{
    return dataset->items[i].differs;
}

bool
qdqi_dataset_is_sets(const struct qdq_dataset *dataset)
{
    return dataset->is_sets;
}

bool
qdqi_dataset_is_alone(const struct qdq_dataset *dataset, size_t i)
{
    return dataset->items[i].is_alone;
}

bool
qdqi_dataset_is_joined(const struct qdq_dataset *dataset, size_t i)
{
    for (size_t k = 0; k < dataset->n_joined; k++)
        if (dataset->joined[k] == i)
            return true;
    return false;
}

const struct qdq_array *
qdqi_dataset_joined(const struct qdq_dataset *dataset)
{
    return dataset->n_joined > 0 ? &dataset->arrays[dataset->info.n_arrays] : NULL;
}

bool
qdqi_dataset_has_images(const struct qdq_dataset *dataset)
{
    return dataset->images;
}

const int64_t *
qdqi_dataset_part(const struct qdq_dataset *dataset, size_t i, int64_t sample,
                  size_t *ret_elements)
{
    const struct qdq_array *array = &dataset->arrays[i];
    if (dataset->items[i].differs) {
        const struct qdqi_sample_file *part = &dataset->items[i].parts[sample];
        *ret_elements = (size_t)part->n;
        return part->shape;
    }
    *ret_elements = 1;
    /* the product was checked when the dataset was opened */
    for (size_t k = 1; k < array->rank; k++)
        *ret_elements *= (size_t)array->shape[k];
    return array->shape + 1;
}
