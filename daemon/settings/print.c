/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the table of settings for people: help, sample file, manual page. */
#include "config.h"
#include "base/options.h"
#include "settings/runners.h"

#include <string.h>

#define WIDTH 88
#define VALUE 512

/* Prints a number as the file accepts it, with the largest suffix that leaves a
   whole number. */
static void
describe_number(const struct setting_row *row, int64_t n, char ret[VALUE])
{
    static const char letters[] = "KMG";
    size_t i = 0;
    while (row->unit == BYTES && n && n % 1024 == 0 && i < sizeof letters - 1) {
        n /= 1024;
        i++;
    }
    snprintf(ret, VALUE, "%lld%.*s", (long long)n, i ? 1 : 0, i ? &letters[i - 1] : "");
}

static void
describe_default(const struct setting_row *row, char ret[VALUE])
{
    if (row->unit == TEXT)
        snprintf(ret, VALUE, "%s", row->text_default);
    else
        describe_number(row, row->number_default, ret);
}

static const struct setting_row *
rows_end(void)
{
    return setting_rows + N_SETTINGS;
}

static bool
begins_section(const struct setting_row *row)
{
    return row == setting_rows || strcmp(row->section, row[-1].section) != 0;
}

void
settings_help(FILE *out)
{
    char value[VALUE];
    for (const struct setting_row *row = setting_rows; row < rows_end(); row++) {
        describe_default(row, value);
        fprintf(out, "  %s.%s (%s%s)\n", row->section, row->key,
                *value ? value : "empty", row->unit == SECONDS ? " s" : "");
        print_wrapped(out, "      ", WIDTH, row->text);
    }
}

/* Copies a text. In a URL "***" stands for a password: between the colon after the user and
   the last @ before the host, and as the parameter `password`. */
static void
hide_password(const char *text, char ret[VALUE])
{
    static const char parameter[] = "password=";
    const char *scheme = strstr(text, "://");
    const char *user = scheme ? scheme + 3 : text;
    const char *end = user + strcspn(user, "/?"), *at = NULL;
    for (const char *c = user; scheme && c < end; c++)
        if (*c == '@')
            at = c;
    const char *colon = at ? memchr(user, ':', (size_t)(at - user)) : NULL;
    const char *query = scheme ? strstr(user, parameter) : NULL;
    if (colon)
        snprintf(ret, VALUE, "%.*s***%s", (int)(colon + 1 - text), text, at);
    else if (query)
        snprintf(ret, VALUE, "%.*s%s***%s", (int)(query - text), text, parameter,
                 query + strcspn(query, "&"));
    else
        snprintf(ret, VALUE, "%s", text);
}

void
settings_print(const struct settings *settings, FILE *out)
{
    struct settings values = *settings;
    char value[VALUE];
    for (const struct setting_row *row = setting_rows; row < rows_end(); row++) {
        fprintf(out, "%s.%s = ", row->section, row->key);
        if (row->unit != TEXT)
            describe_number(row, *setting_number(&values, row), value);
        else
            hide_password(*setting_text(&values, row), value);
        fprintf(out, "%s  # %s\n", value, settings->origins[row - setting_rows]);
    }
}

/* Beginnings of the descriptions of named sections. */
static const char *const named_texts[N_NAMED_SECTIONS] = {
    [REMOTE_SECTION] = "A registry, a bucket or a webhook, a section each.",
    [HOOK_SECTION] = "A rule for new models of a remote, a section each.",
    [RUNNER_SECTION] = "A program of the operator's that judges results, a section "
                       "each. Further keys go to "
                       "the program as options.",
};

static void
print_named_conf(FILE *out, int which)
{
    const struct section_kind *kind = &named_sections[which];
    char value[VALUE], kinds[REMOTE_KINDS];
    fputs("\n", out);
    print_wrapped(out, "# ", WIDTH, named_texts[which]);
    fprintf(out, "#\n# [%s NAME]\n", kind->name);
    for (size_t i = 0; i < kind->n_rows; i++) {
        const struct setting_row *row = &kind->rows[i];
        named_key_kinds(kind, i, kinds);
        describe_default(row, value);
        fprintf(out, "# %s =%s%s\n", row->key, *value ? " " : "", value);
        print_wrapped(out, "#     ", WIDTH, row->text);
        if (*kinds)
            fprintf(out, "#     (For %s.)\n", kinds);
    }
}

