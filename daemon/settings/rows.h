/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of settings/keys.h as data, for those who read or print all of them. */
#ifndef QDQD_SETTINGS_ROWS_H
#define QDQD_SETTINGS_ROWS_H

#include "settings/settings.h"

#define SETTING_VARIABLE 64

enum setting_unit { COUNT, SECONDS, BYTES, TEXT };
enum setting_reload { NOW, START };

struct setting_row {
    const char *section, *key, *text;
    enum setting_unit unit;
    size_t offset; /* of the member in struct settings */
    enum setting_reload reload;
    const char *text_default;
    int64_t number_default, min, max;
    const char *choices; /* words, one of which a text is; NULL: any text */
};

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
setting_text(struct settings *s, const struct setting_row *row)
{
    return (char **)((char *)s + row->offset);
}

static inline _Atomic int64_t *
setting_number(struct settings *s, const struct setting_row *row)
{
    return (_Atomic int64_t *)((char *)s + row->offset);
}

/* QDQD_SECTION_KEY */
void setting_variable(const struct setting_row *row, char ret[SETTING_VARIABLE]);

#endif
