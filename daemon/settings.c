/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "settings.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>

enum unit { COUNT, SECONDS, BYTES, TEXT };

struct row {
    const char *section, *key, *text;
    enum unit unit;
    size_t offset; /* of the member in struct settings */
    const char *text_default;
    int64_t number_default, min, max;
    const char *choices; /* words, one of which a text is; NULL: any text */
};

static const struct row rows[] = {
#define SETTING_TEXT(section, key, def, text)                                \
    {#section, #key, text, TEXT, offsetof(struct settings, section##_##key), \
     def,      0,    0,    0,    NULL},
#define SETTING_CHOICE(section, key, def, choices, text)                     \
    {#section, #key, text, TEXT, offsetof(struct settings, section##_##key), \
     def,      0,    0,    0,    choices},
#define SETTING_NUMBER(section, key, def, min, max, unit, text)              \
    {#section, #key, text, unit, offsetof(struct settings, section##_##key), \
     NULL,     def,  min,  max,  NULL},
#include "settings_keys.h"
#undef SETTING_TEXT
#undef SETTING_CHOICE
#undef SETTING_NUMBER
};

#define N_ROWS (sizeof rows / sizeof *rows)

static const struct {
    char letter;
    int shift;
} suffixes[] = {{'K', 10}, {'M', 20}, {'G', 30}};

static char **
text_of(struct settings *s, const struct row *row)
{
    return (char **)((char *)s + row->offset);
}

static int64_t *
number_of(struct settings *s, const struct row *row)
{
    return (int64_t *)((char *)s + row->offset);
}

static bool
fail(char error[SETTINGS_ERROR], const char *where, const struct row *row,
     const char *what)
{
    snprintf(error, SETTINGS_ERROR, "%s: %s.%s: %s", where, row->section, row->key,
             what);
    return false;
}

/* Digits, then for BYTES one suffix. No sign, no space, nothing behind. */
static bool
parse_number(const char *value, enum unit unit, int64_t *ret)
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
set_value(struct settings *s, const struct row *row, const char *value,
          const char *where, char error[SETTINGS_ERROR])
{
    char what[128];
    if (row->choices && !is_choice(row->choices, value)) {
        snprintf(what, sizeof what, "not one of: %s", row->choices);
        return fail(error, where, row, what);
    }
    if (row->unit == TEXT) {
        char *copy = strdup(value);
        if (!copy)
            return fail(error, where, row, "out of memory");
        free(*text_of(s, row));
        *text_of(s, row) = copy;
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
    *number_of(s, row) = n;
    return true;
}

static const struct row *
find_row(const char *section, size_t section_len, const char *key)
{
    for (const struct row *row = rows; row < rows + N_ROWS; row++)
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
    const struct row *row = find_row(section, strlen(section), key);
    if (!row) {
        snprintf(reader->error, SETTINGS_ERROR, "%s: %.60s.%.60s: unknown key", where,
                 section, key);
        return 0;
    }
    /* Also how inih hands over a continued line. */
    if (reader->seen[row - rows])
        return fail(reader->error, where, row, "given twice");
    reader->seen[row - rows] = true;
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
    for (const struct row *row = rows; row < rows + N_ROWS; row++) {
        char name[64];
        snprintf(name, sizeof name, "QDQD_%s_%s", row->section, row->key);
        for (char *c = name; *c; c++)
            *c = (char)toupper((unsigned char)*c);
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
    const struct row *row =
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
    for (const struct row *row = rows; row < rows + N_ROWS; row++) {
        if (row->unit != TEXT)
            *number_of(s, row) = row->number_default;
        else if (!set_value(s, row, row->text_default, "default", error))
            return false;
    }
    return true;
}

bool
settings_load(const char *file, const struct setting_flag *flags, size_t n_flags,
              struct settings *ret, char error[SETTINGS_ERROR])
{
    struct settings s = {0};
    error[0] = '\0';
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
    for (const struct row *row = rows; row < rows + N_ROWS; row++) {
        if (row->unit != TEXT)
            continue;
        free(*text_of(settings, row));
        *text_of(settings, row) = NULL;
    }
}

void
settings_help(FILE *out)
{
    for (const struct row *row = rows; row < rows + N_ROWS; row++) {
        fprintf(out, "  %s.%s (", row->section, row->key);
        if (row->unit == TEXT)
            fprintf(out, "%s", *row->text_default ? row->text_default : "empty");
        else
            fprintf(out, "%lld%s", (long long)row->number_default,
                    row->unit == SECONDS ? " s"
                    : row->unit == BYTES ? " bytes"
                                         : "");
        fprintf(out, ")\n      %s\n", row->text);
    }
}
