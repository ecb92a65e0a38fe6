/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "data/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/digest.h"
#include "api/genai.h"
#include "api/tokenizer.h"
#include "files.h"
#include "folder.h"

enum {
    ROW = 512,                          /* ids of a sample */
    PARTS = 32,                         /* of a text that is not read whole */
    PART = 512 * 1024,                  /* bytes of each */
    MOST_TOKENIZER = 256 * 1024 * 1024, /* bytes of the file */
    HEAD = 128,                         /* bytes of an .npy file before its array */
};

/* A file in memory. */
struct mapped {
    const char *data;
    size_t size;
};

/* Ids that are written to a file as they come, row by row. */
struct rows {
    int fd;
    int64_t n, length; /* of rows, and of each */
    struct api_problem *problem;
};

bool
text_is(const char *path)
{
    const size_t n = strlen(path);
    return n > 4 && strcasecmp(path + n - 4, ".txt") == 0;
}

/* --- files ---------------------------------------------------------------------- */

static bool
map(const char *path, struct mapped *ret, struct api_problem *problem)
{
    struct stat st;
    int fd;
    if (!file_open(path, &fd, problem))
        return false;
    bool ok = fstat(fd, &st) == 0 || file_fail(path, problem);
    if (ok && st.st_size == 0)
        ok = api_fail(problem, API_INVALID_DATASET, "%s is empty", path);
    if (ok) {
        void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        ok = data != MAP_FAILED || file_fail(path, problem);
        *ret = (struct mapped){ok ? data : NULL, (size_t)st.st_size};
    }
    close(fd);
    return ok;
}

static void
unmap(struct mapped *m)
{
    if (m->data)
        munmap((void *)(uintptr_t)m->data, m->size);
}

/* --- the tokenizer ---------------------------------------------------------------- */

/* Returns the path of a file beside the model; the caller frees it. */
static char *
beside(const char *model, const char *name)
{
    const char *slash = strrchr(model, '/');
    char *path;
    int n;
    if (is_folder(model))
        n = asprintf(&path, "%s/%s", model, name);
    else if (slash)
        n = asprintf(&path, "%.*s/%s", (int)(slash - model), model, name);
    else
        n = asprintf(&path, "%s", name);
    return n < 0 ? NULL : path;
}

/* Returns how many ids a sample has: fewer than usual where the model takes no more. */
static int64_t
find_length(const char *model)
{
    struct mapped file = {NULL, 0};
    struct api_problem ignored = {0};
    char *path = beside(model, API_GENAI_CONFIG);
    int64_t most = 0;
    if (path && access(path, F_OK) == 0 && map(path, &file, &ignored))
        most = api_genai_context(file.data, file.size);
    unmap(&file);
    free(path);
    return most > 0 && most < ROW ? most : ROW;
}

/* Says how to make ids where they are not made here. */
static bool
advise(const char *path, const char *tokenizer, const struct api_problem *why,
       struct api_problem *problem)
{
    const bool names_place =
        why->kind == QDQ_AT_POINTER && *why->where && !strstr(why->detail, why->where);
    return api_fail(
        problem, why->code,
        "%.100s: %s%s%.180s; give the ids as .npy: python3 -c \"import numpy, "
        "tokenizers; i = tokenizers.Tokenizer.from_file('%.100s').encode("
        "open('%.100s', newline='').read()).ids; numpy.save('ids.npy', "
        "numpy.int64(i[:len(i) // 512 * 512]).reshape(-1, 512))\"",
        tokenizer, names_place ? why->where : "", names_place ? ": " : "", why->detail,
        tokenizer, path);
}

static bool
open_tokenizer(const char *path, const char *text, struct qdq_tokenizer **ret,
               struct api_problem *problem)
{
    struct mapped file = {NULL, 0};
    struct api_problem why = {0};
    if (access(path, F_OK) != 0)
        return api_fail(
            problem, API_INVALID_DATASET,
            "%s is a text, and %s, by which ids of tokens are made of it, is "
            "not there; give ids as .npy, or put the file beside the model",
            text, path);
    if (!map(path, &file, problem))
        return false;
    bool ok =
        file.size <= MOST_TOKENIZER
            ? api_tokenizer_read(file.data, file.size, ret, &why)
            : api_fail(&why, API_LIMIT_EXCEEDED, "more than %d bytes", MOST_TOKENIZER);
    unmap(&file);
    return ok || advise(text, path, &why, problem);
}

/* --- rows ------------------------------------------------------------------------ */

