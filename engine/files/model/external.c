/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/model/external.h"

#include "files/model/constant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The external_data entries of one tensor. */
struct place {
    const char *location;
    uint64_t offset, length;
    bool has_length;
};

/* A location that the model names. */
struct location {
    const char *name;   /* as the model spells it first */
    const char *path;   /* the same without "./" and "//" */
    const char *tensor; /* the first tensor that names it */
    struct sent *sent;  /* the file that serves it */
    struct location *next;
};

/* A file that was sent. */
struct sent {
    size_t index;
    const char *path;
    struct location *exact; /* the location whose path is this file's path */
    bool twice;             /* another file has the same path */
};

/* All files and locations with one base name: files that no location names by its
   full path, and locations without such a file. */
struct base {
    struct sent *sent;
    size_t n_sent, n_locations;
};

struct resolving {
    struct qdq_model *model;
    struct qdqi_arena *arena; /* lives until the locations are resolved */
    struct sent *sent;
    size_t n_sent;
    struct qdqi_map *locations; /* from the path to struct location */
    struct location *first, **last;
    size_t n_locations;
    struct qdqi_map *regions; /* from "file:offset:size" to the index of its bulk + 1 */
    struct qdqi_bulk *bulks;  /* the model's, then those added here */
    size_t n_bulks, cap_bulks;
    uint64_t sent_bytes;   /* bytes of the files that some tensor names */
    uint64_t total, limit; /* bytes of all regions */
};

/* --- names ---------------------------------------------------------------- */

/* Returns the path without empty and "." components; one leading '/' stays. */
static const char *
normalized(struct qdqi_arena *arena, const char *path)
{
    char *copy = qdqi_arena_alloc(arena, strlen(path) + 1), *to = copy;
    if (!copy)
        return NULL;
    if (*path == '/')
        *to++ = '/';
    while (*path) {
        size_t n = strcspn(path, "/");
        if (n > 0 && !(n == 1 && *path == '.')) {
            if (to > copy && to[-1] != '/')
                *to++ = '/';
            memcpy(to, path, n);
            to += n;
        }
        path += n + (path[n] == '/');
    }
    return copy;
}

static const char *
base_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *back = strrchr(path, '\\');
    const char *last = !slash || (back && back > slash) ? back : slash;
    return last ? last + 1 : path;
}

static bool
escapes_folder(const char *path)
{
    for (; *path; path += strcspn(path, "/"), path += *path == '/')
        if (strncmp(path, "..", 2) == 0 && (path[2] == '/' || !path[2]))
            return true;
    return false;
}

static enum qdq_code
check_location(const char *location, const char *tensor, struct qdq_error *err)
{
    const char *what = !location                  ? "says no file"
                       : *location == '/'         ? "names an absolute path"
                       : strchr(location, '\\')   ? "names a path with a backslash"
                       : escapes_folder(location) ? "names a path with '..'"
                       : !*base_of(location)      ? "names no file"
                       : !strcmp(base_of(location), ".") ? "names no file"
                                                         : NULL;
    if (!what)
        return QDQ_OK;
    return qdq_error_set(err, QDQ_INVALID_MODEL, QDQ_AT_TENSOR, tensor,
                         "tensor '%.100s' has external data and %s: '%.200s'", tensor,
                         what, location ? location : "");
}

/* --- the entries of a tensor --------------------------------------------- */

static bool
is_external(const Onnx__TensorProto *t)
{
    return t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
}

/* Parses a decimal number. All known writers write digits alone, so nothing else is
   accepted. */
