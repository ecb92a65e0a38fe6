/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a file of settings: plain sections and named ones. */
#ifndef QDQD_SETTINGS_FILE_H
#define QDQD_SETTINGS_FILE_H

#include "settings/settings.h"

struct sections;

/* Sets a key of a plain section. `where` is "FILE:LINE", for errors. */
typedef bool (*settings_key_fn)(void *arg, const char *section, const char *key,
                                const char *value, const char *where,
                                char error[SETTINGS_ERROR]);

/*
 * Reads the file, and adds the named sections of it to `sections` (NULL: there are no kinds
 * of them). The first thing that is wrong ends it; the error names the file with its line.
 */
bool settings_file_read(const char *path, settings_key_fn set, void *arg,
                        struct sections *sections, char error[SETTINGS_ERROR]);

#endif
