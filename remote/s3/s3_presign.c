/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "s3/s3_presign.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HASH 32

static bool
hmac(const unsigned char *key, size_t len, const char *text, unsigned char ret[HASH])
{
    unsigned n = 0;
    return HMAC(EVP_sha256(), key, (int)len, (const unsigned char *)text, strlen(text),
                ret, &n) &&
           n == HASH;
}

static void
write_hex(const unsigned char bytes[HASH], char ret[2 * HASH + 1])
{
    for (size_t i = 0; i < HASH; i++)
        snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}

static bool
hash_hex(const char *text, char ret[2 * HASH + 1])
{
    unsigned char bytes[HASH];
    unsigned n = 0;
    if (!EVP_Digest(text, strlen(text), bytes, &n, EVP_sha256(), NULL) || n != HASH)
        return false;
    write_hex(bytes, ret);
    return true;
}

/* Computes the signature of a text with the key of that day, region and service. */
static bool
sign(const struct s3_key *key, const char *day, const char *text,
     char ret[2 * HASH + 1])
{
    char first[512];
    unsigned char bytes[HASH];
    const char *const words[] = {key->region, "s3", "aws4_request", text};
    int n = snprintf(first, sizeof first, "AWS4%s", key->secret);
    bool ok = n > 0 && (size_t)n < sizeof first &&
              hmac((const unsigned char *)first, (size_t)n, day, bytes);
    for (size_t i = 0; ok && i < sizeof words / sizeof *words; i++) {
        unsigned char last[HASH];
        memcpy(last, bytes, HASH);
        ok = hmac(last, HASH, words[i], bytes);
    }
    explicit_bzero(first, sizeof first);
    if (ok)
        write_hex(bytes, ret);
    return ok;
}

/* Writes a text with everything but unreserved characters escaped. */
static void
put_escaped(FILE *to, const char *text)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                "0123456789-._~";
    for (; *text; text++)
        if (strchr(plain, *text))
            fputc(*text, to);
        else
            fprintf(to, "%%%02X", (unsigned char)*text);
}

/* Returns the length of the header Host: that of the host and a port that is not the scheme's. */
static size_t
host_len(const char *url, const char *host)
{
    size_t len = strcspn(host, "/");
    const char *own = strncmp(url, "https:", 6) == 0 ? ":443" : ":80";
    size_t own_len = strlen(own);
    return len > own_len && strncmp(host + len - own_len, own, own_len) == 0
               ? len - own_len
               : len;
}

/* Writes the query, whose parameters are sorted, but for the signature. free() frees it. */
static char *
make_query(const struct s3_key *key, const char *scope, const char *time, int seconds)
{
    char *query = NULL;
    size_t len;
    FILE *to = open_memstream(&query, &len);
    if (!to)
        return NULL;
    fputs("X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=", to);
    put_escaped(to, key->id);
    put_escaped(to, "/");
    put_escaped(to, scope);
    fprintf(to, "&X-Amz-Date=%s&X-Amz-Expires=%d", time, seconds);
    if (*key->token) {
        fputs("&X-Amz-Security-Token=", to);
        put_escaped(to, key->token);
    }
    fputs("&X-Amz-SignedHeaders=host", to);
    if (fclose(to) == 0)
        return query;
    free(query);
    return NULL;
}

/* Computes the digest of the request in its canonical form. */
static bool
hash_request(const char *method, const char *url, const char *query,
             char ret[2 * HASH + 1])
{
    char *text = NULL;
    const char *host = strstr(url, "://");
    host = host ? host + 3 : url;
    const char *path = host + strcspn(host, "/");
    if (asprintf(&text, "%s\n%s\n%s\nhost:%.*s\n\nhost\nUNSIGNED-PAYLOAD", method,
                 *path ? path : "/", query, (int)host_len(url, host), host) < 0)
        return false;
    bool ok = hash_hex(text, ret);
    free(text);
    return ok;
}

bool
s3_presign(const struct s3_key *key, const char *method, struct s3_while when,
           char *url, size_t size)
{
    char at[32], day[16], scope[160], text[512];
    char request[2 * HASH + 1], signature[2 * HASH + 1];
    struct tm tm;
    time_t since = (time_t)when.since;
    if (!gmtime_r(&since, &tm))
        return false;
    strftime(at, sizeof at, "%Y%m%dT%H%M%SZ", &tm);
    strftime(day, sizeof day, "%Y%m%d", &tm);
    snprintf(scope, sizeof scope, "%s/%.100s/s3/aws4_request", day, key->region);
    char *query = make_query(key, scope, at, when.seconds);
    bool ok = query && hash_request(method, url, query, request);
    if (ok) {
        snprintf(text, sizeof text, "AWS4-HMAC-SHA256\n%s\n%s\n%s", at, scope, request);
        ok = sign(key, day, text, signature);
    }
    size_t len = strlen(url);
    if (ok) {
        int n =
            snprintf(url + len, size - len, "?%s&X-Amz-Signature=%s", query, signature);
        ok = n > 0 && (size_t)n < size - len;
    }
    free(query);
    return ok;
}
