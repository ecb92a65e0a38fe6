/* SPDX-License-Identifier: Apache-2.0 */
/* Statements about a result, and their signed forms. */
#include "config.h"
#include "api/lineage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "lineage/names.h"

/* Returns {"sha256": the hex digits of an id}. NULL when out of memory. */
static json_t *
digest_json(const char *id)
{
    const char *colon = id ? strchr(id, ':') : NULL;
    return api_pack("sha256:t", colon ? colon + 1 : NULL);
}

/* --- statements --------------------------------------------------------------- */

static json_t *
encode_statement(json_t *subject, const char *type, json_t *predicate)
{
    return json_pack("{s:s, s:o, s:s, s:o}", "_type", API_STATEMENT_TYPE, "subject",
                     subject, "predicateType", type, "predicate", predicate);
}

static json_t *
encode_resource(const void *items, size_t i)
{
    const struct api_file *file = ((const struct api_file *const *)items)[i];
    return api_pack("name:t algorithm:t digest:t", file->path, "sha256",
                    strchr(file->digest, ':') + 1);
}

/* Computes the digest of the files' digests, one behind the other. */
static bool
find_root(const struct api_file *const *files, size_t n, char ret[DIGEST_SIZE])
{
    unsigned char bytes[DIGEST_BYTES];
    struct digest *digest = digest_new();
    bool ok = digest;
    for (size_t i = 0; ok && i < n; i++) {
        digest_bytes_of(files[i]->digest, bytes);
        ok = digest_update(digest, bytes, sizeof bytes);
    }
    ok = ok && digest_finish(digest, ret);
    digest_free(&digest);
    return ok;
}

/* The files stand in the order of their names, and the subject is the digest of all. */
char *
api_manifest_encode(const struct api_file *files, size_t n)
{
    char root[DIGEST_SIZE];
    const struct api_file **sorted = api_files_sort(files, n);
    if (!sorted)
        return NULL;
    json_t *json = NULL;
    if (find_root(sorted, n, root))
        json = encode_statement(
            json_pack("[o]", api_pack("name:t digest:j", "model", digest_json(root))),
            API_MANIFEST_TYPE,
            api_pack("resources:a serialization:j", sorted, n, encode_resource,
                     json_pack("{s:s, s:s, s:b, s:[]}", "method", "files", "hash_type",
                               "sha256", "allow_symlinks", 0, "ignore_paths")));
    free(sorted);
    return api_json_dump(json, 0);
}

/* --- provenance --------------------------------------------------------------- */

static json_t *
encode_subject(const void *items, size_t i)
{
    const struct api_file *file = (const struct api_file *)items + i;
    return api_pack("name:t digest:j", file->path, digest_json(file->digest));
}

/* Appends {"name", "digest"} to a list, unless there is no such input. */
static bool
add_input(json_t *list, const char *name, const char *id)
{
    return !id || json_array_append_new(
                      list, api_pack("name:t digest:j", name, digest_json(id))) == 0;
}

/* Names a model that is not stored any more by its id alone. */
static json_t *
encode_removed(const struct api_lineage *lineage)
{
    char uri[sizeof API_MODEL_URI + DIGEST_SIZE];
    snprintf(uri, sizeof uri, API_MODEL_URI "%s", lineage->model_id);
    return api_pack("name:t uri:t annotations:j", API_MODEL_INPUT, uri,
                    api_pack("id:t", lineage->model_id));
}

/* Appends the files of the model. The first one also has the id of all. */
static bool
add_model(json_t *list, const struct api_lineage *lineage)
{
    bool ok = lineage->n_model > 0 ||
              json_array_append_new(list, encode_removed(lineage)) == 0;
    for (size_t i = 0; ok && i < lineage->n_model; i++) {
        const struct api_file *file = &lineage->model[i];
        json_t *json =
            i ? api_pack("name:t digest:j annotations:j", API_EXTERNAL_INPUT,
                         digest_json(file->digest), api_pack("path:t", file->path))
              : api_pack("name:t digest:j annotations:j", API_MODEL_INPUT,
                         digest_json(file->digest),
                         lineage->n_model > 1
                             ? api_pack("id:t path:t", lineage->model_id, file->path)
                             : api_pack("id:t", lineage->model_id));
        ok = json_array_append_new(list, json) == 0;
    }
    return ok;
}

