/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "settings/rows.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    char letter;
    int shift;
} suffixes[] = {{'K', 10}, {'M', 20}, {'G', 30}};

/* Parses digits and, for BYTES, one suffix. Signs, spaces and further characters are
   errors. */
static bool
parse_number(const char *value, enum setting_unit unit, int64_t *ret)
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
set_text(void *values, const struct setting_row *row, const char *value,
         char what[SETTING_WHAT])
{
    char *copy = strdup(value);
    if (!copy) {
        snprintf(what, SETTING_WHAT, "out of memory");
        return false;
    }
    free(*setting_text(values, row));
    *setting_text(values, row) = copy;
    return true;
}

bool
setting_set(void *values, const struct setting_row *row, const char *value,
            char what[SETTING_WHAT])
{
    int64_t n;
    if (row->choices && !is_choice(row->choices, value)) {
        snprintf(what, SETTING_WHAT, "not one of: %s", row->choices);
        return false;
    }
    if (row->unit == TEXT)
        return set_text(values, row, value, what);
    if (!parse_number(value, row->unit, &n)) {
        snprintf(what, SETTING_WHAT, "not a whole number%s",
                 row->unit == BYTES ? ", with K, M or G behind it" : "");
        return false;
    }
    if (n < row->min || n > row->max) {
        snprintf(what, SETTING_WHAT, "not between %lld and %lld", (long long)row->min,
                 (long long)row->max);
        return false;
    }
    *setting_number(values, row) = n;
    return true;
}

bool
setting_set_default(void *values, const struct setting_row *row,
                    char what[SETTING_WHAT])
{
    if (row->unit == TEXT)
        return set_text(values, row, row->text_default, what);
    *setting_number(values, row) = row->number_default;
    return true;
}

void
setting_free(void *values, const struct setting_row *row)
{
    if (row->unit != TEXT)
        return;
    free(*setting_text(values, row));
    *setting_text(values, row) = NULL;
}
