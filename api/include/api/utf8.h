/* SPDX-License-Identifier: Apache-2.0 */
#ifndef API_UTF8_H
#define API_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the length of the UTF-8 sequence at `s` (RFC 3629: no overlong forms, no
   surrogates, nothing over U+10FFFF), or 0 when there is none. `s` ends with a NUL. */
size_t api_utf8_length(const char *s);
/* Returns whether all of the text is UTF-8. */
bool api_utf8_is_valid(const char *text);
/* Returns a copy in which U+FFFD stands for each byte that is not UTF-8. The caller frees it; NULL
   when out of memory. */
char *api_utf8_repair(const char *text);

#endif
