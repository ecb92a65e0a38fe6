/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls: they find the kind's row, open a handle and call the row. */
#include "config.h"
#include "base/kind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct remote_kind_row *const kinds[] = {&remote_mlflow, &remote_oci,
                                                      &remote_s3, &remote_webhook};

static const struct remote_kind_row *
find_kind(const struct qdqr_remote *remote, struct api_problem *problem)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i]->name, remote->kind) == 0)
            return kinds[i];
    api_problem_set(problem, API_UNSUPPORTED, QDQ_AT_NOTHING, NULL,
                    "remote %s has the kind \"%s\", which this version does not speak",
                    remote->name, remote->kind);
    return NULL;
}

/* Opens a handle with the remote's credentials. */
static bool
open_http(const struct qdqr_remote *remote, struct qdqr_call *call, struct http **ret,
          struct api_problem *problem)
{
    const struct remote_kind_row *kind = find_kind(remote, problem);
    *ret = NULL;
    return kind && http_open(remote, call, ret, problem) &&
           kind->authenticate(*ret, problem);
}

static bool
fail_ability(const struct qdqr_remote *remote, const char *what,
             struct api_problem *problem)
{
    return api_problem_set(problem, API_UNSUPPORTED, QDQ_AT_NOTHING, NULL,
                           "remote %s of kind %s cannot %s", remote->name, remote->kind,
                           what);
}

bool
qdqr_check(const struct qdqr_remote *remote, struct api_problem *problem)
{
    struct http *http = NULL;
    struct qdqr_call call = {0};
    const struct remote_kind_row *kind = find_kind(remote, problem);
    bool ok = kind && (!kind->check || kind->check(remote, problem)) &&
              open_http(remote, &call, &http, problem);
    http_close(&http);
    return ok;
}

