/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "oci/untar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { BLOCK = 512, MOST_EXTRA = 4096, CHUNK = 64 << 10 };

struct untar {
    struct untar_calls calls;
    bool is_gzip, has_ended; /* the blocks of zeros at the end have come */
    z_stream z;
    bool z_has_ended;
    char head[BLOCK];
    size_t head_len;
    int64_t left, padding;  /* bytes of the member that are still to come */
    char kind;              /* of the member: its type in the header */
    char extra[MOST_EXTRA]; /* a member that describes the next one */
    size_t extra_len;
    char name[MOST_EXTRA]; /* of the next member, as it was described; "": not */
    int64_t size;          /* likewise; -1: not */
    int64_t unpacked;
};

static bool
fail(const char *what, struct api_problem *problem)
{
    return api_problem_set(problem, API_REMOTE_UNAVAILABLE, QDQ_AT_NOTHING, NULL,
                           "an archive %s", what);
}

struct untar *
untar_new(const struct untar_calls *calls, bool is_gzip)
{
    struct untar *untar = calloc(1, sizeof *untar);
    if (!untar)
        return NULL;
    untar->calls = *calls;
    untar->is_gzip = is_gzip;
    untar->size = -1;
    if (is_gzip && inflateInit2(&untar->z, MAX_WBITS + 16) != Z_OK) {
        free(untar);
        return NULL;
    }
    return untar;
}

void
untar_free(struct untar **untar)
{
    if (*untar && (*untar)->is_gzip)
        inflateEnd(&(*untar)->z);
    free(*untar);
    *untar = NULL;
}

/* --- headers -------------------------------------------------------------- */

/* Parses a number: octal digits, or, where the first bit is set, 8 bytes at its end. */
static int64_t
parse_number(const char *field, size_t len)
{
    int64_t value = 0;
    if (field[0] & 0x80) {
        for (size_t i = len - 8; i < len; i++)
            value = (int64_t)((uint64_t)value << 8 | (unsigned char)field[i]);
        return value;
    }
    while (len && *field == ' ')
        field++, len--;
    for (; len && *field >= '0' && *field <= '7'; field++, len--)
        value = value * 8 + (*field - '0');
    return value;
}

static bool
has_right_sum(const char *head)
{
    int64_t sum = 0;
    for (size_t i = 0; i < BLOCK; i++)
        sum += i >= 148 && i < 156 ? ' ' : (unsigned char)head[i];
    return sum == parse_number(head + 148, 8);
}

/* Reads the records "LENGTH KEY=VALUE\n" of a header of pax: path and size. */
static void
read_pax(struct untar *untar)
{
    const char *at = untar->extra, *end = at + untar->extra_len;
    while (at < end) {
        char *text;
        long len = strtol(at, &text, 10);
        if (len <= 0 || len > end - at || *text != ' ')
            return;
        text++;
        int value_len = (int)(at + len - 1 - text) - 5;
        if (value_len >= 0 && strncmp(text, "path=", 5) == 0)
            snprintf(untar->name, sizeof untar->name, "%.*s", value_len, text + 5);
        else if (value_len >= 0 && strncmp(text, "size=", 5) == 0)
            untar->size = strtoll(text + 5, NULL, 10);
        at += len;
    }
}

/* A member that describes the next one is whole. */
static void
parse_extra(struct untar *untar)
{
    untar->extra[untar->extra_len] = '\0';
    if (untar->kind == 'x')
        read_pax(untar);
    else
        snprintf(untar->name, sizeof untar->name, "%s", untar->extra);
}

/* Calls on_file() with the name of the header, or with the one that was described. */
static bool
begin_file(struct untar *untar, struct api_problem *problem)
{
    const char *head = untar->head, *prefix = head + 345;
    char whole[BLOCK];
    bool has_prefix = memcmp(head + 257, "ustar", 6) == 0 && *prefix;
    snprintf(whole, sizeof whole, "%.155s%s%.100s", has_prefix ? prefix : "",
             has_prefix ? "/" : "", head);
    const char *name = *untar->name ? untar->name : whole;
    while (strncmp(name, "./", 2) == 0)
        name += 2;
    bool ok = untar->calls.on_file(untar->calls.arg, name, untar->left, problem);
    untar->name[0] = '\0';
    return ok;
}

