/* SPDX-License-Identifier: Apache-2.0 */
/* A file of either kind becomes a picture with the channels that are wanted. */
#include "config.h"
#include "files/images/picture.h"

#include <string.h>

/* The weights of red, green and blue in gray, of 65536. */
enum { RED = 19595, GREEN = 38470, BLUE = 7471, HALF = 32768, GRAY_BITS = 16 };

static void
convert(const struct qdqi_picture *from, const struct qdqi_picture *to)
{
    const size_t n = from->width * from->height;
    const unsigned char *f = from->pixels;
    unsigned char *t = to->pixels;
    for (size_t i = 0; i < n && to->channels == 1; i++, f += 3)
        t[i] = (unsigned char)(((uint32_t)f[0] * RED + (uint32_t)f[1] * GREEN +
                                (uint32_t)f[2] * BLUE + HALF) >>
                               GRAY_BITS);
    for (size_t i = 0; i < n && to->channels == 3; i++)
        memset(t + 3 * i, f[i], 3);
}

enum qdq_code
qdqi_picture_decode(const char *name, const unsigned char *file, size_t size,
                    unsigned channels, struct qdqi_picture *ret, struct qdq_error *err)
{
    struct qdqi_picture_head head;
    struct qdqi_picture as_stored = {0};
    bool found;
    enum qdq_code code = qdqi_picture_head(name, file, size, size, &head, &found, err);
    if (!code)
        code = head.kind == QDQI_PNG
                   ? qdqi_png_decode(name, file, size, &as_stored, err)
                   : qdqi_jpeg_decode(name, file, size, &as_stored, err);
    if (!code && as_stored.channels == channels) {
        *ret = as_stored;
        return QDQ_OK;
    }
    if (!code)
        code = qdqi_picture_new(as_stored.width, as_stored.height, channels, ret, err);
    if (!code)
        convert(&as_stored, ret);
    qdqi_picture_free(&as_stored);
    return code;
}
