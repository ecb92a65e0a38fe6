/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access tokens, which decide what a client may do and as which tenant.
 *
 * The file has a line for each token, "NAME HASH SCOPES TENANT MADE", followed by the
 * limits of its tenant that it states, if any:
 * "queue=2,max_bytes=1000000,job_timeout=60". Where tokens of one tenant state
 * different limits, the smallest holds. HASH is the SHA-256 of the token. A password
 * would need a slow hash with a salt; a token does not, because its 256 random bits
 * cannot be found by trying.
 *
 * A daemon checks the file before each request and reads it again when it has changed.
 * Once there was a file, requests need a token as long as the daemon runs. Where daemons
 * share a record, tokens are rows there (tenants/token_rows.h), which a daemon looks at
 * four times a second at most; once there was one, requests need a token for ever.
 */
#ifndef QDQD_TENANTS_TOKENS_H
#define QDQD_TENANTS_TOKENS_H

#include "api/digest.h"
#include "tenants/tenants.h"

#define TOKEN_NAME_SIZE TENANT_SIZE
#define TOKEN_SIZE 72 /* "qdqd_", 64 hex digits and the terminating NUL */
#define TOKEN_SCOPES 32
#define TOKEN_LIMITS 128
#define TOKEN_PATH 4096
#define TOKEN_AS_IT_WAS (-1)

enum token_scope {
    TOKEN_READ = 1,   /* GET requests */
    TOKEN_SUBMIT = 2, /* all other requests */
    TOKEN_ADMIN = 4,  /* everything, as any tenant */
    TOKEN_METRICS = 8 /* only /metrics */
};

struct token {
    char name[TOKEN_NAME_SIZE];
    char hash[DIGEST_SIZE];
    unsigned scopes;
    char tenant[TENANT_SIZE];    /* "": the tenant without a name */
    char made[24];               /* creation time, RFC 3339 */
    struct tenant_limits limits; /* limits of its tenant; 0: the token states none */
};

/* --- the file ------------------------------------------------------------- */

/* Returns the path of the file from the settings. */
bool tokens_path(const struct settings *settings, char ret[TOKEN_PATH],
                 struct api_problem *p);

/* Reads the file. The caller frees *ret. *ret_there is whether the file exists. A
   line that is not a token is an error that names the line. */
bool token_file_read(const char *path, struct token **ret, size_t *ret_n,
                     bool *ret_there, struct api_problem *p);
/* Adds a token under a name that no other token has, and fills in `made` and `hash`.
   The token itself is written to `ret` and nowhere else. */
bool token_file_add(const char *path, struct token *token, char ret[TOKEN_SIZE],
                    struct api_problem *p);
/* Sets the limits that a token states; TOKEN_AS_IT_WAS keeps a limit. NOT_FOUND;
   BAD_REQUEST when the token has no tenant. */
bool token_file_limit(const char *path, const char *name,
                      const struct tenant_limits *limits, struct api_problem *p);
/* Removes a token. The file stays, even without any token. NOT_FOUND. */
bool token_file_remove(const char *path, const char *name, struct api_problem *p);

/* Parse and print scopes, "read,submit". 0 stands for a text that is not a list of
   scopes. */
unsigned token_scopes_parse(const char *text);
void token_scopes_print(unsigned scopes, char ret[TOKEN_SCOPES]);
/* Parse and print limits, "queue=2,job_timeout=60"; "" stands for none. */
bool token_limits_parse(const char *text, struct tenant_limits *ret);
void token_limits_print(const struct tenant_limits *limits, char ret[TOKEN_LIMITS]);

/* --- for tokens wherever they are ---------------------------------------------- */

/* Parses a line of the file, which it changes. */
bool token_parse(char *line, struct token *ret);
/* Makes a new token: fills in `made` and `hash`, and writes the token itself to `ret`. */
bool token_make_secret(struct token *token, char ret[TOKEN_SIZE],
                       struct api_problem *p);
bool token_has_limits(const struct tenant_limits *limits);
/* BAD_REQUEST when a token without a tenant states limits. */
bool token_check_limited(const struct token *token, struct api_problem *p);
/* Sets the limits that are not TOKEN_AS_IT_WAS. */
void token_limits_set(struct tenant_limits *limits, const struct tenant_limits *to);
/* Lets the smaller one of each two limits of one tenant hold. */
void token_limits_tighten(struct tenant_limits *limits,
                          const struct tenant_limits *also);

/* --- for the daemon ------------------------------------------------------ */

struct tokens;

/* Reads the file and fails where it has an error. Any thread may call the functions
   below. */
bool tokens_open(const char *path, struct tokens **ret, struct api_problem *p);
/* Opens the tokens of the settings: rows of a record that daemons share, or the file. */
bool tokens_open_set(const struct settings *settings, struct tokens **ret,
                     struct api_problem *p);
void tokens_close(struct tokens **tokens);
/* Gives the tenants the limits of the file, now and whenever it changes. Borrows
   `tenants`. */
bool tokens_bind(struct tokens *tokens, struct tenants *tenants, struct api_problem *p);
/* Reads the file now if it has changed, without waiting for a request. */
bool tokens_reload(struct tokens *tokens, struct api_problem *p);
size_t tokens_count(struct tokens *tokens);
/* Checks that tokens which are rows can be read, without which no request is answered.
   UNAVAILABLE. */
bool tokens_check_rows(struct tokens *tokens, struct api_problem *p);
/*
 * Finds the token of an Authorization header (NULL: no header). UNAUTHORIZED; IO for
 * every request while the file cannot be read. Where no token is needed, *ret may do
 * everything as the tenant without a name.
 */
bool tokens_check(struct tokens *tokens, const char *authorization, struct token *ret,
                  struct api_problem *p);

/* Returns whether a token that was found, or the lack of one, still allows what it did. A token that
   cannot be looked up now is still one. */
bool tokens_hold(struct tokens *tokens, const struct token *who);

/* Runs the command `qdqd token …`; argv[0] is the word "token". */
int token_main(int argc, char **argv);

#endif
