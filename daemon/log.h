/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log: one line of key=value, or of JSON, to standard error for each event, written by one
 * write(), so lines of different threads never mix. Any thread may log.
 *
 * An error is logged once, where it stops travelling. What a user sent is logged only
 * through log_quote().
 */
#ifndef QDQD_LOG_H
#define QDQD_LOG_H

#include "qdq/error.h"

#define LOG_QUOTED 256

/* The level and event are words of our own; `fmt` makes the rest, "key=value key=…". */
void log_info(const char *event, const char *fmt, ...) QDQ_PRINTF(2, 3);
void log_error(const char *event, const char *fmt, ...) QDQ_PRINTF(2, 3);

/* How lines are written: "text" or "json". Set by main() before there are threads, and
   inherited by workers. */
#define LOG_FORMAT_VARIABLE "QDQD_LOG_AS"

/* A line of JSON of a line of text, for write_line() and the tests; its length. */
size_t log_json(char *line, size_t size, const char *time, const char *level,
                const char *event, const char *members);

/*
 * Writes `text` between quotes, with control characters, quotes, backslashes and what is
 * no UTF-8 escaped, and cut to the buffer between two characters. Returns `buf`.
 */
const char *log_quote(char buf[LOG_QUOTED], const char *text);

#endif
