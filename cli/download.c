/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where the bytes of a tar's file begin. */
enum { TAR_BLOCK = 512, TAR_SIZE_AT = 124, TAR_SIZE_LEN = 12, TAR_TYPE_AT = 156 };

static bool
check_digest(int fd, const char *path, const char *wanted, struct api_problem *problem)
{
    char digest[DIGEST_SIZE];
    if (!digest_file(fd, path, digest, problem))
        return false;
    return (wanted && digest_is_same(digest, wanted)) ||
           api_fail(problem, API_DIGEST_MISMATCH, "%s: the bytes that came are not %s",
                    path, wanted ? wanted : "those of the job");
}

static bool
fetch(struct client *client, const struct api_job_facts *job, int fd,
      struct api_problem *problem)
{
    char path[160];
    client->is_lost = false;
    return client_path(job->id, "/model", path, sizeof path, problem) &&
           qdqr_service_fetch(client->service, path, NULL, fd, problem);
}

/* --- models of several files ---------------------------------------------- */

static uint64_t
whole_blocks(uint64_t size)
{
    return (size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
}

/* Finds the bytes of the next file of a tar, behind the extended headers before it. `at` is
   the header and becomes the first byte. */
static bool
find_bytes(int tar, uint64_t *at)
{
    char header[TAR_BLOCK], size[TAR_SIZE_LEN + 1] = "";
    while (pread(tar, header, sizeof header, (off_t)*at) == (ssize_t)sizeof header) {
        *at += TAR_BLOCK;
        if (header[TAR_TYPE_AT] != 'x' && header[TAR_TYPE_AT] != 'g')
            return true;
        memcpy(size, header + TAR_SIZE_AT, TAR_SIZE_LEN);
        *at += whole_blocks(strtoull(size, NULL, 8));
    }
    return false;
}

/* Takes a file out of the tar. `at` moves on to the next header. */
static bool
extract_file(int tar, uint64_t *at, const struct api_file *file, struct output *to,
             struct api_problem *problem)
{
    if (!find_bytes(tar, at))
        return api_fail(problem, API_DIGEST_MISMATCH,
                        "%s is not in the archive that came", file->path);
    bool ok = output_copy_part(to, tar, *at, file->size, problem) &&
              check_digest(to->fd, to->path, file->digest, problem);
    *at += whole_blocks(file->size);
    return ok;
}

/* Opens the data file beside the model. */
static bool
open_beside(const struct output *out, const struct api_file *file, struct output *ret,
            struct api_problem *problem)
{
    char digest[DIGEST_SIZE], *path;
    const char *name = api_path_base(file->path);
    int folder = (int)(api_path_base(out->path) - out->path), fd;
    if (!*name || asprintf(&path, "%.*s%s", folder, out->path, name) < 0)
        return api_problem_no_memory(problem);
    bool ok = true;
    if (access(path, F_OK) == 0) {
        ok = file_open(path, &fd, problem);
        if (ok) {
            ok = digest_file(fd, path, digest, problem);
            close(fd);
        }
        if (ok && !digest_is_same(digest, file->digest))
            ok = api_fail(problem, API_IO,
                          "%s is there with other bytes; the model needs its own data "
                          "under that name, so choose another folder",
                          path);
    }
    ok = ok && output_open(path, ret, problem);
    free(path);
    return ok;
}

/* The data gets its name first, so that a model never names a file that is missing. */
static bool
download_files(struct client *client, const struct api_job_facts *job,
               struct output *out, struct api_problem *problem)
{
    struct output tar = OUTPUT_NONE, data = OUTPUT_NONE;
    uint64_t at = 0;
    bool ok = job->n_files == 2 ||
              api_fail(problem, API_UNSUPPORTED,
                       "the model has %zu files, and this qdq knows two", job->n_files);
    ok = ok && open_beside(out, &job->files[1], &data, problem) &&
         output_open(out->path, &tar, problem) && fetch(client, job, tar.fd, problem) &&
         extract_file(tar.fd, &at, &job->files[0], out, problem) &&
         extract_file(tar.fd, &at, &job->files[1], &data, problem) &&
         output_commit(&data, problem) && output_commit(out, problem);
    output_close(&tar);
    output_close(&data);
    return ok;
}

bool
download_model(struct client *client, const struct api_job_facts *job,
               struct output *out, struct api_problem *problem)
{
    if (job->n_files > 0)
        return download_files(client, job, out, problem);
    return fetch(client, job, out->fd, problem) &&
           check_digest(out->fd, out->path, job->result_model, problem) &&
           output_commit(out, problem);
}
