/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "remotes.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "terminal.h"

enum {
    MAX_SECRET = 64 * 1024,
    MAX_CA = 4 * 1024 * 1024,
    MAX_NAME = 32,
    MIN_RATE = 1024
};

/* --- keys ----------------------------------------------------------------- */

/* DAEMON: a key of the daemon's configuration that the command has no use for. */
/* RATE and LIMIT are bytes and seconds that may be 0. */
enum key_type { TEXT, SECRET, CA, FLAG, SECONDS, BYTES, RATE, LIMIT, DAEMON };

static const struct key {
    const char *name;
    enum key_type type;
    size_t field; /* offset in struct qdqr_remote */
} keys[] = {
    {"kind", TEXT, offsetof(struct qdqr_remote, kind)},
    {"url", TEXT, offsetof(struct qdqr_remote, url)},
    {"credentials", SECRET, offsetof(struct qdqr_remote, credentials)},
    {"artifacts_url", TEXT, offsetof(struct qdqr_remote, artifacts_url)},
    {"artifacts_credentials", SECRET,
     offsetof(struct qdqr_remote, artifacts_credentials)},
    {"region", TEXT, offsetof(struct qdqr_remote, region)},
    {"path_style", FLAG, offsetof(struct qdqr_remote, path_style)},
    {"ca", CA, offsetof(struct qdqr_remote, ca)},
    {"allow_private", FLAG, offsetof(struct qdqr_remote, allow_private)},
    {"timeout", SECONDS, offsetof(struct qdqr_remote, timeout)},
    {"min_rate", RATE, offsetof(struct qdqr_remote, min_rate)},
    {"total_timeout", LIMIT, offsetof(struct qdqr_remote, total_timeout)},
    {"max_bytes", BYTES, offsetof(struct qdqr_remote, max_bytes)},
    {"signers", DAEMON, 0},
    {"tenants", DAEMON, 0},
    {"scopes", DAEMON, 0},
    {"events", DAEMON, 0},
    {"label", DAEMON, 0},
    {"secret", DAEMON, 0},
    {"secret_old", DAEMON, 0},
};

enum { N_KEYS = sizeof keys / sizeof *keys };

/* Gives the text to the operand, which frees it. */
static const char *
keep_text(struct operand *operand, char *text)
{
    operand->texts[operand->n_texts++] = text;
    return text;
}

/* Parses digits and, for bytes, one suffix. */
static bool
parse_number(const char *value, enum key_type type, int64_t *ret)
{
    bool bytes = type == BYTES || type == RATE;
    long long least = type == SECONDS || type == BYTES;
    static const char suffixes[] = "KMG";
    char *end;
    errno = 0;
    long long n = strtoll(value, &end, 10);
    if (end == value || errno || n < least)
        return false;
    const char *suffix = bytes && *end ? strchr(suffixes, *end) : NULL;
    int shift = suffix ? 10 * (int)(suffix - suffixes + 1) : 0;
    if (n > INT64_MAX >> shift)
        return false;
    *ret = (int64_t)n << shift;
    return !end[suffix != NULL];
}

/* --- files that a section names ------------------------------------------- */

/* Reads a whole file. A secret one must be for its owner alone. */
static bool
read_small_file(const char *path, size_t most, bool secret, char **ret, size_t *ret_len,
                struct api_problem *problem)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) != 0) {
        api_problem_set(problem, API_IO, QDQ_AT_NOTHING, NULL, "%s: %s", path,
                        strerror(errno));
        if (fd >= 0)
            close(fd);
        return false;
    }
    const char *fault = NULL;
    if (!S_ISREG(st.st_mode) || !st.st_size || (size_t)st.st_size > most)
        fault = "not a file, empty or too large";
    else if (secret && st.st_mode & 077)
        fault = "others than its owner may use it; chmod 600";
    char *text = fault ? NULL : malloc((size_t)st.st_size + 1);
    ssize_t n = text ? read(fd, text, (size_t)st.st_size) : -1;
    close(fd);
    if (text && n == st.st_size) {
        text[n] = '\0';
        *ret = text;
        *ret_len = (size_t)n;
        return true;
    }
    free(text);
    return api_problem_set(problem, API_IO, QDQ_AT_NOTHING, NULL, "%s: %s", path,
                           fault ? fault : "cannot be read in full");
}

