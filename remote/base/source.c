/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a source, and the lists that the kinds return. */
#include "config.h"
#include "base/kind.h"
#include "api/grow.h"
#include "api/utf8.h"

#include <stdlib.h>
#include <string.h>

#define MOST_FILES 10000
#define MOST_NAME 512

bool
name_is_safe(const char *name)
{
    size_t len = strlen(name);
    if (!len || len > MOST_NAME || *name == '/' || name[len - 1] == '/')
        return false;
    for (const char *part = name; part; part = strchr(part, '/')) {
        part += *part == '/';
        size_t n = strcspn(part, "/");
        if (n == 0 || (n == 1 && *part == '.') ||
            (n == 2 && strncmp(part, "..", 2) == 0))
            return false;
    }
    for (; *name; name++)
        if ((unsigned char)*name < 0x20 || *name == 0x7f || *name == '\\')
            return false;
    return true;
}

/* Returns whether the name has the ending. */
static bool
has_ending(const char *name, const char *ending)
{
    size_t len = strlen(name), n = strlen(ending);
    return len >= n && strcmp(name + len - n, ending) == 0;
}

enum qdqr_role
role_by_name(const char *name)
{
    static const struct {
        const char *ending;
        enum qdqr_role role;
    } rows[] = {{".onnx", QDQR_MODEL},
                {"report.json", QDQR_REPORT},
                {".html", QDQR_REPORT},
                {"spec.json", QDQR_SPEC},
                {".sig", QDQR_SIGNATURE},
                {QDQR_PROVENANCE_NAME, QDQR_PROVENANCE},
                {QDQR_BOM_NAME, QDQR_BOM},
                {"MLmodel", QDQR_OTHER},
                {"registered_model_meta", QDQR_OTHER},
                {".json", QDQR_OTHER},
                {".yaml", QDQR_OTHER},
                {".txt", QDQR_OTHER},
                {".md", QDQR_OTHER},
                {".pbtxt", QDQR_OTHER},
                {".gitattributes", QDQR_OTHER}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (has_ending(name, rows[i].ending))
            return rows[i].role;
    return QDQR_DATA;
}

bool
source_has_model(const struct http *http, const struct qdqr_source *source,
                 struct api_problem *problem)
{
    size_t models = 0;
    for (size_t i = 0; i < source->n_files; i++)
        models += source->files[i].role == QDQR_MODEL;
    return models == 1 ||
           api_problem_set(problem, API_REMOTE_NOT_FOUND, QDQ_AT_NOTHING, NULL,
                           "%s of remote %s has %zu files *.onnx, and needs one",
                           source->resolved, http->remote->name, models);
}

bool
source_add(struct qdqr_source *source, const char *name, int64_t size,
           enum qdqr_role role, struct api_problem *problem)
{
    if (!api_utf8_is_valid(name))
        return api_problem_set(problem, API_REMOTE_DENIED, QDQ_AT_NOTHING, NULL,
                               "the remote lists a file whose name is not UTF-8");
    if (!name_is_safe(name))
        return api_problem_set(problem, API_REMOTE_DENIED, QDQ_AT_NOTHING, NULL,
                               "the remote lists a file whose name is no relative path "
                               "of at most %d bytes",
                               MOST_NAME);
    if (source->n_files == MOST_FILES)
        return api_problem_set(problem, API_REMOTE_TOO_LARGE, QDQ_AT_NOTHING, NULL,
                               "the ref has more than %d files", MOST_FILES);
    struct qdqr_file *files =
        api_grow(source->files, source->n_files, 1, sizeof *files);
    if (!files)
        return api_problem_no_memory(problem);
    source->files = files;
    files[source->n_files] = (struct qdqr_file){strdup(name), size, "", role};
    if (!files[source->n_files].name)
        return api_problem_no_memory(problem);
    source->n_files++;
    return true;
}

void
qdqr_source_free(struct qdqr_source **source)
{
    if (!*source)
        return;
    for (size_t i = 0; i < (*source)->n_files; i++)
        free((*source)->files[i].name);
    free((*source)->files);
    free((*source)->resolved);
    free((*source)->digest);
    free((*source)->place);
    free(*source);
    *source = NULL;
}

void
qdqr_versions_free(struct qdqr_version *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(list[i].name);
        free(list[i].version);
    }
    free(list);
}
