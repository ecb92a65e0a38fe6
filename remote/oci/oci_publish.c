/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model in the CNCF's format: weights and specs are layers, and the tags are annotations. The
 * reports of a model are a manifest of their own which refers to that of the model, and so are its
 * signature, its provenance and its bill of materials. No manifest has a time in it, so that a
 * publication that is repeated makes the same ones but for signatures, of which each is valid.
 */
#include "config.h"
#include "oci/oci_publish.h"
#include "oci/oci_api.h"
#include "oci/oci_referrers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOTHING "{}" /* a config without members */

/* A publication under way. */
struct work {
    struct http *http;
    const struct qdqr_publication *publication;
    struct oci_ref ref;
    struct oci_ref source; /* .repo "": none */
    bool has_model; /* files that refer to a model are not among its layers then */
    struct api_problem *problem;
};

/* A blob in a file, or in memory. */
struct blob {
    const char *digest;
    const struct qdqr_upload *file;
    const char *text;
};

/* --- blobs ---------------------------------------------------------------- */

static bool
has_blob(struct work *work, const struct blob *blob, bool *ret)
{
    struct http_request request = {.method = "HEAD"};
    struct http_answer answer;
    char rest[DIGEST_SIZE + 16];
    snprintf(rest, sizeof rest, "/blobs/%s", blob->digest);
    if (!oci_url(work->http, work->ref.repo, rest, request.url, work->problem) ||
        !http_send(work->http, &request, &answer, work->problem))
        return false;
    *ret = answer.status == 200;
    return *ret || answer.status == 404 ||
           http_fail(work->http, &answer, "a blob", work->problem);
}

/* Begins an upload. *ret_url is "" when the registry took the blob from the source's
   repository instead. */
static bool
begin_upload(struct work *work, const struct blob *blob, char ret_url[HTTP_URL])
{
    struct http_request request = {.method = "POST"};
    struct http_answer answer;
    char location[HTTP_URL];
    bool can_mount = *work->source.repo && strcmp(work->source.repo, work->ref.repo);
    if (!oci_url(work->http, work->ref.repo, "/blobs/uploads/", request.url,
                 work->problem) ||
        (can_mount && (!url_add(request.url, "?mount=", "?=", work->problem) ||
                       !url_add(request.url, blob->digest, ":", work->problem) ||
                       !url_add(request.url, "&from=", "&=", work->problem) ||
                       !url_add(request.url, work->source.repo, "/", work->problem))) ||
        !http_send(work->http, &request, &answer, work->problem))
        return false;
    http_header(work->http, "Location", location, sizeof location);
    long status = answer.status;
    bool ok = status == 201 || status == 202 ||
              http_fail(work->http, &answer, "an upload", work->problem);
    http_answer_fini(&answer);
    ret_url[0] = '\0';
    return ok &&
           (status == 201 || oci_own_url(work->http, location, ret_url, work->problem));
}

static bool
put_blob(struct work *work, const struct blob *blob)
{
    struct http_request request = {
        .method = "PUT", .headers = {"Content-Type: application/octet-stream"}};
    struct http_answer answer;
    bool is_there = false;
    if (!has_blob(work, blob, &is_there) ||
        (!is_there && !begin_upload(work, blob, request.url)))
        return false;
    if (is_there || !*request.url) {
        work->http->done += blob->file ? blob->file->size : 0;
        return true;
    }
    const char *mark = strchr(request.url, '?') ? "&" : "?";
    if (blob->file) {
        request.body_fd = blob->file->fd;
        request.body_size = blob->file->size;
    } else {
        request.body = blob->text;
        request.body_len = strlen(blob->text);
    }
    if (!url_add(request.url, mark, mark, work->problem) ||
        !url_add(request.url, "digest=", "=", work->problem) ||
        !url_add(request.url, blob->digest, ":", work->problem) ||
        !http_send(work->http, &request, &answer, work->problem))
        return false;
    bool ok = answer.status == 201 ||
              http_fail(work->http, &answer,
                        blob->file ? blob->file->name : "the config", work->problem);
    http_answer_fini(&answer);
    return ok;
}

/* --- documents ------------------------------------------------------------ */

static bool
is_weight(const struct qdqr_upload *file)
{
    return file->role == QDQR_MODEL || file->role == QDQR_DATA;
}

/* Returns whether the file is of a manifest that refers to the model's. */
static bool
is_of_referrer(const struct work *work, const struct qdqr_upload *file)
{
    return work->has_model && oci_referrer_type(file->role);
}

/* Prints the config of the model format, which lists the digests of the layers. */
static char *
print_config(const struct work *work)
{
    json_t *layers = json_array();
    for (size_t i = 0; i < work->publication->n_files; i++)
        if (!is_of_referrer(work, &work->publication->files[i]))
            json_array_append_new(layers,
                                  json_string(work->publication->files[i].digest));
    json_t *config = json_pack("{s:{s:s}, s:{s:s, s:o}, s:{s:s}}", "descriptor", "name",
                               work->ref.repo, "modelfs", "type", "layers", "diffIds",
                               layers, "config", "format", "onnx");
    char *text = config ? json_dumps(config, JSON_COMPACT) : NULL;
    json_decref(config);
    return text;
}

