/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "lineage/statement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"

bool
statement_fail(const char *path, struct api_problem *problem)
{
    char text[sizeof problem->detail];
    snprintf(text, sizeof text, "%.200s: %.300s", path, problem->detail);
    memcpy(problem->detail, text, sizeof text);
    return false;
}

/* Returns what stands behind the first key of a text; NULL: it has no other key. */
static const char *
next_key(const char *pem)
{
    static const char end[] = "-----END PUBLIC KEY-----";
    const char *at = strstr(pem, end);
    return at ? strstr(at + strlen(end), "-----BEGIN ") : NULL;
}

/* Checks the signature by each key of a text, until one is right. The problem is that of the
   last one. */
static bool
verify_by_each(const struct api_statement *statement, const char *key_path,
               const char *pem, struct api_problem *problem)
{
    bool ok = false;
    for (; pem && !ok; pem = next_key(pem)) {
        struct api_signing_key *key = NULL;
        *problem = (struct api_problem){0};
        if (!api_public_key_read(pem, strlen(pem), &key, problem))
            return statement_fail(key_path, problem);
        ok = api_statement_verify(statement, key, problem);
        api_signing_key_free(&key);
    }
    return ok;
}

static bool
verify(const struct api_statement *statement, const char *path,
       struct api_problem *problem)
{
    char *pem;
    size_t len;
    if (!file_read(path, &pem, &len, problem))
        return false;
    char *text = strndup(pem, len); /* ends in a NUL */
    free(pem);
    bool ok = text ? verify_by_each(statement, path, text, problem)
                   : api_problem_no_memory(problem);
    free(text);
    return ok;
}

bool
statement_read(const char *path, const char *key, struct api_statement *ret,
               struct api_problem *problem)
{
    char *text;
    size_t len;
    *ret = (struct api_statement){.n = 0};
    if (!file_read(path, &text, &len, problem))
        return false;
    bool ok =
        api_statement_decode(text, len, ret, problem) || statement_fail(path, problem);
    free(text);
    if (!ok || !key || verify(ret, key, problem))
        return ok;
    api_statement_fini(ret);
    return problem->code == API_SIGNATURE_INVALID && statement_fail(path, problem);
}
