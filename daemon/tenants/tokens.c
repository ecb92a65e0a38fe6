/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "tenants/tokens.h"
#include "settings/settings.h"
#include "api/grow.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LINE 512
#define MOST_TOKENS 10000
#define SECRET_BYTES 32

static const struct {
    const char *name;
    unsigned bit;
} scopes[] = {{"read", TOKEN_READ},
              {"submit", TOKEN_SUBMIT},
              {"admin", TOKEN_ADMIN},
              {"metrics", TOKEN_METRICS}};

#define N_SCOPES (sizeof scopes / sizeof *scopes)

static bool
fail(struct api_problem *p, const char *path, const char *what)
{
    return api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL, "%s: %s", path, what);
}

bool
tokens_path(const struct settings *settings, char ret[TOKEN_PATH],
            struct api_problem *p)
{
    const char *path = settings->auth_tokens;
    int len = *path ? snprintf(ret, TOKEN_PATH, "%s", path)
                    : snprintf(ret, TOKEN_PATH, "%s/tokens", settings->state_dir);
    return len < TOKEN_PATH || fail(p, "auth.tokens", "the path is too long");
}

/* --- scopes --------------------------------------------------------------- */

unsigned
token_scopes_parse(const char *text)
{
    unsigned all = 0;
    while (*text) {
        size_t len = strcspn(text, ","), i = 0;
        while (i < N_SCOPES && (strlen(scopes[i].name) != len ||
                                strncmp(scopes[i].name, text, len) != 0))
            i++;
        if (i == N_SCOPES)
            return 0;
        all |= scopes[i].bit;
        text += len;
        text += *text == ',' && text[1];
    }
    return all;
}

void
token_scopes_print(unsigned all, char ret[TOKEN_SCOPES])
{
    size_t at = 0;
    ret[0] = '\0';
    for (size_t i = 0; i < N_SCOPES; i++)
        if (all & scopes[i].bit)
            at += (size_t)snprintf(ret + at, TOKEN_SCOPES - at, "%s%s", at ? "," : "",
                                   scopes[i].name);
}

/* --- limits --------------------------------------------------------------- */

static const struct {
    const char *name;
    size_t offset;
} limit_rows[] = {
#define LIMIT(member) {#member, offsetof(struct tenant_limits, member)},
    TENANT_LIMITS(LIMIT)
#undef LIMIT
};

#define N_LIMITS (sizeof limit_rows / sizeof *limit_rows)

static int64_t *
limit_at(struct tenant_limits *limits, size_t i)
{
    return (int64_t *)((char *)limits + limit_rows[i].offset);
}

static int64_t
limit_of(const struct tenant_limits *limits, size_t i)
{
    return *(const int64_t *)((const char *)limits + limit_rows[i].offset);
}

bool
token_has_limits(const struct tenant_limits *limits)
{
    bool any = false;
    for (size_t i = 0; i < N_LIMITS; i++)
        any = any || limit_of(limits, i);
    return any;
}

/* Parses one "NAME=DIGITS" and moves *text behind it. */
static bool
parse_limit(const char **text, struct tenant_limits *ret)
{
    char *end;
    const char *digits = *text + strcspn(*text, "=,");
    size_t len = (size_t)(digits - *text), i = 0;
    if (*digits++ != '=' || *digits < '1' || *digits > '9')
        return false;
    while (i < N_LIMITS && (strlen(limit_rows[i].name) != len ||
                            strncmp(limit_rows[i].name, *text, len) != 0))
        i++;
    errno = 0;
    long long n = strtoll(digits, &end, 10);
    *text = end;
    if (i == N_LIMITS || errno || *limit_at(ret, i))
        return false;
    *limit_at(ret, i) = n;
    return true;
}

bool
token_limits_parse(const char *text, struct tenant_limits *ret)
{
    *ret = (struct tenant_limits){0};
    while (*text)
        if (!parse_limit(&text, ret) || (*text && (*text++ != ',' || !*text)))
            return false;
    return true;
}

