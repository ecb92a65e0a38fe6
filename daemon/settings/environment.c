/* SPDX-License-Identifier: Apache-2.0 */
/* Settings as variables of an environment. */
#include "config.h"
#include "settings/rows.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

/* The sections whose settings a worker process reads. */
static const char *const worker_sections[] = {"engine", "gpu", "limits", "workers"};

void
setting_variable(const struct setting_row *row, char ret[SETTING_VARIABLE])
{
    snprintf(ret, SETTING_VARIABLE, "QDQD_%s_%s", row->section, row->key);
    for (char *c = ret; *c; c++)
        *c = (char)toupper((unsigned char)*c);
}

static bool
is_for_workers(const struct setting_row *row)
{
    for (size_t i = 0; i < sizeof worker_sections / sizeof *worker_sections; i++)
        if (strcmp(row->section, worker_sections[i]) == 0)
            return true;
    return false;
}

/* Returns whether "NAME=value" is the variable of a setting. */
static bool
is_setting(const char *entry)
{
    char name[SETTING_VARIABLE];
    size_t len = strcspn(entry, "=");
    for (size_t i = 0; i < N_SETTINGS; i++) {
        setting_variable(&setting_rows[i], name);
        if (strlen(name) == len && strncmp(name, entry, len) == 0)
            return true;
    }
    return false;
}

/* Returns whether the name begins like the variables of a section. */
static bool
has_section(const char *name)
{
    char variable[SETTING_VARIABLE];
    for (size_t i = 0; i < N_SETTINGS; i++) {
        setting_variable(&setting_rows[i], variable);
        size_t len = strlen("QDQD_") + strlen(setting_rows[i].section) + 1;
        if (strncmp(name, variable, len) == 0)
            return true;
    }
    return false;
}

void
settings_find_unknown(settings_unknown_fn *on_unknown)
{
    for (char **entry = environ; *entry; entry++)
        if (has_section(*entry) && !is_setting(*entry))
            on_unknown(*entry, strcspn(*entry, "="));
}

/* Returns "NAME=value" for a row, or NULL when out of memory. */
static char *
format_entry(struct settings *settings, const struct setting_row *row)
{
    char name[SETTING_VARIABLE], *entry;
    setting_variable(row, name);
    int n = row->unit == TEXT
                ? asprintf(&entry, "%s=%s", name, *setting_text(settings, row))
                : asprintf(&entry, "%s=%lld", name,
                           (long long)*setting_number(settings, row));
    return n < 0 ? NULL : entry;
}

char **
settings_environment(const struct settings *settings)
{
    struct settings values = *settings;
    size_t n = 0, n_ours = 0;
    while (environ[n_ours])
        n_ours++;
    char **ret = calloc(n_ours + N_SETTINGS + 1, sizeof *ret);
    bool ok = ret;
    for (size_t i = 0; ok && i < n_ours; i++)
        if (!is_setting(environ[i]))
            ok = (ret[n++] = strdup(environ[i]));
    for (size_t i = 0; ok && i < N_SETTINGS; i++)
        if (is_for_workers(&setting_rows[i]))
            ok = (ret[n++] = format_entry(&values, &setting_rows[i]));
    if (!ok)
        settings_environment_free(&ret);
    return ret;
}

void
settings_environment_free(char ***environment)
{
    for (char **entry = *environment; entry && *entry; entry++)
        free(*entry);
    free(*environment);
    *environment = NULL;
}