static void
print_all_named_conf(FILE *out)
{
    fputs("\n", out);
    print_wrapped(out, "# ", WIDTH,
                  "Sections with a name. NAME has 1 to 32 of a-z, 0-9, _ and -, and is "
                  "not sha256. "
                  "They may also stand in files remotes.d/*.conf, and runners in files "
                  "runners.d/*.conf, beside this file (in " QDQD_DEFAULT_FOLDERS
                  " beside " QDQD_DEFAULT_CONFIG
                  "). SIGHUP makes the daemon read all of them again.");
    for (int i = 0; i < N_NAMED_SECTIONS; i++)
        print_named_conf(out, i);
}

void
settings_print_conf(FILE *out)
{
    char value[VALUE];
    fputs(
        "# SPDX-License-Identifier: Apache-2.0\n"
        "# Settings of qdqd. Every line shows a default; remove its # to change it.\n"
        "#\n"
        "# A flag overrides the environment (QDQD_SECTION_KEY), the environment this\n"
        "# file, and this file the default. `qdqd --check-config` reports mistakes, "
        "and\n"
        "# with --print every value and its origin. Sizes may have the suffixes K, M\n"
        "# and G; times are in seconds. SIGHUP makes new values of the settings "
        "marked\n"
        "# (SIGHUP) take effect; all others need a restart.\n",
        out);
    for (const struct setting_row *row = setting_rows; row < rows_end(); row++) {
        if (begins_section(row))
            fprintf(out, "\n[%s]", row->section);
        fputs("\n", out);
        print_wrapped(out, "# ", WIDTH, row->text);
        if (row->reload == NOW)
            fputs("# (SIGHUP)\n", out);
        describe_default(row, value);
        fprintf(out, "#%s =%s%s\n", row->key, *value ? " " : "", value);
    }
    print_all_named_conf(out);
}

/* --- remotes -------------------------------------------------------------- */

/* Prints a section. The rows read their values from a struct that is not const. */
static void
print_named(FILE *out, const struct section *section)
{
    const struct section_kind *kind = section->kind;
    union {
        struct remote remote;
        struct hook hook;
        struct runner_section runner;
    } values;
    char value[VALUE];
    memcpy(&values, section, kind->size);
    for (size_t i = 0; i < kind->n_rows; i++) {
        const struct setting_row *row = &kind->rows[i];
        if (!named_section_has(section, i))
            continue;
        if (row->unit != TEXT)
            describe_number(row, *setting_number(&values, row), value);
        fprintf(out, "%s.%s.%s = %s  # %s\n", kind->name, section->name, row->key,
                row->unit == TEXT ? *setting_text(&values, row) : value,
                section->given >> i & 1 ? section->where : "default");
    }
    for (const struct section_other *o = section->others; o; o = o->next)
        fprintf(out, "%s.%s.%s = %s  # %s\n", kind->name, section->name, o->key,
                o->value, section->where);
}

void
remotes_print(const struct remotes *remotes, FILE *out)
{
    for (const struct section *s = remotes->sections.first; s; s = s->next)
        print_named(out, s);
}

/* --- the manual page ------------------------------------------------------ */

/* Prints text as mdoc: each sentence has its own line, and no line begins with a
   control character. */
static void
print_roff(FILE *out, const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", out);
    for (; *text; text++) {
        bool ends = text[0] == '.' && text[1] == ' ';
        if (*text == '\\')
            fputs("\\e", out);
        else if (*text == '-')
            fputs("\\-", out);
        else
            fputs(ends ? ".\n" : (char[]){*text, '\0'}, out);
        text += ends;
    }
    fputc('\n', out);
}

