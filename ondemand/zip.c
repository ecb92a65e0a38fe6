/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of libzip that engine/files/data/npz.c calls. */
#include "config.h"
#include "ondemand.h"

#include <zip.h>

ON_DEMAND(SONAME_ZIP, zip_source_t *, NULL, zip_source_function_create,
          (zip_source_callback source, void *arg, zip_error_t *error),
          (source, arg, error))
ON_DEMAND(SONAME_ZIP, zip_t *, NULL, zip_open_from_source,
          (zip_source_t * source, int flags, zip_error_t *error),
          (source, flags, error))
ON_DEMAND(SONAME_ZIP, zip_int64_t, -1, zip_source_seek_compute_offset,
          (zip_uint64_t at, zip_uint64_t size, void *data, zip_uint64_t data_size,
           zip_error_t *error),
          (at, size, data, data_size, error))
ON_DEMAND_VOID(SONAME_ZIP, zip_source_free, (zip_source_t * source), (source))
ON_DEMAND_VOID(SONAME_ZIP, zip_discard, (zip_t * zip), (zip))

ON_DEMAND(SONAME_ZIP, zip_int64_t, -1, zip_get_num_entries,
          (zip_t * zip, zip_flags_t flags), (zip, flags))
ON_DEMAND_VOID(SONAME_ZIP, zip_stat_init, (zip_stat_t * stat), (stat))
ON_DEMAND(SONAME_ZIP, int, -1, zip_stat_index,
          (zip_t * zip, zip_uint64_t i, zip_flags_t flags, zip_stat_t *stat),
          (zip, i, flags, stat))
ON_DEMAND(SONAME_ZIP, zip_file_t *, NULL, zip_fopen_index,
          (zip_t * zip, zip_uint64_t i, zip_flags_t flags), (zip, i, flags))
ON_DEMAND(SONAME_ZIP, zip_int64_t, -1, zip_fread,
          (zip_file_t * file, void *to, zip_uint64_t size), (file, to, size))
ON_DEMAND(SONAME_ZIP, int, -1, zip_fclose, (zip_file_t * file), (file))

ON_DEMAND_VOID(SONAME_ZIP, zip_error_init, (zip_error_t * error), (error))
ON_DEMAND_VOID(SONAME_ZIP, zip_error_fini, (zip_error_t * error), (error))
ON_DEMAND_VOID(SONAME_ZIP, zip_error_set, (zip_error_t * error, int zip, int system),
               (error, zip, system))
ON_DEMAND(SONAME_ZIP, int, ZIP_ER_INTERNAL, zip_error_code_zip,
          (const zip_error_t *error), (error))
ON_DEMAND(SONAME_ZIP, const char *, SONAME_ZIP " cannot be loaded", zip_error_strerror,
          (zip_error_t * error), (error))
ON_DEMAND(SONAME_ZIP, zip_int64_t, -1, zip_error_to_data,
          (const zip_error_t *error, void *data, zip_uint64_t size),
          (error, data, size))
ON_DEMAND(SONAME_ZIP, zip_error_t *, NULL, zip_get_error, (zip_t * zip), (zip))
ON_DEMAND(SONAME_ZIP, zip_error_t *, NULL, zip_file_get_error, (zip_file_t * file),
          (file))