static bool
read_number(const char *text, uint64_t *ret)
{
    uint64_t value = 0;
    if (!*text)
        return false;
    for (; *text; text++)
        if (*text < '0' || *text > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
            return false;
    *ret = value;
    return true;
}

static enum qdq_code
read_place(const Onnx__TensorProto *t, const char *name, struct place *ret,
           struct qdq_error *err)
{
    struct place place = {0};
    for (size_t i = 0; i < t->n_external_data; i++) {
        const char *key = t->external_data[i]->key, *value = t->external_data[i]->value;
        if (!key || !value)
            continue;
        bool is_offset = strcmp(key, "offset") == 0;
        if (strcmp(key, "location") == 0)
            place.location = value;
        else if ((is_offset || strcmp(key, "length") == 0) &&
                 !read_number(value, is_offset ? &place.offset : &place.length))
            return qdq_error_set(err, QDQ_INVALID_MODEL, QDQ_AT_TENSOR, name,
                                 "tensor '%.100s' has external data whose %s '%.40s' "
                                 "is no number of bytes",
                                 name, key, value);
    }
    place.has_length = place.length > 0;
    *ret = place;
    return check_location(place.location, name, err);
}

/* --- all locations -------------------------------------------------------- */

static enum qdq_code
collect(void *arg, Onnx__TensorProto *t, const char *name, struct qdq_error *err)
{
    struct resolving *r = arg;
    struct place place;
    if (!is_external(t))
        return QDQ_OK;
    enum qdq_code code = read_place(t, name, &place, err);
    if (code)
        return code;
    const char *path = normalized(r->arena, place.location);
    if (!path)
        return qdqi_no_memory(err);
    if (qdqi_map_get(r->locations, path))
        return QDQ_OK;
    struct location *l = qdqi_arena_alloc(r->arena, sizeof *l);
    if (!l || !qdqi_map_put(r->locations, path, l))
        return qdqi_no_memory(err);
    *l = (struct location){.name = place.location, .path = path, .tensor = name};
    *r->last = l;
    r->last = &l->next;
    r->n_locations++;
    return QDQ_OK;
}

static enum qdq_code
begin(struct resolving *r, struct qdq_model *model, struct qdq_error *err)
{
    *r = (struct resolving){.model = model, .arena = qdqi_arena_new()};
    r->last = &r->first;
    if (!r->arena || !(r->locations = qdqi_map_new(r->arena)) ||
        !(r->regions = qdqi_map_new(r->arena)))
        return qdqi_no_memory(err);
    return qdqi_each_tensor(model->proto, collect, r, err);
}

/* --- from a location to its file ----------------------------------------- */

static enum qdq_code
list_sent(struct resolving *r, const struct qdq_external *files, size_t n,
          struct qdq_error *err)
{
    struct qdqi_map *paths = qdqi_map_new(r->arena);
    r->sent = qdqi_arena_array(r->arena, n, sizeof *r->sent);
    r->n_sent = n;
    if (!paths || !r->sent)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        struct sent *s = &r->sent[i], *other;
        s->index = i;
        s->path = normalized(r->arena, files[i].path ? files[i].path : "");
        if (!s->path)
            return qdqi_no_memory(err);
        if ((other = qdqi_map_get(paths, s->path))) {
            other->twice = true;
            continue;
        }
        if (!qdqi_map_put(paths, s->path, s))
            return qdqi_no_memory(err);
        if ((s->exact = qdqi_map_get(r->locations, s->path)))
            s->exact->sent = s;
    }
    return QDQ_OK;
}

static struct base *
find_basename(struct resolving *r, struct qdqi_map *bases, const char *path)
{
    const char *name = base_of(path);
    struct base *b = qdqi_map_get(bases, name);
    if (b || !(b = qdqi_arena_alloc(r->arena, sizeof *b)))
        return b;
    return qdqi_map_put(bases, name, b) ? b : NULL;
}

