/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buckets of S3. A ref is a key below the remote's prefix. A key that ends in '/' is a folder:
 * all objects below it, of which one is the model. Any other key is one object, and for a
 * model also the data beside it, by the usual names: KEY.data and KEY_data.
 */
#include "config.h"
#include "base/kind.h"
#include "s3/s3_api.h"
#include "s3/s3_publish.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool
check_ref(const char *ref, bool to_publish, struct api_problem *problem)
{
    char name[QDQR_REF];
    size_t len = strlen(ref);
    (void)to_publish;
    snprintf(name, sizeof name, "%.*s", (int)(len - (len > 1 && ref[len - 1] == '/')),
             ref);
    return name_is_safe(name) ||
           api_problem_set(problem, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL,
                           "\"%.200s\" is no key of at most 512 bytes, without \"..\", "
                           "\"//\" and backslashes",
                           ref);
}

/* A list under way. */
struct listing {
    struct qdqr_source *source;
    const char *ref;
    size_t ref_len, folder_len; /* bytes of a key before the file's name */
    FILE *etags;                /* a line for each file */
};

static bool
on_object(void *arg, const struct s3_object *object, struct api_problem *problem)
{
    struct listing *listing = arg;
    const char *ref = listing->ref, *key = object->key;
    size_t len = strlen(key);
    bool is_folder = ref[listing->ref_len - 1] == '/';
    enum qdqr_role role = QDQR_MODEL;
    if (strncmp(key, ref, listing->ref_len) != 0 || !len || key[len - 1] == '/')
        return true;
    const char *ending = key + listing->ref_len;
    if (is_folder)
        role = role_by_name(ending);
    else if (strcmp(ending, ".sig") == 0)
        role = QDQR_SIGNATURE;
    else if (*ending && (role_by_name(ref) != QDQR_MODEL || !s3_is_data_ending(ending)))
        return true;
    else if (*ending)
        role = QDQR_DATA;
    return source_add(listing->source, key + listing->folder_len, object->size, role,
                      problem) &&
           (fprintf(listing->etags, "%s\n", object->etag) > 0 ||
            api_problem_no_memory(problem));
}

/* Computes the identity of all files: that of their names and ETags. */
static bool
make_digest(struct qdqr_source *source, struct api_problem *problem)
{
    char digest[DIGEST_SIZE], *text = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&text, &len);
    if (!to)
        return api_problem_no_memory(problem);
    fputs(source->place, to);
    for (size_t i = 0; i < source->n_files; i++)
        fprintf(to, "%s\n", source->files[i].name);
    bool ok = fclose(to) == 0 && digest_of(text, len, digest);
    free(text);
    source->digest = ok ? strdup(digest) : NULL;
    return source->digest || api_problem_no_memory(problem);
}

static bool
resolve(struct http *http, const char *ref, struct qdqr_source *source,
        struct api_problem *problem)
{
    struct listing listing = {source, ref, strlen(ref), 0, NULL};
    size_t len = 0;
    const char *slash = strrchr(ref, '/');
    listing.folder_len = slash ? (size_t)(slash + 1 - ref) : 0;
    source->resolved = strdup(ref);
    listing.etags = open_memstream(&source->place, &len);
    if (!source->resolved || !listing.etags)
        return api_problem_no_memory(problem);
    bool ok = s3_list(http, ref, on_object, &listing, problem);
    ok = (fclose(listing.etags) == 0 || api_problem_no_memory(problem)) && ok;
    if (ok && !source->n_files)
        ok = api_problem_set(problem, API_REMOTE_NOT_FOUND, QDQ_AT_NOTHING, NULL,
                             "remote %s has no key %.200s", http->remote->name, ref);
    return ok && source_has_model(http, source, problem) &&
           make_digest(source, problem);
}

/* Asks for the object as it was listed, so that a pull never mixes two versions. */
static bool
locate(struct http *http, const struct qdqr_source *source, size_t file,
       struct http_request *ret, struct http **ret_from, struct api_problem *problem)
{
    *ret_from = http;
    const char *ref = source->resolved, *slash = strrchr(ref, '/');
    const char *etag = source->place;
    char key[2 * QDQR_REF];
    for (size_t i = 0; i < file; i++)
        etag = strchr(etag, '\n') + 1;
    int len = (int)strcspn(etag, "\n");
    ret->headers[0] = S3_NO_BODY;
    if (len > 0) {
        snprintf(ret->condition, sizeof ret->condition, "If-Match: %.*s", len, etag);
        ret->headers[1] = ret->condition;
    }
    snprintf(key, sizeof key, "%.*s%s", slash ? (int)(slash + 1 - ref) : 0, ref,
             source->files[file].name);
    return s3_url(http, key, ret->url, problem);
}

const struct remote_kind_row remote_s3 = {
    .name = "s3",
    .authenticate = s3_authenticate,
    .check_ref = check_ref,
    .resolve = resolve,
    .locate = locate,
    .publish = s3_publish,
};
