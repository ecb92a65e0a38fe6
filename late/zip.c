/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of libzip that engine/files/data/npz.c calls. */
#include "config.h"
#include "late.h"

#include <zip.h>

LATE(LATE_ZIP, zip_source_t *, NULL, zip_source_function_create,
     (zip_source_callback source, void *arg, zip_error_t *error), (source, arg, error))
LATE(LATE_ZIP, zip_t *, NULL, zip_open_from_source,
     (zip_source_t * source, int flags, zip_error_t *error), (source, flags, error))
LATE(LATE_ZIP, zip_int64_t, -1, zip_source_seek_compute_offset,
     (zip_uint64_t at, zip_uint64_t size, void *data, zip_uint64_t data_size,
      zip_error_t *error),
     (at, size, data, data_size, error))
LATE_VOID(LATE_ZIP, zip_source_free, (zip_source_t * source), (source))
LATE_VOID(LATE_ZIP, zip_discard, (zip_t * zip), (zip))

LATE(LATE_ZIP, zip_int64_t, -1, zip_get_num_entries, (zip_t * zip, zip_flags_t flags),
     (zip, flags))
LATE_VOID(LATE_ZIP, zip_stat_init, (zip_stat_t * stat), (stat))
LATE(LATE_ZIP, int, -1, zip_stat_index,
     (zip_t * zip, zip_uint64_t i, zip_flags_t flags, zip_stat_t *stat),
     (zip, i, flags, stat))
LATE(LATE_ZIP, zip_file_t *, NULL, zip_fopen_index,
     (zip_t * zip, zip_uint64_t i, zip_flags_t flags), (zip, i, flags))
LATE(LATE_ZIP, zip_int64_t, -1, zip_fread,
     (zip_file_t * file, void *to, zip_uint64_t size), (file, to, size))
LATE(LATE_ZIP, int, -1, zip_fclose, (zip_file_t * file), (file))

LATE_VOID(LATE_ZIP, zip_error_init, (zip_error_t * error), (error))
LATE_VOID(LATE_ZIP, zip_error_fini, (zip_error_t * error), (error))
LATE_VOID(LATE_ZIP, zip_error_set, (zip_error_t * error, int zip, int system),
          (error, zip, system))
LATE(LATE_ZIP, int, ZIP_ER_INTERNAL, zip_error_code_zip, (const zip_error_t *error),
     (error))
LATE(LATE_ZIP, const char *, LATE_ZIP " cannot be loaded", zip_error_strerror,
     (zip_error_t * error), (error))
LATE(LATE_ZIP, zip_int64_t, -1, zip_error_to_data,
     (const zip_error_t *error, void *data, zip_uint64_t size), (error, data, size))
LATE(LATE_ZIP, zip_error_t *, NULL, zip_get_error, (zip_t * zip), (zip))
LATE(LATE_ZIP, zip_error_t *, NULL, zip_file_get_error, (zip_file_t * file), (file))
