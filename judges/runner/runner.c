/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "judges/runner.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static enum qdq_code
fail(struct qdq_error *err, const char *text)
{
    return qdq_error_set(err, QDQ_INVALID_SPEC, QDQ_AT_NOTHING, NULL, "%s", text);
}

static enum qdq_code
fail_memory(struct qdq_error *err)
{
    return qdq_error_set(err, QDQ_NO_MEMORY, QDQ_AT_NOTHING, NULL, "out of memory");
}

/* Copies the next word of a command and moves *at behind it; *ret is NULL at the end. */
static enum qdq_code
take_word(const char **at, char **ret, struct qdq_error *err)
{
    *ret = NULL;
    *at += strspn(*at, " \t");
    if (!**at)
        return QDQ_OK;
    const bool quoted = **at == '"';
    *at += quoted;
    size_t n = strcspn(*at, quoted ? "\"" : " \t");
    if (quoted && (*at)[n] != '"')
        return fail(err, "has a quote that does not end");
    if (!quoted && memchr(*at, '"', n))
        return fail(err, "has a quote in the middle of a word");
    *ret = strndup(*at, n);
    *at += n + quoted;
    return *ret ? QDQ_OK : fail_memory(err);
}

static void
free_texts(char **texts)
{
    for (; *texts; texts++) {
        free(*texts);
        *texts = NULL;
    }
}

enum qdq_code
runner_set_command(struct runner_config *r, const char *command, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    size_t n = 0;
    free_texts(r->words);
    while (!code && n < RUNNER_WORDS &&
           !(code = take_word(&command, &r->words[n], err)))
        if (!r->words[n++])
            break;
    if (code)
        return code;
    if (!r->words[0])
        return fail(err, "is missing");
    if (*r->words[0] != '/')
        return fail(err, "does not begin with the absolute path of a program");
    return command[strspn(command, " \t")] ? fail(err, "has too many words") : QDQ_OK;
}

/* Sets one word of `allow`, whose n characters begin at `word`. */
static enum qdq_code
allow_word(struct runner_config *r, const char *word, size_t n, struct qdq_error *err)
{
    size_t i = 0;
    if (n == 4 && !memcmp(word, "exec", n)) {
        r->may_make_code = true;
        return QDQ_OK;
    }
    if (n == 9 && !memcmp(word, "processes", n)) {
        r->may_start_processes = true;
        return QDQ_OK;
    }
    if (*word != '/' || n < 2)
        return fail(err, "has a word that is not exec, processes or an absolute path");
    while (i < RUNNER_PATHS && r->paths[i])
        i++;
    if (i == RUNNER_PATHS)
        return fail(err, "has too many paths");
    r->paths[i] = strndup(word, n);
    return r->paths[i] ? QDQ_OK : fail_memory(err);
}

enum qdq_code
runner_set_allow(struct runner_config *r, const char *allow, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    free_texts(r->paths);
    r->may_make_code = r->may_start_processes = false;
    for (const char *at = allow; !code;) {
        at += strspn(at, ", \t");
        if (!*at)
            break;
        size_t n = strcspn(at, ",");
        const char *next = at + n;
        while (n && strchr(" \t", at[n - 1]))
            n--;
        code = allow_word(r, at, n, err);
        at = next;
    }
    return code;
}

enum qdq_code
runner_add_option(struct runner_config *r, const char *key, const char *value,
                  struct qdq_error *err)
{
    if (r->n_options == RUNNER_OPTIONS)
        return fail(err, "has too many further keys");
    struct runner_option *option = &r->options[r->n_options++];
    option->key = strdup(key);
    option->value = strdup(value);
    return option->key && option->value ? QDQ_OK : fail_memory(err);
}

bool
runner_is_device(const char *path)
{
    return strncmp(path, "/dev/", 5) == 0;
}

