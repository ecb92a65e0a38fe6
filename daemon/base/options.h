/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command lines by tables: a row says how an option is called, whether it has an argument,
 * and what the help page says of it. One thread at a time.
 */
#ifndef QDQD_BASE_OPTIONS_H
#define QDQD_BASE_OPTIONS_H

#include <stddef.h>
#include <stdio.h>

struct option_row {
    const char *name;
    char letter;          /* '\0': none */
    const char *argument; /* as the page calls it; NULL: the option has none */
    const char *text;
};

enum { OPTIONS_MOST = 32, OPTIONS_END = -1, OPTIONS_WRONG = -2 };

/*
 * Parses the next option: returns the index of its row, and its argument in `optarg`;
 * OPTIONS_END behind the last one, where `optind` is that of the first word; OPTIONS_WRONG
 * after it has printed what is wrong.
 */
int options_next(int argc, char **argv, const struct option_row *rows, size_t n);

/* Prints a line or more for each row: the option, then its text. */
void options_print(FILE *out, const struct option_row *rows, size_t n);

/* Prints a text in lines of at most `width` columns, each behind `before`. */
void print_wrapped(FILE *out, const char *before, size_t width, const char *text);

#endif
