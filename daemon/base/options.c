/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/options.h"

#include <getopt.h>
#include <string.h>

enum { FIRST_VALUE = 256, TEXT_COLUMN = 24, WIDTH = 80 };

/* The value that getopt_long() returns for a row. */
static int
value_of(const struct option_row *rows, size_t i)
{
    return rows[i].letter ? rows[i].letter : FIRST_VALUE + (int)i;
}

int
options_next(int argc, char **argv, const struct option_row *rows, size_t n)
{
    struct option longs[OPTIONS_MOST + 1] = {{0}};
    char letters[2 * OPTIONS_MOST + 1] = "";
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        int argument = rows[i].argument ? required_argument : no_argument;
        longs[i] = (struct option){rows[i].name, argument, NULL, value_of(rows, i)};
        if (rows[i].letter)
            letters[len++] = rows[i].letter;
        if (rows[i].letter && rows[i].argument)
            letters[len++] = ':';
    }
    int value = getopt_long(argc, argv, letters, longs, NULL);
    if (value == -1)
        return OPTIONS_END;
    for (size_t i = 0; i < n; i++)
        if (value_of(rows, i) == value)
            return (int)i;
    return OPTIONS_WRONG;
}

/* Returns the length of the first line of the text, which is broken at a space. */
static size_t
line_length(const char *text, size_t room)
{
    size_t len = strlen(text);
    if (len <= room)
        return len;
    for (len = room; len && text[len] != ' ';)
        len--;
    return len ? len : strcspn(text, " ");
}

void
print_wrapped(FILE *out, const char *before, size_t width, const char *text)
{
    while (*text) {
        size_t len = line_length(text, width - strlen(before));
        fprintf(out, "%s%.*s\n", before, (int)len, text);
        text += len;
        text += strspn(text, " ");
    }
}

static void
print_row(FILE *out, const struct option_row *row)
{
    const char *text = row->text;
    char indent[TEXT_COLUMN + 1];
    snprintf(indent, sizeof indent, "%*s", TEXT_COLUMN, "");
    int column =
        row->letter ? fprintf(out, "  -%c, ", row->letter) : fprintf(out, "  ");
    column += fprintf(out, "--%s%s%s", row->name, row->argument ? " " : "",
                      row->argument ? row->argument : "");
    if (column < TEXT_COLUMN) {
        size_t len = line_length(text, WIDTH - TEXT_COLUMN);
        fprintf(out, "%*s%.*s", TEXT_COLUMN - column, "", (int)len, text);
        text += len;
        text += strspn(text, " ");
    }
    fputc('\n', out);
    print_wrapped(out, indent, WIDTH, text);
}

void
options_print(FILE *out, const struct option_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        print_row(out, &rows[i]);
}
