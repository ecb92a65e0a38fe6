/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "settings/runners.h"
#include "judges/runner.h"
#include "qdq/targets.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const struct setting_row runner_rows[N_RUNNER_ROWS] = {
#define RUNNER_TEXT(key, def, text) RUNNER_CHOICE(key, def, NULL, text)
#define RUNNER_CHOICE(key, def, choices, text) \
    ROW_TEXT("runner", #key, struct runner_section, key, def, choices, NOW, text),
#define RUNNER_NUMBER(key, def, min, max, unit, text)                                \
    ROW_NUMBER("runner", #key, struct runner_section, key, def, min, max, unit, NOW, \
               text),
#include "settings/runner_keys.h"
#undef RUNNER_TEXT
#undef RUNNER_CHOICE
#undef RUNNER_NUMBER
};

static bool
fail(char error[SETTINGS_ERROR], const struct runner_section *r, const char *key,
     const char *what)
{
    snprintf(error, SETTINGS_ERROR, "%.200s: [runner %s] %s: %.200s", r->section.where,
             r->section.name, key, what);
    return false;
}

/* Returns the next runner of the set from `section` on. */
static const struct runner_section *
skip_to_runner(const struct section *section)
{
    while (section && section->kind->rows != runner_rows)
        section = section->next;
    return (const struct runner_section *)section;
}

static const struct runner_section *
first_runner(const struct remotes *set)
{
    return set ? skip_to_runner(set->sections.first) : NULL;
}

/* --- targets ------------------------------------------------------------------ */

/* Copies the next name of a list and moves *list behind it. Returns false at the end. */
static bool
next_target(const char **list, char ret[64])
{
    *list += strspn(*list, ", \t");
    size_t n = strcspn(*list, ", \t");
    snprintf(ret, 64, "%.*s", (int)(n < 64 ? n : 63), *list);
    *list += n;
    return n > 0;
}

/* Returns whether a target of the section is judged by that runtime. */
static bool
judges_by(const struct runner_section *r, const char *runtime)
{
    char name[64];
    for (const char *list = r->targets; next_target(&list, name);) {
        const struct qdq_target *target = qdq_target_find(name);
        if (target && target->runtime && strcmp(target->runtime, runtime) == 0)
            return true;
    }
    return false;
}

const struct runner_section *
runners_find(const struct remotes *set, const char *runtime)
{
    const struct runner_section *r = first_runner(set);
    while (r && !judges_by(r, runtime))
        r = skip_to_runner(r->section.next);
    return r;
}

void
runners_list(const struct remotes *set, char ret[RUNNER_LIST])
{
    const struct qdq_target *target;
    size_t at = 0;
    ret[0] = '\0';
    for (size_t i = 0; (target = qdq_target_row(i)); i++)
        if (target->runtime && runners_find(set, target->runtime) &&
            !strstr(ret, target->runtime) && at < RUNNER_LIST)
            at += (size_t)snprintf(ret + at, RUNNER_LIST - at, "%s%s", at ? "," : "",
                                   target->runtime);
}

static bool
check_target(const struct remotes *set, const struct runner_section *r,
             const char *name, char error[SETTINGS_ERROR])
{
    const struct qdq_target *target = qdq_target_find(name);
    char what[128];
    if (!target)
        snprintf(what, sizeof what, "there is no target \"%s\"", name);
    else if (target->is_proprietary && strcmp(r->licence, "mine") != 0)
        snprintf(what, sizeof what,
                 "the runtime of %s is proprietary; the section needs licence = mine",
                 name);
    else if (!target->runtime)
        snprintf(what, sizeof what, "results for %s are judged by no runtime", name);
    else if (runners_find(set, target->runtime) != r)
        snprintf(what, sizeof what, "another runner judges results for %s", name);
    else
        return true;
    return fail(error, r, "targets", what);
}

/* --- the program -------------------------------------------------------------- */