static enum qdq_code
count_bases(struct resolving *r, struct qdqi_map *bases, struct qdq_error *err)
{
    struct base *b;
    for (size_t i = 0; i < r->n_sent; i++) {
        if (r->sent[i].exact)
            continue;
        if (!(b = find_basename(r, bases, r->sent[i].path)))
            return qdqi_no_memory(err);
        b->sent = &r->sent[i];
        b->n_sent++;
    }
    for (struct location *l = r->first; l; l = l->next) {
        if (l->sent)
            continue;
        if (!(b = find_basename(r, bases, l->path)))
            return qdqi_no_memory(err);
        b->n_locations++;
    }
    return QDQ_OK;
}

static enum qdq_code
match(struct location *l, const struct base *b, struct qdq_error *err)
{
    if (l->sent ? !l->sent->twice : b->n_sent == 1 && b->n_locations == 1) {
        l->sent = l->sent ? l->sent : b->sent;
        return QDQ_OK;
    }
    if (!l->sent && b->n_sent == 0)
        return qdq_error_set(err, QDQ_EXTERNAL_MISSING, QDQ_AT_TENSOR, l->tensor,
                             "tensor '%.100s' keeps its data in the file '%.200s', "
                             "which was not sent",
                             l->tensor, l->name);
    return qdq_error_set(err, QDQ_EXTERNAL_AMBIGUOUS, QDQ_AT_TENSOR, l->tensor,
                         "tensor '%.100s' keeps its data in the file '%.200s', and %s",
                         l->tensor, l->name,
                         l->sent         ? "two files of that path were sent"
                         : b->n_sent > 1 ? "several files of that base name were sent, "
                                           "none of that path"
                                         : "another location has the same base name, "
                                           "as has the one file sent");
}

static enum qdq_code
match_all(struct resolving *r, const struct qdq_external *files, struct qdq_error *err)
{
    struct qdqi_map *bases = qdqi_map_new(r->arena);
    enum qdq_code code = bases ? count_bases(r, bases, err) : qdqi_no_memory(err);
    for (struct location *l = r->first; l && !code; l = l->next) {
        char what[256];
        if ((code = match(l, qdqi_map_get(bases, base_of(l->path)), err)))
            return code;
        struct qdqi_mapped *file = &r->model->files[1 + l->sent->index];
        snprintf(what, sizeof what, "the file '%.200s'", l->name);
        code = qdqi_map_file(files[l->sent->index].fd, what, file, err);
        r->model->locations[l->sent->index] = l->name;
        r->sent_bytes += file->size;
    }
    return code;
}

/* --- the place in the file ----------------------------------------------- */

/* Computes the bytes that the elements of a type and shape need. Returns false when
   the width of the type is not known. */
static bool
wanted_bytes(const Onnx__TensorProto *t, size_t n, uint64_t *ret)
{
    uint64_t bits = qdqi_dtype_bits(t->data_type);
    if (bits < 8)
        *ret = n / 8 * bits + (n % 8 * bits + 7) / 8;
    return bits && (bits < 8 || !__builtin_mul_overflow((uint64_t)n, bits / 8, ret));
}

/* Finds the size of the tensor's bytes, and checks that the file holds all of them. */
static enum qdq_code
find_size(const Onnx__TensorProto *t, const char *name, const struct place *place,
          const struct qdqi_mapped *file, uint64_t *ret, struct qdq_error *err)
{
    uint64_t left = place->offset < file->size ? file->size - place->offset : 0, wanted;
    size_t n;
    if (!qdqi_count_elements(t->dims, t->n_dims, &n) || n > INT64_MAX / 16)
        return qdq_error_set(err, QDQ_INVALID_MODEL, QDQ_AT_TENSOR, name,
                             "tensor '%.100s' has an impossible shape", name);
    if (!wanted_bytes(t, n, &wanted))
        wanted = place->has_length ? place->length : left;
    if (place->has_length && place->length != wanted)
        return qdq_error_set(err, QDQ_INVALID_MODEL, QDQ_AT_TENSOR, name,
                             "tensor '%.100s' has %llu bytes of data in '%.200s', its "
                             "shape asks for %llu",
                             name, (unsigned long long)place->length, place->location,
                             (unsigned long long)wanted);
    if (wanted > left)
        return qdq_error_set(err, QDQ_INVALID_MODEL, QDQ_AT_TENSOR, name,
                             "tensor '%.100s' wants %llu bytes from byte %llu of "
                             "'%.200s', which has %llu from there on",
                             name, (unsigned long long)wanted,
                             (unsigned long long)place->offset, place->location,
                             (unsigned long long)left);
    *ret = wanted;
    return QDQ_OK;
}

