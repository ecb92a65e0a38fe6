/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's settings: flag before environment before file before default.
 * Read once at start, constant afterwards, so every thread may read them.
 */
#ifndef QDQD_SETTINGS_H
#define QDQD_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define SETTINGS_ERROR 512

/* One member a row: settings.http_max_body. Texts are owned. */
struct settings {
#define SETTING_TEXT(section, key, def, text) char *section##_##key;
#define SETTING_CHOICE(section, key, def, choices, text) char *section##_##key;
#define SETTING_NUMBER(section, key, def, min, max, unit, text) int64_t section##_##key;
#include "settings_keys.h"
#undef SETTING_TEXT
#undef SETTING_CHOICE
#undef SETTING_NUMBER
};

/* A value given by a flag. Both are borrowed. */
struct setting_flag {
    const char *name;  /* "http.listen" */
    const char *value; /* as it was typed */
};

/*
 * Fills *ret from defaults, then `file` (NULL: none), then the environment, then flags.
 * Every unknown key and every bad value is an error that names its source (the file
 * with its line), its key and what is wrong; then *ret is left alone.
 */
bool settings_load(const char *file, const struct setting_flag *flags, size_t n_flags,
                   struct settings *ret, char error[SETTINGS_ERROR]);
void settings_fini(struct settings *settings);

/* Prints every setting with its default and meaning, for --help. */
void settings_help(FILE *out);

#endif