/* --- the configuration ---------------------------------------------------- */

struct reader {
    const char *path;
    FILE *file;
    int line;
    char section[64]; /* that of the last key */
    unsigned given;   /* a bit for each of its keys */
    bool found;
    struct operand *operand;
    struct api_problem *problem;
};

static bool
fail_line(struct reader *reader, const char *key, const char *what)
{
    return api_problem_set(reader->problem, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL,
                           "%s:%d: %s%s%s", reader->path, reader->line, key,
                           *key ? ": " : "", what);
}

static bool
set_value(struct reader *reader, const struct key *key, const char *value)
{
    struct operand *operand = reader->operand;
    void *field = (char *)&operand->remote + key->field;
    char *text = NULL;
    size_t len = 0;
    switch (key->type) {
    case DAEMON:
        return true;
    case FLAG:
        *(bool *)field = strcmp(value, "true") == 0;
        return *(bool *)field || strcmp(value, "false") == 0 ||
               fail_line(reader, key->name, "not true or false");
    case SECONDS:
    case BYTES:
    case RATE:
    case LIMIT:
        return parse_number(value, key->type, field) ||
               fail_line(reader, key->name, "not a number");
    case TEXT:
        text = strdup(value);
        if (!text)
            return api_problem_no_memory(reader->problem);
        break;
    case SECRET:
    case CA:
        if (!*value)
            return true;
        if (!read_small_file(value, key->type == CA ? MAX_CA : MAX_SECRET,
                             key->type == SECRET, &text, &len, reader->problem))
            return false;
        break;
    }
    if (key->type == CA)
        operand->remote.ca_len = len;
    *(const char **)field = keep_text(operand, text);
    return true;
}

/* Passes lines to inih and counts them. Stops after an error. */
static char *
read_line(char *buf, int size, void *arg)
{
    struct reader *reader = arg;
    if (reader->problem->set || !fgets(buf, size, reader->file))
        return NULL;
    reader->line++;
    if (strlen(buf) + 1 == (size_t)size && buf[size - 2] != '\n') {
        fail_line(reader, "", "a line that is too long");
        return NULL;
    }
    return buf;
}

static int
on_key(void *arg, const char *section, const char *name, const char *value)
{
    struct reader *reader = arg;
    size_t row = 0;
    if (reader->problem->set || strncmp(section, "remote ", 7) != 0)
        return 1;
    bool is_wanted = strcmp(section + 7, reader->operand->name) == 0;
    while (row < N_KEYS && strcmp(keys[row].name, name) != 0)
        row++;
    if (row == N_KEYS)
        return fail_line(reader, name, "no key of a remote");
    if (strcmp(section, reader->section) != 0) {
        snprintf(reader->section, sizeof reader->section, "%s", section);
        reader->given = 0;
        if (is_wanted && reader->found)
            return fail_line(reader, section, "this section is given twice");
    }
    if (reader->given >> row & 1)
        return fail_line(reader, name, "given twice");
    reader->given |= 1U << row;
    if (!is_wanted)
        return 1;
    reader->found = true;
    return set_value(reader, &keys[row], value);
}

/* Returns the path of the user's own configuration; NULL: there is no home. */
static char *
default_config(void)
{
    const char *folder = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    char *path;
    bool has_folder = folder && *folder == '/';
    if (!has_folder && !home)
        return NULL;
    int n = has_folder ? asprintf(&path, "%s/qdq/remotes.conf", folder)
                       : asprintf(&path, "%s/.config/qdq/remotes.conf", home);
    return n < 0 ? NULL : path;
}

