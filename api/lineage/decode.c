/* SPDX-License-Identifier: Apache-2.0 */
/* Statements read back, and their signatures checked. */
#include "config.h"
#include "api/lineage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "lineage/names.h"

/* Copies a text of a document. Returns false when out of memory; a NULL stays one. */
static bool
copy_text(const char *text, char **ret, struct api_problem *problem)
{
    *ret = text ? strdup(text) : NULL;
    return *ret || !text || api_problem_no_memory(problem);
}

static const json_t *
at(const json_t *json, const char *outer, const char *inner)
{
    return json_object_get(json_object_get(json, outer), inner);
}

/* --- the envelope ------------------------------------------------------------- */

/* Reads base64 in its one form: with padding, and with zeros in the bits that are left. */
static bool
decode_base64(const json_t *json, unsigned char **ret, size_t *ret_len)
{
    const char *text = json_string_value(json);
    size_t len = json_string_length(json);
    *ret = text ? malloc(len / 4 * 3 + 1) : NULL;
    if (!*ret || !digest_unbase64(text, len, *ret, ret_len))
        return false;
    char *again = malloc(len + 1);
    if (again)
        digest_base64(*ret, *ret_len, again);
    bool ok = again && strcmp(again, text) == 0;
    free(again);
    return ok;
}

static bool
decode_envelope(const json_t *envelope, struct api_statement *to,
                struct api_problem *problem)
{
    const json_t *list = json_object_get(envelope, "signatures");
    const char *type = api_text_at(envelope, "payloadType");
    unsigned char *payload = NULL;
    if (strcmp(type, API_PAYLOAD_TYPE) != 0)
        return api_fail(problem, API_BAD_REQUEST,
                        "the envelope's payloadType is \"%.64s\", not \"%s\"", type,
                        API_PAYLOAD_TYPE);
    if (json_array_size(list) != 1 ||
        !decode_base64(json_object_get(json_array_get(list, 0), "sig"),
                       &to->signature.bytes, &to->signature.len))
        return api_fail(
            problem, API_BAD_REQUEST,
            "the envelope's signatures are to be one, with a sig in base64");
    bool ok = decode_base64(json_object_get(envelope, "payload"), &payload, &to->len);
    to->payload = (char *)payload;
    to->is_signed = true;
    return ok || api_fail(problem, API_BAD_REQUEST,
                          "the envelope's payload is not in base64");
}

static bool
decode_bundle(const json_t *bundle, struct api_statement *to,
              struct api_problem *problem)
{
    const json_t *key = at(bundle, "verificationMaterial", "publicKey");
    const char *type = api_text_at(bundle, "mediaType");
    if (strcmp(type, API_BUNDLE_TYPE) != 0)
        return api_fail(problem, API_BAD_REQUEST,
                        "the bundle's mediaType is \"%.64s\", not \"%s\"", type,
                        API_BUNDLE_TYPE);
    snprintf(to->signature.hint, sizeof to->signature.hint, "%s",
             api_text_at(key, "hint"));
    return decode_envelope(json_object_get(bundle, "dsseEnvelope"), to, problem);
}

/* --- the statement ------------------------------------------------------------ */

/* Appends a file, whose digest is hex digits. */
static bool
add_file(struct api_statement *to, const char *name, const char *hex,
         struct api_problem *problem)
{
    char id[DIGEST_SIZE], *path, *digest;
    snprintf(id, sizeof id, "sha256:%.64s", hex ? hex : "");
    if (!name || !api_path_is_inside(name) || !hex || strlen(hex) != 64 ||
        !digest_is_id(id))
        return api_fail(problem, API_BAD_REQUEST,
                        "file %zu of the statement is no path below a folder with a "
                        "SHA-256",
                        to->n);
    for (size_t i = 0; i < to->n; i++)
        if (strcmp(to->files[i].path, name) == 0)
            return api_fail(problem, API_BAD_REQUEST,
                            "the statement names %.200s more than once", name);
    if (!copy_text(name, &path, problem))
        return false;
    if (!copy_text(id, &digest, problem)) {
        free(path);
        return false;
    }
    to->files[to->n++] = (struct api_file){.path = path, .digest = digest};
    return true;
}

