/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "service/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/files.h"

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

/* Takes a file out of the tar, unless nothing is open for it. `at` moves on to the next
   header. */
static bool
extract_file(int tar, uint64_t *at, const struct api_file *file, struct output *to,
             struct api_problem *problem)
{
    if (!find_bytes(tar, at))
        return api_fail(problem, API_DIGEST_MISMATCH,
                        "%s is not in the archive that came", file->path);
    bool ok = to->fd < 0 || (output_copy_part(to, tar, *at, file->size, problem) &&
                             check_digest(to->fd, to->path, file->digest, problem));
    *at += whole_blocks(file->size);
    return ok;
}

/* Checks that the service's name of the data file is one part of a path that is not hidden. */
static bool
check_name(const char *name, struct api_problem *problem)
{
    return (api_path_is_inside(name) && !strchr(name, '/') && *name != '.') ||
           api_fail(problem, API_UNSUPPORTED,
                    "the service names the model's data file %.200s, which is no plain "
                    "file name",
                    name);
}

/* Looks at what is in the place of the data file. *ret_whole says whether it has its bytes. */
static bool
check_beside(const char *path, const struct api_file *file, bool *ret_whole,
             struct api_problem *problem)
{
    char digest[DIGEST_SIZE];
    struct stat st;
    int fd;
    *ret_whole = false;
    if (lstat(path, &st) != 0)
        return errno == ENOENT || file_fail(path, problem);
    if (file_open(path, &fd, problem)) {
        *ret_whole = digest_file(fd, path, digest, problem) &&
                     digest_is_same(digest, file->digest);
        close(fd);
    }
    if (*ret_whole)
        return true;
    *problem = (struct api_problem){0};
    return api_fail(
        problem, API_IO,
        "%s is there with other bytes; the model needs its own data under that "
        "name, so choose another folder",
        path);
}

/* Opens the data file beside the model, unless it is there already. */
static bool
open_beside(const struct options *options, const char *out, const struct api_file *file,
            struct output *ret, struct api_problem *problem)
{
    char *path;
    int folder = (int)(api_path_base(out) - out);
    bool is_whole;
    if (!check_name(file->path, problem))
        return false;
    if (asprintf(&path, "%.*s%s", folder, out, file->path) < 0)
        return api_problem_no_memory(problem);
    bool ok = check_beside(path, file, &is_whole, problem) &&
              check_data_place(options, out, path, problem) &&
              (is_whole || output_open(path, ret, problem));
    free(path);
    return ok;
}

static bool
download_files(struct client *client, const struct options *options,
               const struct api_job_facts *job, struct output *out, struct output *data,
               struct api_problem *problem)
{
    struct output tar = OUTPUT_NONE;
    uint64_t at = 0;
    bool ok = job->n_files == 2 ||
              api_fail(problem, API_UNSUPPORTED,
                       "the model has %zu files, and this qdq knows two", job->n_files);
    ok = ok && open_beside(options, out->path, &job->files[1], data, problem) &&
         output_open(out->path, &tar, problem) && fetch(client, job, tar.fd, problem) &&
         extract_file(tar.fd, &at, &job->files[0], out, problem) &&
         extract_file(tar.fd, &at, &job->files[1], data, problem);
    output_close(&tar);
    return ok;
}

bool
download_model(struct client *client, const struct options *options,
               const struct api_job_facts *job, struct output *out, struct output *data,
               struct api_problem *problem)
{
    if (job->n_files > 0)
        return download_files(client, options, job, out, data, problem);
    return fetch(client, job, out->fd, problem) &&
           check_digest(out->fd, out->path, job->result_model, problem);
}
