/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/data/gunzip.h"
#include "ground/base/arena.h"
#include "files/data/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { PIECE = 64 * 1024 };

struct qdqi_gunzip {
    z_stream z;
    int fd;
    uint64_t offset; /* file offset of the bytes behind `piece` */
    uint64_t out, most;
    bool open;    /* inflateEnd() must be called */
    bool between; /* a member has ended; another one may follow */
    bool done;
    unsigned char piece[PIECE];
};

enum qdq_code
qdqi_gunzip_limit(uint64_t most, struct qdq_error *err)
{
    return qdq_error_set(err, QDQ_LIMIT_EXCEEDED, QDQ_AT_NOTHING, NULL,
                         "the dataset unpacks to more than %" PRIu64
                         " bytes (limits.archive_bytes); a plain tar or a zip archive "
                         "may",
                         most);
}

static enum qdq_code
damaged(const struct qdqi_gunzip *g, const char *what, struct qdq_error *err)
{
    uint64_t at = g->offset - g->z.avail_in;
    char where[24];
    snprintf(where, sizeof where, "%" PRIu64, at);
    return qdq_error_set(err, QDQ_INVALID_DATASET, QDQ_AT_OFFSET, where,
                         "the gzip file is %s at byte %" PRIu64, what, at);
}

enum qdq_code
qdqi_gunzip_open(int fd, uint64_t most, struct qdqi_gunzip **ret, struct qdq_error *err)
{
    struct qdqi_gunzip *g = calloc(1, sizeof *g);
    if (!g)
        return qdqi_no_memory(err);
    g->fd = fd;
    g->most = most;
    g->between = true;
    /* 16: the gzip format alone */
    g->open = inflateInit2(&g->z, 16 + MAX_WBITS) == Z_OK;
    if (!g->open) {
        qdqi_gunzip_close(&g);
        return qdqi_no_memory(err);
    }
    *ret = g;
    return QDQ_OK;
}

void
qdqi_gunzip_close(struct qdqi_gunzip **gunzip)
{
    if (!gunzip || !*gunzip)
        return;
    if ((*gunzip)->open)
        inflateEnd(&(*gunzip)->z);
    free(*gunzip);
    *gunzip = NULL;
}

/* Reads more packed bytes when none are left. */
static enum qdq_code
refill(struct qdqi_gunzip *g, struct qdq_error *err)
{
    size_t got;
    if (g->z.avail_in > 0)
        return QDQ_OK;
    enum qdq_code code = qdqi_data_read(g->fd, g->offset, g->piece, PIECE, &got, err);
    if (code != QDQ_OK)
        return code;
    g->offset += got;
    g->z.next_in = g->piece;
    g->z.avail_in = (unsigned)got;
    if (got == 0 && !g->between)
        return damaged(g, "cut short", err);
    g->done = got == 0 && g->out > 0;
    return got > 0 || g->done ? QDQ_OK : damaged(g, "empty", err);
}

static enum qdq_code
step(struct qdqi_gunzip *g, struct qdq_error *err)
{
    if (g->between)
        inflateReset(&g->z);
    g->between = false;
    int rc = inflate(&g->z, Z_NO_FLUSH);
    if (rc == Z_MEM_ERROR)
        return qdqi_no_memory(err);
    if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
        return damaged(g, g->z.msg ? g->z.msg : "damaged", err);
    g->between = rc == Z_STREAM_END;
    return QDQ_OK;
}

enum qdq_code
qdqi_gunzip_read(struct qdqi_gunzip *g, void *to, size_t size, size_t *ret_got,
                 struct qdq_error *err)
{
    size_t most = size < PIECE ? size : PIECE, got = 0;
    while (got == 0 && !g->done) {
        enum qdq_code code = refill(g, err);
        if (code == QDQ_OK && !g->done) {
            g->z.next_out = to;
            g->z.avail_out = (unsigned)most;
            code = step(g, err);
            got = most - g->z.avail_out;
        }
        if (code != QDQ_OK)
            return code;
    }
    if (got > g->most - g->out)
        return qdqi_gunzip_limit(g->most, err);
    g->out += got;
    *ret_got = got;
    return QDQ_OK;
}
