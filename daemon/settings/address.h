/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of the address in the setting http.listen. */
#ifndef QDQD_SETTINGS_ADDRESS_H
#define QDQD_SETTINGS_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the path of "unix:PATH", or NULL when the address has another form. */
const char *address_unix_path(const char *text);

/* Splits "HOST:PORT" or "[HOST]:PORT" at the last colon. Returns false when the text has
   neither form, the port is no number of 16 bits or the host does not fit. *ret_port points
   into the text. */
bool address_split(const char *text, char *host, size_t size, const char **ret_port);

/* Returns whether the text has one of the three forms. */
bool address_is_valid(const char *text);

#endif
