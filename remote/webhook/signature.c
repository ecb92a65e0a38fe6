/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "webhook/signature.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <string.h>

#define PREFIX "whsec_"
#define LEAST_KEY 24
#define MOST_KEY 64
#define MOST_BASE64 88 /* characters of MOST_KEY bytes */

/* Decodes a secret into its key. Returns the length, 0: it is no secret. */
static size_t
parse_secret(const char *secret, unsigned char key[MOST_BASE64])
{
    char text[MOST_BASE64 + 1];
    secret += strspn(secret, " \t\r\n");
    size_t len = strcspn(secret, " \t\r\n"), pads = 0;
    if (len < strlen(PREFIX) || strncmp(secret, PREFIX, strlen(PREFIX)) != 0)
        return 0;
    secret += strlen(PREFIX);
    len -= strlen(PREFIX);
    if (len > MOST_BASE64 || len % 4 != 0)
        return 0;
    memcpy(text, secret, len);
    while (pads < 2 && pads < len && text[len - 1 - pads] == '=')
        pads++;
    int n = EVP_DecodeBlock(key, (const unsigned char *)text, (int)len);
    size_t bytes = n < 0 ? 0 : (size_t)n - pads;
    explicit_bzero(text, sizeof text);
    return bytes < LEAST_KEY || bytes > MOST_KEY ? 0 : bytes;
}

static bool
sign(const unsigned char *key, size_t key_len, const struct signed_event *event,
     unsigned char ret[32])
{
    char digest[] = "SHA256";
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end()};
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    EVP_MAC_CTX *ctx = mac ? EVP_MAC_CTX_new(mac) : NULL;
    const struct {
        const char *text;
        size_t len;
    } parts[] = {{event->id, strlen(event->id)},
                 {".", 1},
                 {event->timestamp, strlen(event->timestamp)},
                 {".", 1},
                 {event->body, event->body_len}};
    size_t len = 0;
    bool ok = ctx && EVP_MAC_init(ctx, key, key_len, params);
    for (size_t i = 0; ok && i < sizeof parts / sizeof *parts; i++)
        ok = EVP_MAC_update(ctx, (const unsigned char *)parts[i].text, parts[i].len);
    ok = ok && EVP_MAC_final(ctx, ret, &len, 32) && len == 32;
    EVP_MAC_CTX_free(ctx);
    EVP_MAC_free(mac);
    return ok;
}

bool
sign_standard(const char *secret, const struct signed_event *event,
              char ret[SIGNATURE_SIZE])
{
    unsigned char key[MOST_BASE64], bytes[32];
    size_t len = parse_secret(secret, key);
    bool ok = len > 0 && sign(key, len, event, bytes);
    explicit_bzero(key, sizeof key);
    if (!ok)
        return false;
    memcpy(ret, "v1,", 3);
    EVP_EncodeBlock((unsigned char *)ret + 3, bytes, sizeof bytes);
    return true;
}