bool
qdqr_check_ref(const struct qdqr_remote *remote, const char *ref, bool to_publish,
               struct api_problem *problem)
{
    const struct remote_kind_row *kind = find_kind(remote, problem);
    if (!kind)
        return false;
    if (!kind->check_ref)
        return fail_ability(remote, "hold models", problem);
    for (const char *at = ref; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            return api_problem_set(problem, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL,
                                   "a ref has no control characters");
    if (!*ref || strlen(ref) >= QDQR_REF)
        return api_problem_set(problem, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL,
                               "a ref has 1 to %d bytes", QDQR_REF - 1);
    return kind->check_ref(ref, to_publish, problem);
}

/* --- pull ----------------------------------------------------------------- */

/* Checks that all files together keep to the limit. */
static bool
check_sizes(const struct qdqr_remote *remote, const struct qdqr_source *source,
            struct api_problem *problem)
{
    int64_t left = remote->max_bytes > 0 ? remote->max_bytes : INT64_MAX;
    for (size_t i = 0; i < source->n_files; i++) {
        int64_t size = source->files[i].size > 0 ? source->files[i].size : 0;
        if (size > left)
            return api_problem_set(
                problem, API_REMOTE_TOO_LARGE, QDQ_AT_NOTHING, NULL,
                "the files have more than the %lld bytes that remote "
                "%s may send (max_bytes)",
                (long long)remote->max_bytes, remote->name);
        left -= size;
    }
    return true;
}

bool
qdqr_resolve(const struct qdqr_remote *remote, const char *ref, struct qdqr_call *call,
             struct qdqr_source **ret, struct api_problem *problem)
{
    struct http *http = NULL;
    struct qdqr_source *source = calloc(1, sizeof *source);
    bool ok = source || api_problem_no_memory(problem);
    ok = ok && qdqr_check(remote, problem) &&
         qdqr_check_ref(remote, ref, false, problem) &&
         open_http(remote, call, &http, problem);
    ok = ok && find_kind(remote, problem)->resolve(http, ref, source, problem) &&
         check_sizes(remote, source, problem);
    http_close(&http);
    if (!ok)
        qdqr_source_free(&source);
    else
        *ret = source;
    return ok;
}

/* Computes the digest of a whole file. */
static bool
digest_file(int fd, char ret[DIGEST_SIZE], struct api_problem *problem)
{
    static const size_t size = 1 << 16;
    char *buffer = malloc(size);
    struct digest *digest = digest_new();
    bool ok = buffer && digest;
    ssize_t n = 0;
    for (off_t at = 0; ok && (n = pread(fd, buffer, size, at)) != 0;) {
        if (n < 0 && errno == EINTR)
            continue;
        ok = n > 0 && digest_update(digest, buffer, (size_t)n);
        at += n;
    }
    ok = ok && digest_finish(digest, ret);
    digest_free(&digest);
    free(buffer);
    return ok || api_problem_set(problem, API_IO, QDQ_AT_NOTHING, NULL,
                                 "a pulled file cannot be read");
}

/* Writes the digest of the file that was pulled. Most of it is known already unless the file
   began anew. */
static bool
digest_pulled(struct http *http, int fd, char ret[DIGEST_SIZE],
              struct api_problem *problem)
{
    return (http->hasher &&
            hasher_finish(&http->hasher, lseek(fd, 0, SEEK_END), ret)) ||
           digest_file(fd, ret, problem);
}

bool
qdqr_pull(const struct qdqr_remote *remote, const struct qdqr_source *source,
          size_t file, int fd, struct qdqr_call *call, char ret_digest[DIGEST_SIZE],
          struct api_problem *problem)
{
    struct http *http = NULL, *from = NULL;
    struct http_request request = {.to_fd = fd};
    const struct remote_kind_row *kind = find_kind(remote, problem);
    const struct qdqr_file *wanted = &source->files[file];
    bool done = false;
    bool ok = open_http(remote, call, &http, problem) &&
              (!kind->pull || kind->pull(http, source, file, fd, &done, problem));
    ok = ok && (done || kind->locate(http, source, file, &request, &from, problem));
    if (ok && !done)
        from->hasher = hasher_start(fd, 0);
    ok = ok && (done || http_pull(from, &request, wanted->size, problem)) &&
         digest_pulled(done ? http : from, fd, ret_digest, problem);
    if (ok && *wanted->digest && strcmp(wanted->digest, ret_digest) != 0)
        ok = api_problem_set(problem, API_REMOTE_DIGEST_MISMATCH, QDQ_AT_NOTHING, NULL,
                             "the file %s of remote %s has another digest than it says",
                             wanted->name, remote->name);
    if (!ok && problem &&
        (problem->code == API_REMOTE_DIGEST_MISMATCH ||
         problem->code == API_REMOTE_TOO_LARGE) &&
        ftruncate(fd, 0) != 0)
        ok = false; /* the first problem is the one to tell */
    http_close(&http);
    return ok;
}

/* --- versions, publications, events ---------------------------------------- */

/* Opens a handle for what a kind can do, or else cannot: `what`. */
static bool
open_able(const struct qdqr_remote *remote, bool is_able, const char *what,
          struct qdqr_call *call, struct http **ret, struct api_problem *problem)
{
    if (!is_able)
        return fail_ability(remote, what, problem);
    return qdqr_check(remote, problem) && open_http(remote, call, ret, problem);
}

bool
qdqr_versions(const struct qdqr_remote *remote, const struct qdqr_question *question,
              struct qdqr_call *call, struct qdqr_version **ret, size_t *ret_n,
              struct api_problem *problem)
{
    struct http *http = NULL;
    const struct remote_kind_row *kind = find_kind(remote, problem);
    bool ok = kind &&
              open_able(remote, kind->versions, "list versions of models", call, &http,
                        problem) &&
              kind->versions(http, question, ret, ret_n, problem);
    http_close(&http);
    return ok;
}

bool
qdqr_publish(const struct qdqr_remote *remote,
             const struct qdqr_publication *publication, struct qdqr_call *call,
             char **ret_location, struct api_problem *problem)
{
    struct http *http = NULL;
    const struct remote_kind_row *kind = find_kind(remote, problem);
    bool ok =
        kind &&
        open_able(remote, kind->publish, "publish models", call, &http, problem) &&
        qdqr_check_ref(remote, publication->ref, true, problem) &&
        kind->publish(http, publication, ret_location, problem);
    http_close(&http);
    return ok;
}

bool
qdqr_deliver(const struct qdqr_remote *remote, const struct qdqr_event *event,
             struct qdqr_call *call, struct api_problem *problem)
{
    struct http *http = NULL;
    const struct remote_kind_row *kind = find_kind(remote, problem);
    bool ok =
        kind &&
        open_able(remote, kind->deliver, "receive events", call, &http, problem) &&
        kind->deliver(http, event, problem);
    http_close(&http);
    return ok;
}