static void
print_range(FILE *out, const struct setting_row *row)
{
    char least[VALUE], most[VALUE];
    if (row->choices) {
        fprintf(out, "One of: %s.\n", row->choices);
        return;
    }
    if (row->unit == TEXT)
        return;
    describe_number(row, row->min, least);
    describe_number(row, row->max, most);
    if (row->max == INT64_MAX)
        fprintf(out, "At least %s.\n", least);
    else
        fprintf(out, "From %s to %s%s.\n", least, most,
                row->unit == SECONDS ? " seconds" : "");
}

static void
print_named_keys(FILE *out, int which)
{
    const struct section_kind *kind = &named_sections[which];
    char value[VALUE], kinds[REMOTE_KINDS];
    fprintf(out, ".Sh [%s NAME]\n%s\n", kind->name, named_texts[which]);
    fputs(
        "NAME has 1 to 32 of a\\-z, 0\\-9, _ and \\-, begins with a letter or a digit, "
        "and is not sha256.\n"
        "The sections may also stand in files\n.Pa ",
        out);
    fputs(which == RUNNER_SECTION ? "runners.d" : "remotes.d", out);
    fputs("/*.conf\n"
          "beside the configuration file; beside\n.Pa " QDQD_DEFAULT_CONFIG
          "\nthe folder is in\n.Pa " QDQD_DEFAULT_FOLDERS " .\n"
          "SIGHUP makes the daemon read all of them again; a mistake in one leaves "
          "all as they were.\n"
          ".Bl -tag -width Ds\n",
          out);
    for (size_t i = 0; i < kind->n_rows; i++) {
        const struct setting_row *row = &kind->rows[i];
        fprintf(out, ".It Cm %s\n", row->key);
        print_roff(out, row->text);
        print_range(out, row);
        named_key_kinds(kind, i, kinds);
        if (*kinds)
            fprintf(out, "For %s.\n", kinds);
        describe_default(row, value);
        fputs("Default: ", out);
        print_roff(out, *value ? value : "empty");
    }
    fputs(".El\n", out);
}

static void
print_setting(FILE *out, const struct setting_row *row)
{
    char value[VALUE], variable[SETTING_VARIABLE];
    describe_default(row, value);
    setting_variable(row, variable);
    fprintf(out, ".It Cm %s\n", row->key);
    print_roff(out, row->text);
    print_range(out, row);
    fputs("Default: ", out);
    print_roff(out, *value ? value : "empty");
    fprintf(out, ".Pq Ev %s", variable);
    fputs(row->reload == NOW ? "\nRead again on SIGHUP.\n" : "\n", out);
}

void
settings_print_manual(FILE *out)
{
    fputs(
        ".\\\" SPDX-License-Identifier: Apache-2.0\n"
        ".Dd November 21, 2026\n.Dt QDQD.CONF 5\n.Os\n"
        ".Sh NAME\n.Nm qdqd.conf\n.Nd settings of the quantization service\n"
        ".Sh DESCRIPTION\n"
        ".Xr qdqd 8\nreads this file at its start. It has sections in brackets, lines\n"
        ".Dq key = value ,\nand comments behind a #.\n"
        "A flag overrides the environment, the environment the file, and the file\n"
        "the default.\n"
        "Sizes are in bytes and may have the suffixes K, M and G; times are in\n"
        "seconds.\n"
        ".Pp\nSIGHUP makes the daemon read the file again.\n"
        "New values of the settings that say so then take effect; all others need\n"
        "a restart.\n.Dq qdqd \\-\\-check\\-config \\-\\-print\n"
        "prints every value and its origin.\n",
        out);
    for (const struct setting_row *row = setting_rows; row < rows_end(); row++) {
        if (begins_section(row))
            fprintf(out, ".Sh [%s]\n.Bl -tag -width Ds\n", row->section);
        print_setting(out, row);
        if (row + 1 == rows_end() || begins_section(row + 1))
            fputs(".El\n", out);
    }
    for (int i = 0; i < N_NAMED_SECTIONS; i++)
        print_named_keys(out, i);
    fputs(".Sh SEE ALSO\n.Xr qdq 1 ,\n.Xr qdqd 8\n", out);
}
