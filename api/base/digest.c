/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "api/digest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "sha256:"
#define PREFIX_LEN (sizeof PREFIX - 1)
#define BYTES 32

struct digest {
    EVP_MD_CTX *ctx;
};

struct digest *
digest_new(void)
{
    struct digest *digest = calloc(1, sizeof *digest);
    if (!digest)
        return NULL;
    digest->ctx = EVP_MD_CTX_new();
    if (!digest->ctx || !EVP_DigestInit_ex(digest->ctx, EVP_sha256(), NULL))
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
    static const char hex[] = "0123456789abcdef";
    unsigned char bytes[EVP_MAX_MD_SIZE];
    if (!EVP_DigestFinal_ex(digest->ctx, bytes, NULL))
        return false;
    memcpy(ret, PREFIX, PREFIX_LEN);
    for (size_t i = 0; i < BYTES; i++) {
        ret[PREFIX_LEN + 2 * i] = hex[bytes[i] >> 4];
        ret[PREFIX_LEN + 2 * i + 1] = hex[bytes[i] & 15];
    }
    ret[PREFIX_LEN + 2 * BYTES] = '\0';
    return true;
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