static bool
decode_files(const json_t *list, bool is_manifest, struct api_statement *to,
             struct api_problem *problem)
{
    size_t n = json_array_size(list);
    if (!n)
        return api_fail(problem, API_BAD_REQUEST, "the statement names no files");
    if (!(to->files = calloc(n, sizeof *to->files)))
        return api_problem_no_memory(problem);
    for (size_t i = 0; i < n; i++) {
        const json_t *row = json_array_get(list, i);
        const char *name = json_string_value(json_object_get(row, "name"));
        const json_t *hex =
            is_manifest ? json_object_get(row, "digest") : at(row, "digest", "sha256");
        if (is_manifest && strcmp(api_text_at(row, "algorithm"), "sha256") != 0)
            return api_fail(
                problem, API_BAD_REQUEST,
                "file %zu of the statement has a digest by another algorithm "
                "than sha256",
                i);
        if (!add_file(to, name, json_string_value(hex), problem))
            return false;
    }
    return true;
}

/* Checks that the subject of a manifest is the digest of its files. */
static bool
check_root(const json_t *statement, const struct api_statement *read,
           struct api_problem *problem)
{
    const json_t *subject = json_array_get(json_object_get(statement, "subject"), 0);
    const char *hex = json_string_value(at(subject, "digest", "sha256"));
    unsigned char bytes[DIGEST_BYTES];
    char root[DIGEST_SIZE];
    struct digest *digest = digest_new();
    bool ok = digest;
    for (size_t i = 0; ok && i < read->n; i++) {
        digest_bytes_of(read->files[i].digest, bytes);
        ok = digest_update(digest, bytes, sizeof bytes);
    }
    ok = ok && digest_finish(digest, root);
    digest_free(&digest);
    if (!ok)
        return api_problem_no_memory(problem);
    return (hex && strcmp(hex, strchr(root, ':') + 1) == 0) ||
           api_fail(problem, API_BAD_REQUEST,
                    "the statement's subject is not the digest of its files");
}

static bool
decode_manifest(const json_t *json, struct api_statement *to,
                struct api_problem *problem)
{
    const json_t *form = at(json, "predicate", "serialization");
    if (strcmp(api_text_at(form, "method"), "files") != 0)
        return api_fail(problem, API_BAD_REQUEST,
                        "the statement's serialization is not of whole files");
    return decode_files(at(json, "predicate", "resources"), true, to, problem) &&
           check_root(json, to, problem);
}

/* Reads the id of an input, "sha256:…" with the digits of its digest. */
static bool
decode_input(const json_t *row, char **ret, struct api_problem *problem)
{
    char id[DIGEST_SIZE];
    const char *hex = json_string_value(at(row, "digest", "sha256"));
    snprintf(id, sizeof id, "sha256:%.64s", hex ? hex : "");
    if (*ret || !digest_is_id(id))
        return api_fail(problem, API_BAD_REQUEST,
                        "an input of the statement is named twice, or has no SHA-256");
    return copy_text(id, ret, problem);
}

static bool
decode_inputs(const json_t *list, struct api_statement *to, struct api_problem *problem)
{
    const json_t *row;
    bool ok = true;
    for (size_t i = 0; ok && (row = json_array_get(list, i)); i++) {
        const char *name = api_text_at(row, "name");
        const json_t *version = at(row, "annotations", "version");
        const char *id = json_string_value(at(row, "annotations", "id"));
        if (strcmp(name, API_MODEL_INPUT) == 0 && id)
            ok = !to->model_id && digest_is_id(id)
                     ? copy_text(id, &to->model_id, problem)
                     : api_fail(problem, API_BAD_REQUEST,
                                "the statement's model has no id, or several");
        else if (strcmp(name, API_CALIBRATION_INPUT) == 0)
            ok = decode_input(row, &to->calibration, problem);
        else if (strcmp(name, API_EVALUATION_INPUT) == 0)
            ok = decode_input(row, &to->evaluation, problem);
        else if (strcmp(name, API_RUNTIME_INPUT) == 0 && !to->runtime)
            ok = copy_text(json_string_value(version), &to->runtime, problem);
    }
    return ok && (to->model_id ||
                  api_fail(problem, API_BAD_REQUEST, "the statement names no model"));
}

static bool
decode_provenance(const json_t *json, struct api_statement *to,
                  struct api_problem *problem)
{
    const json_t *definition = at(json, "predicate", "buildDefinition");
    const json_t *builder = at(json, "predicate", "runDetails");
    const char *type = api_text_at(definition, "buildType");
    json_t *spec =
        json_object_get(json_object_get(definition, "externalParameters"), "spec");
    if (strcmp(type, API_BUILD_TYPE) != 0)
        return api_fail(problem, API_BAD_REQUEST,
                        "the statement's buildType is \"%.64s\", not \"%s\"", type,
                        API_BUILD_TYPE);
    if (!json_is_object(spec))
        return api_fail(problem, API_BAD_REQUEST, "the statement has no spec");
    if (!(to->spec = api_json_dump(json_incref(spec), 0)))
        return api_problem_no_memory(problem);
    return copy_text(json_string_value(
                         at(json_object_get(builder, "builder"), "version", "qdqd")),
                     &to->engine, problem) &&
           decode_files(json_object_get(json, "subject"), false, to, problem) &&
           decode_inputs(json_object_get(definition, "resolvedDependencies"), to,
                         problem);
}