static json_t *
make_layer(const struct qdqr_upload *file, const char *type)
{
    return json_pack("{s:s, s:s, s:I, s:{s:s, s:s}}", "mediaType", type, "digest",
                     file->digest, "size", (json_int_t)file->size, "annotations",
                     OCI_FILEPATH, file->name, OCI_TITLE, file->name);
}

/* Makes the layers of the model. */
static json_t *
make_layers(const struct work *work)
{
    json_t *layers = json_array();
    for (size_t i = 0; i < work->publication->n_files; i++) {
        const struct qdqr_upload *file = &work->publication->files[i];
        if (!is_of_referrer(work, file))
            json_array_append_new(
                layers, make_layer(file, is_weight(file) ? OCI_WEIGHT : OCI_DOC));
    }
    return layers;
}

/* Makes the layers of what refers to the model in that role. */
static json_t *
make_referring_layers(const struct work *work, enum qdqr_role role)
{
    const char *type = role == QDQR_REPORT ? OCI_DOC : oci_referrer_type(role);
    json_t *layers = json_array();
    for (size_t i = 0; i < work->publication->n_files; i++)
        if (work->publication->files[i].role == role)
            json_array_append_new(layers,
                                  make_layer(&work->publication->files[i], type));
    return layers;
}

static json_t *
make_annotations(const struct work *work)
{
    json_t *annotations =
        json_pack("{s:s}", "qdqd.delivery", work->publication->delivery);
    for (size_t i = 0; i < work->publication->n_tags; i++)
        json_object_set_new(annotations, work->publication->tags[i].name,
                            json_string(work->publication->tags[i].value));
    if (*work->source.repo) {
        bool has_digest = digest_is_id(work->source.version);
        json_object_set_new(annotations, "org.opencontainers.image.base.name",
                            json_string(work->publication->source));
        if (has_digest)
            json_object_set_new(annotations, "org.opencontainers.image.base.digest",
                                json_string(work->source.version));
    }
    return annotations;
}

static char *
print_manifest(const struct work *work, const char *config, const char *config_digest)
{
    json_t *manifest = json_pack(
        "{s:i, s:s, s:s, s:{s:s, s:s, s:I}, s:o, s:o}", "schemaVersion", 2, "mediaType",
        OCI_MANIFEST, "artifactType", OCI_MODEL, "config", "mediaType", OCI_CONFIG,
        "digest", config_digest, "size", (json_int_t)strlen(config), "layers",
        make_layers(work), "annotations", make_annotations(work));
    char *text = manifest ? json_dumps(manifest, JSON_COMPACT) : NULL;
    json_decref(manifest);
    return text;
}

/* Prints the manifest of what refers to the model in that role. Its config has no members. */
static char *
print_referrer(const struct work *work, enum qdqr_role role, const char *subject,
               size_t subject_len)
{
    char digest[DIGEST_SIZE];
    if (!digest_of(NOTHING, strlen(NOTHING), digest))
        return NULL;
    json_t *manifest =
        json_pack("{s:i, s:s, s:s, s:{s:s, s:s, s:I}, s:o, s:{s:s, s:s, s:I}, s:{s:s}}",
                  "schemaVersion", 2, "mediaType", OCI_MANIFEST, "artifactType",
                  oci_referrer_type(role), "config", "mediaType",
                  "application/vnd.oci.empty.v1+json", "digest", digest, "size",
                  (json_int_t)strlen(NOTHING), "layers",
                  make_referring_layers(work, role), "subject", "mediaType",
                  OCI_MANIFEST, "digest", subject, "size", (json_int_t)subject_len,
                  "annotations", "qdqd.delivery", work->publication->delivery);
    char *text = manifest ? json_dumps(manifest, JSON_COMPACT) : NULL;
    json_decref(manifest);
    return text;
}

/* --- the publication ------------------------------------------------------ */

static bool
put_manifest(struct work *work, const char *manifest, const char *tag)
{
    struct http_request request = {.method = "PUT",
                                   .headers = {"Content-Type: " OCI_MANIFEST},
                                   .body = manifest,
                                   .body_len = strlen(manifest)};
    struct http_answer answer;
    char rest[160];
    snprintf(rest, sizeof rest, "/manifests/%s", tag);
    if (!oci_url(work->http, work->ref.repo, rest, request.url, work->problem) ||
        !http_send(work->http, &request, &answer, work->problem))
        return false;
    bool ok = answer.status == 201 ||
              http_fail(work->http, &answer, "the manifest", work->problem);
    http_answer_fini(&answer);
    return ok;
}

/* Returns whether the registry lists the manifest that was sent last for its subject. */
static bool
is_listed(struct http *http)
{
    char subject[DIGEST_SIZE];
    http_header(http, "OCI-Subject", subject, sizeof subject);
    return *subject;
}

