/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands pull and ls. A file that is pulled has a hidden name, which depends on the
 * version, until all files of the model are there: a pull that broke is resumed by the next.
 * Nothing that is in the folder is changed, unless the user forces it.
 */
#include "config.h"
#include "commands.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"
#include "pull_place.h"
#include "remotes.h"
#include "terminal.h"

/* A file of the version. */
struct part {
    struct place place;
    char digest[DIGEST_SIZE];
    bool is_new; /* it has its name, which nothing had before */
};

struct pull {
    const struct operand *operand;
    const struct qdqr_source *source;
    const char *folder;
    int root; /* the same, open */
    bool force;
    char key[9];        /* the version, in the names of its parts */
    struct part *parts; /* one for each file */
    struct transfer transfer;
};

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

/* Opens the folder of the pull, which may be a link. It is made when it is absent. */
static bool
open_root(struct pull *pull, struct api_problem *problem)
{
    if (mkdir(pull->folder, 0777) != 0 && errno != EEXIST)
        return file_fail(pull->folder, problem);
    pull->root = open(pull->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return pull->root >= 0 || file_fail(pull->folder, problem);
}

/* Opens the places of all files, so that one that is taken is told before bytes move. */
static bool
open_places(struct pull *pull, struct api_problem *problem)
{
    const struct qdqr_file *files = pull->source->files;
    for (size_t i = 0; i < pull->source->n_files; i++)
        if (!place_check_name(files[i].name, problem))
            return operand_fail(pull->operand, problem);
    if (!open_root(pull, problem))
        return false;
    for (size_t i = 0; i < pull->source->n_files; i++)
        if (!place_open(pull->root, pull->folder, &files[i], pull->key, pull->force,
                        &pull->parts[i].place, problem))
            return false;
    return true;
}

static bool
pull_file(struct pull *pull, size_t i, struct api_problem *problem)
{
    struct part *part = &pull->parts[i];
    pull->transfer.label = pull->source->files[i].name;
    if (part->place.is_complete) {
        memcpy(part->digest, pull->source->files[i].digest, sizeof part->digest);
        return true;
    }
    return qdqr_pull(&pull->operand->remote, pull->source, i, part->place.fd,
                     &pull->transfer.call, part->digest, problem) ||
           operand_fail(pull->operand, problem);
}

/* Gives the files their names, the model last. After a failure, files that were new have their
   hidden names again. */
static bool
publish_parts(struct pull *pull, struct api_problem *problem)
{
    bool ok = true;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < pull->source->n_files && ok; i++) {
            struct part *part = &pull->parts[i];
            if ((pull->source->files[i].role == QDQR_MODEL) == (pass == 1))
                ok = place_publish(&part->place, part->digest, pull->force,
                                   &part->is_new, problem);
        }
    for (size_t i = 0; i < pull->source->n_files && !ok; i++)
        if (pull->parts[i].is_new)
            place_take_back(&pull->parts[i].place);
    return ok;
}

static bool
pull_files(struct pull *pull, struct api_problem *problem)
{
    size_t n = pull->source->n_files;
    pull->parts = calloc(n, sizeof *pull->parts);
    if (!pull->parts)
        return api_problem_no_memory(problem);
    for (size_t i = 0; i < n; i++)
        pull->parts[i].place = PLACE_NONE;
    bool ok = make_key(pull, problem) && open_places(pull, problem);
    for (size_t i = 0; i < n && ok; i++)
        ok = pull_file(pull, i, problem);
    ok = ok && publish_parts(pull, problem);
    /* No other pull continues the files of a version that cannot be told from others. */
    for (size_t i = 0; i < n && !ok && !*pull->source->digest; i++)
        place_discard(&pull->parts[i].place);
    return ok;
}

/* Prints a line for each file, as it stands in the folder or at the remote. */
static void
print_files(const struct qdqr_source *source, const struct part *parts)
{
    static const char *const roles[] = {[QDQR_MODEL] = "model",
                                        [QDQR_DATA] = "data",
                                        [QDQR_OTHER] = "other",
                                        [QDQR_REPORT] = "report",
                                        [QDQR_SPEC] = "spec",
                                        [QDQR_SIGNATURE] = "signature",
                                        [QDQR_PROVENANCE] = "provenance",
                                        [QDQR_BOM] = "bom"};
    int width = (int)strlen("FILE");
    for (size_t i = 0; i < source->n_files; i++)
        if ((int)strlen(source->files[i].name) > width)
            width = (int)strlen(source->files[i].name);
    printf("%-*s  %-10s  %12s  DIGEST\n", width, "FILE", "ROLE", "BYTES");
    for (size_t i = 0; i < source->n_files; i++) {
        const struct qdqr_file *file = &source->files[i];
        const char *digest = parts ? parts[i].digest : file->digest;
        struct stat st;
        long long size = file->size;
        if (parts && fstat(parts[i].place.fd, &st) == 0)
            size = (long long)st.st_size;
        put_text(stdout, file->name, width);
        printf("  %-10s  ", roles[file->role]);
        if (size < 0)
            printf("%12s", "-");
        else
            printf("%12lld", size);
        fputs("  ", stdout);
        put_text(stdout, *digest ? digest : "-", 0);
        putchar('\n');
    }
}

static void
close_pull(struct pull *pull)
{
    for (size_t i = 0; pull->parts && i < pull->source->n_files; i++)
        place_close(&pull->parts[i].place);
    free(pull->parts);
    if (pull->root >= 0)
        close(pull->root);
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
                            .folder = options->out ? options->out : ".",
                            .root = -1,
                            .force = options->force};
        transfer_start(&pull.transfer, operand.text);
        ok = pull_files(&pull, problem);
        transfer_end(&pull.transfer);
        if (ok) {
            print_version(&operand, source->resolved);
            print_files(source, pull.parts);
        }
        close_pull(&pull);
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
        print_version(&operand, source->resolved);
        print_files(source, NULL);
    }
    qdqr_source_free(&source);
    operand_close(&operand);
    return ok;
}
