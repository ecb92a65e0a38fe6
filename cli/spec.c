/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "spec.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/client.h"
#include "api/given_members.h"
#include "files.h"

/* --- members by options ---------------------------------------------------------- */

/* The members of a command line. Their texts are owned where `owned` has them. */
struct given {
    struct api_spec_member members[2 + MAX_TEXTS + MAX_TEXTS];
    char *owned[2 * (2 + MAX_TEXTS + MAX_TEXTS)];
    size_t n, n_owned;
};

static void
free_given(struct given *given)
{
    for (size_t i = 0; i < given->n_owned; i++)
        free(given->owned[i]);
}

/* Makes a text that the members use. NULL when out of memory. */
static const char *QDQ_PRINTF(2, 3) make_text(struct given *given, const char *fmt, ...)
{
    char *text;
    va_list args;
    va_start(args, fmt);
    int len = vasprintf(&text, fmt, args);
    va_end(args);
    return len < 0 ? NULL : (given->owned[given->n_owned++] = text);
}

/* Adds the member of an option whose argument is its value. A NULL value adds nothing. */
static bool
add_value(struct given *given, const char *name, const char *value)
{
    if (!value)
        return true;
    const char *giver = make_text(given, "--%s", name);
    given->members[given->n++] = (struct api_spec_member){giver, name, value};
    return giver;
}

/* Adds the members of an option's arguments PATH=VALUE. The paths begin at `below`, a JSON
   pointer. */
static bool
add_pairs(struct given *given, const char *option, const char *below,
          const struct texts *pairs, struct api_problem *problem)
{
    for (size_t i = 0; i < pairs->n; i++) {
        const char *pair = pairs->at[i], *equals = strchr(pair, '=');
        if (!equals || equals == pair)
            return api_fail(problem, API_INVALID_SPEC,
                            "--%s \"%.80s\" is to be a name, \"=\" and a value", option,
                            pair);
        const char *giver = make_text(given, "--%s %.80s", option, pair);
        const char *path =
            make_text(given, "%s%.*s", below, (int)(equals - pair), pair);
        if (!giver || !path)
            return api_problem_no_memory(problem);
        given->members[given->n++] = (struct api_spec_member){giver, path, equals + 1};
    }
    return true;
}

/* Writes the names of a list with commas as a JSON array of texts, which the caller frees. NULL when
   out of memory. */
static char *
list_names(const char *names)
{
    const char end[] = "\"]";
    char *list = malloc(3 * strlen(names) + 2 + sizeof end), *to = list;
    if (!list)
        return NULL;
    *to++ = '[';
    *to++ = '"';
    for (; *names; names++) {
        if (*names == ',')
            *to++ = '"';
        *to++ = *names;
        if (*names == ',')
            *to++ = '"';
    }
    memcpy(to, end, sizeof end);
    return list;
}

/* Adds the member of --target, which is the list `targets` where it has commas. */
static bool
add_target(struct given *given, const char *value)
{
    if (!value || !strchr(value, ','))
        return add_value(given, "target", value);
    char *list = list_names(value);
    given->owned[given->n_owned++] = list;
    given->members[given->n++] = (struct api_spec_member){"--target", "targets", list};
    return list;
}

static bool
find_given(const struct options *options, struct given *ret,
           struct api_problem *problem)
{
    if (!add_target(ret, options->target) || !add_value(ret, "recipe", options->recipe))
        return api_problem_no_memory(problem);
    return add_pairs(ret, "accept", "/accept/", &options->accept, problem) &&
           add_pairs(ret, "set", "", &options->set, problem);
}

/* --- the whole spec -------------------------------------------------------------- */

/* Puts the members into the text of *ret, which it replaces. */
static bool
add_members(const struct given *given, char **ret, size_t *len,
            struct api_problem *problem)
{
    if (given->n == 0)
        return true;
    char *file = *ret;
    *ret = api_spec_with_members(file, *len, given->members, given->n, problem);
    *len = *ret ? strlen(*ret) : 0;
    free(file);
    return *ret;
}

static bool
copy_given(const char *text, size_t size, char **ret, size_t *len,
           struct api_problem *problem)
{
    *ret = malloc(size + 1);
    *len = size;
    if (!*ret)
        return api_problem_no_memory(problem);
    memcpy(*ret, text, size);
    (*ret)[size] = '\0';
    return true;
}

/* Reads the text; *ret is NULL where no option gives one. */
static bool
read_whole(const struct options *options, char **ret, size_t *len,
           struct api_problem *problem)
{
    struct given given = {.n = 0};
    *ret = NULL;
    *len = 0;
    if (options->whole_spec)
        return copy_given(options->whole_spec, options->whole_spec_len, ret, len,
                          problem);
    bool ok = find_given(options, &given, problem) &&
              (!options->spec || file_read(options->spec, ret, len, problem)) &&
              (!options->spec_text ||
               copy_given(options->spec_text, strlen(options->spec_text), ret, len,
                          problem)) &&
              add_members(&given, ret, len, problem);
    free_given(&given);
    return ok;
}

bool
spec_text(const struct options *options, char **ret, struct api_problem *problem)
{
    size_t len;
    if (!read_whole(options, ret, &len, problem))
        return false;
    if (!*ret)
        return true;
    if (api_object_check(*ret, len, problem)) {
        (*ret)[len] = '\0';
        return true;
    }
    free(*ret);
    *ret = NULL;
    return false;
}

bool
spec_read(const struct options *options, struct api_spec **ret,
          struct api_problem *problem)
{
    char *text;
    size_t len;
    bool ok = read_whole(options, &text, &len, problem) &&
              api_spec_decode(text, len, ret, problem);
    free(text);
    return ok;
}

bool
spec_split(const struct options *options, char **text, size_t *len,
           struct api_target_specs *ret, struct api_problem *problem)
{
    *ret = (struct api_target_specs){.n = 0};
    return read_whole(options, text, len, problem) &&
           api_spec_split(*text, *len, ret, problem);
}
