/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads any bytes as an image file, in gray and in color, and resizes what comes of them. A file is
 * an error, or has the size that its head declares.
 *
 *   clang -DFUZZING -fsanitize=fuzzer,address,undefined -I… fuzz_image.c engine/files/images/… -ljpeg -lpng
 */
#include "config.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "files/images/picture.h"

/* Larger pictures are decoded in the tests; here they would only take time. */
enum { MOST_PIXELS = 1 << 18 };

static void
expect_error(enum qdq_code code, const struct qdq_error *err)
{
    assert(code == QDQ_INVALID_DATASET || code == QDQ_LIMIT_EXCEEDED);
    assert(strstr(err->text, "'fuzz.png'"));
}

static void
resize(const struct qdqi_picture *picture)
{
    static const enum qdq_resize ways[] = {QDQ_RESIZE_BILINEAR, QDQ_RESIZE_BICUBIC,
                                           QDQ_RESIZE_NEAREST};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct qdqi_picture resized;
        struct qdq_error err = {0};
        enum qdq_code code =
            qdqi_picture_resize(picture, 13, 29, ways[i], &resized, &err);
        assert(code == QDQ_OK && resized.width == 13 && resized.height == 29);
        qdqi_picture_free(&resized);
    }
}

static void
decode(const uint8_t *data, size_t size, unsigned channels,
       const struct qdqi_picture_head *head)
{
    struct qdqi_picture picture;
    struct qdq_error err = {0};
    enum qdq_code code =
        qdqi_picture_decode("fuzz.png", data, size, channels, &picture, &err);
    if (code != QDQ_OK) {
        expect_error(code, &err);
        return;
    }
    assert(picture.width == head->width && picture.height == head->height);
    assert(picture.channels == channels);
    resize(&picture);
    qdqi_picture_free(&picture);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct qdqi_picture_head head;
    struct qdq_error err = {0};
    bool found = false;
    enum qdq_code code =
        qdqi_picture_head("fuzz.png", data, size, size, &head, &found, &err);
    if (code != QDQ_OK) {
        expect_error(code, &err);
        return 0;
    }
    assert(found);
    if ((uint64_t)head.width * head.height > MOST_PIXELS)
        return 0;
    decode(data, size, 1, &head);
    decode(data, size, 3, &head);
    return 0;
}

#define CORPUS "tests/fuzz/corpus/image"
#include "replay.h"
