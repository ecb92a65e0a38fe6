/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/log.h"
#include "api/utf8.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LINE 2048 /* below PIPE_BUF, so that a write to a pipe is not split */
#define FORMAT_VARIABLE "QDQD_LOG_AS"
/* names the file that is the journal; set by systemd */
#define JOURNAL_VARIABLE "JOURNAL_STREAM"

/* --- as JSON -------------------------------------------------------------- */

struct text {
    char *at, *end;
};

static void
put(struct text *to, const char *from, size_t len)
{
    if (len > (size_t)(to->end - to->at))
        len = (size_t)(to->end - to->at);
    memcpy(to->at, from, len);
    to->at += len;
}

/* Converts one character that log_quote() wrote to JSON. Returns the number of bytes
   that were read. */
static size_t
put_quoted(struct text *to, const char *from)
{
    char escape[8];
    if (from[0] != '\\' || !from[1]) {
        put(to, from, 1);
        return 1;
    }
    if (from[1] != 'x' || !from[2] || !from[3]) {
        put(to, from, 2);
        return 2;
    }
    /* JSON cannot hold bytes that are not UTF-8: they are shown as log_quote() wrote
       them. */
    if (from[2] < '8')
        snprintf(escape, sizeof escape, "\\u00%.2s", from + 2);
    else
        snprintf(escape, sizeof escape, "\\\\x%.2s", from + 2);
    put(to, escape, strlen(escape));
    return 4;
}

/* Returns whether a word is a number of JSON: no plus, no leading zero, digits on
   both sides of the point. */
static bool
is_number(const char *text, size_t len)
{
    size_t n = strspn(text, "0123456789");
    if (n == 0 || n > 15 || (text[0] == '0' && n > 1))
        return false;
    if (n == len)
        return true;
    return text[n] == '.' && len > n + 1 &&
           strspn(text + n + 1, "0123456789") == len - n - 1;
}

/* Converts one "key=value" or "key="quoted"" and returns the next. A value that was
   truncated ends where it was cut. */
static const char *
put_member(struct text *to, const char *from)
{
    size_t key = strcspn(from, "= "), len;
    put(to, ",\"", 2);
    put(to, from, key);
    put(to, "\":", 2);
    from += key + (from[key] == '=');
    if (*from == '"') {
        put(to, "\"", 1);
        for (from++; *from && *from != '"';)
            from += put_quoted(to, from);
        put(to, "\"", 1);
        return from + (*from == '"');
    }
    len = strcspn(from, " ");
    bool bare = is_number(from, len);
    put(to, "\"", !bare);
    put(to, from, len);
    put(to, "\"", !bare);
    return from + len;
}

size_t
log_json(char *line, size_t size, const char *time, const char *level,
         const char *event, const char *members)
{
    /* Keeps room for the characters that close the object and an open string. */
    struct text to = {line, line + size - 4};
    int n = snprintf(line, size, "{\"time\":\"%s\",\"level\":\"%s\",\"event\":\"%s\"",
                     time, level, event);
    to.at += n;
    while (*members) {
        char *before = to.at;
        members = put_member(&to, members);
        if (to.at == to.end) { /* drops the rest of a truncated escape */
            to.at = before;
            break;
        }
        members += strspn(members, " ");
    }
    memcpy(to.at, "}", 2);
    return (size_t)(to.at - line) + 1;
}

/* --- writing -------------------------------------------------------------- */

/* Returns whether standard error is systemd's journal. The variable alone does not
   say so: it stays set for programs whose standard error leads elsewhere. */
static bool
is_journal(void)
{
    const char *said = getenv(JOURNAL_VARIABLE);
    char is[64];
    struct stat status;
    if (!said || fstat(STDERR_FILENO, &status))
        return false;
    snprintf(is, sizeof is, "%ju:%ju", (uintmax_t)status.st_dev,
             (uintmax_t)status.st_ino);
    return !strcmp(said, is);
}

/* The form is stored in the environment, before there are other threads: that is all
   that the daemon shares with its workers, which log too. */
void
log_open(const char *format)
{
    setenv(FORMAT_VARIABLE, format, 1);
    if (!is_journal())
        unsetenv(JOURNAL_VARIABLE);
}

static bool
is_json(void)
{
    const char *form = getenv(FORMAT_VARIABLE);
    return form && !strcmp(form, "json");
}

/* Removes the part of a character that a truncation has left at the end. */
static void
end_at_character(char *text)
{
    size_t len = strlen(text), n = 0;
    while (n < 3 && len > n && ((unsigned char)text[len - 1 - n] & 0xc0) == 0x80)
        n++;
    if (len > n && (unsigned char)text[len - 1 - n] >= 0xc0)
        text[len - 1 - n] = '\0';
}

static void QDQ_PRINTF(3, 0)
    write_line(const char *level, const char *event, const char *fmt, va_list args)
{
    char whole[LINE], *line = whole, members[LINE / 2], time[32];
    const char *priority = strcmp(level, "error") ? "<6>" : "<3>";
    size_t size = sizeof whole - 1, prefix = getenv(JOURNAL_VARIABLE) ? 3 : 0;
    struct timespec now;
    struct tm tm;
    size_t at;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    at = strftime(time, sizeof time, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(time + at, sizeof time - at, ".%03ldZ", now.tv_nsec / 1000000);
    int n = vsnprintf(members, sizeof members, fmt, args);
    if (n < 0)
        members[0] = '\0';
    if (n >= (int)sizeof members)
        end_at_character(members);
    memcpy(line, priority, prefix);
    line += prefix;
    size -= prefix;
    if (is_json())
        at = log_json(line, size, time, level, event, members);
    else
        at = (size_t)snprintf(line, size, "%s %s event=%s %s", time, level, event,
                              members);
    line[at++] = '\n';
    /* A failure cannot be reported: standard error is gone. */
    ssize_t written = write(STDERR_FILENO, whole, prefix + at);
    (void)written;
}

void
log_info(const char *event, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    write_line("info", event, fmt, args);
    va_end(args);
}

void
log_error(const char *event, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    write_line("error", event, fmt, args);
    va_end(args);
}

/* Returns the length of the character at `s`; 0 for a control character and for
   bytes that are not UTF-8. */
static size_t
printable_length(const char *s)
{
    unsigned char c = (unsigned char)s[0];
    bool is_c1 = c == 0xc2 && (unsigned char)s[1] < 0xa0;
    return c < 0x20 || c == 0x7f || is_c1 ? 0 : api_utf8_length(s);
}

const char *
log_quote(char buf[LOG_QUOTED], const char *text)
{
    static const char hex[] = "0123456789abcdef";
    size_t at = 0;
    buf[at++] = '"';
    /* Keeps room for the longest escape or character, the dots of a truncation, the
       quote and the terminating NUL. */
    while (*text && at < LOG_QUOTED - 4 - 3 - 2) {
        unsigned char c = (unsigned char)*text;
        size_t n = printable_length(text);
        if (!n) {
            memcpy(buf + at, "\\x", 2);
            buf[at + 2] = hex[c >> 4];
            buf[at + 3] = hex[c & 15];
            at += 4;
            text++;
            continue;
        }
        if (c == '"' || c == '\\')
            buf[at++] = '\\';
        memcpy(buf + at, text, n);
        at += n;
        text += n;
    }
    if (*text) {
        memcpy(buf + at, "...", 3);
        at += 3;
    }
    buf[at++] = '"';
    buf[at] = '\0';
    return buf;
}
