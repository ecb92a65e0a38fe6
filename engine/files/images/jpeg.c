/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG files by libjpeg, whose errors jump back to qdqi_jpeg_decode(). */
#include "config.h"
#include "files/images/picture.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

/* The state of one file. All that changes after setjmp() lies in it. */
struct jpeg_job {
    struct jpeg_decompress_struct
        info; /* the first member: libjpeg's pointer is ours */
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf out;
    char why[JMSG_LENGTH_MAX];
    const char *name;
    struct qdqi_picture *picture;
    struct qdq_error *err;
    enum qdq_code code; /* an error that is set already */
};

static struct jpeg_job *
job_of(j_common_ptr info)
{
    return (struct jpeg_job *)(void *)info;
}

static void
fail(j_common_ptr info)
{
    struct jpeg_job *job = job_of(info);
    job->errors.format_message(info, job->why);
    longjmp(job->out, 1);
}

/* Data that is missing or not decodable is a warning of libjpeg's, which fills the rest with
   gray; here the file is damaged. */
static void
hear(j_common_ptr info, int level)
{
    const int code = info->err->msg_code;
    if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER ||
                      code == JWRN_HUFF_BAD_CODE || code == JWRN_ARITH_BAD_CODE))
        fail(info);
}

static void
print_nothing(j_common_ptr info)
{
    (void)info;
}

/* Ends a file of so many scans that decoding it takes forever. */
static void
watch_scans(j_common_ptr info)
{
    struct jpeg_job *job = job_of(info);
    if (job->info.input_scan_number <= QDQI_PICTURE_MOST_SCANS)
        return;
    snprintf(job->why, sizeof job->why, "it has more than %d scans",
             QDQI_PICTURE_MOST_SCANS);
    longjmp(job->out, 1);
}

static enum qdq_code
read_pixels(struct jpeg_job *job, const unsigned char *file, size_t size)
{
    struct jpeg_decompress_struct *info = &job->info;
    jpeg_mem_src(info, file, size);
    jpeg_read_header(info, TRUE);
    if (info->jpeg_color_space == JCS_CMYK || info->jpeg_color_space == JCS_YCCK ||
        info->jpeg_color_space == JCS_UNKNOWN)
        return qdqi_picture_invalid(job->name, job->err,
                                    "its colors are neither gray nor RGB");
    info->out_color_space =
        info->jpeg_color_space == JCS_GRAYSCALE ? JCS_GRAYSCALE : JCS_RGB;
    if ((uint64_t)info->image_width * info->image_height > QDQI_PICTURE_MOST_PIXELS)
        return qdqi_picture_limit(job->name, job->err, "pixels",
                                  (uint64_t)info->image_width * info->image_height,
                                  QDQI_PICTURE_MOST_PIXELS);
    jpeg_start_decompress(info);
    enum qdq_code code =
        qdqi_picture_new(info->output_width, info->output_height,
                         (size_t)info->output_components, job->picture, job->err);
    while (!code && info->output_scanline < info->output_height) {
        JSAMPROW row = job->picture->pixels + (size_t)info->output_scanline *
                                                  job->picture->width *
                                                  job->picture->channels;
        jpeg_read_scanlines(info, &row, 1);
    }
    if (!code)
        jpeg_finish_decompress(info);
    return code;
}

static enum qdq_code
open_and_read(struct jpeg_job *job, const unsigned char *file, size_t size)
{
    jpeg_create_decompress(&job->info);
    job->info.mem->max_memory_to_use = QDQI_PICTURE_MOST_WORK;
    job->progress.progress_monitor = watch_scans;
    job->info.progress = &job->progress;
    return read_pixels(job, file, size);
}

enum qdq_code
qdqi_jpeg_decode(const char *name, const unsigned char *file, size_t size,
                 struct qdqi_picture *ret, struct qdq_error *err)
{
    struct jpeg_job job = {.name = name, .picture = ret, .err = err};
    *ret = (struct qdqi_picture){0};
    job.info.err = jpeg_std_error(&job.errors);
    if (!job.info.err)
        return qdq_error_set(err, QDQ_IO, QDQ_AT_NOTHING, NULL,
                             "libjpeg cannot be loaded");
    job.errors.error_exit = fail;
    job.errors.emit_message = hear;
    job.errors.output_message = print_nothing;
    if (setjmp(job.out) == 0)
        job.code = open_and_read(&job, file, size);
    else
        job.code = qdqi_picture_invalid(
            name, err, "the JPEG file is damaged or cut short: %s", job.why);
    jpeg_destroy_decompress(&job.info);
    if (job.code)
        qdqi_picture_free(ret);
    return job.code;
}
