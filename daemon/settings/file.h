/* SPDX-License-Identifier: Apache-2.0 */
/* Parses a file of settings, with plain and named sections. */
#ifndef QDQD_SETTINGS_FILE_H
#define QDQD_SETTINGS_FILE_H

#include "settings/settings.h"

struct sections;

/* Sets a key of a plain section. `where` is "FILE:LINE", for errors. */
typedef bool (*settings_key_fn)(void *arg, const char *section, const char *key,
                                const char *value, const char *where,
                                char error[SETTINGS_ERROR]);

/* Parses the file and adds its named sections to `sections` (NULL: no named sections
   are allowed). Stops at the first error, which names the file with its line. */
bool settings_file_read(const char *path, settings_key_fn set, void *arg,
                        struct sections *sections, char error[SETTINGS_ERROR]);

#endif
