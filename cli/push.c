/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command push. The id of the delivery is made of everything that is pushed, so that a
 * push that is repeated, or that broke, ends in the same version.
 */
#include "config.h"
#include "commands.h"
#include "api/files.h"
#include "files.h"
#include "remotes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_REPORT = 256 * 1024 * 1024 };

struct push {
    const struct options *options;
    struct operand operand;
    struct qdqr_upload *files; /* one for each operand FILE */
    char (*digests)[DIGEST_SIZE];
    struct qdqr_pair tags[MAX_TEXTS];
    char *tag_names[MAX_TEXTS]; /* owned */
    const char *model;          /* the operand that is the ONNX file */
    struct qdqr_metric *metrics;
    size_t n_metrics;
};

/* Returns the role of a file: signatures and statements by the names under which the service gives
   them, reports are pages and other JSON. */
static enum qdqr_role
role_of(const char *path)
{
    if (api_path_has_ending(path, ".sig"))
        return QDQR_SIGNATURE;
    if (strcmp(api_path_base(path), QDQR_PROVENANCE_NAME) == 0)
        return QDQR_PROVENANCE;
    if (strcmp(api_path_base(path), QDQR_BOM_NAME) == 0)
        return QDQR_BOM;
    if (api_path_has_ending(path, ".onnx"))
        return QDQR_MODEL;
    if (api_path_has_ending(path, ".html"))
        return QDQR_REPORT;
    if (api_path_has_ending(path, ".json"))
        return strstr(api_path_base(path), "spec") ? QDQR_SPEC : QDQR_REPORT;
    return QDQR_DATA;
}

/* Returns a file's name in the version. Data keeps its path from the model's folder on, by
   which the model names it. */
static const char *
name_of(const struct push *push, const char *path, enum qdqr_role role)
{
    size_t folder = (size_t)(api_path_base(push->model) - push->model);
    bool is_below = role == QDQR_DATA && strncmp(path, push->model, folder) == 0 &&
                    path[folder] != '/' && !strstr(path + folder, "..");
    return is_below ? path + folder : api_path_base(path);
}

static bool
find_model(struct push *push, struct api_problem *problem)
{
    size_t n = 0;
    for (size_t i = 0; i < push->options->n_files; i++)
        if (role_of(push->options->files[i]) == QDQR_MODEL) {
            push->model = push->options->files[i];
            n++;
        }
    return n == 1 || api_fail(problem, API_BAD_REQUEST,
                              "%zu files *.onnx are given, and one is needed", n);
}

static bool
open_files(struct push *push, struct api_problem *problem)
{
    for (size_t i = 0; i < push->options->n_files; i++) {
        const char *path = push->options->files[i];
        struct qdqr_upload *file = &push->files[i];
        struct stat st;
        file->role = role_of(path);
        file->name = name_of(push, path, file->role);
        for (size_t k = 0; k < i; k++)
            if (strcmp(push->files[k].name, file->name) == 0)
                return api_fail(problem, API_BAD_REQUEST,
                                "%s: two files have the name %s", path, file->name);
        if (!file_open(path, &file->fd, problem) ||
            !digest_file(file->fd, path, push->digests[i], problem))
            return false;
        if (fstat(file->fd, &st) != 0)
            return file_fail(path, problem);
        file->size = st.st_size;
        file->digest = push->digests[i];
    }
    return true;
}

/* Makes metrics of the report, where one is among the files. */
static bool
read_report(struct push *push, struct api_problem *problem)
{
    size_t i = 0, n = push->options->n_files;
    while (i < n && (push->files[i].role != QDQR_REPORT ||
                     !api_path_has_ending(push->files[i].name, ".json")))
        i++;
    if (i == n || push->files[i].size > MAX_REPORT)
        return true;
    size_t len = (size_t)push->files[i].size;
    char *text = malloc(len + 1);
    if (!text)
        return api_problem_no_memory(problem);
    bool ok = pread(push->files[i].fd, text, len, 0) == (ssize_t)len ||
              api_fail(problem, API_IO, "%s: cannot be read in full",
                       push->options->files[i]);
    ok = ok &&
         qdqr_metrics_of_report(text, len, &push->metrics, &push->n_metrics, problem);
    free(text);
    return ok;
}

