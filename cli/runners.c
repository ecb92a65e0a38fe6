/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "runners.h"

#include <errno.h>
#include <ini.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct reader {
    const char *path;
    FILE *file;
    int line;
    struct runners *runners;
    struct api_problem *problem;
};

static bool
fail(struct reader *reader, const char *key, const char *what)
{
    return api_problem_set(reader->problem, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL,
                           "%s:%d: %s: %s", reader->path, reader->line, key, what);
}

/* Parses digits and one suffix. */
static bool
set_number(struct reader *reader, const char *key, const char *value, int64_t *ret)
{
    static const char suffixes[] = "KMG";
    char *end;
    errno = 0;
    long long n = strtoll(value, &end, 10);
    const char *suffix = *end ? strchr(suffixes, *end) : NULL;
    int shift = suffix ? 10 * (int)(suffix - suffixes + 1) : 0;
    if (end == value || errno || n < 0 || n > INT64_MAX >> shift || end[suffix != NULL])
        return fail(reader, key, "not a number");
    *ret = (int64_t)n << shift;
    return true;
}

static bool
set_text(struct reader *reader, const char *value, char **ret)
{
    free(*ret);
    *ret = strdup(value);
    return *ret || api_problem_no_memory(reader->problem);
}

/* Returns whether a key of the runner was set; a failure has the line. */
static bool
take_code(struct reader *reader, const char *key, enum qdq_code code,
          const struct qdq_error *why)
{
    return !code || fail(reader, key, why->text);
}

static bool
set_key(struct reader *reader, size_t i, const char *key, const char *value)
{
    struct runner_config *r = &reader->runners->list[i].runner;
    struct qdq_error why = {0};
    if (!strcmp(key, "command"))
        return take_code(reader, key, runner_set_command(r, value, &why), &why);
    if (!strcmp(key, "allow"))
        return take_code(reader, key, runner_set_allow(r, value, &why), &why);
    if (!strcmp(key, "targets"))
        return set_text(reader, value, &reader->runners->list[i].targets);
    if (!strcmp(key, "timeout"))
        return set_number(reader, key, value, &r->timeout) &&
               (r->timeout > 0 || fail(reader, key, "not above 0"));
    if (!strcmp(key, "memory"))
        return set_number(reader, key, value, &r->memory);
    if (!strcmp(key, "disk"))
        return set_number(reader, key, value, &r->disk);
    if (!strcmp(key, "licence")) /* it matters to a service alone */
        return true;
    return take_code(reader, key, runner_add_option(r, key, value, &why), &why);
}

/* Returns the number of the runner of that name, which is added if it is new. */
static bool
find_or_add(struct reader *reader, const char *name, size_t *ret)
{
    struct runners *runners = reader->runners;
    size_t i = 0;
    while (i < runners->n && strcmp(runners->list[i].runner.name, name) != 0)
        i++;
    *ret = i;
    if (i < runners->n)
        return true;
    if (i == MOST_RUNNERS)
        return fail(reader, name, "there are too many runners");
    runners->list[i].runner = (struct runner_config){.name = strdup(name),
                                                     .timeout = 120,
                                                     .memory = INT64_C(8) << 30,
                                                     .disk = INT64_C(8) << 30,
                                                     .walls = RUNNER_WALLS_AUTO};
    runners->n++;
    return runners->list[i].runner.name || api_problem_no_memory(reader->problem);
}

static char *
read_line(char *buf, int size, void *arg)
{
    struct reader *reader = arg;
    if (reader->problem->set || !fgets(buf, size, reader->file))
        return NULL;
    reader->line++;
    if (strlen(buf) + 1 < (size_t)size || buf[size - 2] == '\n')
        return buf;
    fail(reader, "the file", "a line that is too long");
    return NULL;
}

static int
on_key(void *arg, const char *section, const char *key, const char *value)
{
    struct reader *reader = arg;
    size_t i;
    if (reader->problem->set)
        return 1;
    if (strncmp(section, "runner ", 7) != 0 || !section[7])
        return fail(reader, section, "not a section [runner NAME]");
    return find_or_add(reader, section + 7, &i) && set_key(reader, i, key, value);
}

static bool
check(struct runners *runners, const char *path, struct api_problem *problem)
{
    for (size_t i = 0; i < runners->n; i++)
        if (!runners->list[i].runner.words[0] || !runners->list[i].targets)
            return api_problem_set(problem, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL,
                                   "%s: [runner %s] lacks %s", path,
                                   runners->list[i].runner.name,
                                   runners->list[i].targets ? "command" : "targets");
    return true;
}

/* Makes the folder in which the runners of this user get theirs. */
static bool
make_folder(char ret[PATH_MAX], struct api_problem *problem)
{
    const char *tmp = getenv("TMPDIR");
    struct stat st;
    snprintf(ret, PATH_MAX, "%.4000s/qdq-runners-%ld", tmp && *tmp ? tmp : "/tmp",
             (long)geteuid());
    if ((mkdir(ret, 0700) == 0 || errno == EEXIST) && lstat(ret, &st) == 0 &&
        S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 077))
        return true;
    return api_problem_set(problem, API_IO, QDQ_AT_NOTHING, NULL,
                           "%s: is no folder of this user alone, and cannot be made",
                           ret);
}

static bool
set_folders(struct runners *runners, struct api_problem *problem)
{
    char folder[PATH_MAX];
    if (!make_folder(folder, problem))
        return false;
    for (size_t i = 0; i < runners->n; i++)
        if (!(runners->list[i].runner.folder = strdup(folder)))
            return api_problem_no_memory(problem);
    return true;
}

bool
runners_read(const char *path, struct runners *ret, struct api_problem *problem)
{
    struct reader reader = {.path = path, .runners = ret, .problem = problem};
    *ret = (struct runners){.n = 0};
    reader.file = fopen(path, "re");
    if (!reader.file)
        return api_problem_set(problem, API_IO, QDQ_AT_NOTHING, NULL,
                               "the file of runners %s: %s", path, strerror(errno));
    int line = ini_parse_stream(read_line, &reader, on_key, &reader);
    fclose(reader.file);
    if (line && !problem->set)
        return api_problem_set(problem, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL,
                               "%s:%d: not a section, key = value or comment", path,
                               line);
    return !problem->set && check(ret, path, problem) && set_folders(ret, problem);
}

void
runners_fini(struct runners *runners)
{
    for (size_t i = 0; i < runners->n; i++) {
        runner_fini(&runners->list[i].runner);
        free(runners->list[i].targets);
    }
    *runners = (struct runners){.n = 0};
}
