/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access tokens: who may do what, and as which tenant.
 *
 * The file has a line for each token, "NAME HASH SCOPES TENANT MADE", and behind that the
 * limits of its tenant that it states, if any: "queue=2,max_bytes=1000000,job_timeout=60".
 * Where tokens of one tenant state different ones the smallest holds. HASH is the SHA-256 of
 * the token. That is enough, where a password would need a slow hash with a salt: a
 * token is 256 random bits, so there is nothing to try.
 *
 * A daemon looks at the file before each request and reads it again when it has changed.
 * Where there was a file once, a token is needed for the rest of its life.
 */
#ifndef QDQD_TENANTS_TOKENS_H
#define QDQD_TENANTS_TOKENS_H

#include "base/digest.h"
#include "tenants/tenants.h"

#define TOKEN_NAME_SIZE TENANT_SIZE
#define TOKEN_SIZE 72 /* "qdqd_", 64 hex digits and the end */
#define TOKEN_SCOPES 32
#define TOKEN_LIMITS 128
#define TOKEN_PATH 4096
#define TOKEN_AS_IT_WAS (-1)

enum token_scope {
    TOKEN_READ = 1,   /* GET */
    TOKEN_SUBMIT = 2, /* everything else */
    TOKEN_ADMIN = 4,  /* all, and of any tenant */
    TOKEN_METRICS = 8 /* /metrics, and nothing else */
};

struct token {
    char name[TOKEN_NAME_SIZE];
    char hash[DIGEST_SIZE];
    unsigned scopes;
    char tenant[TENANT_SIZE];    /* "": none */
    char made[24];               /* RFC 3339 */
    struct tenant_limits limits; /* of its tenant; 0: it says nothing */
};

/* --- the file ------------------------------------------------------------- */

/* Where the settings say that it is. */
bool tokens_path(const struct settings *settings, char ret[TOKEN_PATH],
                 struct api_problem *p);

/* Reads the file; *ret is the caller's to free. *ret_there: is there one? Every line that
   is none is an error, which names it. */
bool token_file_read(const char *path, struct token **ret, size_t *ret_n,
                     bool *ret_there, struct api_problem *p);
/* Adds a token, whose name no other has; `made`, `hash` are filled in. The token itself
   goes to `ret` and nowhere else. */
bool token_file_add(const char *path, struct token *token, char ret[TOKEN_SIZE],
                    struct api_problem *p);
/* Sets the limits that a token states; TOKEN_AS_IT_WAS leaves one. NOT_FOUND; BAD_REQUEST
   of a token without a tenant. */
bool token_file_limit(const char *path, const char *name,
                      const struct tenant_limits *limits, struct api_problem *p);
/* NOT_FOUND. The file stays, also without any token. */
bool token_file_remove(const char *path, const char *name, struct api_problem *p);

/* "read,submit" to scopes and back. 0 for what is none. */
unsigned token_scopes_parse(const char *text);
void token_scopes_print(unsigned scopes, char ret[TOKEN_SCOPES]);
/* "queue=2,job_timeout=60" to limits and back; "" for none. */
bool token_limits_parse(const char *text, struct tenant_limits *ret);
void token_limits_print(const struct tenant_limits *limits, char ret[TOKEN_LIMITS]);

/* --- those who ask -------------------------------------------------------- */

struct tokens;

/* Reads the file, and fails where that is no good. Any thread may call the others. */
bool tokens_open(const char *path, struct tokens **ret, struct api_problem *p);
void tokens_close(struct tokens **tokens);
/* From now on tenants, which are borrowed, have the limits of the file. */
bool tokens_bind(struct tokens *tokens, struct tenants *tenants, struct api_problem *p);
/* Has the file looked at now, not only when somebody asks for something. */
bool tokens_reload(struct tokens *tokens, struct api_problem *p);
size_t tokens_count(struct tokens *tokens);
/*
 * Whose is the token of an Authorization header (NULL: none)? UNAUTHORIZED; IO, for
 * everybody, while the file cannot be read. Where no token is needed *ret is a nobody who
 * may do all without a tenant.
 */
bool tokens_check(struct tokens *tokens, const char *authorization, struct token *ret,
                  struct api_problem *p);

/* `qdqd token …`; argv[0] is the word "token". */
int token_main(int argc, char **argv);

#endif