void
token_limits_print(const struct tenant_limits *limits, char ret[TOKEN_LIMITS])
{
    size_t at = 0;
    ret[0] = '\0';
    for (size_t i = 0; i < N_LIMITS; i++)
        if (limit_of(limits, i))
            at += (size_t)snprintf(ret + at, TOKEN_LIMITS - at, "%s%s=%lld",
                                   at ? "," : "", limit_rows[i].name,
                                   (long long)limit_of(limits, i));
}

void
token_limits_tighten(struct tenant_limits *limits, const struct tenant_limits *also)
{
    for (size_t i = 0; i < N_LIMITS; i++) {
        int64_t *one = limit_at(limits, i), other = limit_of(also, i);
        if (other && (!*one || other < *one))
            *one = other;
    }
}

void
token_limits_set(struct tenant_limits *limits, const struct tenant_limits *to)
{
    for (size_t i = 0; i < N_LIMITS; i++)
        if (limit_of(to, i) != TOKEN_AS_IT_WAS)
            *limit_at(limits, i) = limit_of(to, i);
}

/* --- reading -------------------------------------------------------------- */

enum { NAME, HASH, SCOPES, TENANT, MADE, LIMITS, N_WORDS };

/* Splits a line at single spaces. Every word but the last has to be there. */
static bool
cut(char *line, char *words[N_WORDS])
{
    size_t n = 0;
    bool more = true;
    while (more && n < N_WORDS) {
        words[n] = line;
        line += strcspn(line, " ");
        if (line == words[n++])
            return false;
        more = *line == ' ';
        if (more)
            *line++ = '\0';
    }
    for (size_t i = n; i < N_WORDS; i++)
        words[i] = line;
    return !more && n >= LIMITS;
}

bool
token_parse(char *line, struct token *ret)
{
    char *words[N_WORDS];
    struct tenant_limits limits;
    if (!cut(line, words))
        return false;
    bool tenant = strcmp(words[TENANT], "-") != 0;
    unsigned parsed = token_scopes_parse(words[SCOPES]);
    if (!tenant_is_name(words[NAME]) || !digest_is_id(words[HASH]) || !parsed ||
        (tenant ? !tenant_is_name(words[TENANT]) : *words[LIMITS] != '\0') ||
        strlen(words[MADE]) >= sizeof ret->made ||
        !token_limits_parse(words[LIMITS], &limits))
        return false;
    *ret = (struct token){.scopes = parsed, .limits = limits};
    snprintf(ret->name, sizeof ret->name, "%s", words[NAME]);
    snprintf(ret->hash, sizeof ret->hash, "%s", words[HASH]);
    snprintf(ret->tenant, sizeof ret->tenant, "%s", tenant ? words[TENANT] : "");
    snprintf(ret->made, sizeof ret->made, "%s", words[MADE]);
    return true;
}

static bool
read_lines(FILE *file, const char *path, struct token **list, size_t *n,
           struct api_problem *p)
{
    char line[LINE], what[64];
    int number = 0;
    while (fgets(line, sizeof line, file)) {
        number++;
        size_t len = strcspn(line, "\n");
        bool whole = line[len] == '\n' || feof(file);
        line[len] = '\0';
        if (line[0] == '#' || (whole && !len))
            continue;
        struct token *grown =
            *n < MOST_TOKENS ? api_grow(*list, *n, 1, sizeof **list) : NULL;
        if (!grown)
            return *n < MOST_TOKENS ? api_problem_no_memory(p)
                                    : fail(p, path, "too many tokens");
        *list = grown;
        snprintf(what, sizeof what, "line %d is no token", number);
        if (!whole || !token_parse(line, &grown[*n]))
            return fail(p, path, what);
        ++*n;
    }
    return !ferror(file) || fail(p, path, "cannot be read");
}