static bool
read_config(const char *path, struct operand *operand, struct api_problem *problem)
{
    struct reader reader = {.path = path, .operand = operand, .problem = problem};
    reader.file = fopen(path, "re");
    if (!reader.file)
        return api_problem_set(problem, API_REMOTE_UNKNOWN, QDQ_AT_NOTHING, NULL,
                               "the file of remotes %s: %s", path, strerror(errno));
    int line = ini_parse_stream(read_line, &reader, on_key, &reader);
    bool broken = ferror(reader.file);
    fclose(reader.file);
    if (line && !problem->set)
        return api_problem_set(problem, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL,
                               "%s:%d: not a section, key = value or comment", path,
                               line);
    if (broken)
        return api_problem_set(problem, API_IO, QDQ_AT_NOTHING, NULL,
                               "%s: cannot be read", path);
    return !problem->set &&
           (reader.found ||
            api_problem_set(problem, API_REMOTE_UNKNOWN, QDQ_AT_NOTHING, NULL,
                            "%s has no section [remote %s]", path, operand->name));
}

/* --- operands ------------------------------------------------------------- */

static bool
split_operand(const char *text, struct operand *ret, struct api_problem *problem)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
    size_t len = strspn(text, letters);
    if (len == 0 || len > MAX_NAME || text[len] != ':')
        return api_problem_set(problem, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL,
                               "\"%.200s\" is not REMOTE:REF, with the name of a "
                               "remote before the first colon",
                               text);
    snprintf(ret->name, sizeof ret->name, "%.*s", (int)len, text);
    ret->text = text;
    ret->ref = text + len + 1;
    return true;
}

bool
operand_open(const struct options *options, struct operand *ret,
             struct api_problem *problem)
{
    *ret = (struct operand){.text = options->model};
    ret->remote = (struct qdqr_remote){.name = ret->name,
                                       .kind = "",
                                       .url = "",
                                       .path_style = true,
                                       .min_rate = MIN_RATE};
    if (!split_operand(options->model, ret, problem))
        return false;
    char *own = options->config ? NULL : default_config();
    const char *path = options->config ? options->config : own;
    bool ok = path ? read_config(path, ret, problem)
                   : api_problem_set(problem, API_REMOTE_UNKNOWN, QDQ_AT_NOTHING, NULL,
                                     "--config is missing, and HOME is not set");
    free(own);
    if (!ok)
        return false;
    if (!qdqr_init())
        return api_problem_set(problem, API_IO, QDQ_AT_NOTHING, NULL,
                               "libcurl cannot be used");
    return qdqr_check(&ret->remote, problem) || operand_fail(ret, problem);
}

void
operand_close(struct operand *operand)
{
    for (size_t i = 0; i < operand->n_texts; i++) {
        explicit_bzero(operand->texts[i], strlen(operand->texts[i]));
        free(operand->texts[i]);
    }
    operand->n_texts = 0;
}

bool
operand_fail(const struct operand *operand, struct api_problem *problem)
{
    struct api_problem first = *problem;
    *problem = (struct api_problem){0};
    return api_problem_set(problem, first.code, first.kind, first.where, "%s: %s",
                           operand->text, first.detail);
}

void
print_version(const struct operand *operand, const char *ref)
{
    printf("%s:", operand->name);
    put_text(stdout, ref, 0);
    putchar('\n');
}

/* --- progress ------------------------------------------------------------- */

static int64_t
milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool
on_progress(void *arg, int64_t done, int64_t total)
{
    struct transfer *transfer = arg;
    int64_t now = milliseconds();
    if (!transfer->shown || now - transfer->drawn_at < 200)
        return true;
    transfer->drawn_at = now;
    fputs("\r\033[K", stderr);
    put_text(stderr, transfer->label, 0);
    fprintf(stderr, " %.1f", (double)done / 1e6);
    if (total > 0)
        fprintf(stderr, " of %.1f", (double)total / 1e6);
    fprintf(stderr, " MB");
    fflush(stderr);
    return true;
}

void
transfer_start(struct transfer *transfer, const char *label)
{
    *transfer = (struct transfer){.label = label, .shown = isatty(STDERR_FILENO)};
    transfer->call.on_progress = on_progress;
    transfer->call.arg = transfer;
}

void
transfer_end(struct transfer *transfer)
{
    if (transfer->shown) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
}
