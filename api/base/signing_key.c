/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "api/signing_key.h"
#include "api/digest.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CURVE "prime256v1"
enum { MOST_CERTIFICATES = 16 };

struct api_signing_key {
    EVP_PKEY *pair;
    /* of a key whose secret is elsewhere; else NULL */
    api_digest_signer sign;
    void *arg;
    char hint[API_KEY_HINT];
    char *certificates[MOST_CERTIFICATES];
    size_t n_certificates;
};

/* Takes the place of the question for a password on the terminal. */
static int
no_password(char *to, int size, int writes, void *arg)
{
    (void)to, (void)size, (void)writes, (void)arg;
    return 0;
}

static bool
is_on_curve(const EVP_PKEY *pair)
{
    char name[32];
    size_t len;
    return EVP_PKEY_is_a(pair, "EC") &&
           EVP_PKEY_get_utf8_string_param(pair, OSSL_PKEY_PARAM_GROUP_NAME, name,
                                          sizeof name, &len) == 1 &&
           strcmp(name, CURVE) == 0;
}

/* Writes the digest of the public key's PEM. */
static bool
find_hint(EVP_PKEY *pair, char ret[API_KEY_HINT])
{
    char *text, id[DIGEST_SIZE];
    BIO *bio = BIO_new(BIO_s_mem());
    bool ok = bio && PEM_write_bio_PUBKEY(bio, pair) == 1;
    long len = ok ? BIO_get_mem_data(bio, &text) : 0;
    ok = len > 0 && digest_of(text, (size_t)len, id);
    if (ok)
        snprintf(ret, API_KEY_HINT, "%.64s", strchr(id, ':') + 1);
    BIO_free(bio);
    return ok;
}

/* Takes ownership of `pair`. */
static bool
take_pair(EVP_PKEY *pair, struct api_signing_key **ret, struct api_problem *problem,
          enum api_code code, const char *what)
{
    struct api_signing_key *key = NULL;
    bool ok = pair && is_on_curve(pair);
    if (!ok)
        api_fail(problem, code, "%s", what);
    else if (!(key = calloc(1, sizeof *key)) || !find_hint(pair, key->hint))
        ok = api_problem_no_memory(problem);
    ERR_clear_error();
    if (!ok) {
        EVP_PKEY_free(pair);
        free(key);
        return false;
    }
    key->pair = pair;
    *ret = key;
    return true;
}

bool
api_signing_key_read(const char *pem, size_t len, struct api_signing_key **ret,
                     struct api_problem *problem)
{
    BIO *bio = BIO_new_mem_buf(pem, (int)len);
    EVP_PKEY *pair = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL) : NULL;
    BIO_free(bio);
    return take_pair(pair, ret, problem, API_UNAVAILABLE,
                     "the signing key is no private key in PEM without a password, on "
                     "the curve P-256");
}

bool
api_public_key_read(const char *pem, size_t len, struct api_signing_key **ret,
                    struct api_problem *problem)
{
    BIO *bio = BIO_new_mem_buf(pem, (int)len);
    EVP_PKEY *pair = bio ? PEM_read_bio_PUBKEY(bio, NULL, no_password, NULL) : NULL;
    BIO_free(bio);
    return take_pair(pair, ret, problem, API_BAD_REQUEST,
                     "this is no public key in PEM on the curve P-256");
}

bool
api_signing_key_elsewhere(const char *public_pem, size_t len, api_digest_signer sign,
                          void *arg, struct api_signing_key **ret,
                          struct api_problem *problem)
{
    BIO *bio = BIO_new_mem_buf(public_pem, (int)len);
    EVP_PKEY *half = bio ? PEM_read_bio_PUBKEY(bio, NULL, no_password, NULL) : NULL;
    BIO_free(bio);
    if (!take_pair(half, ret, problem, API_UNAVAILABLE,
                   "the signing key is not on the curve P-256"))
        return false;
    (*ret)->sign = sign;
    (*ret)->arg = arg;
    return true;
}

void
api_signing_key_free(struct api_signing_key **key)
{
    if (!*key)
        return;
    EVP_PKEY_free((*key)->pair); /* overwrites a private key */
    for (size_t i = 0; i < (*key)->n_certificates; i++)
        free((*key)->certificates[i]);
    free(*key);
    *key = NULL;
}

const char *
api_signing_key_hint(const struct api_signing_key *key)
{
    return key->hint;
}

/* --- certificates ----------------------------------------------------------- */

static bool
add_certificate(struct api_signing_key *key, X509 *certificate)
{
    unsigned char *der = NULL;
    int len = i2d_X509(certificate, &der);
    char *text = len > 0 ? malloc(((size_t)len + 2) / 3 * 4 + 1) : NULL;
    if (text)
        digest_base64(der, (size_t)len, text);
    OPENSSL_free(der);
    if (text)
        key->certificates[key->n_certificates++] = text;
    return text;
}

