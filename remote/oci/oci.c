/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registries of the OCI distribution specification. A model is a manifest whose layers are
 * files, each with its name as an annotation, as the CNCF's model format and ORAS have them.
 */
#include "config.h"
#include "base/kind.h"
#include "oci/oci_api.h"
#include "oci/oci_archive.h"
#include "oci/oci_publish.h"
#include "oci/oci_referrers.h"

#include <stdio.h>
#include <string.h>

static bool
check_ref(const char *ref, bool to_publish, struct api_problem *problem)
{
    struct oci_ref parsed;
    return parse_oci_ref(ref, to_publish, &parsed, problem);
}

static const char *
text_of(const json_t *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));
    return text ? text : "";
}

/* Each costs a request, and an archive the transfer of a layer. */
#define MOST_ARCHIVES 64
#define MOST_REFERRERS 64 /* the newest ones */

/* --- manifests ------------------------------------------------------------ */

static bool
fail_manifest(const struct http *http, const char *what, struct api_problem *problem)
{
    return api_problem_set(problem, API_REMOTE_UNAVAILABLE, QDQ_AT_NOTHING, NULL,
                           "remote %s answered with a manifest that %s",
                           http->remote->name, what);
}

/* Gets a manifest or an index by tag or digest, and the digest of its bytes. */
static json_t *
get_manifest(struct http *http, const char *repo, const char *version,
             char ret_digest[DIGEST_SIZE], struct api_problem *problem)
{
    struct http_request request = {
        .headers = {"Accept: " OCI_MANIFEST ", " OCI_INDEX ", "
                    "application/vnd.docker.distribution.manifest.v2+json, "
                    "application/vnd.docker.distribution.manifest.list.v2+json"}};
    struct http_answer answer;
    json_t *json = NULL;
    char rest[QDQR_REF + 16];
    snprintf(rest, sizeof rest, "/manifests/%s", version);
    if (!oci_url(http, repo, rest, request.url, problem) ||
        !http_send(http, &request, &answer, problem))
        return NULL;
    if (answer.status != 200)
        http_fail(http, &answer, "the tag or digest", problem);
    else if (!digest_of(answer.body ? answer.body : "", answer.len, ret_digest))
        api_problem_no_memory(problem);
    else if (strchr(version, ':') && strcmp(version, ret_digest) != 0)
        api_problem_set(problem, API_REMOTE_DIGEST_MISMATCH, QDQ_AT_NOTHING, NULL,
                        "the manifest of remote %s has another digest than it says",
                        http->remote->name);
    else
        json = json_loadb(answer.body ? answer.body : "", answer.len, 0, NULL);
    http_answer_fini(&answer);
    if (!json && !problem->set)
        fail_manifest(http, "is no JSON", problem);
    return json;
}

/* Returns the entry of an index that is a model, or its first one. */
static const char *
choose_entry(const json_t *index)
{
    const json_t *manifests = json_object_get(index, "manifests"), *chosen = NULL;
    for (size_t i = 0; i < json_array_size(manifests); i++) {
        const json_t *entry = json_array_get(manifests, i);
        if (!chosen || strcmp(text_of(entry, "artifactType"), OCI_MODEL) == 0)
            chosen = entry;
    }
    return text_of(chosen, "digest");
}

/* Adds a layer as a file. Archives that are not unpacked and layers without a name are not part
   of the model. */
static bool
add_layer(const struct http *http, struct qdqr_source *source, const json_t *layer,
          struct api_problem *problem)
{
    static const char *const names[] = {OCI_FILEPATH, "org.cnai.model.filepath",
                                        OCI_TITLE};
    const json_t *size = json_object_get(layer, "size");
    const json_t *annotations = json_object_get(layer, "annotations");
    const char *digest = text_of(layer, "digest"), *name = "";
    char number[32];
    for (size_t i = 0; !*name && i < sizeof names / sizeof *names; i++)
        name = text_of(annotations, names[i]);
    bool is_file = *name && !strstr(text_of(layer, "mediaType"), "tar");
    snprintf(number, sizeof number, "layer-%zu", source->n_files);
    if (!digest_is_id(digest) || !json_is_integer(size) || json_integer_value(size) < 0)
        return fail_manifest(http, "has a layer without size or SHA-256", problem);
    if (!source_add(source, *name ? name : number, json_integer_value(size),
                    is_file ? role_by_name(name) : QDQR_OTHER, problem))
        return false;
    snprintf(source->files[source->n_files - 1].digest, DIGEST_SIZE, "%s", digest);
    return true;
}

/* Adds the layers of a manifest, and the files of archives, whose places go to `places`. */
static bool
add_layers(struct http *http, const char *repo, struct qdqr_source *source,
           FILE *places, const json_t *manifest, struct api_problem *problem)
{
    const json_t *layers = json_object_get(manifest, "layers");
    size_t archives = 0;
    bool ok = json_is_array(layers) || fail_manifest(http, "has no layers", problem);
    for (size_t i = 0; ok && i < json_array_size(layers); i++) {
        const json_t *layer = json_array_get(layers, i);
        const char *digest = text_of(layer, "digest");
        char type = oci_archive_type(text_of(layer, "mediaType"));
        if (type && ++archives > MOST_ARCHIVES)
            return api_problem_set(problem, API_REMOTE_TOO_LARGE, QDQ_AT_NOTHING, NULL,
                                   "the manifest has more than %d archives",
                                   MOST_ARCHIVES);
        ok = type && digest_is_id(digest)
                 ? oci_add_archive(http, repo, digest, type, source, places, problem)
                 : add_layer(http, source, layer, problem);
    }
    return ok;
}

