/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "lineage/statement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"

/* Prefixes the problem with the name of a file. Returns false. */
static bool
fail(const char *path, struct api_problem *problem)
{
    char text[sizeof problem->detail];
    snprintf(text, sizeof text, "%.200s: %.300s", path, problem->detail);
    memcpy(problem->detail, text, sizeof text);
    return false;
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
    bool ok = text ? api_statement_verify_by_each(statement, text, problem) ||
                         (problem->code == API_BAD_REQUEST && fail(path, problem))
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
    bool ok = api_statement_decode(text, len, ret, problem) || fail(path, problem);
    free(text);
    if (!ok || !key || verify(ret, key, problem))
        return ok;
    api_statement_fini(ret);
    return problem->code == API_SIGNATURE_INVALID && fail(path, problem);
}
