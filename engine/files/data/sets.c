/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/data/sets.h"
#include "files/data/proto.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A file of the archive: input `input` of test data set `set`. */
struct file {
    int set, input;
    size_t member;
    uint64_t size;
    const char *name;
};

struct files {
    struct file *rows;
    size_t n, n_arrays; /* n_arrays: number of files named like NumPy arrays */
};

/* --- names ---------------------------------------------------------------- */

/* Parses `prefix` and a number of up to 9 digits. Returns the text behind them, or
   NULL. */
static const char *
parse_number(const char *s, const char *prefix, int *ret)
{
    size_t n = strlen(prefix), digits = 0;
    if (strncmp(s, prefix, n) != 0)
        return NULL;
    s += n;
    for (*ret = 0; isdigit((unsigned char)s[digits]) && digits < 9; digits++)
        *ret = 10 * *ret + (s[digits] - '0');
    return digits > 0 ? s + digits : NULL;
}

/* Parses a name such as "…/test_data_set_3/input_0.pb". */
static bool
is_input(const char *name, struct file *file)
{
    const char *base = strrchr(name, '/'), *folder = base, *s;
    if (!base)
        return false;
    while (folder > name && folder[-1] != '/')
        folder--;
    s = parse_number(folder, "test_data_set_", &file->set);
    if (s != base)
        return false;
    s = parse_number(base + 1, "input_", &file->input);
    return s && strcmp(s, ".pb") == 0;
}

bool
qdqi_sets_is_input(const char *name)
{
    struct file file;
    return is_input(name, &file);
}

/* Returns whether a name, used as a path, would leave its folder: "/x", "x/../y". */
static bool
leaves_folder(const char *name)
{
    bool out = *name == '/';
    while (name && !out) {
        out = strncmp(name, "..", 2) == 0 && (name[2] == '/' || !name[2]);
        name = strchr(name, '/');
        name = name ? name + 1 : NULL;
    }
    return out;
}

static int
by_set(const void *a, const void *b)
{
    const struct file *left = a, *right = b;
    if (left->set != right->set)
        return left->set < right->set ? -1 : 1;
    return left->input < right->input ? -1 : left->input > right->input;
}

/* --- files ---------------------------------------------------------------- */

static enum qdq_code
find_in_zip(struct qdq_dataset *ds, struct files *files, struct qdq_error *err)
{
    for (size_t i = 0; i < qdqi_npz_count(ds->npz); i++) {
        struct qdqi_npz_entry entry;
        struct file file = {.member = i};
        enum qdq_code code = qdqi_npz_entry(ds->npz, i, &entry, err);
        if (code != QDQ_OK)
            return code;
        files->n_arrays += entry.npy;
        if (entry.folder || entry.npy || !is_input(entry.name, &file))
            continue;
        file.size = entry.size;
        file.name = qdqi_arena_strdup(ds->arena, entry.name);
        if (!file.name)
            return qdqi_no_memory(err);
        files->rows[files->n++] = file;
    }
    return QDQ_OK;
}

static void
find_in_tar(const struct qdq_dataset *ds, struct files *files)
{
    for (size_t i = 0; i < qdqi_tar_count(ds->tar); i++) {
        const struct qdqi_tar_file *found = qdqi_tar_file(ds->tar, i);
        struct file file = {.member = i, .size = found->size, .name = found->name};
        if (is_input(found->name, &file)) /* all listed files are inputs */
            files->rows[files->n++] = file;
    }
}

static enum qdq_code
find_files(struct qdq_dataset *ds, struct files *files, struct qdq_error *err)
{
    size_t n = ds->tar ? qdqi_tar_count(ds->tar) : qdqi_npz_count(ds->npz);
    enum qdq_code code = QDQ_OK;
    files->rows = qdqi_arena_array(ds->arena, n, sizeof *files->rows);
    if (!files->rows)
        return qdqi_no_memory(err);
    if (ds->tar)
        find_in_tar(ds, files);
    else
        code = find_in_zip(ds, files, err);
    if (code == QDQ_OK && files->n > 0)
        qsort(files->rows, files->n, sizeof *files->rows, by_set);
    return code;
}

/* Checks that every set has the inputs of the first set, each once, and returns
   their number. */
static enum qdq_code
check_files(const struct files *files, size_t *ret, struct qdq_error *err)
{
    const struct file *rows = files->rows;
    size_t n = 0;
    if (files->n_arrays > 0)
        return qdq_error_set(err, QDQ_INVALID_DATASET, QDQ_AT_INPUT, rows->name,
                             "the archive holds both '%s' and .npy files", rows->name);
    for (size_t i = 0; i < files->n; i++)
        if (leaves_folder(rows[i].name))
            return qdqi_array_invalid(
                rows[i].name, err,
                "a name in an archive neither begins with '/' nor "
                "holds '..'");
    while (n < files->n && rows[n].set == rows[0].set)
        n++;
    for (size_t i = 0; i < files->n; i++) {
        const struct file *file = &rows[i], *first = &rows[i % n];
        if (i > 0 && by_set(file, file - 1) == 0)
            return qdqi_array_invalid(file->name, err,
                                      "input %d of set %d is there "
                                      "twice",
                                      file->input, file->set);
        if (file->input != first->input || file->set != rows[i - i % n].set)
            return qdqi_array_invalid(file->name, err,
                                      "set %d has other inputs than set %d", file->set,
                                      first->set);
    }
    if (files->n % n != 0)
        return qdqi_array_invalid(rows[files->n - 1].name, err,
                                  "set %d has fewer inputs than set %d",
                                  rows[files->n - 1].set, rows[0].set);
    *ret = n;
    return qdqi_dataset_check_arrays(n, err);
}

/* --- tensors -------------------------------------------------------------- */

