/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of libutf8proc that engine/files/text/unicode.c calls. */
#include "config.h"
#include "ondemand.h"

#include <stddef.h>

#include <utf8proc.h>

#define UTF8PROC_CALL(type, failure, name, parameters, arguments) \
    ON_DEMAND(SONAME_UTF8PROC, type, failure, name, parameters, arguments)

UTF8PROC_CALL(const char *, NULL, utf8proc_version, (void), ())
UTF8PROC_CALL(utf8proc_category_t, UTF8PROC_CATEGORY_CN, utf8proc_category,
              (utf8proc_int32_t c), (c))
UTF8PROC_CALL(utf8proc_int32_t, c, utf8proc_tolower, (utf8proc_int32_t c), (c))
UTF8PROC_CALL(const utf8proc_property_t *, NULL, utf8proc_get_property,
              (utf8proc_int32_t c), (c))
UTF8PROC_CALL(utf8proc_ssize_t, UTF8PROC_ERROR_NOMEM, utf8proc_decompose_char,
              (utf8proc_int32_t c, utf8proc_int32_t *to, utf8proc_ssize_t size,
               utf8proc_option_t options, int *last),
              (c, to, size, options, last))
UTF8PROC_CALL(utf8proc_ssize_t, UTF8PROC_ERROR_NOMEM, utf8proc_normalize_utf32,
              (utf8proc_int32_t * buffer, utf8proc_ssize_t length,
               utf8proc_option_t options),
              (buffer, length, options))