static bool
read_head(struct untar *untar, struct api_problem *problem)
{
    const char *head = untar->head;
    untar->head_len = 0;
    if (!head[0] && parse_number(head + 148, 8) == 0) {
        untar->has_ended = true;
        return true;
    }
    if (!has_right_sum(head))
        return fail("has a header with a wrong sum", problem);
    untar->kind = head[156] ? head[156] : '0';
    bool describes = strchr("xLgK", untar->kind);
    untar->left =
        untar->size >= 0 && !describes ? untar->size : parse_number(head + 124, 12);
    if (untar->left < 0 || untar->left > untar->calls.most)
        return api_problem_set(problem, API_REMOTE_TOO_LARGE, QDQ_AT_NOTHING, NULL,
                               "an archive has a file of more bytes than may come");
    untar->padding = (BLOCK - untar->left % BLOCK) % BLOCK;
    untar->extra_len = 0;
    if (describes)
        return untar->left < MOST_EXTRA || fail("has a name that is too long", problem);
    untar->size = -1;
    if (untar->kind == '0')
        return begin_file(untar, problem);
    untar->name[0] = '\0'; /* of a folder or a link, which is left out */
    return true;
}

/* --- bytes ---------------------------------------------------------------- */

/* Reads bytes of a member. Returns how many. */
static size_t
read_member(struct untar *untar, const char *bytes, size_t len, bool *ret_ok,
            struct api_problem *problem)
{
    size_t n = (int64_t)len < untar->left ? len : (size_t)untar->left;
    untar->left -= (int64_t)n;
    if (strchr("xL", untar->kind)) {
        memcpy(untar->extra + untar->extra_len, bytes, n);
        untar->extra_len += n;
        if (!untar->left)
            parse_extra(untar);
    } else if (untar->kind == '0' && untar->calls.on_bytes) {
        *ret_ok = untar->calls.on_bytes(untar->calls.arg, bytes, n, problem);
    }
    return n;
}

static bool
feed_plain(struct untar *untar, const char *bytes, size_t len,
           struct api_problem *problem)
{
    bool ok = true;
    untar->unpacked += (int64_t)len;
    if (untar->unpacked / 2 > untar->calls.most) /* there is padding, too */
        return api_problem_set(problem, API_REMOTE_TOO_LARGE, QDQ_AT_NOTHING, NULL,
                               "an archive has more bytes than may come");
    while (ok && len && !untar->has_ended) {
        size_t n;
        if (untar->left) {
            n = read_member(untar, bytes, len, &ok, problem);
        } else if (untar->padding) {
            n = (int64_t)len < untar->padding ? len : (size_t)untar->padding;
            untar->padding -= (int64_t)n;
        } else {
            n = BLOCK - untar->head_len;
            n = n < len ? n : len;
            memcpy(untar->head + untar->head_len, bytes, n);
            untar->head_len += n;
            ok = untar->head_len < BLOCK || read_head(untar, problem);
        }
        bytes += n;
        len -= n;
    }
    return ok;
}

bool
untar_feed(struct untar *untar, const char *bytes, size_t len,
           struct api_problem *problem)
{
    if (!untar->is_gzip)
        return feed_plain(untar, bytes, len, problem);
    char *chunk = malloc(CHUNK);
    bool ok = chunk || api_problem_no_memory(problem);
    untar->z.next_in = (Bytef *)(uintptr_t)bytes;
    untar->z.avail_in = (uInt)len;
    while (ok && !untar->z_has_ended) {
        untar->z.next_out = (Bytef *)chunk;
        untar->z.avail_out = CHUNK;
        int rc = inflate(&untar->z, Z_NO_FLUSH);
        untar->z_has_ended = rc == Z_STREAM_END;
        size_t n = CHUNK - untar->z.avail_out;
        ok = (rc == Z_OK || rc == Z_STREAM_END || rc == Z_BUF_ERROR ||
              fail("is not compressed by gzip", problem)) &&
             feed_plain(untar, chunk, n, problem);
        if (n < CHUNK && !untar->z.avail_in)
            break;
    }
    free(chunk);
    return ok;
}

bool
untar_finish(const struct untar *untar, struct api_problem *problem)
{
    bool is_whole = !untar->left && !untar->padding && !untar->head_len &&
                    (!untar->is_gzip || untar->z_has_ended);
    return is_whole || fail("ends in the middle of a file", problem);
}
