/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's settings. A flag goes before the environment, the environment before the
 * file, and the file before the default.
 *
 * Every thread may read them. While a thread reads, numbers may change
 * (settings_apply()), each in one step; texts stay as they were when the daemon
 * started.
 */
#ifndef QDQD_SETTINGS_SETTINGS_H
#define QDQD_SETTINGS_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "qdq/limits.h"

#define SETTINGS_ERROR 512

struct sections;

/* The members, one for each row: settings.http_max_body. Texts are owned. */
struct settings {
#define SETTING_TEXT(section, key, def, reload, text) char *section##_##key;
#define SETTING_CHOICE(section, key, def, choices, reload, text) char *section##_##key;
#define SETTING_NUMBER(section, key, def, min, max, unit, reload, text) \
    _Atomic int64_t section##_##key;
#include "settings/keys.h"
#undef SETTING_TEXT
#undef SETTING_CHOICE
#undef SETTING_NUMBER
    char **origins; /* source of each value, in the table's order; owned */
};

/* A value given by a flag. Both strings are borrowed. */
struct setting_flag {
    const char *name;  /* "http.listen" */
    const char *value; /* the text that was typed */
};

/*
 * Fills *ret from the defaults, then `file` (NULL: none), then the environment, then
 * the flags. An unknown key or a bad value is an error that names its source (the file
 * with its line), its key and the reason; *ret is then unchanged. The file's named
 * sections are added to `named`; NULL: it may have none.
 */
bool settings_load(const char *file, const struct setting_flag *flags, size_t n_flags,
                   struct sections *named, struct settings *ret,
                   char error[SETTINGS_ERROR]);
void settings_fini(struct settings *settings);

/* Returns the path of a runtime's library, the value of engine.NAME; "": it is not configured, or
   there is no such setting. */
const char *settings_library(const struct settings *settings, const char *runtime);

/*
 * Applies the settings of `fresh` that can change while the daemon runs, and calls
 * `on_change`, unless it is NULL, with each setting that differs. `now` is whether the new
 * value holds from now on, or only after the next start. One thread at a time may call.
 */
typedef void (*settings_change_fn)(const char *section, const char *key, bool now);
void settings_apply(struct settings *settings, const struct settings *fresh,
                    settings_change_fn on_change);

/*
 * Calls on_unknown with the name and its length for each variable of the environment that begins
 * like those of a section, as QDQD_HTTP_LISTN does, and is none of a setting. They are no error,
 * because a container's platform may make such variables of the names of its services.
 */
typedef void settings_unknown_fn(const char *name, size_t len);
void settings_find_unknown(settings_unknown_fn *on_unknown);

/*
 * Makes the environment of a worker process: the daemon's own, with the variables of
 * settings replaced by the values of the sections that a worker needs. settings_load()
 * reads them there. The caller frees it with settings_environment_free(). Returns NULL
 * when out of memory.
 */
char **settings_environment(const struct settings *settings);
void settings_environment_free(char ***environment);

/* --- printing (settings/print.c) ------------------------------------------ */

/* Prints every setting with its default and meaning, for --help. */
void settings_help(FILE *out);
/* Prints the values and their sources, a line each. */
void settings_print(const struct settings *settings, FILE *out);
/* Prints etc/qdqd.conf: every setting as a comment with its default. */
void settings_print_conf(FILE *out);
/* Prints qdqd.conf(5) in mdoc. */
void settings_print_manual(FILE *out);

#endif
