/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/token_key.h"

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <gnutls/pkcs11.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_PATH 4096

struct token_key {
    gnutls_privkey_t key;
    char *uri; /* without what stands behind '?', which is read here */
    char module[MOST_PATH], pin_file[MOST_PATH];
};

bool
token_key_is_uri(const char *key)
{
    return strncmp(key, TOKEN_KEY_SCHEME, strlen(TOKEN_KEY_SCHEME)) == 0;
}

const char *
token_key_check(const char *uri)
{
    const char *attribute = uri + strlen(TOKEN_KEY_SCHEME);
    if (strstr(uri, "pin-value="))
        return "has a PIN in it; write the PIN to a file with the mode 0600, and name "
               "that with pin-source=";
    return *attribute && *attribute != '?'
               ? NULL
               : "names no key; write token=... and object=...";
}

/* --- the URI -------------------------------------------------------------- */

static int
digit_of(char c)
{
    const char *digits = "0123456789abcdef0123456789ABCDEF";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) % 16 : -1;
}

/* Copies the value of an attribute behind '?', NAME=, with its escapes undone; "" where it is not
   there. Returns false for a value that is no path. */
static bool
copy_attribute(const char *uri, const char *name, char ret[MOST_PATH])
{
    const char *query = strchr(uri, '?');
    const char *from = query ? strstr(query, name) : NULL;
    ret[0] = '\0';
    if (!from)
        return true;
    from += strlen(name);
    size_t len = strcspn(from, "&"), n = 0;
    for (size_t i = 0; i < len; i++) {
        int high = from[i] == '%' ? digit_of(from[i + 1]) : -1;
        int low = high < 0 ? -1 : digit_of(from[i + 2]);
        if (n + 1 == MOST_PATH || (from[i] == '%' && low < 0))
            return false;
        ret[n++] = low < 0 ? from[i] : (char)(16 * high + low);
        i += low < 0 ? 0 : 2;
    }
    ret[n] = '\0';
    return n > 0;
}

static bool
read_uri(const char *uri, struct token_key *ret, struct api_problem *p)
{
    if (!copy_attribute(uri, "module-path=", ret->module) ||
        !copy_attribute(uri, "pin-source=", ret->pin_file))
        return api_fail(p, API_UNAVAILABLE,
                        "signing.key: module-path or pin-source of the URI is no path");
    ret->uri = strndup(uri, strcspn(uri, "?"));
    return ret->uri || api_problem_no_memory(p);
}

/* --- the token ------------------------------------------------------------ */

/* Loads the module that the URI names, or all that p11-kit knows. Returns a code of GnuTLS's. */
static int
load(const struct token_key *key)
{
    if (!*key->module)
        return gnutls_pkcs11_init(GNUTLS_PKCS11_FLAG_AUTO, NULL);
    int rc = gnutls_pkcs11_init(GNUTLS_PKCS11_FLAG_MANUAL, NULL);
    return rc ? rc : gnutls_pkcs11_add_provider(key->module, NULL);
}

/* Gives the PIN, the first line of its file. A token that refused it is not asked again: it may lock
   itself after a few. */
static int
give_pin(void *arg, int attempt, const char *url, const char *label, unsigned flags,
         char *ret, size_t size)
{
    const struct token_key *key = arg;
    const char *path = key->pin_file;
    (void)url, (void)label, (void)flags;
    path += strncmp(path, "file:", 5) ? 0 : 5;
    FILE *file = attempt || !*path ? NULL : fopen(path, "re");
    bool ok = file && fgets(ret, (int)size, file);
    if (file)
        fclose(file);
    if (!ok)
        return GNUTLS_E_PKCS11_PIN_ERROR;
    ret[strcspn(ret, "\r\n")] = '\0';
    return 0;
}

/* --- the key -------------------------------------------------------------- */

/* Signs a digest in the token. Matches api_digest_signer. */
static bool
sign(void *arg, const unsigned char digest[32], unsigned char **ret, size_t *ret_len)
{
    const struct token_key *key = arg;
    const gnutls_datum_t hash = {.data = (unsigned char *)(uintptr_t)digest,
                                 .size = 32};
    gnutls_datum_t signature;
    if (gnutls_privkey_sign_hash2(key->key, GNUTLS_SIGN_ECDSA_SHA256, 0, &hash,
                                  &signature))
        return false;
    *ret = malloc(signature.size);
    if (*ret)
        memcpy(*ret, signature.data, signature.size);
    *ret_len = signature.size;
    gnutls_free(signature.data);
    return *ret;
}

/* Returns the public half in PEM. */
static int
export_public(gnutls_privkey_t key, gnutls_datum_t *ret)
{
    gnutls_pubkey_t half;
    int rc = gnutls_pubkey_init(&half);
    if (rc)
        return rc;
    rc = gnutls_pubkey_import_privkey(half, key, 0, 0);
    if (!rc)
        rc = gnutls_pubkey_export2(half, GNUTLS_X509_FMT_PEM, ret);
    gnutls_pubkey_deinit(half);
    return rc;
}

bool
token_key_open(const char *uri, struct token_key **ret,
               struct api_signing_key **ret_key, struct api_problem *p)
{
    struct token_key *key = calloc(1, sizeof *key);
    gnutls_datum_t pem = {0};
    if (!key)
        return api_problem_no_memory(p);
    *ret = key;
    if (!read_uri(uri, key, p))
        return false;
    int rc = load(key);
    if (!rc)
        rc = gnutls_privkey_init(&key->key);
    if (!rc) {
        gnutls_privkey_set_pin_function(key->key, give_pin, key);
        rc = gnutls_privkey_import_url(key->key, key->uri, 0);
    }
    if (!rc)
        rc = export_public(key->key, &pem);
    if (rc)
        return api_fail(p, API_UNAVAILABLE,
                        "the token does not give the key of signing.key: %s",
                        gnutls_strerror(rc));
    bool ok = api_signing_key_elsewhere((const char *)pem.data, pem.size, sign, key,
                                        ret_key, p);
    gnutls_free(pem.data);
    return ok;
}

void
token_key_close(struct token_key **key)
{
    if (!*key)
        return;
    if ((*key)->key)
        gnutls_privkey_deinit((*key)->key);
    gnutls_pkcs11_deinit();
    free((*key)->uri);
    free(*key);
    *key = NULL;
}
