/* SPDX-License-Identifier: Apache-2.0 */
/* PNG files by libpng, whose errors jump back to qdqi_png_decode(). */
#include "config.h"
#include "files/images/picture.h"

#include "ground/base/arena.h"

#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <png.h>

enum { MOST_CHUNK = 8 << 20 }; /* bytes of a chunk that is no pixels */

/* The state of one file. All that changes after setjmp() lies in it. */
struct png_job {
    png_structp png;
    png_infop info;
    jmp_buf out;
    char why[160];
    const unsigned char *file;
    size_t left;
    struct qdqi_picture *picture;
    struct qdq_error *err;
    enum qdq_code code;
};

static void
fail(png_structp png, png_const_charp why)
{
    struct png_job *job = png_get_error_ptr(png);
    snprintf(job->why, sizeof job->why, "%s", why);
    longjmp(job->out, 1);
}

static void
print_nothing(png_structp png, png_const_charp why)
{
    (void)png;
    (void)why;
}

static void
take(png_structp png, png_bytep to, size_t n)
{
    struct png_job *job = png_get_io_ptr(png);
    if (n > job->left)
        fail(png, "the file ends too early");
    memcpy(to, job->file, n);
    job->file += n;
    job->left -= n;
}

/* Asks for 8 bits of gray or RGB, as Pillow makes them of all kinds. */
static void
choose_form(struct png_job *job)
{
    const int color = png_get_color_type(job->png, job->info);
    if (color == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(job->png);
    if (color == PNG_COLOR_TYPE_GRAY)
        png_set_expand_gray_1_2_4_to_8(job->png);
    png_set_strip_16(job->png);
    png_set_strip_alpha(job->png);
}

static enum qdq_code
read_pixels(struct png_job *job)
{
    png_set_user_limits(job->png, QDQI_PICTURE_MOST_PIXELS, QDQI_PICTURE_MOST_PIXELS);
    png_set_chunk_malloc_max(job->png, MOST_CHUNK);
    png_set_read_fn(job->png, job, take);
    png_read_info(job->png, job->info);
    choose_form(job);
    const int passes = png_set_interlace_handling(job->png);
    png_read_update_info(job->png, job->info);
    const size_t width = png_get_image_width(job->png, job->info);
    const size_t height = png_get_image_height(job->png, job->info);
    const size_t channels = png_get_channels(job->png, job->info);
    const size_t row = png_get_rowbytes(job->png, job->info);
    if ((channels != 1 && channels != 3) || row != width * channels)
        fail(job->png, "its pixels have no form that is known");
    enum qdq_code code =
        qdqi_picture_new(width, height, channels, job->picture, job->err);
    for (int pass = 0; !code && pass < passes; pass++)
        for (size_t y = 0; y < height; y++)
            png_read_row(job->png, job->picture->pixels + y * row, NULL);
    if (!code)
        png_read_end(job->png, NULL);
    return code;
}

enum qdq_code
qdqi_png_decode(const char *name, const unsigned char *file, size_t size,
                struct qdqi_picture *ret, struct qdq_error *err)
{
    struct png_job job = {.file = file, .left = size, .picture = ret, .err = err};
    *ret = (struct qdqi_picture){0};
    errno = 0;
    job.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &job, fail, print_nothing);
    if (!job.png && errno == ELIBACC)
        return qdq_error_set(err, QDQ_IO, QDQ_AT_NOTHING, NULL,
                             "libpng cannot be loaded");
    if (job.png)
        job.info = png_create_info_struct(job.png);
    if (!job.info)
        job.code = qdqi_no_memory(err);
    else if (setjmp(job.out) == 0)
        job.code = read_pixels(&job);
    else
        job.code = qdqi_picture_invalid(
            name, err, "the PNG file is damaged or cut short: %s", job.why);
    png_destroy_read_struct(&job.png, &job.info, NULL);
    if (job.code)
        qdqi_picture_free(ret);
    return job.code;
}