void
runner_fini(struct runner_config *r)
{
    free(r->name);
    free(r->folder);
    free_texts(r->words);
    free_texts(r->paths);
    for (size_t i = 0; i < r->n_options; i++) {
        free(r->options[i].key);
        free(r->options[i].value);
    }
    *r = (struct runner_config){0};
}

/* --- on the way to the process that starts it ----------------------------------- */

static json_t *
list_texts(char *const *texts)
{
    json_t *list = json_array();
    for (; *texts; texts++)
        if (json_array_append_new(list, json_string(*texts))) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *
list_options(const struct runner_config *r)
{
    json_t *object = json_object();
    for (size_t i = 0; i < r->n_options; i++)
        if (json_object_set_new(object, r->options[i].key,
                                json_string(r->options[i].value))) {
            json_decref(object);
            return NULL;
        }
    return object;
}

char *
runner_encode(const struct runner_config *r)
{
    json_t *json = json_pack(
        "{s:s, s:s, s:o, s:o, s:b, s:b, s:I, s:I, s:I, s:i, s:o}", "name", r->name,
        "folder", r->folder ? r->folder : "", "words", list_texts(r->words), "paths",
        list_texts(r->paths), "code", r->may_make_code, "processes",
        r->may_start_processes, "timeout", (json_int_t)r->timeout, "memory",
        (json_int_t)r->memory, "disk", (json_int_t)r->disk, "walls", (int)r->walls,
        "options", list_options(r));
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    return text;
}

static enum qdq_code
read_texts(const json_t *list, char **to, size_t most, struct qdq_error *err)
{
    size_t i;
    const json_t *text;
    if (json_array_size(list) > most)
        return fail(err, "the runner has too many texts");
    json_array_foreach (list, i, text) {
        const char *value = json_string_value(text);
        if (!value)
            return fail(err, "the runner has a text that is none");
        if (!(to[i] = strdup(value)))
            return fail_memory(err);
    }
    return QDQ_OK;
}

static enum qdq_code
read_members(const json_t *json, struct runner_config *r, struct qdq_error *err)
{
    const char *name = NULL, *folder = NULL;
    json_t *words, *paths, *options, *value;
    int code_flag, processes, walls;
    json_int_t timeout, memory, disk;
    if (json_unpack((json_t *)(uintptr_t)json,
                    "{s:s, s:s, s:o, s:o, s:b, s:b, s:I, s:I, s:I, s:i, s:o}", "name",
                    &name, "folder", &folder, "words", &words, "paths", &paths, "code",
                    &code_flag, "processes", &processes, "timeout", &timeout, "memory",
                    &memory, "disk", &disk, "walls", &walls, "options", &options))
        return fail(err, "the runner lacks a member");
    r->may_make_code = code_flag;
    r->may_start_processes = processes;
    r->timeout = timeout;
    r->memory = memory;
    r->disk = disk;
    r->walls = walls == RUNNER_WALLS_OFF    ? RUNNER_WALLS_OFF
               : walls == RUNNER_WALLS_AUTO ? RUNNER_WALLS_AUTO
                                            : RUNNER_WALLS_ON;
    if (!(r->name = strdup(name)) || !(r->folder = strdup(folder)))
        return fail_memory(err);
    enum qdq_code code = read_texts(words, r->words, RUNNER_WORDS, err);
    if (!code)
        code = read_texts(paths, r->paths, RUNNER_PATHS, err);
    const char *key;
    json_object_foreach (options, key, value) {
        const char *text = json_string_value(value);
        if (!code)
            code = runner_add_option(r, key, text ? text : "", err);
    }
    return code || r->words[0] ? code : fail(err, "the runner has no program");
}

enum qdq_code
runner_decode(const char *text, struct runner_config *ret, struct qdq_error *err)
{
    json_t *json = json_loads(text, 0, NULL);
    *ret = (struct runner_config){0};
    enum qdq_code code =
        json ? read_members(json, ret, err) : fail(err, "the runner is no JSON");
    json_decref(json);
    if (code)
        runner_fini(ret);
    return code;
}