static json_t *
encode_inputs(const struct api_lineage *lineage, const char *runtime)
{
    json_t *list = json_array();
    bool ok = list && add_model(list, lineage) &&
              add_input(list, API_CALIBRATION_INPUT, lineage->calibration) &&
              add_input(list, API_EVALUATION_INPUT, lineage->evaluation) &&
              add_input(list, "metric", lineage->metric);
    if (ok && runtime)
        ok = json_array_append_new(list,
                                   api_pack("name:t annotations:j", API_RUNTIME_INPUT,
                                            api_pack("name:t version:t",
                                                     API_RUNTIME_NAME, runtime))) == 0;
    return api_json_if(ok, list);
}

/* Sets a member, unless its value is not known. */
static bool
set_known(json_t *object, const char *name, json_t *value)
{
    if (!json_is_null(value))
        return json_object_set_new(object, name, value) == 0;
    json_decref(value);
    return true;
}

/* Returns an object without those of its members that are null. */
static json_t *
without_nulls(json_t *object)
{
    json_t *ret = json_object(), *value;
    const char *name;
    bool ok = ret && object;
    json_object_foreach (object, name, value)
        ok = ok && set_known(ret, name, json_incref(value));
    json_decref(object);
    return api_json_if(ok, ret);
}

static json_t *
encode_run(const struct api_lineage *lineage, const json_t *made)
{
    json_t *version =
        without_nulls(json_pack("{s:O?, s:O?}", "qdqd", json_object_get(made, "engine"),
                                "build", json_object_get(made, "build")));
    json_t *metadata =
        without_nulls(api_pack("invocationId:t startedOn:m finishedOn:m", lineage->job,
                               lineage->started_at, lineage->ended_at));
    json_t *products = json_array();
    bool ok = products && add_input(products, "report", lineage->report_id) &&
              add_input(products, "spec", lineage->spec_id);
    return api_pack("builder:j metadata:j byproducts:j",
                    api_pack("id:t version:j", API_BUILDER, version), metadata,
                    api_json_if(ok, products));
}

char *
api_provenance_encode(const struct api_lineage *lineage)
{
    json_t *summary = api_json_embed(lineage->summary);
    const json_t *made = json_object_get(summary, "made_by");
    const char *runtime = json_string_value(json_object_get(made, "runtime"));
    const char *processor = json_string_value(json_object_get(made, "processor"));
    json_t *definition = api_pack(
        "buildType:t externalParameters:j internalParameters:j resolvedDependencies:j",
        API_BUILD_TYPE, api_pack("spec:e", lineage->spec),
        without_nulls(api_pack("processor:t", processor)),
        encode_inputs(lineage, runtime));
    json_t *json = encode_statement(
        api_json_list(lineage->result, lineage->n_result, encode_subject),
        API_PROVENANCE_TYPE,
        api_pack("buildDefinition:j runDetails:j", definition,
                 encode_run(lineage, made)));
    json_decref(summary);
    return api_json_dump(json, 0);
}

/* --- signed forms ------------------------------------------------------------- */

static json_t *
encode_base64(const void *bytes, size_t len)
{
    char *text = malloc((len + 2) / 3 * 4 + 1);
    if (!text)
        return NULL;
    digest_base64(bytes, len, text);
    json_t *json = json_string(text);
    free(text);
    return json;
}

static json_t *
encode_envelope(const char *payload, const struct api_signature *signature,
                const char *keyid)
{
    return json_pack("{s:o, s:s, s:[o]}", "payload",
                     encode_base64(payload, strlen(payload)), "payloadType",
                     API_PAYLOAD_TYPE, "signatures",
                     api_pack("sig:j keyid:t",
                              encode_base64(signature->bytes, signature->len), keyid));
}

char *
api_envelope_encode(const char *payload, const struct api_signature *signature)
{
    return api_json_dump(encode_envelope(payload, signature, signature->hint), 0);
}

static json_t *
encode_certificate(const void *items, size_t i)
{
    return api_pack("rawBytes:t", ((char *const *)items)[i]);
}

char *
api_bundle_encode(const char *payload, const struct api_signature *signature)
{
    bool has_chain = signature->n_certificates > 0;
    json_t *key = has_chain ? api_pack("certificates:a", signature->certificates,
                                       signature->n_certificates, encode_certificate)
                            : api_pack("hint:t", signature->hint);
    return api_json_dump(json_pack("{s:s, s:{s:o, s:[]}, s:o}", "mediaType",
                                   API_BUNDLE_TYPE, "verificationMaterial",
                                   has_chain ? "x509CertificateChain" : "publicKey",
                                   key, "tlogEntries", "dsseEnvelope",
                                   encode_envelope(payload, signature, "")),
                         0);
}