bool
token_file_read(const char *path, struct token **ret, size_t *ret_n, bool *ret_there,
                struct api_problem *p)
{
    struct token *list = NULL;
    size_t n = 0;
    struct stat st;
    FILE *file = fopen(path, "re");
    *ret_there = file || errno != ENOENT;
    *ret = NULL;
    *ret_n = 0;
    if (!file)
        return !*ret_there || fail(p, path, strerror(errno));
    bool ok = (fstat(fileno(file), &st) == 0 && !(st.st_mode & 022)) ||
              fail(p, path, "others than its owner may write it");
    ok = ok && read_lines(file, path, &list, &n, p);
    fclose(file);
    if (!ok) {
        free(list);
        return false;
    }
    *ret = list;
    *ret_n = n;
    return true;
}

/* --- writing -------------------------------------------------------------- */

static bool
write_lines(int fd, const struct token *list, size_t n)
{
    char words[TOKEN_SCOPES], limits[TOKEN_LIMITS];
    FILE *file = fdopen(fd, "w");
    if (!file) {
        close(fd);
        return false;
    }
    fprintf(file, "# Tokens of qdqd: name, hash, scopes, tenant, when it was made,\n"
                  "# limits of the tenant.\n"
                  "# Written by `qdqd token`; a running daemon sees every change.\n");
    for (size_t i = 0; i < n; i++) {
        token_scopes_print(list[i].scopes, words);
        token_limits_print(&list[i].limits, limits);
        fprintf(file, "%s %s %s %s %s%s%s\n", list[i].name, list[i].hash, words,
                *list[i].tenant ? list[i].tenant : "-", list[i].made,
                *limits ? " " : "", limits);
    }
    bool ok = !fflush(file) && !fsync(fileno(file));
    return !fclose(file) && ok;
}

/* Where root has opened a file, it becomes that of the folder's owner, who has to open it, too.
   The owner may have put a link in the file's place: another file is not given away. */
static bool
give_to_owner(int fd, int folder)
{
    struct stat owner, st;
    if (geteuid() != 0)
        return true;
    if (fstat(folder, &owner) || fstat(fd, &st))
        return false;
    if (!S_ISREG(st.st_mode) || st.st_nlink != 1) {
        errno = EMLINK;
        return false;
    }
    return fchown(fd, owner.st_uid, owner.st_gid) == 0;
}

/* Opens the folder of the file, and locks a file beside it against other writers. The
   folder itself may be the state folder, which a running daemon has locked. */
static bool
lock_file(const char *path, int *ret_folder, int *ret_lock, struct api_problem *p)
{
    char copy[TOKEN_PATH], name[TOKEN_PATH + 8];
    snprintf(copy, sizeof copy, "%s", path);
    snprintf(name, sizeof name, "%s.lock", path);
    const char *folder = dirname(copy);
    if (mkdir(folder, 0700) && errno != EEXIST)
        return fail(p, folder, strerror(errno));
    *ret_folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*ret_folder < 0)
        return fail(p, folder, strerror(errno));
    *ret_lock = open(name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    return (*ret_lock >= 0 && give_to_owner(*ret_lock, *ret_folder) &&
            flock(*ret_lock, LOCK_EX) == 0) ||
           fail(p, name, strerror(errno));
}

/* Replaces the file by the list, atomically and durably. */
static bool
replace(const char *path, int folder, const struct token *list, size_t n,
        struct api_problem *p)
{
    char temporary[TOKEN_PATH + 8];
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    if (unlink(temporary) && errno != ENOENT)
        return fail(p, temporary, strerror(errno));
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return fail(p, temporary, strerror(errno));
    bool ok = fchmod(fd, 0600) == 0 && give_to_owner(fd, folder);
    if (!ok)
        close(fd);
    ok = ok && write_lines(fd, list, n) && rename(temporary, path) == 0 &&
         fsync(folder) == 0;
    if (ok)
        return true;
    fail(p, path, strerror(errno));
    unlink(temporary);
    return false;
}

