/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's settings: flag before environment before file before default.
 *
 * Every thread may read them. Numbers may change while it does (settings_apply), each at
 * once; texts are what they were at the start.
 */
#ifndef QDQD_SETTINGS_SETTINGS_H
#define QDQD_SETTINGS_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "qdq/limits.h"

#define SETTINGS_ERROR 512

/* One member a row: settings.http_max_body. Texts are owned. */
struct settings {
#define SETTING_TEXT(section, key, def, reload, text) char *section##_##key;
#define SETTING_CHOICE(section, key, def, choices, reload, text) char *section##_##key;
#define SETTING_NUMBER(section, key, def, min, max, unit, reload, text) \
    _Atomic int64_t section##_##key;
#include "settings/keys.h"
#undef SETTING_TEXT
#undef SETTING_CHOICE
#undef SETTING_NUMBER
    char **origins; /* where each comes from, in the table's order; owned */
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

/*
 * Takes over from `fresh` what may change while the daemon runs, and calls `tell`, unless
 * it is NULL, with each setting that differs; `now`: does it hold from now on, or from the
 * next start? One thread at a time.
 */
typedef void (*settings_tell_fn)(const char *section, const char *key, bool now);
void settings_apply(struct settings *settings, const struct settings *fresh,
                    settings_tell_fn tell);

/*
 * The environment of a worker process: ours, in which variables of settings are replaced
 * by the values of the sections that concern it. settings_load() reads them there. The
 * caller frees it with settings_environment_free(); NULL when out of memory.
 */
char **settings_environment(const struct settings *settings);
void settings_environment_free(char ***environment);

/* --- printing (settings/print.c) ------------------------------------------ */

/* Every setting with its default and meaning, for --help. */
void settings_help(FILE *out);
/* What holds and where each comes from, a line each. */
void settings_print(const struct settings *settings, FILE *out);
/* etc/qdqd.conf: every setting as a comment with its default. */
void settings_print_conf(FILE *out);
/* qdqd.conf(5), in mdoc. */
void settings_print_manual(FILE *out);

#endif