static bool
decode_payload(struct api_statement *to, struct api_problem *problem)
{
    json_t *json = api_json_load(to->payload, to->len, API_BAD_REQUEST, problem);
    const char *kind = api_text_at(json, "predicateType");
    bool ok = json && (strcmp(api_text_at(json, "_type"), API_STATEMENT_TYPE) == 0 ||
                       api_fail(problem, API_BAD_REQUEST,
                                "this is no in-toto statement (its _type is not %s)",
                                API_STATEMENT_TYPE));
    if (ok && strcmp(kind, API_MANIFEST_TYPE) == 0)
        ok = decode_manifest(json, to, problem);
    else if (ok && strcmp(kind, API_PROVENANCE_TYPE) == 0)
        ok = decode_provenance(json, to, problem);
    else if (ok)
        ok =
            api_fail(problem, API_BAD_REQUEST,
                     "the statement's predicateType is \"%.100s\", which is neither %s "
                     "nor %s",
                     kind, API_MANIFEST_TYPE, API_PROVENANCE_TYPE);
    json_decref(json);
    return ok;
}

bool
api_statement_decode(const char *text, size_t len, struct api_statement *ret,
                     struct api_problem *problem)
{
    *ret = (struct api_statement){.n = 0};
    json_t *json = api_json_load(text, len, API_BAD_REQUEST, problem);
    bool ok = json;
    if (ok && json_object_get(json, "dsseEnvelope")) {
        ok = decode_bundle(json, ret, problem);
    } else if (ok && json_object_get(json, "payload")) {
        ok = decode_envelope(json, ret, problem);
    } else if (ok) {
        ret->payload = malloc(len + 1);
        ret->len = len;
        ok = ret->payload || api_problem_no_memory(problem);
        if (ok)
            memcpy(ret->payload, text, len);
    }
    json_decref(json);
    ok = ok && decode_payload(ret, problem);
    if (!ok)
        api_statement_fini(ret);
    return ok;
}

bool
api_statement_verify(const struct api_statement *statement,
                     const struct api_signing_key *key, struct api_problem *problem)
{
    const char *hint = statement->signature.hint;
    if (!statement->is_signed)
        return api_fail(problem, API_SIGNATURE_INVALID,
                        "the statement has no signature");
    if (*hint && strcmp(hint, api_signing_key_hint(key)) != 0)
        return api_fail(
            problem, API_SIGNATURE_INVALID,
            "the signature is that of another key: its hint is %.16s..., and "
            "the public key's is %.16s...",
            hint, api_signing_key_hint(key));
    return api_verify(key, statement->payload, statement->len, &statement->signature) ||
           api_fail(problem, API_SIGNATURE_INVALID,
                    "the signature is not that of this key over the statement");
}

/* Returns what stands behind the first key of a text; NULL: it has no other key. */
static const char *
next_key(const char *pem)
{
    static const char end[] = "-----END PUBLIC KEY-----";
    const char *at = strstr(pem, end);
    return at ? strstr(at + strlen(end), "-----BEGIN ") : NULL;
}

bool
api_statement_verify_by_each(const struct api_statement *statement, const char *pem,
                             struct api_problem *problem)
{
    bool ok = false;
    for (; pem && !ok; pem = next_key(pem)) {
        struct api_signing_key *key = NULL;
        *problem = (struct api_problem){0};
        if (!api_public_key_read(pem, strlen(pem), &key, problem))
            return false;
        ok = api_statement_verify(statement, key, problem);
        api_signing_key_free(&key);
    }
    return ok;
}

void
api_statement_fini(struct api_statement *statement)
{
    for (size_t i = 0; i < statement->n; i++) {
        free((char *)(uintptr_t)statement->files[i].path);
        free((char *)(uintptr_t)statement->files[i].digest);
    }
    free(statement->files);
    free(statement->payload);
    free(statement->spec);
    free(statement->model_id);
    free(statement->calibration);
    free(statement->evaluation);
    free(statement->engine);
    free(statement->runtime);
    api_signature_fini(&statement->signature);
    *statement = (struct api_statement){.n = 0};
}