/* Sends a manifest that refers to the model, and lists it where the registry does not. */
static bool
put_referrer(struct work *work, enum qdqr_role role, const char *manifest,
             const char *digest, const char *subject)
{
    if (!put_manifest(work, manifest, digest))
        return false;
    if (is_listed(work->http))
        return true;
    json_t *entry = json_pack(
        "{s:s, s:s, s:I, s:s, s:{s:s}}", "mediaType", OCI_MANIFEST, "digest", digest,
        "size", (json_int_t)strlen(manifest), "artifactType", oci_referrer_type(role),
        "annotations", "qdqd.delivery", work->publication->delivery);
    bool ok = entry ? oci_add_referrer(work->http, work->ref.repo, subject, entry,
                                       work->problem)
                    : api_problem_no_memory(work->problem);
    json_decref(entry);
    return ok;
}

/* Sends what refers to the model in that role, if there is something. */
static bool
put_role(struct work *work, enum qdqr_role role, const char *subject,
         const char *subject_digest)
{
    char config[DIGEST_SIZE], digest[DIGEST_SIZE];
    bool any = false;
    for (size_t i = 0; i < work->publication->n_files; i++)
        any = any || work->publication->files[i].role == role;
    if (!any)
        return true;
    char *manifest = print_referrer(work, role, subject_digest, strlen(subject));
    bool ok = (manifest && digest_of(NOTHING, strlen(NOTHING), config) &&
               digest_of(manifest, strlen(manifest), digest)) ||
              api_problem_no_memory(work->problem);
    ok = ok && put_blob(work, &(struct blob){config, NULL, NOTHING}) &&
         put_referrer(work, role, manifest, digest, subject_digest);
    free(manifest);
    return ok;
}

/* Sends what refers to the manifest of the model. It comes before that, because the tag of the
   model is what others see. */
static bool
put_referrers(struct work *work, const char *subject, const char *subject_digest)
{
    bool ok = true;
    for (enum qdqr_role role = 0; ok && work->has_model && role < QDQR_N_ROLES; role++)
        ok = !oci_referrer_type(role) || put_role(work, role, subject, subject_digest);
    return ok;
}

/* Sends the manifest under the tag and the alias. `digest` is that of the config. */
static bool
put_version(struct work *work, const char *config, const char *digest,
            char **ret_location)
{
    const char *alias = work->publication->alias ? work->publication->alias : "";
    char own[DIGEST_SIZE], *manifest = print_manifest(work, config, digest);
    bool ok = manifest && digest_of(manifest, strlen(manifest), own);
    if (!ok)
        api_problem_no_memory(work->problem);
    ok = ok && put_referrers(work, manifest, own) &&
         (!*work->ref.version || put_manifest(work, manifest, work->ref.version)) &&
         (!*alias || put_manifest(work, manifest, alias));
    free(manifest);
    return ok && (asprintf(ret_location, "%s@%s", work->ref.repo, own) >= 0 ||
                  api_problem_no_memory(work->problem));
}

/* Parses the refs and checks the alias. */
static bool
prepare(struct work *work)
{
    const struct qdqr_publication *publication = work->publication;
    const char *alias = publication->alias ? publication->alias : "";
    if (!parse_oci_ref(publication->ref, true, &work->ref, work->problem) ||
        (publication->source && *publication->source &&
         !parse_oci_ref(publication->source, false, &work->source, work->problem)))
        return false;
    if (*alias ? !oci_is_tag(alias) : !*work->ref.version)
        return api_problem_set(work->problem, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL,
                               "a publication to %.200s needs a tag, REPO:TAG, or an "
                               "alias, which is a tag, too",
                               publication->ref);
    for (size_t i = 0; i < publication->n_files; i++) {
        work->http->total += publication->files[i].size;
        work->has_model |= publication->files[i].role == QDQR_MODEL;
    }
    return true;
}

bool
oci_publish(struct http *http, const struct qdqr_publication *publication,
            char **ret_location, struct api_problem *problem)
{
    struct work *work = calloc(1, sizeof *work);
    if (!work)
        return api_problem_no_memory(problem);
    *work = (struct work){.http = http, .publication = publication, .problem = problem};
    char digest[DIGEST_SIZE], *config = NULL;
    bool ok = prepare(work) && oci_login(http, work->ref.repo, true, problem);
    for (size_t i = 0; ok && i < publication->n_files; i++)
        ok = put_blob(work, &(struct blob){publication->files[i].digest,
                                           &publication->files[i], NULL});
    if (ok) {
        config = print_config(work);
        ok = (config && digest_of(config, strlen(config), digest)) ||
             api_problem_no_memory(problem);
    }
    ok = ok && put_blob(work, &(struct blob){digest, NULL, config}) &&
         put_version(work, config, digest, ret_location);
    free(config);
    free(work);
    return ok;
}
