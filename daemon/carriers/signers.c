/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "carriers/signers.h"
#include "api/lineage.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_TEXT (1u << 20) /* bytes of a signature, or of the keys */

/* Reads a file of at most MOST_TEXT bytes as a text that ends in NUL; the caller frees it. NULL: it
   cannot be read, or is larger. */
static char *
read_text(int fd)
{
    char *text = malloc(MOST_TEXT + 1);
    size_t len = 0;
    ssize_t n = 1;
    while (text && n > 0 && len < MOST_TEXT) {
        n = pread(fd, text + len, MOST_TEXT - len, (off_t)len);
        len += n > 0 ? (size_t)n : 0;
    }
    if (text && n == 0) {
        text[len] = '\0';
        return text;
    }
    free(text);
    return NULL;
}

static bool
read_keys(const char *path, char **ret, struct api_problem *p)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    *ret = fd < 0 ? NULL : read_text(fd);
    if (fd >= 0)
        close(fd);
    return *ret || api_fail(p, API_UNAVAILABLE,
                            "the file of the remote's signers cannot be read");
}

static bool
read_signature(struct spool *file, struct api_statement *ret, struct api_problem *p)
{
    struct api_problem why = {0};
    int fd;
    if (!spool_read(file, &fd, p))
        return false;
    char *text = read_text(fd);
    close(fd);
    bool ok = text && api_statement_decode(text, strlen(text), ret, &why);
    free(text);
    return ok || api_fail(p, API_SIGNATURE_INVALID,
                          "the signature of the model cannot be read: %.300s",
                          why.set ? why.detail : "it is too large");
}

/* Checks that a file is among those that are signed; `name` NULL: under whatever name. */
static bool
check_file(const struct api_statement *statement, const char *name, const char *digest,
           struct api_problem *p)
{
    for (size_t i = 0; i < statement->n; i++)
        if (digest_is_same(statement->files[i].digest, digest) &&
            (!name || strcmp(statement->files[i].path, name) == 0))
            return true;
    return api_fail(
        p, API_SIGNATURE_INVALID,
        "the signature is not of the file %.200s of the model, whose digest "
        "is %s",
        name ? name : LIBRARY_RESULT_NAME, digest);
}

static bool
check_files(const struct api_statement *statement, struct library *library,
            const char *model, struct api_problem *p)
{
    struct store_model_files files = {0};
    bool ok = store_model_files(library_store(library), model, &files, p);
    if (ok && !files.n)
        ok = check_file(statement, NULL, model, p);
    for (size_t i = 0; ok && i < files.n; i++)
        ok = check_file(statement, i ? files.items[i].path : NULL,
                        files.items[i].digest, p);
    store_model_files_fini(&files);
    return ok;
}

bool
signers_check(const char *signers, struct spool *signature, struct library *library,
              const char *model, struct api_problem *p)
{
    struct api_statement statement = {.n = 0};
    struct api_problem why = {0};
    char *keys = NULL;
    if (!read_keys(signers, &keys, p))
        return false;
    bool ok = read_signature(signature, &statement, p);
    /* A provenance names files, too, and says how they were made, which nobody signed off by that. */
    if (ok && statement.spec)
        ok = api_fail(p, API_SIGNATURE_INVALID,
                      "the signature of the model is a provenance, and not a bundle of "
                      "OpenSSF Model Signing");
    if (ok && !api_statement_verify_by_each(&statement, keys, &why))
        ok = why.code == API_SIGNATURE_INVALID
                 ? api_fail(p, API_SIGNATURE_INVALID, "%s", why.detail)
                 : api_fail(p, API_UNAVAILABLE, "the file of the remote's signers: %s",
                            why.detail);
    ok = ok && check_files(&statement, library, model, p);
    api_statement_fini(&statement);
    free(keys);
    return ok;
}
