/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signatures by a key on the curve P-256 (ECDSA with SHA-256) over payloads in the
 * pre-authentication encoding of DSSE:
 *
 *     "DSSEv1" SP LEN(type) SP type SP LEN(payload) SP payload
 *
 * so that a signature holds for one type of payload alone. Every payload here has the type
 * API_PAYLOAD_TYPE, an in-toto statement. Source: secure-systems-lab/dsse, protocol.md.
 */
#ifndef API_SIGNING_KEY_H
#define API_SIGNING_KEY_H

#include "api/problem.h"

#define API_PAYLOAD_TYPE "application/vnd.in-toto+json"
#define API_KEY_HINT 65 /* 64 hex digits and a NUL */

struct api_signing_key; /* a private key, a public one, or a chain of certificates */

/* A signature of a payload, and whose it is; api_signature_fini() frees it. */
struct api_signature {
    unsigned char *bytes; /* ECDSA in DER */
    size_t len;
    /* SHA-256 of the public key's PEM in hex digits, by which verifiers tell keys apart */
    char hint[API_KEY_HINT];
    char **certificates; /* base64 of their DER, that of the key first */
    size_t n_certificates;
};

/*
 * Reads a private key, in PEM without a password. UNAVAILABLE: it is no such key, or not on the
 * curve P-256.
 */
bool api_signing_key_read(const char *pem, size_t len, struct api_signing_key **ret,
                          struct api_problem *problem);
/* Reads a public key in PEM. BAD_REQUEST: it is none, or not on the curve P-256. */
bool api_public_key_read(const char *pem, size_t len, struct api_signing_key **ret,
                         struct api_problem *problem);
/* Signs a SHA-256 digest and returns the signature in DER, which the caller frees. */
typedef bool (*api_digest_signer)(void *arg, const unsigned char digest[32],
                                  unsigned char **ret, size_t *ret_len);
/* Makes a private key whose secret is elsewhere, for instance in a token: `sign` is called with `arg`
   for each signature. Its public half is in PEM. UNAVAILABLE: it is not on the curve P-256. */
bool api_signing_key_elsewhere(const char *public_pem, size_t len,
                               api_digest_signer sign, void *arg,
                               struct api_signing_key **ret,
                               struct api_problem *problem);
/* Adds certificates in PEM, of which the first has to be that of the key. UNAVAILABLE. */
bool api_signing_key_certify(struct api_signing_key *key, const char *pem, size_t len,
                             struct api_problem *problem);
void api_signing_key_free(struct api_signing_key **key);

/* Signs a payload. The caller frees *ret, also after a failure. UNAVAILABLE: the place of the secret
   does not sign. */
bool api_sign(const struct api_signing_key *key, const void *payload, size_t len,
              struct api_signature *ret, struct api_problem *problem);
void api_signature_fini(struct api_signature *signature);
/* Returns whether a signature is that of the key over the payload. Certificates of the
   signature are not looked at. */
bool api_verify(const struct api_signing_key *key, const void *payload, size_t len,
                const struct api_signature *signature);
/* Returns the hint of the key. */
const char *api_signing_key_hint(const struct api_signing_key *key);

/* Returns the encoding that is signed, which the caller frees; NULL when out of memory. */
unsigned char *api_payload_encoding(const char *type, const void *payload, size_t len,
                                    size_t *ret_len);

#endif
