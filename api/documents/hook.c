/* SPDX-License-Identifier: Apache-2.0 */
/* The rule of a hook, which makes a job of a new version. */
#include "config.h"
#include "api/remote.h"
#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns whether a pattern of `len` bytes, in which each * stands for any text, matches. */
static bool
matches(const char *pattern, size_t len, const char *text)
{
    const char *end = pattern + len, *star = NULL, *from = NULL;
    while (*text) {
        if (pattern < end && *pattern == '*') {
            star = ++pattern;
            from = text;
        } else if (pattern < end && *pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star;
            text = ++from;
        } else {
            return false;
        }
    }
    while (pattern < end && *pattern == '*')
        pattern++;
    return pattern == end;
}

bool
api_rule_matches(const char *models, const char *name)
{
    static const char space[] = " \t";
    while (*models) {
        const char *pattern = models + strspn(models, space);
        size_t len = strcspn(pattern, ",");
        models = pattern + len + (pattern[len] == ',');
        while (len && strchr(space, pattern[len - 1]))
            len--;
        if (len && matches(pattern, len, name))
            return true;
    }
    return false;
}

/* Returns the text with the name in the place of each {name} and the version in that of
   each {version}. The caller frees it. */
static char *
fill(const char *text, const char *name, const char *version)
{
    static const char name_word[] = "{name}", version_word[] = "{version}";
    char *filled = NULL;
    size_t size;
    FILE *to = open_memstream(&filled, &size);
    while (to && *text) {
        if (strncmp(text, name_word, strlen(name_word)) == 0) {
            fputs(name, to);
            text += strlen(name_word);
        } else if (strncmp(text, version_word, strlen(version_word)) == 0) {
            fputs(version, to);
            text += strlen(version_word);
        } else {
            fputc(*text++, to);
        }
    }
    if (to && fclose(to) == 0)
        return filled;
    free(filled);
    return NULL;
}

char *
api_rule_encode(const struct api_rule *rule, const char *name, const char *version)
{
    char *model = fill(rule->model, name, version);
    char *publish = fill(rule->publish, name, version);
    json_t *json = NULL;
    if (model && publish)
        json = json_pack("{s:{s:s, s:o}, s:[{s:s, s:o}], s:{s:s}, s:o*}", "model",
                         "remote", rule->remote, "ref", api_json_text(model), "publish",
                         "remote", rule->remote, "ref", api_json_text(publish),
                         "labels", API_RULE_LABEL, rule->hook, "calibration",
                         *rule->calibration ? api_json_text(rule->calibration) : NULL);
    free(model);
    free(publish);
    return json ? api_json_dump(json, 0) : NULL;
}
