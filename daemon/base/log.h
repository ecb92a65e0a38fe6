/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log. Each event is one line of key=value, or of JSON, on standard error. A line
 * is written by one write(), so lines of different threads never mix. Any thread may
 * log.
 *
 * An error is logged once, by the function that does not pass it on. Text that a user
 * sent is logged only through log_quote().
 */
#ifndef QDQD_BASE_LOG_H
#define QDQD_BASE_LOG_H

#include "qdq/error.h"

#define LOG_QUOTED 256

/* Logs an event. Its name is a word of the program; `fmt` prints the members,
   "key=value key=…". */
void log_info(const char *event, const char *fmt, ...) QDQ_PRINTF(2, 3);
void log_error(const char *event, const char *fmt, ...) QDQ_PRINTF(2, 3);

/*
 * Sets the form of the lines: "text" or "json". Called before there are other threads;
 * workers inherit the form through the environment. Where standard error is systemd's
 * journal, each line begins with its level in the form that the journal parses.
 */
void log_open(const char *format);

/* Writes a line of JSON for the members of a line of text, and returns its length.
   For log.c and the tests. */
size_t log_json(char *line, size_t size, const char *time, const char *level,
                const char *event, const char *members);

/*
 * Writes `text` between quotes to `buf` and returns `buf`. Escapes control characters,
 * quotes, backslashes and bytes that are not UTF-8. Truncates between two characters
 * where the buffer is too short.
 */
const char *log_quote(char buf[LOG_QUOTED], const char *text);

#endif
