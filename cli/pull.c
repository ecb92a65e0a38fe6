/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands pull and ls. A file that is pulled has a hidden name, which depends on the
 * version, until all files of the model are there: a pull that broke is resumed by the next.
 */
#include "config.h"
#include "commands.h"
#include "files.h"
#include "print.h"
#include "remotes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file under way. */
struct part {
    char *path, *final; /* owned */
    int fd;
    char digest[DIGEST_SIZE];
};

struct pull {
    const struct operand *operand;
    const struct qdqr_source *source;
    const char *folder;
    char key[9];        /* the version, in the names of its parts */
    struct part *parts; /* one for each file */
    struct transfer transfer;
};

/* Makes the folders of a path below `from` bytes of it. */
static bool
make_folders(char *path, size_t from, struct api_problem *problem)
{
    for (char *slash = path + from; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        bool ok = !*path || mkdir(path, 0777) == 0 || errno == EEXIST ||
                  file_fail(path, problem);
        *slash = '/';
        if (!ok)
            return false;
    }
    return true;
}

/* Computes the key of the version. Without a digest of the remote's nothing is resumed. */
static bool
make_key(struct pull *pull, struct api_problem *problem)
{
    char digest[DIGEST_SIZE], *text;
    if (!*pull->source->digest) {
        snprintf(pull->key, sizeof pull->key, "%08x", (unsigned)getpid());
        return true;
    }
    int len = asprintf(&text, "%s %s", pull->source->resolved, pull->source->digest);
    if (len < 0)
        return api_problem_no_memory(problem);
    bool ok = digest_bytes(text, (size_t)len, digest, problem);
    free(text);
    if (ok)
        snprintf(pull->key, sizeof pull->key, "%.8s", strchr(digest, ':') + 1);
    return ok;
}

static bool
open_part(struct pull *pull, size_t i, struct api_problem *problem)
{
    struct part *part = &pull->parts[i];
    const char *name = pull->source->files[i].name;
    if (asprintf(&part->final, "%s/%s", pull->folder, name) < 0) {
        part->final = NULL;
        return api_problem_no_memory(problem);
    }
    const char *base = strrchr(part->final, '/') + 1;
    if (asprintf(&part->path, "%.*s.%s.%s.part", (int)(base - part->final), part->final,
                 base, pull->key) < 0) {
        part->path = NULL;
        return api_problem_no_memory(problem);
    }
    if (!make_folders(part->final, strlen(pull->folder) + 1, problem))
        return false;
    part->fd =
        open(part->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (part->fd < 0)
        return file_fail(part->path, problem);
    return flock(part->fd, LOCK_EX | LOCK_NB) == 0 ||
           api_fail(problem, API_IO, "%s: another pull is writing it", part->path);
}

/* Renames the parts into place, the model last. */
static bool
publish_parts(struct pull *pull, struct api_problem *problem)
{
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < pull->source->n_files; i++) {
            bool is_last = pull->source->files[i].role == QDQR_MODEL;
            struct part *part = &pull->parts[i];
            if (is_last == (pass == 1) &&
                (fsync(part->fd) != 0 || rename(part->path, part->final) != 0))
                return file_fail(part->final, problem);
        }
    return true;
}

static bool
pull_files(struct pull *pull, struct api_problem *problem)
{
    size_t n = pull->source->n_files;
    pull->parts = calloc(n, sizeof *pull->parts);
    if (!pull->parts)
        return api_problem_no_memory(problem);
    for (size_t i = 0; i < n; i++)
        pull->parts[i].fd = -1;
    if (!make_key(pull, problem))
        return false;
    for (size_t i = 0; i < n; i++) {
        pull->transfer.label = pull->source->files[i].name;
        if (!open_part(pull, i, problem))
            return false;
        if (!qdqr_pull(&pull->operand->remote, pull->source, i, pull->parts[i].fd,
                       &pull->transfer.call, pull->parts[i].digest, problem))
            return operand_fail(pull->operand, problem);
    }
    return publish_parts(pull, problem);
}

/* Prints a line for each file, as it stands in the folder or at the remote. */
static void
print_files(const struct qdqr_source *source, const struct part *parts)
{
    static const char *const roles[] = {[QDQR_MODEL] = "model",
                                        [QDQR_DATA] = "data",
                                        [QDQR_OTHER] = "other",
                                        [QDQR_REPORT] = "report",
                                        [QDQR_SPEC] = "spec"};
    int width = (int)strlen("FILE");
    for (size_t i = 0; i < source->n_files; i++)
        if ((int)strlen(source->files[i].name) > width)
            width = (int)strlen(source->files[i].name);
    printf("%-*s  %-6s  %12s  DIGEST\n", width, "FILE", "ROLE", "BYTES");
    for (size_t i = 0; i < source->n_files; i++) {
        const struct qdqr_file *file = &source->files[i];
        const char *digest = parts ? parts[i].digest : file->digest;
        struct stat st;
        long long size = file->size;
        if (parts && fstat(parts[i].fd, &st) == 0)
            size = (long long)st.st_size;
        printf("%-*s  %-6s  ", width, file->name, roles[file->role]);
        if (size < 0)
            printf("%12s", "-");
        else
            printf("%12lld", size);
        printf("  %s\n", *digest ? digest : "-");
    }
}

static void
free_parts(struct pull *pull)
{
    for (size_t i = 0; pull->parts && i < pull->source->n_files; i++) {
        if (pull->parts[i].fd >= 0)
            close(pull->parts[i].fd);
        free(pull->parts[i].path);
        free(pull->parts[i].final);
    }
    free(pull->parts);
}

/* Resolves the operand. The caller closes the operand and frees the source. */
static bool
resolve(const struct options *options, struct operand *operand,
        struct qdqr_source **ret, struct api_problem *problem)
{
    struct transfer transfer;
    if (!operand_open(options, operand, problem))
        return false;
    transfer_start(&transfer, operand->text);
    bool ok =
        qdqr_resolve(&operand->remote, operand->ref, &transfer.call, ret, problem) ||
        operand_fail(operand, problem);
    transfer_end(&transfer);
    return ok;
}

bool
command_pull(const struct options *options, struct api_problem *problem)
{
    struct operand operand;
    struct qdqr_source *source = NULL;
    bool ok = resolve(options, &operand, &source, problem);
    if (ok) {
        struct pull pull = {.operand = &operand,
                            .source = source,
                            .folder = options->out ? options->out : "."};
        transfer_start(&pull.transfer, operand.text);
        ok = mkdir(pull.folder, 0777) == 0 || errno == EEXIST ||
             file_fail(pull.folder, problem);
        ok = ok && pull_files(&pull, problem);
        transfer_end(&pull.transfer);
        if (ok) {
            printf("%s:%s\n", operand.name, source->resolved);
            print_files(source, pull.parts);
        }
        free_parts(&pull);
    }
    qdqr_source_free(&source);
    operand_close(&operand);
    return ok;
}

bool
command_ls(const struct options *options, struct api_problem *problem)
{
    struct operand operand;
    struct qdqr_source *source = NULL;
    bool ok = resolve(options, &operand, &source, problem);
    if (ok) {
        printf("%s:%s\n", operand.name, source->resolved);
        print_files(source, NULL);
    }
    qdqr_source_free(&source);
    operand_close(&operand);
    return ok;
}