static bool
put(struct rows *rows, const void *from, size_t size, off_t at)
{
    for (size_t done = 0; done < size;) {
        const ssize_t n =
            pwrite(rows->fd, (const char *)from + done, size - done, at + (off_t)done);
        if (n < 0 && errno != EINTR)
            return file_fail("a file for ids of tokens", rows->problem);
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* Writes n rows of ids behind those that are there. */
static bool
put_rows(struct rows *rows, const uint32_t *ids, size_t n)
{
    int64_t wide[ROW];
    for (size_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < rows->length; k++)
            wide[k] = (int64_t)ids[i * (size_t)rows->length + (size_t)k];
        const size_t size = (size_t)rows->length * sizeof *wide;
        if (!put(rows, wide, size, HEAD + (off_t)(rows->n * (int64_t)size)))
            return false;
        rows->n++;
    }
    return true;
}

/* Writes the head as NumPy does. */
static bool
put_head(struct rows *rows)
{
    char head[HEAD + 1], text[HEAD - 10];
    snprintf(text, sizeof text,
             "{'descr': '<i8', 'fortran_order': False, 'shape': (%" PRId64 ", %" PRId64
             "), }",
             rows->n, rows->length);
    snprintf(head, sizeof head, "..........%-117.117s\n", text);
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
    return put(rows, head, HEAD, 0);
}

/* --- texts ------------------------------------------------------------------------ */

static bool
is_inside(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Moves an offset behind the next line feed, or, where that is far, to a character's start. */
static size_t
settle(const struct mapped *text, size_t at)
{
    const size_t near = text->size - at < PART / 4 ? text->size - at : PART / 4;
    const char *end = at > 0 ? memchr(text->data + at, '\n', near) : NULL;
    if (end)
        return (size_t)(end - text->data) + 1;
    for (int i = 0; i < 3 && at > 0 && at < text->size && is_inside(text->data[at]);
         i++)
        at++;
    return at;
}

static bool
encode(struct qdq_tokenizer *tokenizer, const struct mapped *text, size_t start,
       size_t end, bool is_whole, struct rows *rows, struct api_problem *why)
{
    struct qdq_error err = {0};
    const uint32_t *ids;
    size_t n;
    if (qdq_tokenizer_encode(tokenizer, text->data + start, end - start, &ids, &n,
                             &err))
        return api_problem_set_engine(why, &err);
    if (is_whole && n > 0 && n < (size_t)rows->length)
        rows->length = (int64_t)n;
    return put_rows(rows, ids, n / (size_t)rows->length);
}

static bool
encode_parts(struct qdq_tokenizer *tokenizer, const struct mapped *text,
             struct rows *rows, struct api_problem *why)
{
    for (size_t i = 0; i < PARTS; i++) {
        const size_t start = settle(text, (text->size - PART) / (PARTS - 1) * i);
        const size_t wanted = text->size - start < PART ? text->size : start + PART;
        const size_t end = wanted == text->size ? wanted : settle(text, wanted);
        if (!encode(tokenizer, text, start, end, false, rows, why))
            return false;
    }
    return true;
}

static bool
make_ids(const char *path, const char *file, struct qdq_tokenizer *tokenizer,
         struct rows *rows)
{
    struct mapped text = {NULL, 0};
    struct api_problem why = {0};
    bool ok = map(path, &text, rows->problem);
    if (ok && text.size <= QDQ_TOKENIZER_MOST_TEXT)
        ok = encode(tokenizer, &text, 0, text.size, true, rows, &why);
    else if (ok)
        ok = encode_parts(tokenizer, &text, rows, &why);
    unmap(&text);
    if (ok && rows->n == 0)
        ok = api_fail(rows->problem, API_INVALID_DATASET, "%s has no token, by %s",
                      path, file);
    if (!ok && why.set && why.kind == QDQ_AT_POINTER)
        return advise(path, file, &why, rows->problem);
    if (!ok && why.set)
        return api_fail(rows->problem, why.code, "%s: %s", path, why.detail);
    return ok && put_head(rows);
}

bool
text_open(const char *path, const char *model, int *ret, struct api_problem *problem)
{
    struct qdq_tokenizer *tokenizer = NULL;
    struct rows rows = {.problem = problem};
    if (!model || digest_is_id(model))
        return api_fail(problem, API_INVALID_DATASET,
                        "%s is a text, of which the " API_TOKENIZER
                        " beside the model makes ids of tokens: name the model by its "
                        "file or folder, or give ids as .npy",
                        path);
    rows.length = find_length(model);
    char *file = beside(model, API_TOKENIZER);
    bool ok = (file || api_problem_no_memory(problem)) &&
              open_tokenizer(file, path, &tokenizer, problem);
    rows.fd = ok ? file_open_unnamed() : -1;
    ok = ok && (rows.fd >= 0 || file_fail("a file for ids of tokens", problem)) &&
         make_ids(path, file, tokenizer, &rows);
    if (ok)
        *ret = rows.fd;
    else if (rows.fd >= 0)
        close(rows.fd);
    qdq_tokenizer_free(&tokenizer);
    free(file);
    return ok;
}
