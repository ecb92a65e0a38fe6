/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "settings/file.h"
#include "settings/sections.h"

#include <errno.h>
#include <ini.h>
#include <string.h>

#define BYTE_ORDER_MARK "\xEF\xBB\xBF"

struct reader {
    const char *path;
    FILE *file;
    int line;
    char where[300]; /* "FILE:LINE" */
    settings_key_fn set;
    void *arg;
    struct sections *sections;
    struct section
        *section; /* the named section that the line stands in; NULL: a plain section */
    bool has_key; /* a key of the section was parsed already */
    char *error;
};

/*
 * Returns the text between the brackets where a line begins a section. An indented line
 * behind a key continues that key, whatever it contains. inih hands over the names of
 * sections too, but truncates them.
 */
static bool
begins_section(const struct reader *reader, const char *line, char *ret, size_t size)
{
    if (reader->line == 1 && !strncmp(line, BYTE_ORDER_MARK, 3))
        line += 3;
    const char *start = line + strspn(line, " \t\r\n\v\f");
    const char *end = *start == '[' ? strchr(start, ']') : NULL;
    if (!end || (reader->has_key && start > line))
        return false;
    snprintf(ret, size, "%.*s", (int)(end - start - 1), start + 1);
    return true;
}

/* Passes lines to inih, whose handler gets no line numbers. Stops after an error. */
static char *
read_line(char *buf, int size, void *arg)
{
    struct reader *reader = arg;
    char title[1024];
    char *line = *reader->error ? NULL : fgets(buf, size, reader->file);
    if (!line)
        return NULL;
    reader->line++;
    snprintf(reader->where, sizeof reader->where, "%.200s:%d", reader->path,
             reader->line);
    if (strlen(line) + 1 == (size_t)size && line[size - 2] != '\n') {
        snprintf(reader->error, SETTINGS_ERROR, "%s: line longer than %d bytes",
                 reader->where, size - 2);
        return NULL;
    }
    if (!begins_section(reader, line, title, sizeof title))
        return line;
    reader->has_key = false;
    reader->section = NULL;
    return !reader->sections || sections_begin(reader->sections, title, reader->where,
                                               &reader->section, reader->error)
               ? line
               : NULL;
}

static int
set_key(void *arg, const char *section, const char *key, const char *value)
{
    struct reader *reader = arg;
    reader->has_key = true;
    if (*reader->error)
        return 1;
    return reader->section
               ? section_set(reader->section, key, value, reader->where, reader->error)
               : reader->set(reader->arg, section, key, value, reader->where,
                             reader->error);
}

bool
settings_file_read(const char *path, settings_key_fn set, void *arg,
                   struct sections *sections, char error[SETTINGS_ERROR])
{
    struct reader reader = {
        .path = path, .set = set, .arg = arg, .sections = sections, .error = error};
    reader.file = fopen(path, "re");
    if (!reader.file) {
        snprintf(error, SETTINGS_ERROR, "%.200s: %s", path, strerror(errno));
        return false;
    }
    int line = ini_parse_stream(read_line, &reader, set_key, &reader);
    bool broken = ferror(reader.file);
    fclose(reader.file);
    /* The parser continues after a line that it cannot parse; the first such line is
       the error. */
    if (line && (!*error || line < reader.line))
        snprintf(error, SETTINGS_ERROR,
                 "%.200s:%d: not a section, key = value or comment", path, line);
    if (!*error && broken)
        snprintf(error, SETTINGS_ERROR, "%.200s: cannot be read", path);
    return !*error;
}
