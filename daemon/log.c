/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "log.h"
#include "api/utf8.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE 2048 /* below PIPE_BUF, so that a pipe takes it in one piece too */

static void QDQ_PRINTF(3, 0)
    write_line(const char *level, const char *event, const char *fmt, va_list args)
{
    char line[LINE];
    struct timespec now;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    size_t at = strftime(line, sizeof line, "%Y-%m-%dT%H:%M:%S", &tm);
    at += (size_t)snprintf(line + at, sizeof line - at, ".%03ldZ %s event=%s ",
                           now.tv_nsec / 1000000, level, event);
    int n = vsnprintf(line + at, sizeof line - at - 1, fmt, args);
    if (n > 0)
        at += (size_t)n < sizeof line - at - 1 ? (size_t)n : sizeof line - at - 2;
    line[at++] = '\n';
    /* Nobody can be told when standard error is gone. */
    ssize_t written = write(STDERR_FILENO, line, at);
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

/* Length of the character at `s`; 0 for what a terminal would obey, or cannot read. */
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
    /* Room for the longest escape or character, the dots of a cut, the quote and the
       end. */
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
