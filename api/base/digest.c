/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "api/digest.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "sha256:"
#define PREFIX_LEN (sizeof PREFIX - 1)
#define BYTES DIGEST_BYTES

struct digest {
    EVP_MD_CTX *ctx;
};

/* Returns the algorithm, which is looked up once: OpenSSL would look it up for each digest. */
static const EVP_MD *
sha256(void)
{
    static EVP_MD *_Atomic found;
    EVP_MD *md = found, *none = NULL;
    if (md)
        return md;
    md = EVP_MD_fetch(NULL, "SHA256", NULL);
    if (md && !atomic_compare_exchange_strong(&found, &none, md)) {
        EVP_MD_free(md);
        md = none;
    }
    return md;
}

struct digest *
digest_new(void)
{
    struct digest *digest = calloc(1, sizeof *digest);
    if (!digest)
        return NULL;
    digest->ctx = EVP_MD_CTX_new();
    if (!digest->ctx || !EVP_DigestInit_ex(digest->ctx, sha256(), NULL))
        digest_free(&digest);
    return digest;
}

void
digest_free(struct digest **digest)
{
    if (!*digest)
        return;
    EVP_MD_CTX_free((*digest)->ctx);
    free(*digest);
    *digest = NULL;
}

bool
digest_update(struct digest *digest, const void *data, size_t len)
{
    return EVP_DigestUpdate(digest->ctx, data, len) == 1;
}

bool
digest_finish(struct digest *digest, char ret[DIGEST_SIZE])
{
    unsigned char bytes[EVP_MAX_MD_SIZE];
    if (!EVP_DigestFinal_ex(digest->ctx, bytes, NULL))
        return false;
    digest_id_of(bytes, ret);
    return true;
}

void
digest_id_of(const unsigned char bytes[DIGEST_BYTES], char ret[DIGEST_SIZE])
{
    static const char hex[] = "0123456789abcdef";
    memcpy(ret, PREFIX, PREFIX_LEN);
    for (size_t i = 0; i < BYTES; i++) {
        ret[PREFIX_LEN + 2 * i] = hex[bytes[i] >> 4];
        ret[PREFIX_LEN + 2 * i + 1] = hex[bytes[i] & 15];
    }
    ret[PREFIX_LEN + 2 * BYTES] = '\0';
}

void
digest_bytes_of(const char *id, unsigned char ret[DIGEST_BYTES])
{
    size_t len;
    (void)OPENSSL_hexstr2buf_ex(ret, DIGEST_BYTES, &len, id + PREFIX_LEN, '\0');
}

bool
digest_of(const void *data, size_t len, char ret[DIGEST_SIZE])
{
    struct digest *digest = digest_new();
    bool ok = digest && digest_update(digest, data, len) && digest_finish(digest, ret);
    digest_free(&digest);
    return ok;
}

bool
digest_is_same(const char *a, const char *b)
{
    return CRYPTO_memcmp(a, b, PREFIX_LEN + 2 * BYTES) == 0;
}

bool
digest_is_id(const char *text)
{
    return !strncmp(text, PREFIX, PREFIX_LEN) &&
           strlen(text) == PREFIX_LEN + 2 * BYTES &&
           strspn(text + PREFIX_LEN, "0123456789abcdef") == 2 * BYTES;
}

/* --- signatures ----------------------------------------------------------- */

bool
digest_hmac(const void *key, size_t key_len, const struct digest_part *parts, size_t n,
            unsigned char ret[DIGEST_BYTES])
{
    char name[] = "SHA256";
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, name, 0),
        OSSL_PARAM_construct_end()};
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    EVP_MAC_CTX *ctx = mac ? EVP_MAC_CTX_new(mac) : NULL;
    size_t len = 0;
    bool ok = ctx && EVP_MAC_init(ctx, key, key_len, params);
    for (size_t i = 0; ok && i < n; i++)
        ok = EVP_MAC_update(ctx, parts[i].data, parts[i].len);
    ok = ok && EVP_MAC_final(ctx, ret, &len, BYTES) && len == BYTES;
    EVP_MAC_CTX_free(ctx);
    EVP_MAC_free(mac);
    return ok;
}

void
digest_base64(const unsigned char *bytes, size_t len, char *ret)
{
    EVP_EncodeBlock((unsigned char *)ret, bytes, (int)len);
}

bool
digest_unbase64(const char *text, size_t len, unsigned char *ret, size_t *ret_len)
{
    size_t padding = 0;
    if (!len || len % 4 || len > INT_MAX)
        return false;
    while (padding < 2 && text[len - 1 - padding] == '=')
        padding++;
    int n = EVP_DecodeBlock(ret, (const unsigned char *)text, (int)len);
    *ret_len = n < 0 ? 0 : (size_t)n - padding;
    return n > 0;
}

bool
digest_is_equal(const void *a, const void *b, size_t len)
{
    return CRYPTO_memcmp(a, b, len) == 0;
}

void
digest_cleanse(void *data, size_t len)
{
    OPENSSL_cleanse(data, len);
}
