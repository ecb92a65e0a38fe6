/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the result of a job came from, in the forms that others read:
 *
 *   manifest    in-toto statement (https://in-toto.io/Statement/v1) of OpenSSF Model Signing:
 *               the names and digests of the result's files
 *   provenance  in-toto statement with SLSA's provenance v1: of what, by which frozen spec and by
 *               which build the result was made
 *   envelope    a statement with its signature (DSSE)
 *   bundle      the same as sigstore's bundle v0.3, as PyPI's model-signing reads it
 *   bom         CycloneDX 1.6, with the model, its data and the runtime as components
 *
 * Encoders return text that the caller frees, or NULL when out of memory. Digests are ids,
 * "sha256:…".
 */
#ifndef API_LINEAGE_H
#define API_LINEAGE_H

#include <stdint.h>

#include "api/digest.h"
#include "api/files.h"
#include "api/signing_key.h"

#define API_ENVELOPE_TYPE "application/vnd.dsse.envelope.v1+json"
#define API_BUNDLE_TYPE "application/vnd.dev.sigstore.bundle.v0.3+json"
#define API_BOM_TYPE "application/vnd.cyclonedx+json; version=1.6"

/* The facts that the record has of a job that has succeeded. Texts are borrowed; NULL: not known. */
struct api_lineage {
    const char *job;
    int64_t started_at,
        ended_at; /* ms since 1970; 0: the result is that of another job */
    const struct api_file *result, *model; /* the model's own file is first */
    size_t n_result, n_model; /* n_model is 0 where the model is not stored any more */
    const char
        *model_id; /* of one file its digest, else that of the list of its files */
    const char *calibration, *evaluation, *metric;
    const char *spec; /* the frozen spec, whole */
    const char *spec_id, *report_id;
    const char *summary; /* of the report, with what made the result */
};

char *api_manifest_encode(const struct api_file *files, size_t n);
char *api_provenance_encode(const struct api_lineage *lineage);
char *api_bom_encode(const struct api_lineage *lineage);

char *api_envelope_encode(const char *payload, const struct api_signature *signature);
char *api_bundle_encode(const char *payload, const struct api_signature *signature);

/* --- read back ---------------------------------------------------------------- */

/* A statement that was read from an envelope, from a bundle, or without a signature. */
struct api_statement {
    char *payload; /* the statement's JSON */
    size_t len;
    bool is_signed;
    struct api_signature signature;
    size_t n;               /* the files that it names, */
    struct api_file *files; /* whose paths and digests it owns */
    /* The frozen spec of a provenance, and the ids of what went in; else NULL. */
    char *spec, *model_id, *calibration, *evaluation;
    char *engine, *runtime; /* versions that made it; NULL: not known */
};

/*
 * Reads a statement in any of these forms. BAD_REQUEST and INVALID_JSON say what is wrong with it;
 * a signature is not checked. The caller frees *ret.
 */
bool api_statement_decode(const char *text, size_t len, struct api_statement *ret,
                          struct api_problem *problem);
/* Checks the signature. SIGNATURE_INVALID: there is none, or it is not that of the key. */
bool api_statement_verify(const struct api_statement *statement,
                          const struct api_signing_key *key,
                          struct api_problem *problem);
/* Checks the signature by each key of a text that ends in NUL, public keys in PEM one behind the other,
   until one is right. BAD_REQUEST: the text is no such list. SIGNATURE_INVALID. */
bool api_statement_verify_by_each(const struct api_statement *statement,
                                  const char *pem, struct api_problem *problem);
void api_statement_fini(struct api_statement *statement);

#endif
