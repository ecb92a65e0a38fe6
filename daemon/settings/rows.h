/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys as data: the rows of settings/keys.h and of named sections (sections.h), for
 * code that parses or prints all of them. A row has the place of its value in a struct.
 */
#ifndef QDQD_SETTINGS_ROWS_H
#define QDQD_SETTINGS_ROWS_H

#include "settings/settings.h"

#define SETTING_VARIABLE 64
#define SETTING_WHAT 128

enum setting_unit { COUNT, SECONDS, BYTES, TEXT };
enum setting_reload { NOW, START };

struct setting_row {
    const char *section, *key, *text;
    enum setting_unit unit;
    size_t offset; /* offset of the member in the struct of the values */
    enum setting_reload reload;
    const char *text_default;
    int64_t number_default, min, max;
    const char *choices; /* the words that a text can be; NULL: any text */
};

/* Define the row of a text, which `choices` may restrict, and of a number. */
#define ROW_TEXT(section, key, values, member, def, choices, reload, text)        \
    {                                                                             \
        section, key, text, TEXT, offsetof(values, member), reload, def, 0, 0, 0, \
            choices                                                               \
    }
#define ROW_NUMBER(section, key, values, member, def, min, max, unit, reload, text) \
    {                                                                               \
        section, key, text, unit, offsetof(values, member), reload, NULL, def, min, \
            max, NULL                                                               \
    }

enum {
#define SETTING_TEXT(section, key, def, reload, text) SETTING_##section##_##key,
#define SETTING_CHOICE(section, key, def, choices, reload, text) \
    SETTING_##section##_##key,
#define SETTING_NUMBER(section, key, def, min, max, unit, reload, text) \
    SETTING_##section##_##key,
#include "settings/keys.h"
#undef SETTING_TEXT
#undef SETTING_CHOICE
#undef SETTING_NUMBER
    N_SETTINGS
};

extern const struct setting_row setting_rows[N_SETTINGS];

static inline char **
setting_text(void *values, const struct setting_row *row)
{
    return (char **)((char *)values + row->offset);
}

static inline _Atomic int64_t *
setting_number(void *values, const struct setting_row *row)
{
    return (_Atomic int64_t *)((char *)values + row->offset);
}

/* Parses a value into its member of the struct `values` and frees a text that stood
   there. Returns false with the reason in `what`. */
bool setting_set(void *values, const struct setting_row *row, const char *value,
                 char what[SETTING_WHAT]);
bool setting_set_default(void *values, const struct setting_row *row,
                         char what[SETTING_WHAT]);
void setting_free(void *values, const struct setting_row *row);

/* Writes the name in the environment, QDQD_SECTION_KEY. */
void setting_variable(const struct setting_row *row, char ret[SETTING_VARIABLE]);

#endif
