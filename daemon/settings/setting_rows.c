/* SPDX-License-Identifier: Apache-2.0 */
/* The table of settings, made of the keys. */
#include "config.h"
#include "libraries.h"
#include "settings/rows.h"
#include "settings/settings.h"

const struct setting_row setting_rows[] = {
#define SETTING_TEXT(section, key, def, reload, text) \
    SETTING_CHOICE(section, key, def, NULL, reload, text)
#define SETTING_CHOICE(section, key, def, choices, reload, text)                     \
    ROW_TEXT(#section, #key, struct settings, section##_##key, def, choices, reload, \
             text),
#define SETTING_NUMBER(section, key, def, min, max, unit, reload, text)               \
    ROW_NUMBER(#section, #key, struct settings, section##_##key, def, min, max, unit, \
               reload, text),
#include "settings/keys.h"
#undef SETTING_TEXT
#undef SETTING_CHOICE
#undef SETTING_NUMBER
};

_Static_assert(sizeof setting_rows / sizeof *setting_rows == N_SETTINGS,
               "settings/rows.h counts the same rows");
