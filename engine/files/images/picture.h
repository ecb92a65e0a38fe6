/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pictures: JPEG and PNG files become rows of 8-bit pixels, which are resized as Pillow does it.
 *
 *  - JPEG: baseline and progressive, gray or YCbCr or RGB, by libjpeg. CMYK is refused.
 *  - PNG: gray, palette and RGB of any depth, by libpng, which takes the upper 8 of 16 bits
 *    and drops alpha without blending; gamma and color profiles are not applied.
 *  - The orientation that EXIF states is not applied.
 *
 * The size that a file declares is checked before memory is taken for its pixels.
 */
#ifndef QDQI_FILES_IMAGES_PICTURE_H
#define QDQI_FILES_IMAGES_PICTURE_H

#include "qdq/spec.h"

#include <stddef.h>
#include <stdint.h>

enum {
    QDQI_PICTURE_MOST_FILE = 64 << 20,   /* bytes of a file */
    QDQI_PICTURE_MOST_PIXELS = 64 << 20, /* pixels that a file declares */
    QDQI_PICTURE_MOST_WORK = 512 << 20,  /* bytes that libjpeg may take */
    QDQI_PICTURE_MOST_SCANS = 200,       /* of a progressive JPEG */
    QDQI_PICTURE_START = 64 << 10, /* bytes in which the size of most files is found */
};

enum qdqi_picture_kind { QDQI_JPEG, QDQI_PNG };

/* Holds what the head of a file declares. */
struct qdqi_picture_head {
    enum qdqi_picture_kind kind;
    uint32_t width, height;
    unsigned channels; /* 1: gray; 3: color */
};

/* Rows of pixels without gaps; the channels of a pixel lie together: gray, or red, green, blue. */
struct qdqi_picture {
    size_t width, height, channels;
    unsigned char *pixels; /* from malloc(); NULL: no picture */
};

/* Sets INVALID_DATASET for a file: "image 'NAME': …". */
enum qdq_code qdqi_picture_invalid(const char *name, struct qdq_error *err,
                                   const char *fmt, ...) QDQ_PRINTF(3, 4);
/* Sets LIMIT_EXCEEDED for a file whose pixels or bytes are too many. */
enum qdq_code qdqi_picture_limit(const char *name, struct qdq_error *err,
                                 const char *what, uint64_t n, uint64_t most);

/*
 * Reads the head of a file of `size` bytes, of which `got` are there. *ret_found is false where
 * the head goes on behind them. INVALID_DATASET, LIMIT_EXCEEDED.
 */
enum qdq_code qdqi_picture_head(const char *name, const unsigned char *file, size_t got,
                                uint64_t size, struct qdqi_picture_head *ret,
                                bool *ret_found, struct qdq_error *err) QDQ_MUST_CHECK;

/* Decodes a whole file into 1 or 3 channels; color becomes gray by ITU-R 601-2, as in Pillow's
   convert("L"). INVALID_DATASET, LIMIT_EXCEEDED, NO_MEMORY, IO. */
enum qdq_code qdqi_picture_decode(const char *name, const unsigned char *file,
                                  size_t size, unsigned channels,
                                  struct qdqi_picture *ret,
                                  struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_picture_free(struct qdqi_picture *picture);

/* Take memory for a picture; and decode a file into the channels that it has. */
enum qdq_code qdqi_picture_new(size_t width, size_t height, size_t channels,
                               struct qdqi_picture *ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;
enum qdq_code qdqi_jpeg_decode(const char *name, const unsigned char *file, size_t size,
                               struct qdqi_picture *ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;
enum qdq_code qdqi_png_decode(const char *name, const unsigned char *file, size_t size,
                              struct qdqi_picture *ret,
                              struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * Resizes a picture. Bilinear and bicubic (a = -0.5) take the mean of all pixels under a filter
 * that is as wide as the picture shrinks, along rows and then along columns (or the other way, where the height
 * loses more than twice the pixels that the width loses), with weights of 22 bits and pixels rounded to 8 bits after each pass; nearest takes the pixel under the middle of
 * each new one. All give the bits of Pillow's Image.resize(), of version 13; earlier ones always begin with rows.
 */
enum qdq_code qdqi_picture_resize(const struct qdqi_picture *from, size_t width,
                                  size_t height, enum qdq_resize how,
                                  struct qdqi_picture *ret,
                                  struct qdq_error *err) QDQ_MUST_CHECK;

#endif
