/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "settings/sections.h"
#include "base/check.h"

#include <stdlib.h>
#include <string.h>

static bool
is_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
    size_t len = strlen(name);
    return len > 0 && len < SECTION_NAME && strspn(name, letters) == len &&
           !strchr("_-", *name);
}

/* Returns the kind that a title begins with. *ret_name is the rest of the title, ""
   when there is none. */
static const struct section_kind *
find_kind(const struct sections *sections, const char *title, const char **ret_name)
{
    size_t len = strcspn(title, " ");
    for (size_t i = 0; i < sections->n_kinds; i++) {
        const char *name = sections->kinds[i].name;
        if (strlen(name) != len || memcmp(name, title, len) != 0)
            continue;
        *ret_name = title + len + (title[len] == ' ');
        return &sections->kinds[i];
    }
    return NULL;
}

struct section *
sections_find(const struct sections *sections, const char *kind, const char *name)
{
    struct section *section = sections->first;
    while (section &&
           (strcmp(section->kind->name, kind) != 0 || strcmp(section->name, name) != 0))
        section = section->next;
    return section;
}

static void
free_section(struct section *section)
{
    for (size_t i = 0; i < section->kind->n_rows; i++)
        setting_free(section, &section->kind->rows[i]);
    while (section->others) {
        struct section_other *other = section->others;
        section->others = other->next;
        free(other->key);
        free(other->value);
        free(other);
    }
    free(section->where);
    free(section);
}

/* Returns a section with the default of each key, or NULL when out of memory. */
static struct section *
new_section(const struct section_kind *kind, const char *name, const char *where)
{
    char what[SETTING_WHAT];
    QDQD_CHECK(kind->n_rows <= SECTION_KEYS);
    struct section *section = calloc(1, kind->size);
    if (!section)
        return NULL;
    section->kind = kind;
    snprintf(section->name, sizeof section->name, "%s", name);
    section->where = strdup(where);
    bool ok = section->where;
    for (size_t i = 0; ok && i < kind->n_rows; i++)
        ok = setting_set_default(section, &kind->rows[i], what);
    if (ok)
        return section;
    free_section(section);
    return NULL;
}

bool
sections_begin(struct sections *sections, const char *title, const char *where,
               struct section **ret, char error[SETTINGS_ERROR])
{
    const char *name;
    const struct section_kind *kind = find_kind(sections, title, &name);
    *ret = NULL;
    if (!kind)
        return true;
    if (!is_name(name)) {
        snprintf(
            error, SETTINGS_ERROR,
            "%s: [%.100s]: a name has 1 to %d of a-z, 0-9, _ and -, and begins with "
            "a letter or a digit",
            where, title, SECTION_NAME - 1);
        return false;
    }
    const struct section *before = sections_find(sections, kind->name, name);
    if (before) {
        snprintf(error, SETTINGS_ERROR, "%s: [%s]: given twice, before at %s", where,
                 title, before->where);
        return false;
    }
    struct section *section = new_section(kind, name, where);
    if (!section) {
        snprintf(error, SETTINGS_ERROR, "%s: [%s]: out of memory", where, title);
        return false;
    }
    struct section **last = &sections->first;
    while (*last)
        last = &(*last)->next;
    *last = section;
    *ret = section;
    return true;
}

static bool
fail(char error[SETTINGS_ERROR], const char *where, const struct section *section,
     const char *key, const char *what)
{
    snprintf(error, SETTINGS_ERROR, "%s: [%s %s] %.60s: %s", where, section->kind->name,
             section->name, key, what);
    return false;
}

/* Adds a key without a row behind the others. */
static bool
add_other(struct section *section, const char *key, const char *value,
          const char *where, char error[SETTINGS_ERROR])
{
    struct section_other **last = &section->others;
    for (; *last; last = &(*last)->next)
        if (strcmp((*last)->key, key) == 0)
            return fail(error, where, section, key, "given twice");
    *last = calloc(1, sizeof **last);
    if (*last && ((*last)->key = strdup(key)) && ((*last)->value = strdup(value)))
        return true;
    return fail(error, where, section, key, "out of memory");
}

bool
section_set(struct section *section, const char *key, const char *value,
            const char *where, char error[SETTINGS_ERROR])
{
    const struct section_kind *kind = section->kind;
    char what[SETTING_WHAT];
    size_t i = 0;
    while (i < kind->n_rows && strcmp(kind->rows[i].key, key) != 0)
        i++;
    if (i == kind->n_rows && kind->takes_others)
        return add_other(section, key, value, where, error);
    if (i == kind->n_rows)
        return fail(error, where, section, key, "unknown key");
    /* inih hands over a continued line in the same way. */
    if (section->given >> i & 1)
        return fail(error, where, section, key, "given twice");
    section->given |= UINT64_C(1) << i;
    return setting_set(section, &kind->rows[i], value, what) ||
           fail(error, where, section, key, what);
}

void
sections_fini(struct sections *sections)
{
    while (sections->first) {
        struct section *section = sections->first;
        sections->first = section->next;
        free_section(section);
    }
}
