/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "oci/oci_archive.h"
#include "base/kind.h"
#include "oci/oci_api.h"
#include "oci/untar.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A layer that is read. */
struct reading {
    struct http *http;
    struct untar *untar;
    struct digest *digest;
    struct api_problem fault; /* of what the layer has */
    /* Used when files are listed: */
    struct qdqr_source *source;
    FILE *places;
    const char *layer;
    char type;
    /* Used when a file is pulled: */
    const char *wanted; /* name of the file */
    int fd;
    bool is_in_wanted, was_there;
    off_t at;
};

char
oci_archive_type(const char *media_type)
{
    static const char *const kinds[] = {"application/vnd.kitops.modelkit.model.",
                                        "application/vnd.kitops.modelkit.modelpart.",
                                        "application/vnd.cncf.model.weight."};
    const char *tar = strstr(media_type, ".tar");
    bool is_model = false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        is_model |= strncmp(media_type, kinds[i], strlen(kinds[i])) == 0;
    if (!is_model || !tar)
        return 0;
    return strcmp(tar, ".tar") == 0 ? 't' : strcmp(tar, ".tar+gzip") == 0 ? 'z' : 0;
}

static bool
on_body(void *arg, const char *bytes, size_t len)
{
    struct reading *reading = arg;
    reading->http->done += (int64_t)len;
    return (digest_update(reading->digest, bytes, len) ||
            api_problem_no_memory(&reading->fault)) &&
           untar_feed(reading->untar, bytes, len, &reading->fault);
}

/* Checks the end and the digest of a layer. */
static bool
check_layer(struct reading *reading, const char *layer, struct api_problem *problem)
{
    char digest[DIGEST_SIZE];
    if (!digest_finish(reading->digest, digest))
        return api_problem_no_memory(problem);
    if (strcmp(digest, layer) != 0)
        return api_problem_set(problem, API_REMOTE_DIGEST_MISMATCH, QDQ_AT_NOTHING,
                               NULL,
                               "a layer of remote %s has another digest than it "
                               "says",
                               reading->http->remote->name);
    return untar_finish(reading->untar, problem);
}

/* Reads a whole layer. */
static bool
read_layer(struct reading *reading, const char *repo, const char *layer, char type,
           const struct untar_calls *calls, struct api_problem *problem)
{
    struct http_request request = {
        .on_body = on_body, .on_body_arg = reading, .is_file = true};
    struct http_answer answer;
    char rest[DIGEST_SIZE + 16];
    snprintf(rest, sizeof rest, "/blobs/%s", layer);
    reading->untar = untar_new(calls, type == 'z');
    reading->digest = digest_new();
    bool ok = (reading->untar && reading->digest) || api_problem_no_memory(problem);
    ok = ok && oci_url(reading->http, repo, rest, request.url, problem);
    if (ok) {
        ok = http_send(reading->http, &request, &answer, problem);
        if (reading->fault.set) {
            *problem = reading->fault;
            ok = false;
        }
        if (ok && answer.status != 200)
            ok = http_fail(reading->http, &answer, "a layer", problem);
        else if (ok)
            ok = check_layer(reading, layer, problem);
        http_answer_fini(&answer);
    }
    untar_free(&reading->untar);
    digest_free(&reading->digest);
    return ok;
}

static int64_t
most_bytes(const struct http *http)
{
    return http->remote->max_bytes > 0 ? http->remote->max_bytes : INT64_MAX;
}

/* --- list ----------------------------------------------------------------- */

static bool
add_file(void *arg, const char *name, int64_t size, struct api_problem *problem)
{
    struct reading *reading = arg;
    size_t number = reading->source->n_files;
    return source_add(reading->source, name, size, role_by_name(name), problem) &&
           (fprintf(reading->places, "\n%zu %c %s", number, reading->type,
                    reading->layer) > 0 ||
            api_problem_no_memory(problem));
}

bool
oci_add_archive(struct http *http, const char *repo, const char *digest, char type,
                struct qdqr_source *source, FILE *places, struct api_problem *problem)
{
    struct reading reading = {.http = http,
                              .source = source,
                              .places = places,
                              .layer = digest,
                              .type = type};
    const struct untar_calls calls = {
        .on_file = add_file, .arg = &reading, .most = most_bytes(http)};
    return read_layer(&reading, repo, digest, type, &calls, problem);
}

/* --- pull ----------------------------------------------------------------- */

static bool
find_wanted(void *arg, const char *name, int64_t size, struct api_problem *problem)
{
    struct reading *reading = arg;
    (void)size, (void)problem;
    reading->is_in_wanted = !reading->was_there && !strcmp(name, reading->wanted);
    reading->was_there |= reading->is_in_wanted;
    return true;
}

static bool
write_wanted(void *arg, const char *bytes, size_t len, struct api_problem *problem)
{
    struct reading *reading = arg;
    while (reading->is_in_wanted && len) {
        ssize_t n = pwrite(reading->fd, bytes, len, reading->at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return api_problem_set(problem, API_IO, QDQ_AT_NOTHING, NULL,
                                   "the bytes of remote %s cannot be written: %s",
                                   reading->http->remote->name, strerror(errno));
        bytes += n;
        len -= (size_t)n;
        reading->at += n;
    }
    return true;
}

bool
oci_pull_archived(struct http *http, const struct qdqr_source *source, size_t file,
                  int fd, bool *ret_done, struct api_problem *problem)
{
    char begin[32], layer[DIGEST_SIZE], repo[QDQR_REF];
    size_t len = (size_t)snprintf(begin, sizeof begin, "\n%zu ", file);
    const char *line = strstr(source->place, begin);
    *ret_done = line;
    if (!line)
        return true;
    snprintf(repo, sizeof repo, "%.*s", (int)strcspn(source->place, "\n"),
             source->place);
    snprintf(layer, sizeof layer, "%s", line + len + 2);
    layer[strcspn(layer, "\n")] = '\0';
    struct reading reading = {
        .http = http, .wanted = source->files[file].name, .fd = fd};
    const struct untar_calls calls = {.on_file = find_wanted,
                                      .on_bytes = write_wanted,
                                      .arg = &reading,
                                      .most = most_bytes(http)};
    if (ftruncate(fd, 0) != 0)
        return api_problem_set(problem, API_IO, QDQ_AT_NOTHING, NULL,
                               "a temporary file: %s", strerror(errno));
    http->total = source->files[file].size;
    bool ok = oci_login(http, repo, false, problem) &&
              read_layer(&reading, repo, layer, line[len], &calls, problem);
    if (!ok && ftruncate(fd, 0) != 0)
        ok = false; /* half a layer is of no use to the next attempt */
    return ok;
}