static enum qdq_code
push_bulk(struct resolving *r, const struct qdqi_bulk *bulk, struct qdq_error *err)
{
    struct qdqi_bulk *bulks =
        qdqi_grow(r->bulks, &r->cap_bulks, r->n_bulks + 1, sizeof *bulks);
    if (!bulks)
        return qdqi_no_memory(err);
    r->bulks = bulks;
    r->bulks[r->n_bulks++] = *bulk;
    return QDQ_OK;
}

/*
 * Returns a bulk for the region. Tensors with exactly the same region share one bulk.
 * Many regions that merely overlap are refused: they would make a result far larger
 * than the files that were sent.
 */
static enum qdq_code
get_bulk(struct resolving *r, const struct qdqi_bulk *bulk, size_t *ret,
         struct qdq_error *err)
{
    const char *key = qdqi_arena_printf(r->arena, "%u:%llu:%llu", bulk->file,
                                        (unsigned long long)bulk->offset,
                                        (unsigned long long)bulk->size);
    if (!key)
        return qdqi_no_memory(err);
    void *known = qdqi_map_get(r->regions, key);
    *ret = known ? (size_t)(uintptr_t)known - 1 : r->n_bulks;
    if (known)
        return QDQ_OK;
    if (bulk->size > r->limit - r->total)
        return qdq_error_set(err, QDQ_LIMIT_EXCEEDED, QDQ_AT_NOTHING, NULL,
                             "tensors overlap in the files of external data, and all "
                             "together are more than 4 times as large as these");
    r->total += bulk->size;
    if (!qdqi_map_put(r->regions, key, (void *)(uintptr_t)(r->n_bulks + 1)))
        return qdqi_no_memory(err);
    return push_bulk(r, bulk, err);
}

/* --- from external data to bulks ----------------------------------------- */

static enum qdq_code
set_small(struct resolving *r, Onnx__TensorProto *t, const uint8_t *data, size_t size,
          struct qdq_error *err)
{
    uint8_t *copy = qdqi_arena_copy(r->model->arena, data, size, 1);
    if (!copy)
        return qdqi_no_memory(err);
    t->has_raw_data = 1;
    t->raw_data.data = copy;
    t->raw_data.len = size;
    return QDQ_OK;
}

static bool
has_own_data(const Onnx__TensorProto *t)
{
    for (size_t i = 0; i < t->base.n_unknown_fields; i++)
        if (t->base.unknown_fields[i].tag == QDQI_BULK_FIELD)
            return true;
    return t->raw_data.len || t->n_float_data || t->n_int32_data || t->n_int64_data ||
           t->n_double_data || t->n_uint64_data || t->n_string_data;
}

