/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "api/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/utf8.h"
#include "base/json.h"

/* --- the id --------------------------------------------------------------- */

static int
compare_paths(const void *a, const void *b)
{
    const struct api_file *const *x = a, *const *y = b;
    return strcmp((*x)->path, (*y)->path);
}

static json_t *
encode_file(const void *items, size_t i)
{
    const struct api_file *file = ((const struct api_file *const *)items)[i];
    return json_pack("{s:s, s:s, s:I}", "digest", file->digest, "path", file->path,
                     "size", (json_int_t)file->size);
}

const struct api_file **
api_files_sort(const struct api_file *files, size_t n)
{
    const struct api_file **sorted = calloc(n + 1, sizeof(struct api_file *));
    for (size_t i = 0; sorted && i < n; i++)
        sorted[i] = &files[i];
    if (sorted)
        qsort(sorted, n, sizeof *sorted, compare_paths);
    return sorted;
}

char *
api_files_identity(const struct api_file *files, size_t n)
{
    const struct api_file **sorted = api_files_sort(files, n);
    if (!sorted)
        return NULL;
    json_t *json = api_pack("files:a", sorted, n, encode_file);
    free(sorted);
    return api_json_dump(json, JSON_SORT_KEYS);
}

/* --- paths ---------------------------------------------------------------- */

const char *
api_path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool
api_path_has_ending(const char *path, const char *ending)
{
    size_t len = strlen(path), n = strlen(ending);
    return len > n && strcmp(path + len - n, ending) == 0;
}

static bool
is_clean_text(const char *text)
{
    size_t len;
    for (; *text; text += len)
        if (!(len = api_utf8_length(text)) || (unsigned char)*text < ' ' ||
            *text == 0x7f || *text == '\\')
            return false;
    return true;
}

bool
api_path_is_inside(const char *path)
{
    const char *base = api_path_base(path);
    if (*path == '/' || !*base || !strcmp(base, ".") ||
        strnlen(path, API_MAX_PATH + 1) > API_MAX_PATH || !is_clean_text(path))
        return false;
    for (const char *at = path; at; at = strchr(at, '/')) {
        at += *at == '/';
        size_t len = strcspn(at, "/");
        if (len == 2 && at[0] == '.' && at[1] == '.')
            return false;
    }
    return true;
}

void
api_path_normalize(char *path)
{
    char *to = path;
    for (const char *at = path; *at;) {
        size_t len = strcspn(at, "/");
        bool here = len == 1 && *at == '.' && at[1] == '/';
        if (len && !here) {
            memmove(to, at, len);
            to += len;
            if (at[len])
                *to++ = '/';
        } else if (!len && at == path) {
            *to++ = '/';
        }
        at += len + (at[len] == '/');
    }
    *to = '\0';
}

char *
api_paths_encode(const char *const *paths, size_t n)
{
    return api_json_dump(api_json_list(paths, n, api_json_text_item), 0);
}

bool
api_paths_decode(const char *text, char **ret, size_t n)
{
    json_t *json = api_json_embed(text);
    bool ok = json_is_array(json) && json_array_size(json) == n;
    size_t done = 0;
    for (; ok && done < n; done++) {
        const char *path = json_string_value(json_array_get(json, done));
        ret[done] = path ? strdup(path) : NULL;
        ok = ret[done] != NULL;
    }
    json_decref(json);
    while (!ok && done)
        free(ret[--done]);
    return ok;
}

/* --- {"files": …} --------------------------------------------------------- */

static bool
refuse(struct api_problem *problem, size_t i, const char *member, const char *what)
{
    char where[64] = "/files";
    size_t len = strlen(where);
    snprintf(where + len, sizeof where - len, "/%zu", i);
    if (member)
        api_json_pointer_add(where, sizeof where, member);
    return api_fail_at(problem, API_BAD_REQUEST, where, "%s", what);
}

static bool
parse_text(json_t *file, size_t i, const char *member, char **ret,
           struct api_problem *problem)
{
    const char *text = json_string_value(json_object_get(file, member));
    if (!text)
        return refuse(problem, i, member, "a file has a path and a digest, as strings");
    *ret = strdup(text);
    return *ret || api_problem_no_memory(problem);
}

static bool
parse_file(json_t *file, size_t i, struct api_named_files *to,
           struct api_problem *problem)
{
    struct api_named_file *named = &to->items[to->n++];
    if (json_object_size(file) != 2)
        return refuse(problem, i, NULL, "a file is an object of a path and a digest");
    if (!parse_text(file, i, "path", &named->path, problem) ||
        !parse_text(file, i, "digest", &named->digest, problem))
        return false;
    for (size_t k = 0; k < i; k++)
        if (!strcmp(to->items[k].path, named->path))
            return refuse(problem, i, "path", "another file has the same path");
    if (i == 0 && strchr(named->path, '/'))
        return refuse(problem, i, "path",
                      "the model stands first, and its path is a plain name: the "
                      "others' lead from its folder");
    return api_path_is_inside(named->path) ||
           refuse(problem, i, "path", "this is no path below the model's folder");
}

static bool
parse_files(json_t *json, struct api_named_files *to, struct api_problem *problem)
{
    json_t *files = json_object_get(json, "files"), *file;
    size_t i;
    if (!json_is_object(json) || (files && json_object_size(json) != 1) ||
        (files && !json_is_array(files)))
        return api_fail_at(problem, API_BAD_REQUEST, "",
                           "a model is {\"files\": [{\"path\", \"digest\"}, …]}");
    if (json_array_size(files) == 0)
        return api_fail_at(problem, API_MISSING_PART, "/files",
                           "the request names no files");
    if (json_array_size(files) > 1 + API_MAX_EXTERNAL)
        return api_fail_at(problem, API_LIMIT_EXCEEDED, "/files",
                           "a model has at most %d files beside its own",
                           API_MAX_EXTERNAL);
    json_array_foreach (files, i, file)
        if (!parse_file(file, i, to, problem))
            return false;
    return true;
}

bool
api_named_files_decode(const char *text, size_t len, struct api_named_files *ret,
                       struct api_problem *problem)
{
    *ret = (struct api_named_files){0};
    json_t *json = api_json_load(text, len, API_BAD_REQUEST, problem);
    bool ok = json && parse_files(json, ret, problem);
    json_decref(json);
    if (!ok)
        api_named_files_fini(ret);
    return ok;
}

void
api_named_files_fini(struct api_named_files *files)
{
    for (size_t i = 0; i < files->n; i++) {
        free(files->items[i].path);
        free(files->items[i].digest);
    }
    files->n = 0;
}
