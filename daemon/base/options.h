/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command lines described by tables. A row has the name of an option, its argument if
 * it has one, and its text on the help page. One thread at a time uses these functions.
 */
#ifndef QDQD_BASE_OPTIONS_H
#define QDQD_BASE_OPTIONS_H

#include <stddef.h>
#include <stdio.h>

struct option_row {
    const char *name;
    char letter; /* '\0': the option has no letter */
    /* its name on the help page; NULL: the option has no argument */
    const char *argument;
    const char *text;
};

enum { OPTIONS_MOST = 32, OPTIONS_END = -1, OPTIONS_WRONG = -2 };

/*
 * Parses the next option. Returns the index of its row, with the argument in `optarg`.
 * Returns OPTIONS_END behind the last option; `optind` is then the index of the first
 * word. Returns OPTIONS_WRONG after it has printed what is wrong.
 */
int options_next(int argc, char **argv, const struct option_row *rows, size_t n);

/* Prints a line or more for each row: the option, then its text. */
void options_print(FILE *out, const struct option_row *rows, size_t n);

/* Prints a text in lines of at most `width` columns, each behind `before`. */
void print_wrapped(FILE *out, const char *before, size_t width, const char *text);

#endif