/* Adds the layers of a manifest. source->place becomes the repository, and the places of files
   in archives. */
static bool
add_files(struct http *http, const char *repo, struct qdqr_source *source,
          const json_t *manifest, struct api_problem *problem)
{
    size_t len = 0;
    FILE *places = open_memstream(&source->place, &len);
    if (!places)
        return api_problem_no_memory(problem);
    fputs(repo, places);
    bool ok = add_layers(http, repo, source, places, manifest, problem);
    return (fclose(places) == 0 || api_problem_no_memory(problem)) && ok;
}

/* Returns whether the source has a file of that name. */
static bool
has_file(const struct qdqr_source *source, const char *name)
{
    for (size_t i = 0; i < source->n_files; i++)
        if (strcmp(source->files[i].name, name) == 0)
            return true;
    return false;
}

/* Adds the files of what refers to the model, unless there are files of those names. */
static void
add_referrer(struct http *http, const char *repo, struct qdqr_source *source,
             const char *digest)
{
    struct api_problem ignored = {0};
    char own[DIGEST_SIZE];
    json_t *manifest = get_manifest(http, repo, digest, own, &ignored);
    const json_t *layers = json_object_get(manifest, "layers"), *layer;
    size_t i;
    json_array_foreach (layers, i, layer) {
        const json_t *annotations = json_object_get(layer, "annotations");
        const char *name = text_of(annotations, OCI_FILEPATH);
        if (oci_referrer_type(role_by_name(name)) && !has_file(source, name))
            add_layer(http, source, layer, &ignored);
    }
    json_decref(manifest);
}

/* Returns whether a manifest of that type is one that publications make. */
static bool
is_referrer_type(const char *type)
{
    for (enum qdqr_role role = 0; role < QDQR_N_ROLES; role++)
        if (oci_referrer_type(role) && strcmp(type, oci_referrer_type(role)) == 0)
            return true;
    return false;
}

/* Adds the files that refer to the model. The model is whole without them, so a registry that
   cannot list them is no failure. */
static void
add_referrers(struct http *http, const char *repo, const char *subject,
              struct qdqr_source *source)
{
    struct api_problem ignored = {0};
    json_t *index = oci_referrers(http, repo, subject, &ignored);
    const json_t *manifests = json_object_get(index, "manifests");
    size_t asked = 0;
    for (size_t i = json_array_size(manifests); i-- > 0 && asked < MOST_REFERRERS;) {
        const json_t *entry = json_array_get(manifests, i);
        const char *digest = text_of(entry, "digest");
        if (!is_referrer_type(text_of(entry, "artifactType")) || !digest_is_id(digest))
            continue;
        add_referrer(http, repo, source, digest);
        asked++;
    }
    json_decref(index);
}

static bool
resolve(struct http *http, const char *ref, struct qdqr_source *source,
        struct api_problem *problem)
{
    struct oci_ref parsed;
    char digest[DIGEST_SIZE], entry[DIGEST_SIZE];
    if (!parse_oci_ref(ref, false, &parsed, problem) ||
        !oci_login(http, parsed.repo, false, problem))
        return false;
    json_t *json = get_manifest(http, parsed.repo, parsed.version, digest, problem);
    if (json_is_array(json_object_get(json, "manifests"))) {
        snprintf(entry, sizeof entry, "%s", choose_entry(json));
        json_decref(json);
        json = digest_is_id(entry)
                   ? get_manifest(http, parsed.repo, entry, digest, problem)
                   : NULL;
        if (!json && !problem->set)
            fail_manifest(http, "is an index without entries", problem);
    }
    bool ok = json && add_files(http, parsed.repo, source, json, problem);
    json_decref(json);
    if (!ok)
        return false;
    add_referrers(http, parsed.repo, digest, source);
    source->digest = strdup(digest);
    if (asprintf(&source->resolved, "%s@%s", parsed.repo, digest) < 0)
        source->resolved = NULL;
    return (source->place && source->digest && source->resolved)
               ? source_has_model(http, source, problem)
               : api_problem_no_memory(problem);
}

static bool
locate(struct http *http, const struct qdqr_source *source, size_t file,
       struct http_request *ret, struct http **ret_from, struct api_problem *problem)
{
    *ret_from = http;
    char rest[DIGEST_SIZE + 16], repo[QDQR_REF];
    snprintf(rest, sizeof rest, "/blobs/%s", source->files[file].digest);
    snprintf(repo, sizeof repo, "%.*s", (int)strcspn(source->place, "\n"),
             source->place);
    return oci_login(http, repo, false, problem) &&
           oci_url(http, repo, rest, ret->url, problem);
}

const struct remote_kind_row remote_oci = {
    .name = "oci",
    .authenticate = oci_authenticate,
    .check_ref = check_ref,
    .resolve = resolve,
    .locate = locate,
    .pull = oci_pull_archived,
    .publish = oci_publish,
};
