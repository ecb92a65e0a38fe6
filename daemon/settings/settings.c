/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "settings/settings.h"
#include "settings/gpu_list.h"
#include "settings/rows.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>

const struct setting_row setting_rows[] = {
#define SETTING_TEXT(section, key, def, reload, text)                        \
    {#section, #key, text, TEXT, offsetof(struct settings, section##_##key), \
     reload,   def,  0,    0,    0,                                          \
     NULL},
#define SETTING_CHOICE(section, key, def, choices, reload, text)             \
    {#section, #key, text, TEXT, offsetof(struct settings, section##_##key), \
     reload,   def,  0,    0,    0,                                          \
     choices},
#define SETTING_NUMBER(section, key, def, min, max, unit, reload, text)      \
    {#section, #key, text, unit, offsetof(struct settings, section##_##key), \
     reload,   NULL, def,  min,  max,                                        \
     NULL},
#include "settings/keys.h"
#undef SETTING_TEXT
#undef SETTING_CHOICE
#undef SETTING_NUMBER
};

#define N_ROWS (sizeof setting_rows / sizeof *setting_rows)
_Static_assert(N_ROWS == N_SETTINGS, "settings/rows.h counts the same rows");

static const struct {
    char letter;
    int shift;
} suffixes[] = {{'K', 10}, {'M', 20}, {'G', 30}};

static bool
fail(char error[SETTINGS_ERROR], const char *where, const struct setting_row *row,
     const char *what)
{
    snprintf(error, SETTINGS_ERROR, "%s: %s.%s: %s", where, row->section, row->key,
             what);
    return false;
}

/* Digits, then for BYTES one suffix. No sign, no space, nothing behind. */
static bool
parse_number(const char *value, enum setting_unit unit, int64_t *ret)
{
    char *end;
    if (!isdigit((unsigned char)*value))
        return false;
    errno = 0;
    long long n = strtoll(value, &end, 10);
    if (errno)
        return false;
    for (size_t i = 0; unit == BYTES && i < sizeof suffixes / sizeof *suffixes; i++) {
        if (*end != suffixes[i].letter)
            continue;
        if (n > INT64_MAX >> suffixes[i].shift)
            return false;
        n <<= suffixes[i].shift;
        end++;
        break;
    }
    *ret = n;
    return *end == '\0';
}

static bool
is_choice(const char *choices, const char *value)
{
    size_t len = strlen(value);
    if (strchr(value, ' '))
        return false;
    for (const char *at = choices; len && (at = strstr(at, value)); at += len)
        if ((at == choices || at[-1] == ' ') && (at[len] == ' ' || !at[len]))
            return true;
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
    char what[128];
    if (!set_origin(s, row, where))
        return fail(error, where, row, "out of memory");
    if (row->choices && !is_choice(row->choices, value)) {
        snprintf(what, sizeof what, "not one of: %s", row->choices);
        return fail(error, where, row, what);
    }
    int devices[GPUS_MOST];
    size_t n_devices;
    if (row == &setting_rows[SETTING_gpu_devices] &&
        !gpus_parse(value, devices, &n_devices))
        return fail(error, where, row, "not numbers of devices with commas between");
    if (row->unit == TEXT) {
        char *copy = strdup(value);
        if (!copy)
            return fail(error, where, row, "out of memory");
        free(*setting_text(s, row));
        *setting_text(s, row) = copy;
        return true;
    }
    int64_t n;
    if (!parse_number(value, row->unit, &n))
        return fail(error, where, row,
                    row->unit == BYTES ? "not a whole number, with K, M or G behind it"
                                       : "not a whole number");
    if (n < row->min || n > row->max) {
        snprintf(what, sizeof what, "not between %lld and %lld", (long long)row->min,
                 (long long)row->max);
        return fail(error, where, row, what);
    }
    *setting_number(s, row) = n;
    return true;
}

static const struct setting_row *
find_row(const char *section, size_t section_len, const char *key)
{
    for (const struct setting_row *row = setting_rows; row < setting_rows + N_ROWS;
         row++)
        if (strlen(row->section) == section_len &&
            !memcmp(row->section, section, section_len) && !strcmp(row->key, key))
            return row;
    return NULL;
}

