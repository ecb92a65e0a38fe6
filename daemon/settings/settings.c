/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "libraries.h"
#include "settings/settings.h"
#include "settings/address.h"
#include "settings/file.h"
#include "settings/gpu_list.h"
#include "settings/rows.h"

#include <stdlib.h>
#include <string.h>

static bool
fail(char error[SETTINGS_ERROR], const char *where, const struct setting_row *row,
     const char *what)
{
    snprintf(error, SETTINGS_ERROR, "%s: %s.%s: %s", where, row->section, row->key,
             what);
    return false;
}

static bool
set_origin(struct settings *s, const struct setting_row *row, const char *where)
{
    char **origin = &s->origins[row - setting_rows];
    free(*origin);
    *origin = strdup(where);
    return *origin;
}

static bool
set_value(struct settings *s, const struct setting_row *row, const char *value,
          const char *where, char error[SETTINGS_ERROR])
{
    char what[SETTING_WHAT];
    int devices[GPUS_MOST];
    size_t n_devices;
    if (!set_origin(s, row, where))
        return fail(error, where, row, "out of memory");
    if (row == &setting_rows[SETTING_gpu_devices] &&
        !gpus_parse(value, devices, &n_devices))
        return fail(error, where, row, "not numbers of devices with commas between");
    if (row == &setting_rows[SETTING_http_listen] && !address_is_valid(value))
        return fail(error, where, row, "not HOST:PORT, [HOST]:PORT or unix:PATH");
    return setting_set(s, row, value, what) || fail(error, where, row, what);
}

static const struct setting_row *
find_row(const char *section, size_t section_len, const char *key)
{
    for (const struct setting_row *row = setting_rows; row < setting_rows + N_SETTINGS;
         row++)
        if (strlen(row->section) == section_len &&
            !memcmp(row->section, section, section_len) && !strcmp(row->key, key))
            return row;
    return NULL;
}

/* The keys of a file that were parsed so far. */
struct file_keys {
    struct settings *settings;
    bool seen[N_SETTINGS];
};

static bool
set_from_file(void *arg, const char *section, const char *key, const char *value,
              const char *where, char error[SETTINGS_ERROR])
{
    struct file_keys *keys = arg;
    const struct setting_row *row = find_row(section, strlen(section), key);
    if (!row) {
        snprintf(error, SETTINGS_ERROR, "%s: %.60s.%.60s: unknown key", where, section,
                 key);
        return false;
    }
    /* inih hands over a continued line in the same way. */
    if (keys->seen[row - setting_rows])
        return fail(error, where, row, "given twice");
    keys->seen[row - setting_rows] = true;
    return set_value(keys->settings, row, value, where, error);
}

static bool
load_file(struct settings *s, const char *name, struct sections *named,
          char error[SETTINGS_ERROR])
{
    struct file_keys keys = {.settings = s};
    return settings_file_read(name, set_from_file, &keys, named, error);
}

static bool
load_environment(struct settings *s, char error[SETTINGS_ERROR])
{
    for (const struct setting_row *row = setting_rows; row < setting_rows + N_SETTINGS;
         row++) {
        char name[SETTING_VARIABLE];
        setting_variable(row, name);
        const char *value = getenv(name);
        if (value && !set_value(s, row, value, name, error))
            return false;
    }
    return true;
}

static bool
load_flag(struct settings *s, const struct setting_flag *flag,
          char error[SETTINGS_ERROR])
{
    const char *dot = strchr(flag->name, '.');
    const struct setting_row *row =
        dot ? find_row(flag->name, (size_t)(dot - flag->name), dot + 1) : NULL;
    if (!row) {
        snprintf(error, SETTINGS_ERROR, "%s: unknown key", flag->name);
        return false;
    }
    return set_value(s, row, flag->value, "command line", error);
}

static bool
load_defaults(struct settings *s, char error[SETTINGS_ERROR])
{
    for (const struct setting_row *row = setting_rows; row < setting_rows + N_SETTINGS;
         row++) {
        char what[SETTING_WHAT];
        if (!set_origin(s, row, "default") || !setting_set_default(s, row, what))
            return fail(error, "default", row, "out of memory");
    }
    return true;
}

bool
settings_load(const char *file, const struct setting_flag *flags, size_t n_flags,
              struct sections *named, struct settings *ret, char error[SETTINGS_ERROR])
{
    struct settings s = {0};
    error[0] = '\0';
    s.origins = calloc(N_SETTINGS, sizeof *s.origins);
    if (!s.origins) {
        snprintf(error, SETTINGS_ERROR, "out of memory");
        return false;
    }
    bool ok = load_defaults(&s, error) &&
              (!file || load_file(&s, file, named, error)) &&
              load_environment(&s, error);
    for (size_t i = 0; ok && i < n_flags; i++)
        ok = load_flag(&s, &flags[i], error);
    if (!ok) {
        settings_fini(&s);
        return false;
    }
    *ret = s;
    return true;
}

void
settings_fini(struct settings *settings)
{
    for (const struct setting_row *row = setting_rows; row < setting_rows + N_SETTINGS;
         row++) {
        if (settings->origins)
            free(settings->origins[row - setting_rows]);
        setting_free(settings, row);
    }
    free(settings->origins);
    settings->origins = NULL;
}

static bool
differs(struct settings *a, struct settings *b, const struct setting_row *row)
{
    return row->unit == TEXT ? strcmp(*setting_text(a, row), *setting_text(b, row)) != 0
                             : *setting_number(a, row) != *setting_number(b, row);
}

void
settings_apply(struct settings *settings, const struct settings *fresh,
               settings_change_fn on_change)
{
    /* Every thread can read it, because no member of it is ever written. */
    struct settings values = *fresh;
    for (const struct setting_row *row = setting_rows; row < setting_rows + N_SETTINGS;
         row++) {
        if (!differs(settings, &values, row))
            continue;
        if (row->reload == NOW)
            *setting_number(settings, row) = *setting_number(&values, row);
        if (on_change)
            on_change(row->section, row->key, row->reload == NOW);
    }
}

const char *
settings_library(const struct settings *settings, const char *runtime)
{
    for (size_t i = 0; i < N_SETTINGS; i++) {
        const struct setting_row *row = &setting_rows[i];
        if (row->unit == TEXT && strcmp(row->section, "engine") == 0 &&
            strcmp(row->key, runtime) == 0)
            return *(char *const *)((const char *)settings + row->offset);
    }
    return "";
}