enum qdq_code
qdqi_sets_open(struct qdq_dataset *ds, size_t member, const char *name,
               struct qdqi_stream *ret, struct qdq_error *err)
{
    if (!ds->tar)
        return qdqi_stream_open(ds->fd, ds->npz, member, name, ret, err);
    const struct qdqi_tar_file *file = qdqi_tar_file(ds->tar, member);
    qdqi_stream_span(qdqi_tar_fd(ds->tar), file->offset, file->size, name, ret);
    return QDQ_OK;
}

/* Adds an array for an input as the first set has it. */
static enum qdq_code
add_array(struct qdq_dataset *ds, const struct file *file, int64_t samples,
          const struct qdqi_proto_head *head, struct qdq_error *err)
{
    size_t n = ds->info.n_arrays;
    bool named = *head->name;
    const char *name = named ? qdqi_arena_strdup(ds->arena, head->name)
                             : qdqi_arena_printf(ds->arena, "input_%d", file->input);
    int64_t *shape = qdqi_arena_array(ds->arena, head->rank + 1, sizeof *shape);
    if (!name || !shape)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < n; i++)
        if (strcmp(ds->arrays[i].name, name) == 0)
            return qdqi_array_invalid(file->name, err, "input '%s' is there twice",
                                      name);
    shape[0] = samples;
    memcpy(shape + 1, head->shape, head->rank * sizeof *shape);
    ds->arrays[n] = (struct qdq_array){name, qdqi_dtype_name((int)head->dtype),
                                       head->rank + 1, shape};
    ds->items[n] =
        (struct qdqi_item){.dtype = head->dtype,
                           .input = named ? QDQI_NAMED : file->input,
                           .differs = true,
                           .parts = qdqi_arena_array(ds->arena, (size_t)samples,
                                                     sizeof *ds->items[n].parts)};
    if (!ds->items[n].parts)
        return qdqi_no_memory(err);
    ds->info.n_arrays++;
    return QDQ_OK;
}

/* Compares an input of a later set with the first; sizes that differ become open in
   the array's shape. */
static enum qdq_code
match_array(struct qdq_dataset *ds, size_t i, const struct file *file,
            const struct qdqi_proto_head *head, struct qdq_error *err)
{
    struct qdq_array *array = &ds->arrays[i];
    int64_t *shape = (int64_t *)(uintptr_t)array->shape;
    bool named = ds->items[i].input == QDQI_NAMED;
    if (strcmp(named ? array->name : "", head->name) != 0)
        return qdqi_array_invalid(file->name, err,
                                  "it is called '%.128s', and '%.128s' in the first "
                                  "set",
                                  head->name, named ? array->name : "");
    if (head->dtype != ds->items[i].dtype || head->rank + 1 != array->rank)
        return qdqi_array_invalid(file->name, err,
                                  "it is %s of %zu axes, and %s of %zu in the first "
                                  "set",
                                  qdqi_dtype_name((int)head->dtype), head->rank,
                                  array->dtype, array->rank - 1);
    for (size_t k = 0; k < head->rank; k++)
        if (shape[k + 1] != head->shape[k])
            shape[k + 1] = QDQ_DIFFERS;
    return QDQ_OK;
}

static enum qdq_code
read_head(struct qdq_dataset *ds, const struct file *file, struct qdqi_proto_head *ret,
          struct qdq_error *err)
{
    struct qdqi_stream stream;
    enum qdq_code code = qdqi_sets_open(ds, file->member, file->name, &stream, err);
    if (code != QDQ_OK)
        return code;
    code = qdqi_proto_read(&stream, file->size, ret, err);
    qdqi_stream_close(&stream);
    return code;
}

static enum qdq_code
add_part(struct qdq_dataset *ds, size_t sample, const struct file *file, size_t array,
         const struct qdqi_proto_head *head, struct qdq_error *err)
{
    int64_t *shape = qdqi_arena_array(ds->arena, head->rank, sizeof *shape);
    struct qdqi_item *item = &ds->items[array];
    uint64_t bytes = head->n * qdqi_dtype_size((int)head->dtype);
    if (!shape)
        return qdqi_no_memory(err);
    if (bytes > INT64_MAX - item->size)
        return qdq_error_set(
            err, QDQ_LIMIT_EXCEEDED, QDQ_AT_INPUT, ds->arrays[array].name,
            "the samples of '%s' are too large together", ds->arrays[array].name);
    item->size += bytes;
    memcpy(shape, head->shape, head->rank * sizeof *shape);
    item->parts[sample] = (struct qdqi_sample_file){
        .member = file->member,
        .file_size = file->size,
        .field = head->field,
        .n = head->n,
        .shape = shape,
        .kind = QDQI_SAMPLE_PROTO,
    };
    return QDQ_OK;
}

enum qdq_code
qdqi_sets_read(struct qdq_dataset *ds, struct qdq_error *err)
{
    struct files files = {0};
    size_t n_inputs = 1;
    enum qdq_code code = find_files(ds, &files, err);
    if (code != QDQ_OK || files.n == 0 ||
        (code = check_files(&files, &n_inputs, err)) != QDQ_OK)
        return code;
    ds->is_sets = true;
    ds->info.samples = (int64_t)(files.n / n_inputs);
    for (size_t i = 0; code == QDQ_OK && i < files.n; i++) {
        struct qdqi_proto_head head;
        code = read_head(ds, &files.rows[i], &head, err);
        if (code == QDQ_OK)
            code = i < n_inputs
                       ? add_array(ds, &files.rows[i], ds->info.samples, &head, err)
                       : match_array(ds, i % n_inputs, &files.rows[i], &head, err);
        if (code == QDQ_OK)
            code = add_part(ds, i / n_inputs, &files.rows[i], i % n_inputs, &head, err);
    }
    return code;
}
