/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log: one line of key=value, or of JSON, to standard error for each event, written by one
 * write(), so lines of different threads never mix. Any thread may log.
 *
 * An error is logged once, where it stops travelling. What a user sent is logged only
 * through log_quote().
 */
#ifndef QDQD_BASE_LOG_H
#define QDQD_BASE_LOG_H

#include "qdq/error.h"

#define LOG_QUOTED 256

/* The level and event are words of our own; `fmt` makes the rest, "key=value key=…". */
void log_info(const char *event, const char *fmt, ...) QDQ_PRINTF(2, 3);
void log_error(const char *event, const char *fmt, ...) QDQ_PRINTF(2, 3);

/*
 * How lines are written: "text" or "json". Before there are threads; workers inherit it by
 * the environment. Where standard error is systemd's journal each line says its level in
 * the way that the journal reads.
 */
void log_open(const char *format);

/* A line of JSON of a line of text, for write_line() and the tests; its length. */
size_t log_json(char *line, size_t size, const char *time, const char *level,
                const char *event, const char *members);

/*
 * Writes `text` between quotes, with control characters, quotes, backslashes and what is
 * no UTF-8 escaped, and cut to the buffer between two characters. Returns `buf`.
 */
const char *log_quote(char buf[LOG_QUOTED], const char *text);

#endif
