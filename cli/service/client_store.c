/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads. A file is sent only where the service does not have its digest. */
#include "config.h"
#include "service/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "external.h"
#include "files.h"

/* Sends a file unless the service has it: POST to /v1/models and /v1/datasets, PUT to a blob. */
static bool
store_file(struct client *client, const char *collection, const char *path, int fd,
           const char *digest, struct api_problem *problem)
{
    char place[160];
    bool is_blob = strcmp(collection, "blobs") == 0, has;
    struct api_document *answer = NULL;
    struct stat st;
    snprintf(place, sizeof place, "/v1/%s/%s", collection, digest);
    if (!qdqr_service_has(client->service, place, &has, problem))
        return false;
    if (has)
        return true;
    if (fstat(fd, &st) != 0 || st.st_size == 0)
        return api_fail(problem, API_IO, "%s: %s", path,
                        st.st_size == 0 ? "the file is empty" : strerror(errno));
    if (!is_blob)
        snprintf(place, sizeof place, "/v1/%s", collection);
    client->moving = "upload";
    const struct qdqr_ask ask = {.method = is_blob ? "PUT" : "POST",
                                 .path = place,
                                 .fd = fd,
                                 .size = st.st_size,
                                 .digest = digest};
    bool ok = client_ask(client, &ask, &answer, problem);
    client->moving = NULL;
    api_document_free(&answer);
    return ok;
}

/* --- models of several files ---------------------------------------------- */

/* Stores one file of a model as a blob and names it in `ret`. The caller frees ret->digest. */
static bool
store_part(struct client *client, const char *name, int fd, struct api_file *ret,
           struct api_problem *problem)
{
    char digest[DIGEST_SIZE];
    if (!digest_file(fd, name, digest, problem) ||
        !store_file(client, "blobs", name, fd, digest, problem))
        return false;
    *ret = (struct api_file){name, strdup(digest), 0};
    return ret->digest || api_problem_no_memory(problem);
}

static bool
store_parts(struct client *client, const char *path, int fd,
            const struct external *external, struct api_problem *problem)
{
    size_t n = external->n + 1;
    struct api_document *answer = NULL;
    struct api_file *files = calloc(n, sizeof *files);
    bool ok = files ? store_part(client, api_path_base(path), fd, &files[0], problem)
                    : api_problem_no_memory(problem);
    for (size_t i = 0; i < external->n && ok; i++)
        ok = store_part(client, external->files[i].path, external->files[i].fd,
                        &files[1 + i], problem);
    char *text = ok ? api_files_encode(files, n) : NULL;
    if (ok && !text)
        ok = api_problem_no_memory(problem);
    const struct qdqr_ask ask = {.method = "POST", .path = "/v1/models", .json = text};
    ok = ok && client_ask(client, &ask, &answer, problem);
    api_document_free(&answer);
    for (size_t i = 0; files && i < n; i++)
        free((void *)(uintptr_t)files[i].digest);
    free(files);
    free(text);
    return ok;
}

/* --- models and data ------------------------------------------------------ */

/* Stores an open model. Its id is written to `ret`. */
static bool
store_model(struct client *client, const char *path, int fd,
            const struct external *external, char ret[DIGEST_SIZE],
            struct api_problem *problem)
{
    char place[128];
    bool has = false;
    if (!digest_file(fd, path, ret, problem))
        return false;
    if (external->n == 0)
        return store_file(client, "models", path, fd, ret, problem);
    if (!external_digest(external, fd, path, ret, digest_file, problem))
        return false;
    snprintf(place, sizeof place, "/v1/models/%s", ret);
    if (!qdqr_service_has(client->service, place, &has, problem))
        return false;
    return has || store_parts(client, path, fd, external, problem);
}

/* Stores what the path names, unless that is the id of a stored file: a model, or data for the
   model of that path. */
static bool
store(struct client *client, const char *path, bool is_model, const char *model,
      char ret[DIGEST_SIZE], struct api_problem *problem)
{
    struct external external = {.n = 0};
    int fd;
    if (digest_is_id(path)) {
        snprintf(ret, DIGEST_SIZE, "%s", path);
        return true;
    }
    if (!(is_model ? file_open(path, &fd, problem)
                   : data_open(path, model, &fd, problem)))
        return false;
    bool ok = is_model ? external_open(fd, path, &external, problem) &&
                             store_model(client, path, fd, &external, ret, problem)
                       : digest_file(fd, path, ret, problem) &&
                             store_file(client, "datasets", path, fd, ret, problem);
    external_close(&external);
    close(fd);
    return ok;
}

bool
client_store_model(struct client *client, const char *path, char ret[DIGEST_SIZE],
                   struct api_problem *problem)
{
    return store(client, path, true, NULL, ret, problem);
}

bool
client_store_dataset(struct client *client, const char *path, const char *model,
                     char ret[DIGEST_SIZE], struct api_problem *problem)
{
    return store(client, path, false, model, ret, problem);
}