static struct token *
find(struct token *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(list[i].name, name))
            return &list[i];
    return NULL;
}

bool
token_make_secret(struct token *token, char ret[TOKEN_SIZE], struct api_problem *p)
{
    unsigned char bytes[SECRET_BYTES];
    struct tm tm;
    time_t now = time(NULL);
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return api_problem_set(p, API_INTERNAL, QDQ_AT_NOTHING, NULL,
                               "no random bytes: %s", strerror(errno));
    int at = snprintf(ret, TOKEN_SIZE, "qdqd_");
    for (size_t i = 0; i < sizeof bytes; i++)
        at += snprintf(ret + at, TOKEN_SIZE - (size_t)at, "%02x", bytes[i]);
    gmtime_r(&now, &tm);
    strftime(token->made, sizeof token->made, "%Y-%m-%dT%H:%M:%SZ", &tm);
    return digest_of(ret, strlen(ret), token->hash) || api_problem_no_memory(p);
}

/* The file while it is being changed. */
struct edit {
    const char *path;
    int folder, lock; /* -1: not open */
    struct token *list;
    size_t n;
};

static bool
edit_begin(struct edit *edit, const char *path, struct api_problem *p)
{
    bool there;
    *edit = (struct edit){.path = path, .folder = -1, .lock = -1};
    return lock_file(path, &edit->folder, &edit->lock, p) &&
           token_file_read(path, &edit->list, &edit->n, &there, p);
}

/* Writes the file if `ok`, and unlocks it. */
static bool
edit_end(struct edit *edit, bool ok, struct api_problem *p)
{
    ok = ok && replace(edit->path, edit->folder, edit->list, edit->n, p);
    free(edit->list);
    if (edit->folder >= 0)
        close(edit->folder);
    if (edit->lock >= 0)
        close(edit->lock);
    return ok;
}

static bool
edit_find(const struct edit *edit, const char *name, struct token **ret,
          struct api_problem *p)
{
    *ret = find(edit->list, edit->n, name);
    return *ret || api_problem_set(p, API_NOT_FOUND, QDQ_AT_NOTHING, NULL,
                                   "%s: there is no token of this name", name);
}

static bool
append(struct edit *edit, const struct token *token, struct api_problem *p)
{
    if (find(edit->list, edit->n, token->name))
        return fail(p, token->name, "there is a token of this name");
    struct token *grown = api_grow(edit->list, edit->n, 1, sizeof *grown);
    if (!grown)
        return api_problem_no_memory(p);
    edit->list = grown;
    edit->list[edit->n++] = *token;
    return true;
}

bool
token_check_limited(const struct token *token, struct api_problem *p)
{
    return *token->tenant || !token_has_limits(&token->limits) ||
           api_problem_set(p, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL,
                           "%s: limits are a tenant's, and it has none", token->name);
}

bool
token_file_add(const char *path, struct token *token, char ret[TOKEN_SIZE],
               struct api_problem *p)
{
    struct edit edit;
    if (!token_check_limited(token, p) || !token_make_secret(token, ret, p))
        return false;
    bool ok = edit_begin(&edit, path, p) && append(&edit, token, p);
    return edit_end(&edit, ok, p);
}

bool
token_file_limit(const char *path, const char *name, const struct tenant_limits *limits,
                 struct api_problem *p)
{
    struct edit edit;
    struct token *token = NULL;
    bool ok = edit_begin(&edit, path, p) && edit_find(&edit, name, &token, p);
    if (ok)
        token_limits_set(&token->limits, limits);
    return edit_end(&edit, ok && token_check_limited(token, p), p);
}

bool
token_file_remove(const char *path, const char *name, struct api_problem *p)
{
    struct edit edit;
    struct token *token = NULL;
    bool ok = edit_begin(&edit, path, p) && edit_find(&edit, name, &token, p);
    if (ok)
        *token = edit.list[--edit.n];
    return edit_end(&edit, ok, p);
}