struct file_reader {
    struct settings *settings;
    FILE *file;
    int line;
    bool seen[N_ROWS];
    const char *name;
    char *error;
};

/* Counts lines, because inih's handler is not told where it is. */
static char *
read_line(char *buf, int size, void *arg)
{
    struct file_reader *reader = arg;
    char *line = *reader->error ? NULL : fgets(buf, size, reader->file);
    reader->line += line != NULL;
    if (!line || strlen(line) + 1 < (size_t)size || line[size - 2] == '\n')
        return line;
    snprintf(reader->error, SETTINGS_ERROR, "%.200s:%d: line longer than %d bytes",
             reader->name, reader->line, size - 2);
    return NULL;
}

static int
take_key(void *arg, const char *section, const char *key, const char *value)
{
    struct file_reader *reader = arg;
    char where[300];
    if (*reader->error)
        return 1;
    snprintf(where, sizeof where, "%.200s:%d", reader->name, reader->line);
    const struct setting_row *row = find_row(section, strlen(section), key);
    if (!row) {
        snprintf(reader->error, SETTINGS_ERROR, "%s: %.60s.%.60s: unknown key", where,
                 section, key);
        return 0;
    }
    /* Also how inih hands over a continued line. */
    if (reader->seen[row - setting_rows])
        return fail(reader->error, where, row, "given twice");
    reader->seen[row - setting_rows] = true;
    return set_value(reader->settings, row, value, where, reader->error);
}

static bool
load_file(struct settings *s, const char *name, char error[SETTINGS_ERROR])
{
    struct file_reader reader = {.settings = s, .name = name, .error = error};
    reader.file = fopen(name, "re");
    if (!reader.file) {
        snprintf(error, SETTINGS_ERROR, "%.200s: %s", name, strerror(errno));
        return false;
    }
    int line = ini_parse_stream(read_line, &reader, take_key, &reader);
    bool broken = ferror(reader.file);
    fclose(reader.file);
    /* The parser goes on behind a line that it cannot read; that one is the cause. */
    if (line && (!*error || line < reader.line))
        snprintf(error, SETTINGS_ERROR,
                 "%.200s:%d: not a section, key = value or comment", name, line);
    if (!*error && broken)
        snprintf(error, SETTINGS_ERROR, "%.200s: cannot be read", name);
    return !*error;
}

static bool
load_environment(struct settings *s, char error[SETTINGS_ERROR])
{
    for (const struct setting_row *row = setting_rows; row < setting_rows + N_ROWS;
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
    for (const struct setting_row *row = setting_rows; row < setting_rows + N_ROWS;
         row++) {
        if (row->unit != TEXT) {
            *setting_number(s, row) = row->number_default;
            if (!set_origin(s, row, "default"))
                return fail(error, "default", row, "out of memory");
        } else if (!set_value(s, row, row->text_default, "default", error)) {
            return false;
        }
    }
    return true;
}

bool
settings_load(const char *file, const struct setting_flag *flags, size_t n_flags,
              struct settings *ret, char error[SETTINGS_ERROR])
{
    struct settings s = {0};
    error[0] = '\0';
    s.origins = calloc(N_ROWS, sizeof *s.origins);
    if (!s.origins) {
        snprintf(error, SETTINGS_ERROR, "out of memory");
        return false;
    }
    bool ok = load_defaults(&s, error) && (!file || load_file(&s, file, error)) &&
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
    for (const struct setting_row *row = setting_rows; row < setting_rows + N_ROWS;
         row++) {
        if (settings->origins)
            free(settings->origins[row - setting_rows]);
        if (row->unit != TEXT)
            continue;
        free(*setting_text(settings, row));
        *setting_text(settings, row) = NULL;
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
               settings_tell_fn tell)
{
    /* Readable alone: no member of it is written. */
    struct settings values = *fresh;
    for (const struct setting_row *row = setting_rows; row < setting_rows + N_ROWS;
         row++) {
        if (!differs(settings, &values, row))
            continue;
        if (row->reload == NOW)
            *setting_number(settings, row) = *setting_number(&values, row);
        if (tell)
            tell(row->section, row->key, row->reload == NOW);
    }
}
