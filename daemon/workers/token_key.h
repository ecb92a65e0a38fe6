/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A signing key in a token (a smart card, a hardware security module, SoftHSM), which a PKCS#11
 * module reaches and which never leaves it. The module is code of the operator's: it is loaded in
 * the process that signs, and nowhere else. Source: RFC 7512 for the URI.
 */
#ifndef QDQD_WORKERS_TOKEN_KEY_H
#define QDQD_WORKERS_TOKEN_KEY_H

#include "api/problem.h"
#include "api/signing_key.h"

#define TOKEN_KEY_SCHEME "pkcs11:"

struct token_key;

/* Returns whether a setting names a key in a token instead of a file. */
bool token_key_is_uri(const char *key);
/* Checks the form of a URI, without a look at the token: returns NULL, or what is wrong with it. */
const char *token_key_check(const char *uri);
/*
 * Loads the module (the URI's module-path, else those that p11-kit knows), logs in with the PIN in
 * the file of pin-source, and finds the one private key that the URI names. UNAVAILABLE. The
 * signing key in *ret_key borrows from *ret; the caller frees both, the token's last.
 */
bool token_key_open(const char *uri, struct token_key **ret,
                    struct api_signing_key **ret_key, struct api_problem *p);
void token_key_close(struct token_key **key);

#endif