static enum qdq_code
resolve(void *arg, Onnx__TensorProto *t, const char *name, struct qdq_error *err)
{
    struct resolving *r = arg;
    struct place place;
    uint64_t size = 0;
    size_t index = 0;
    enum qdq_code code;
    if (!is_external(t))
        return QDQ_OK;
    if (has_own_data(t) || t->data_type == QDQI_STRING)
        return qdq_error_set(err, QDQ_INVALID_MODEL, QDQ_AT_TENSOR, name,
                             "tensor '%.100s' %s", name,
                             has_own_data(t) ? "has data in the model and outside of it"
                                             : "has strings in external data");
    if ((code = read_place(t, name, &place, err)))
        return code;
    const char *path = normalized(r->arena, place.location);
    const struct location *l = path ? qdqi_map_get(r->locations, path) : NULL;
    if (!l)
        return qdqi_no_memory(err);
    const struct qdqi_mapped *file = &r->model->files[1 + l->sent->index];
    if ((code = find_size(t, name, &place, file, &size, err)))
        return code;
    t->n_external_data = 0;
    t->external_data = NULL;
    t->has_data_location = 0;
    t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__DEFAULT;
    if (size < QDQI_MIN_BULK)
        return set_small(r, t, size ? file->map + place.offset : NULL, size, err);
    const struct qdqi_bulk bulk = {.offset = place.offset,
                                   .size = size,
                                   .field = 9, /* raw_data */
                                   .file = (unsigned)(1 + l->sent->index)};
    if ((code = get_bulk(r, &bulk, &index, err)))
        return code;
    return qdqi_tensor_refer(r->model->arena, t, index) ? QDQ_OK : qdqi_no_memory(err);
}

/* Replaces the model's bulks by the list that includes the added ones. */
static enum qdq_code
adopt_bulks(struct resolving *r, struct qdq_error *err)
{
    struct qdqi_bulk *rows =
        qdqi_arena_copy(r->model->arena, r->bulks, r->n_bulks, sizeof *rows);
    if (!rows)
        return qdqi_no_memory(err);
    r->model->bulks = (struct qdqi_bulks){rows, r->n_bulks};
    return QDQ_OK;
}

static enum qdq_code
resolve_all(struct resolving *r, const struct qdq_external *files, size_t n,
            struct qdq_error *err)
{
    enum qdq_code code = list_sent(r, files, n, err);
    if (!code)
        code = match_all(r, files, err);
    r->limit = r->sent_bytes > UINT64_MAX / 4 ? UINT64_MAX : 4 * r->sent_bytes;
    for (size_t i = 0; i < r->model->bulks.n && !code; i++)
        code = push_bulk(r, &r->model->bulks.rows[i], err);
    if (!code)
        code = qdqi_each_tensor(r->model->proto, resolve, r, err);
    return code ? code : adopt_bulks(r, err);
}

enum qdq_code
qdqi_external_resolve(struct qdq_model *model, const struct qdq_external *files,
                      size_t n, struct qdq_error *err)
{
    struct resolving r;
    enum qdq_code code = begin(&r, model, err);
    if (!code && r.n_locations)
        code = resolve_all(&r, files, n, err);
    qdqi_arena_free(&r.arena);
    free(r.bulks);
    return code;
}

/* --- the list of locations ----------------------------------------------- */

struct listing {
    struct qdq_locations view; /* must be first: the caller's pointer points here */
    struct qdqi_arena *arena;
};

enum qdq_code
qdqi_external_list(struct qdq_model *model, struct qdq_locations **ret,
                   struct qdq_error *err)
{
    struct resolving r;
    struct listing *listing = NULL;
    const char **names = NULL;
    size_t n = 0;
    enum qdq_code code = begin(&r, model, err);
    if (code)
        goto out;
    listing = qdqi_arena_alloc(model->arena, sizeof *listing);
    names = qdqi_arena_array(model->arena, r.n_locations, sizeof *names);
    if (!listing || !names) {
        code = qdqi_no_memory(err);
        goto out;
    }
    for (const struct location *l = r.first; l; l = l->next)
        names[n++] = l->name;
    listing->view = (struct qdq_locations){n, names};
    listing->arena = model->arena;
    *ret = &listing->view;
out:
    qdqi_arena_free(&r.arena);
    return code;
}

void
qdq_locations_free(struct qdq_locations **locations)
{
    if (!locations || !*locations)
        return;
    struct listing *listing = (struct listing *)*locations;
    /* the listing itself lies in its arena */
    struct qdqi_arena *arena = listing->arena;
    qdqi_arena_free(&arena);
    *locations = NULL;
}