/* Makes the runner of a section, which the caller finishes. */
static bool
make_runner(const struct runner_section *r, struct runner_config *ret,
            char error[SETTINGS_ERROR])
{
    struct qdq_error why = {0};
    const char *key = "command";
    *ret = (struct runner_config){.name = strdup(r->section.name),
                                  .timeout = r->timeout,
                                  .memory = r->memory,
                                  .disk = r->disk};
    enum qdq_code code =
        ret->name ? runner_set_command(ret, r->command, &why) : QDQ_NO_MEMORY;
    if (!code) {
        key = "allow";
        code = runner_set_allow(ret, r->allow, &why);
    }
    for (const struct section_other *o = r->section.others; !code && o; o = o->next) {
        key = o->key;
        code = runner_add_option(ret, o->key, o->value, &why);
    }
    if (!code)
        return true;
    fail(error, r, key, ret->name ? why.text : "out of memory");
    runner_fini(ret);
    return false;
}

bool
runner_section_check(const struct remotes *set, const struct runner_section *r,
                     char error[SETTINGS_ERROR])
{
    struct runner_config runner;
    char name[64];
    size_t n = 0;
    if (!make_runner(r, &runner, error))
        return false;
    runner_fini(&runner);
    for (const char *list = r->targets; next_target(&list, name); n++)
        if (!check_target(set, r, name, error))
            return false;
    return n > 0 || fail(error, r, "targets", "is missing");
}

bool
runners_check_store(const struct remotes *set, const struct settings *settings,
                    char error[SETTINGS_ERROR])
{
    const struct runner_section *r = first_runner(set);
    char what[256];
    for (; r; r = skip_to_runner(r->section.next)) {
        struct runner_config runner;
        if (!make_runner(r, &runner, error))
            return false;
        const bool reads = runner_may_read(&runner, settings->state_dir);
        runner_fini(&runner);
        snprintf(
            what, sizeof what,
            "the program could read the daemon's data in %.100s (state.dir); move one "
            "of both",
            settings->state_dir);
        if (reads)
            return fail(error, r, "command", what);
    }
    return true;
}

char *
runner_section_encode(const struct runner_section *r, const struct settings *settings)
{
    struct runner_config runner;
    char error[SETTINGS_ERROR], folder[PATH_MAX], *text = NULL;
    if (!make_runner(r, &runner, error))
        return NULL;
    snprintf(folder, sizeof folder, "%.4000s/runners", settings->state_dir);
    runner.folder = strdup(folder);
    runner.walls = !strcmp(settings->workers_cage, "off")    ? RUNNER_WALLS_OFF
                   : !strcmp(settings->workers_cage, "auto") ? RUNNER_WALLS_AUTO
                                                             : RUNNER_WALLS_ON;
    if (runner.folder)
        text = runner_encode(&runner);
    runner_fini(&runner);
    return text;
}

/* --- identity ----------------------------------------------------------------- */

/* Adds the sizes and times of the files that a command names. */
static bool
add_files(struct digest *digest, const struct runner_section *r)
{
    struct runner_config runner;
    char error[SETTINGS_ERROR], text[96];
    struct stat st;
    bool ok = make_runner(r, &runner, error);
    for (size_t i = 0; ok && runner.words[i]; i++) {
        if (*runner.words[i] != '/' || stat(runner.words[i], &st))
            continue;
        int n = snprintf(text, sizeof text, "%lld %lld.%09ld\n", (long long)st.st_size,
                         (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
        ok = digest_update(digest, text, (size_t)n);
    }
    if (ok)
        runner_fini(&runner);
    return ok;
}

static bool
add_section(struct digest *digest, const struct runner_section *r,
            const struct settings *settings)
{
    char *text = runner_section_encode(r, settings);
    bool ok = text && digest_update(digest, text, strlen(text)) &&
              digest_update(digest, r->targets, strlen(r->targets)) &&
              add_files(digest, r);
    free(text);
    return ok;
}

bool
runners_digest(const struct remotes *set, const struct settings *settings,
               char ret[DIGEST_SIZE])
{
    const struct runner_section *r = first_runner(set);
    ret[0] = '\0';
    if (!r)
        return true;
    struct digest *digest = digest_new();
    bool ok = digest != NULL;
    for (; ok && r; r = skip_to_runner(r->section.next))
        ok = add_section(digest, r, settings);
    ok = ok && digest_finish(digest, ret);
    digest_free(&digest);
    return ok;
}