static bool
parse_tags(struct push *push, struct api_problem *problem)
{
    for (size_t i = 0; i < push->options->tags.n; i++) {
        const char *tag = push->options->tags.at[i], *equals = strchr(tag, '=');
        if (!equals || equals == tag)
            return api_fail(problem, API_BAD_REQUEST, "--tag %s: not KEY=VALUE", tag);
        push->tag_names[i] = strndup(tag, (size_t)(equals - tag));
        if (!push->tag_names[i])
            return api_problem_no_memory(problem);
        push->tags[i] = (struct qdqr_pair){push->tag_names[i], equals + 1};
    }
    return true;
}

/* Computes the id of the delivery from names, digests, tags and source. */
static bool
make_delivery(const struct push *push, char ret[DIGEST_SIZE],
              struct api_problem *problem)
{
    char *text = NULL;
    size_t len = 0;
    const char *source = push->options->source;
    FILE *to = open_memstream(&text, &len);
    if (!to)
        return api_problem_no_memory(problem);
    for (size_t i = 0; i < push->options->n_files; i++)
        fprintf(to, "%s %s\n", push->digests[i], push->files[i].name);
    for (size_t i = 0; i < push->options->tags.n; i++)
        fprintf(to, "tag %s\n", push->options->tags.at[i]);
    fprintf(to, "source %s\n", source ? source : "");
    bool ok = fclose(to) == 0 || api_problem_no_memory(problem);
    ok = ok && digest_bytes(text, len, ret, problem);
    free(text);
    return ok;
}

static bool
publish(struct push *push, struct api_problem *problem)
{
    char delivery[DIGEST_SIZE], *location = NULL;
    struct transfer transfer;
    if (!make_delivery(push, delivery, problem))
        return false;
    struct qdqr_publication publication = {.ref = push->operand.ref,
                                           .alias = push->options->alias,
                                           .delivery = delivery,
                                           .source = push->options->source,
                                           .files = push->files,
                                           .n_files = push->options->n_files,
                                           .tags = push->tags,
                                           .n_tags = push->options->tags.n,
                                           .metrics = push->metrics,
                                           .n_metrics = push->n_metrics};
    transfer_start(&transfer, push->operand.text);
    bool ok = qdqr_publish(&push->operand.remote, &publication, &transfer.call,
                           &location, problem) ||
              operand_fail(&push->operand, problem);
    transfer_end(&transfer);
    if (ok)
        print_version(&push->operand, location);
    free(location);
    return ok;
}

bool
command_push(const struct options *options, struct api_problem *problem)
{
    struct push push = {.options = options};
    push.files = calloc(options->n_files, sizeof *push.files);
    push.digests = calloc(options->n_files, sizeof *push.digests);
    for (size_t i = 0; push.files && i < options->n_files; i++)
        push.files[i].fd = -1;
    bool ok = (push.files && push.digests) || api_problem_no_memory(problem);
    ok = ok && operand_open(options, &push.operand, problem) &&
         (qdqr_check_ref(&push.operand.remote, push.operand.ref, true, problem) ||
          operand_fail(&push.operand, problem)) &&
         find_model(&push, problem) && open_files(&push, problem) &&
         parse_tags(&push, problem) && read_report(&push, problem) &&
         publish(&push, problem);
    for (size_t i = 0; push.files && i < options->n_files; i++)
        if (push.files[i].fd >= 0)
            close(push.files[i].fd);
    for (size_t i = 0; i < options->tags.n; i++)
        free(push.tag_names[i]);
    qdqr_metrics_free(push.metrics, push.n_metrics);
    free(push.files);
    free(push.digests);
    operand_close(&push.operand);
    return ok;
}
