/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/images/picture.h"

#include "ground/base/arena.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- errors --------------------------------------------------------------- */

enum qdq_code
qdqi_picture_invalid(const char *name, struct qdq_error *err, const char *fmt, ...)
{
    char text[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return qdq_error_set(err, QDQ_INVALID_DATASET, QDQ_AT_INPUT, name,
                         "image '%.200s': %s (docs/reference/data.md)", name, text);
}

enum qdq_code
qdqi_picture_limit(const char *name, struct qdq_error *err, const char *what,
                   uint64_t n, uint64_t most)
{
    return qdq_error_set(err, QDQ_LIMIT_EXCEEDED, QDQ_AT_INPUT, name,
                         "image '%.200s': %" PRIu64 " %s, and at most %" PRIu64
                         " are read: store it smaller (docs/reference/data.md)",
                         name, n, what, most);
}

/* --- heads ---------------------------------------------------------------- */

static uint32_t
big_endian(const unsigned char *p, size_t n)
{
    uint32_t value = 0;
    for (size_t i = 0; i < n; i++)
        value = value << 8 | p[i];
    return value;
}

static enum qdq_code
check_size(const char *name, const struct qdqi_picture_head *head,
           struct qdq_error *err)
{
    const uint64_t pixels = (uint64_t)head->width * head->height;
    if (pixels == 0)
        return qdqi_picture_invalid(name, err, "it has no pixels: %" PRIu32 "x%" PRIu32,
                                    head->width, head->height);
    return pixels > QDQI_PICTURE_MOST_PIXELS
               ? qdqi_picture_limit(name, err, "pixels", pixels,
                                    QDQI_PICTURE_MOST_PIXELS)
               : QDQ_OK;
}

static const unsigned char png_start[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

enum { PNG_HEAD = 33, PNG_SIZE_AT = 16, PNG_COLOR_AT = 25 };

static enum qdq_code
png_head(const char *name, const unsigned char *file, size_t got,
         struct qdqi_picture_head *ret, struct qdq_error *err)
{
    if (got < PNG_HEAD || memcmp(file + 12, "IHDR", 4) != 0)
        return qdqi_picture_invalid(name, err, "the PNG file ends before its size");
    *ret = (struct qdqi_picture_head){
        .kind = QDQI_PNG,
        .width = big_endian(file + PNG_SIZE_AT, 4),
        .height = big_endian(file + PNG_SIZE_AT + 4, 4),
        /* bit 1: color */
        .channels = file[PNG_COLOR_AT] & 2 ? 3 : 1,
    };
    return QDQ_OK;
}

/* The markers of JPEG that open a frame, which holds the size. */
static bool
opens_frame(unsigned char marker)
{
    return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 &&
           marker != 0xcc;
}

static enum qdq_code
jpeg_frame(const char *name, const unsigned char *at, struct qdqi_picture_head *ret,
           struct qdq_error *err)
{
    *ret = (struct qdqi_picture_head){
        .kind = QDQI_JPEG,
        .width = big_endian(at + 5, 2),
        .height = big_endian(at + 3, 2),
        .channels = at[7],
    };
    if (at[7] == 4)
        return qdqi_picture_invalid(name, err,
                                    "its colors are CMYK; save it as RGB, for example "
                                    "by Image.open(name).convert(\"RGB\") of Pillow");
    return at[7] == 1 || at[7] == 3
               ? QDQ_OK
               : qdqi_picture_invalid(name, err, "a JPEG file of %d channels", at[7]);
}

/* Walks from marker to marker until a frame opens. */
static enum qdq_code
jpeg_head(const char *name, const unsigned char *file, size_t got, uint64_t size,
          struct qdqi_picture_head *ret, bool *ret_found, struct qdq_error *err)
{
    for (size_t at = 2; at + 10 <= got;) {
        const unsigned char marker = file[at + 1];
        if (file[at] != 0xff)
            at++; /* stray bytes, which libjpeg passes over, too */
        else if (marker == 0xff)
            at++; /* filling */
        else if (opens_frame(marker))
            return jpeg_frame(name, file + at + 2, ret, err);
        else if (marker == 0xda || marker == 0xd9)
            return qdqi_picture_invalid(name, err, "a JPEG file without a size");
        else if (marker == 0 || marker == 1 || (marker >= 0xd0 && marker <= 0xd8))
            at += 2; /* markers without a length */
        else
            at += 2 + big_endian(file + at + 2, 2);
    }
    *ret_found = false;
    return got < size ? QDQ_OK
                      : qdqi_picture_invalid(name, err,
                                             "the JPEG file ends before its size: it "
                                             "was cut short");
}

static bool
looks_like_text(const unsigned char *file, size_t got)
{
    while (got > 0 && (*file == ' ' || *file == '\n' || *file == '\r' || *file == '\t'))
        file++, got--;
    return got > 0 && (*file == '<' || *file == '{');
}

enum qdq_code
qdqi_picture_head(const char *name, const unsigned char *file, size_t got,
                  uint64_t size, struct qdqi_picture_head *ret, bool *ret_found,
                  struct qdq_error *err)
{
    enum qdq_code code;
    *ret_found = true;
    if (size == 0)
        return qdqi_picture_invalid(name, err, "the file is empty; leave it out");
    if (size > QDQI_PICTURE_MOST_FILE)
        return qdqi_picture_limit(name, err, "bytes", size, QDQI_PICTURE_MOST_FILE);
    if (got >= sizeof png_start && memcmp(file, png_start, sizeof png_start) == 0)
        code = png_head(name, file, got, ret, err);
    else if (got >= 3 && memcmp(file, "\xff\xd8\xff", 3) == 0)
        code = jpeg_head(name, file, got, size, ret, ret_found, err);
    else
        return qdqi_picture_invalid(
            name, err, "%s, and neither a JPEG nor a PNG file; leave it out",
            looks_like_text(file, got) ? "it is a text, such as a page of HTML"
                                       : "its first bytes are of another kind");
    return code || !*ret_found ? code : check_size(name, ret, err);
}

/* --- pixels --------------------------------------------------------------- */

enum qdq_code
qdqi_picture_new(size_t width, size_t height, size_t channels, struct qdqi_picture *ret,
                 struct qdq_error *err)
{
    size_t size;
    *ret = (struct qdqi_picture){width, height, channels, NULL};
    if (!__builtin_mul_overflow(width, height, &size) &&
        !__builtin_mul_overflow(size, channels, &size) && size > 0)
        ret->pixels = malloc(size);
    return ret->pixels ? QDQ_OK : qdqi_no_memory(err);
}

void
qdqi_picture_free(struct qdqi_picture *picture)
{
    free(picture->pixels);
    picture->pixels = NULL;
}