bool
api_signing_key_certify(struct api_signing_key *key, const char *pem, size_t len,
                        struct api_problem *problem)
{
    BIO *bio = BIO_new_mem_buf(pem, (int)len);
    X509 *certificate;
    bool ok = bio || api_problem_no_memory(problem);
    while (ok && key->n_certificates < MOST_CERTIFICATES &&
           (certificate = PEM_read_bio_X509(bio, NULL, no_password, NULL))) {
        if (!key->n_certificates &&
            EVP_PKEY_eq(X509_get0_pubkey(certificate), key->pair) != 1)
            ok = api_fail(problem, API_UNAVAILABLE,
                          "the first certificate is not that of the signing key");
        ok =
            ok && (add_certificate(key, certificate) || api_problem_no_memory(problem));
        X509_free(certificate);
    }
    BIO_free(bio);
    ERR_clear_error();
    return ok && (key->n_certificates > 0 ||
                  api_fail(problem, API_UNAVAILABLE,
                           "the file of certificates has none in PEM"));
}

/* --- signatures ------------------------------------------------------------- */

unsigned char *
api_payload_encoding(const char *type, const void *payload, size_t len, size_t *ret_len)
{
    char head[256];
    int n = snprintf(head, sizeof head, "DSSEv1 %zu %s %zu ", strlen(type), type, len);
    unsigned char *all =
        n > 0 && (size_t)n < sizeof head ? malloc((size_t)n + len + 1) : NULL;
    if (!all)
        return NULL;
    memcpy(all, head, (size_t)n);
    if (len)
        memcpy(all + n, payload, len);
    *ret_len = (size_t)n + len;
    return all;
}

/* Copies the certificates into a signature. */
static bool
copy_certificates(const struct api_signing_key *key, struct api_signature *ret)
{
    ret->certificates = calloc(key->n_certificates + 1, sizeof *ret->certificates);
    bool ok = ret->certificates;
    for (size_t i = 0; ok && i < key->n_certificates; i++) {
        ret->certificates[i] = strdup(key->certificates[i]);
        ok = ret->certificates[i];
        ret->n_certificates += ok;
    }
    return ok;
}

/* Signs the encoding of a payload here. */
static bool
sign_here(const struct api_signing_key *key, const unsigned char *all, size_t n,
          struct api_signature *ret)
{
    size_t size = 0;
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool ok = ctx &&
              EVP_DigestSignInit_ex(ctx, NULL, "SHA256", NULL, NULL, key->pair, NULL) &&
              EVP_DigestSign(ctx, NULL, &size, all, n) == 1 &&
              (ret->bytes = malloc(size)) &&
              EVP_DigestSign(ctx, ret->bytes, &size, all, n) == 1;
    ret->len = ok ? size : 0;
    EVP_MD_CTX_free(ctx);
    return ok;
}

/* Has it signed where the secret is. */
static bool
sign_elsewhere(const struct api_signing_key *key, const unsigned char *all, size_t n,
               struct api_signature *ret, struct api_problem *problem)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    if (!EVP_Q_digest(NULL, "SHA256", NULL, all, n, digest, NULL))
        return api_problem_no_memory(problem);
    return key->sign(key->arg, digest, &ret->bytes, &ret->len) ||
           api_fail(problem, API_UNAVAILABLE,
                    "the token of the signing key does not sign");
}

bool
api_sign(const struct api_signing_key *key, const void *payload, size_t len,
         struct api_signature *ret, struct api_problem *problem)
{
    size_t n = 0;
    unsigned char *all = api_payload_encoding(API_PAYLOAD_TYPE, payload, len, &n);
    *ret = (struct api_signature){.n_certificates = 0};
    snprintf(ret->hint, sizeof ret->hint, "%s", key->hint);
    bool ok = all && copy_certificates(key, ret) &&
              (key->sign ? sign_elsewhere(key, all, n, ret, problem)
                         : sign_here(key, all, n, ret));
    ERR_clear_error();
    free(all);
    return ok || (!problem->set && api_problem_no_memory(problem));
}

void
api_signature_fini(struct api_signature *signature)
{
    for (size_t i = 0; i < signature->n_certificates; i++)
        free(signature->certificates[i]);
    free(signature->certificates);
    free(signature->bytes);
    *signature = (struct api_signature){.n_certificates = 0};
}

bool
api_verify(const struct api_signing_key *key, const void *payload, size_t len,
           const struct api_signature *signature)
{
    size_t n = 0;
    unsigned char *all = api_payload_encoding(API_PAYLOAD_TYPE, payload, len, &n);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool ok = all && ctx &&
              EVP_DigestVerifyInit_ex(ctx, NULL, "SHA256", NULL, NULL, key->pair,
                                      NULL) == 1 &&
              EVP_DigestVerify(ctx, signature->bytes, signature->len, all, n) == 1;
    EVP_MD_CTX_free(ctx);
    ERR_clear_error();
    free(all);
    return ok;
}
