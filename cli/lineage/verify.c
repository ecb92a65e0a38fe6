/* SPDX-License-Identifier: Apache-2.0 */
/* The command verify: whether files are those of a signed statement. */
#include "config.h"
#include "commands.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"
#include "lineage/statement.h"
#include "terminal.h"

/* The name of a signature that stands beside what it is of, as model-signing calls it. */
#define SIGNATURE "model.sig"
/* The name under which a service signs a model, whatever its file is called later. */
#define MODEL "model.onnx"

/* The files that are checked, and what they have to be. */
struct checked {
    const struct api_statement *statement;
    char *folder; /* of the files, without a '/' at its end */
    const char
        *file; /* the model, where it is named alone; NULL: the folder is checked */
    char *signature;
};

/* Returns the path of a file of the statement, which the caller frees. */
static char *
path_of(const struct checked *checked, const char *name)
{
    char *path;
    bool is_own =
        checked->file && (checked->statement->n == 1 || strcmp(name, MODEL) == 0);
    if (is_own)
        return strdup(checked->file);
    return asprintf(&path, "%s/%s", checked->folder, name) < 0 ? NULL : path;
}

static bool
check_file(const struct checked *checked, const struct api_file *file,
           struct api_problem *problem)
{
    char digest[DIGEST_SIZE], *path = path_of(checked, file->path);
    int fd;
    if (!path)
        return api_problem_no_memory(problem);
    bool ok = file_open(path, &fd, problem);
    if (ok) {
        ok = digest_file(fd, path, digest, problem) &&
             (digest_is_same(digest, file->digest) ||
              api_fail(problem, API_DIGEST_MISMATCH,
                       "%.200s: the signature is of %s, and the file's digest is %s",
                       path, file->digest, digest));
        close(fd);
    }
    free(path);
    return ok;
}

static bool
is_named(const struct api_statement *statement, const char *name)
{
    for (size_t i = 0; i < statement->n; i++)
        if (strcmp(statement->files[i].path, name) == 0)
            return true;
    return false;
}

/* Checks one entry of the folder: a file has to be one of the statement's, or its signature. */
static bool
check_entry(const struct checked *checked, const FTSENT *entry,
            const struct stat *signature, struct api_problem *problem)
{
    const char *name = entry->fts_path + strlen(checked->folder);
    name += *name == '/';
    switch (entry->fts_info) {
    case FTS_D:
    case FTS_DP:
        return true;
    case FTS_F:
        if (is_named(checked->statement, name) ||
            (entry->fts_statp->st_ino == signature->st_ino &&
             entry->fts_statp->st_dev == signature->st_dev))
            return true;
        return api_fail(problem, API_SIGNATURE_INVALID,
                        "%.200s is not among the files that are signed",
                        entry->fts_path);
    case FTS_DNR:
    case FTS_ERR:
    case FTS_NS:
        errno = entry->fts_errno;
        return file_fail(entry->fts_path, problem);
    default:
        return api_fail(problem, API_SIGNATURE_INVALID,
                        "%.200s is no regular file, and such a thing is not signed",
                        entry->fts_path);
    }
}

/* Checks that the folder has no other files. */
static bool
check_folder(const struct checked *checked, struct api_problem *problem)
{
    char *const roots[] = {checked->folder, NULL};
    struct stat signature;
    if (stat(checked->signature, &signature) != 0)
        return file_fail(checked->signature, problem);
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    if (!walk)
        return file_fail(checked->folder, problem);
    FTSENT *entry;
    bool ok = true;
    errno = 0;
    while (ok && (entry = fts_read(walk)))
        ok = check_entry(checked, entry, &signature, problem);
    if (ok && errno)
        ok = file_fail(checked->folder, problem);
    fts_close(walk);
    return ok;
}

/* Finds the folder, and the signature where no option names it. */
static bool
find_places(const struct options *options, struct checked *ret,
            struct api_problem *problem)
{
    struct stat st;
    if (stat(options->model, &st) != 0)
        return file_fail(options->model, problem);
    const char *slash = strrchr(options->model, '/');
    ret->file = S_ISDIR(st.st_mode) ? NULL : options->model;
    ret->folder = !ret->file ? strdup(options->model)
                  : !slash   ? strdup(".")
                           : strndup(options->model, (size_t)(slash - options->model));
    if (!ret->folder)
        return api_problem_no_memory(problem);
    for (size_t n = strlen(ret->folder); n > 1 && ret->folder[n - 1] == '/'; n--)
        ret->folder[n - 1] = '\0';
    if (options->signature)
        ret->signature = strdup(options->signature);
    else if (asprintf(&ret->signature, "%s/%s", ret->folder, SIGNATURE) < 0)
        ret->signature = NULL;
    return ret->signature || api_problem_no_memory(problem);
}

static bool
check_files(const struct checked *checked, struct api_problem *problem)
{
    const struct api_statement *statement = checked->statement;
    bool ok = checked->file || check_folder(checked, problem);
    for (size_t i = 0; ok && i < statement->n; i++)
        ok = check_file(checked, &statement->files[i], problem);
    for (size_t i = 0; ok && i < statement->n; i++) {
        fputs("signed: ", stdout);
        put_text(stdout, statement->files[i].path, 0);
        printf(" %s\n", statement->files[i].digest);
    }
    return ok;
}

bool
command_verify(const struct options *options, struct api_problem *problem)
{
    struct api_statement statement = {.n = 0};
    struct checked checked = {.statement = &statement};
    bool ok =
        options->key ||
        api_fail(problem, API_BAD_REQUEST,
                 "verify needs --key, the file with the public key (PEM) of those "
                 "who sign");
    ok = ok && find_places(options, &checked, problem) &&
         statement_read(checked.signature, options->key, &statement, problem) &&
         check_files(&checked, problem);
    api_statement_fini(&statement);
    free(checked.signature);
    free(checked.folder);
    return ok;
}
