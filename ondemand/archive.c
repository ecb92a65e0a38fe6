/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of libarchive that engine/files/data/tar.c calls. */
#include "config.h"
#include "ondemand.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

ON_DEMAND(SONAME_ARCHIVE, struct archive *, NULL, archive_read_new, (void), ())
ON_DEMAND(SONAME_ARCHIVE, int, ARCHIVE_FATAL, archive_read_free, (struct archive * a),
          (a))
ON_DEMAND(SONAME_ARCHIVE, int, ARCHIVE_FATAL, archive_read_support_format_tar,
          (struct archive * a), (a))
ON_DEMAND(SONAME_ARCHIVE, int, ARCHIVE_FATAL, archive_read_set_read_callback,
          (struct archive * a, archive_read_callback *read), (a, read))
ON_DEMAND(SONAME_ARCHIVE, int, ARCHIVE_FATAL, archive_read_set_skip_callback,
          (struct archive * a, archive_skip_callback *skip), (a, skip))
ON_DEMAND(SONAME_ARCHIVE, int, ARCHIVE_FATAL, archive_read_set_callback_data,
          (struct archive * a, void *arg), (a, arg))
ON_DEMAND(SONAME_ARCHIVE, int, ARCHIVE_FATAL, archive_read_open1, (struct archive * a),
          (a))
ON_DEMAND(SONAME_ARCHIVE, int, ARCHIVE_FATAL, archive_read_next_header,
          (struct archive * a, struct archive_entry **entry), (a, entry))
ON_DEMAND(SONAME_ARCHIVE, int, ARCHIVE_FATAL, archive_read_data_block,
          (struct archive * a, const void **data, size_t *size, la_int64_t *at),
          (a, data, size, at))
ON_DEMAND(SONAME_ARCHIVE, la_int64_t, -1, archive_read_header_position,
          (struct archive * a), (a))
ON_DEMAND(SONAME_ARCHIVE, la_int64_t, -1, archive_filter_bytes,
          (struct archive * a, int n), (a, n))

ON_DEMAND(SONAME_ARCHIVE, int, EINVAL, archive_errno, (struct archive * a), (a))
ON_DEMAND(SONAME_ARCHIVE, const char *, NULL, archive_error_string,
          (struct archive * a), (a))

void
archive_set_error(struct archive *a, int number, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    ON_DEMAND_CALL(SONAME_ARCHIVE, archive_set_error);
    if (call)
        call(a, number, "%s", text);
}

ON_DEMAND(SONAME_ARCHIVE, const char *, NULL, archive_entry_pathname,
          (struct archive_entry * entry), (entry))
ON_DEMAND(SONAME_ARCHIVE, const char *, NULL, archive_entry_pathname_utf8,
          (struct archive_entry * entry), (entry))
ON_DEMAND(SONAME_ARCHIVE, const char *, NULL, archive_entry_hardlink,
          (struct archive_entry * entry), (entry))
ON_DEMAND(SONAME_ARCHIVE, la_int64_t, -1, archive_entry_size,
          (struct archive_entry * entry), (entry))
ON_DEMAND(SONAME_ARCHIVE, int, 0, archive_entry_sparse_count,
          (struct archive_entry * entry), (entry))
ON_DEMAND(SONAME_ARCHIVE, __LA_MODE_T, 0, archive_entry_filetype,
          (struct archive_entry * entry), (entry))
