/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "settings/remotes.h"
#include "settings/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_FILES 1000
#define MOST_URL 1000
#define MOST_SECRET (64 << 10) /* bytes of a file of credentials */
#define MOST_CA (4 << 20)

/* The kinds as bits, for the rows. */
enum {
    MLFLOW = 1,
    OCI = 2,
    S3 = 4,
    WEBHOOK = 8,
    STORES = MLFLOW | OCI | S3, /* kinds that hold models */
    ALL_KINDS = STORES | WEBHOOK
};

static const struct {
    const char *name;
    unsigned bit;
} kinds[] = {{"mlflow", MLFLOW}, {"oci", OCI}, {"s3", S3}, {"webhook", WEBHOOK}};

static const struct setting_row rows[] = {
#define REMOTE_TEXT(key, def, kinds, text) REMOTE_CHOICE(key, def, NULL, kinds, text)
#define REMOTE_CHOICE(key, def, choices, kinds, text) \
    ROW_TEXT("remote", #key, struct remote, key, def, choices, NOW, text),
#define REMOTE_NUMBER(key, def, min, max, unit, kinds, text) \
    ROW_NUMBER("remote", #key, struct remote, key, def, min, max, unit, NOW, text),
#include "settings/remote_keys.h"
#undef REMOTE_TEXT
#undef REMOTE_CHOICE
#undef REMOTE_NUMBER
};

#define N_ROWS (sizeof rows / sizeof *rows)

static const unsigned kinds_of_rows[N_ROWS] = {
#define REMOTE_TEXT(key, def, kinds, text) kinds,
#define REMOTE_CHOICE(key, def, choices, kinds, text) kinds,
#define REMOTE_NUMBER(key, def, min, max, unit, kinds, text) kinds,
#include "settings/remote_keys.h"
#undef REMOTE_TEXT
#undef REMOTE_CHOICE
#undef REMOTE_NUMBER
};

const struct section_kind remote_kind = {"remote", sizeof(struct remote), rows, N_ROWS};

/* --- sets ----------------------------------------------------------------- */

struct remotes *
remotes_new(void)
{
    struct remotes *remotes = calloc(1, sizeof *remotes);
    if (!remotes)
        return NULL;
    remotes->sections.kinds = &remote_kind;
    remotes->sections.n_kinds = 1;
    atomic_init(&remotes->users, 1);
    return remotes;
}

struct remotes *
remotes_hold(struct remotes *remotes)
{
    if (remotes)
        atomic_fetch_add(&remotes->users, 1);
    return remotes;
}

void
remotes_release(struct remotes **remotes)
{
    struct remotes *old = *remotes;
    *remotes = NULL;
    if (!old || atomic_fetch_sub(&old->users, 1) > 1)
        return;
    sections_fini(&old->sections);
    free(old);
}

const struct remote *
remotes_first(const struct remotes *remotes)
{
    return remotes ? (const struct remote *)remotes->sections.first : NULL;
}

const struct remote *
remotes_next(const struct remote *remote)
{
    return (const struct remote *)remote->section.next;
}

const struct remote *
remotes_find(const struct remotes *remotes, const char *name)
{
    return remotes ? (const struct remote *)sections_find(&remotes->sections, "remote",
                                                          name)
                   : NULL;
}

/* --- lists of words ------------------------------------------------------- */

/* Returns the next word of a list with commas between and moves *list behind it; NULL
   at the end. Spaces around a word are dropped. */
static const char *
next_word(const char **list, size_t *ret_len)
{
    *list += strspn(*list, ", \t");
    size_t len = strcspn(*list, ", \t");
    const char *word = *list;
    *list += len;
    *ret_len = len;
    return len ? word : NULL;
}

static bool
lists(const char *list, const char *wanted)
{
    size_t len;
    for (const char *word; (word = next_word(&list, &len));)
        if (strlen(wanted) == len && !memcmp(word, wanted, len))
            return true;
    return false;
}

bool
remote_allows(const struct remote *remote, const char *tenant, const char *scopes)
{
    size_t len;
    char scope[16];
    bool allowed = lists(scopes, "admin");
    for (const char *word; !allowed && (word = next_word(&scopes, &len));) {
        snprintf(scope, sizeof scope, "%.*s", (int)len, word);
        allowed = lists(remote->scopes, scope);
    }
    return allowed && (lists(remote->tenants, "*") ||
                       lists(remote->tenants, *tenant ? tenant : "-"));
}

/* --- checks --------------------------------------------------------------- */

static bool
fail(char error[SETTINGS_ERROR], const struct remote *remote, const char *key,
     const char *what)
{
    snprintf(error, SETTINGS_ERROR, "%.200s: [remote %s] %s: %.200s",
             remote->section.where, remote->section.name, key, what);
    return false;
}

static unsigned
kind_bit(const struct remote *remote)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i].name, remote->kind))
            return kinds[i].bit;
    return 0;
}

bool
remote_has_key(const struct remote *remote, size_t row)
{
    return kinds_of_rows[row] & kind_bit(remote);
}

void
remote_key_kinds(size_t row, char ret[REMOTE_KINDS])
{
    size_t at = 0;
    ret[0] = '\0';
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds_of_rows[row] != ALL_KINDS && kinds_of_rows[row] & kinds[i].bit)
            at += (size_t)snprintf(ret + at, REMOTE_KINDS - at, "%s%s", at ? ", " : "",
                                   kinds[i].name);
}

/* Checks that the kind is given, and that each key is for that kind. */
static bool
check_kind(const struct remote *remote, char error[SETTINGS_ERROR])
{
    char what[SETTING_WHAT];
    unsigned bit = kind_bit(remote);
    if (!bit)
        return fail(error, remote, "kind", "is missing: mlflow, oci, s3 or webhook");
    snprintf(what, sizeof what, "is not for a remote of kind %s", remote->kind);
    for (size_t i = 0; i < N_ROWS; i++)
        if (remote->section.given >> i & 1 && !(kinds_of_rows[i] & bit))
            return fail(error, remote, rows[i].key, what);
    return true;
}

/* Returns what is wrong with a URL; NULL: nothing. */
static const char *
find_fault(const char *url, bool needs_path)
{
    const char *rest = !strncmp(url, "https://", 8)  ? url + 8
                       : !strncmp(url, "http://", 7) ? url + 7
                                                     : NULL;
    if (!*url)
        return "is missing";
    if (!rest)
        return "does not begin with http:// or https://";
    if (strlen(url) > MOST_URL)
        return "is too long";
    for (const char *c = url; *c; c++)
        if (*c <= ' ' || *c == 0x7f || strchr("?#\\\"<>", *c))
            return "has a space, a query, a fragment or another character that cannot "
                   "stand there";
    size_t host = strcspn(rest, "/");
    if (memchr(rest, '@', host))
        return "has a user or password; these belong in the file of credentials";
    if (!host || *rest == ':')
        return "names no host";
    return needs_path && !rest[host + strspn(rest + host, "/")] ? "names no bucket"
                                                                : NULL;
}

/* Checks a file that the carrier reads. It must be there, not empty and, where it is
   secret, readable by its owner only. "": the key names none. */
static bool
check_file(const struct remote *remote, const char *key, const char *path, bool secret,
           char error[SETTINGS_ERROR])
{
    char what[SETTING_WHAT];
    struct stat st;
    if (!*path)
        return true;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st)) {
        snprintf(what, sizeof what, "%.60s: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return fail(error, remote, key, what);
    }
    close(fd);
    if (!S_ISREG(st.st_mode) || !st.st_size)
        return fail(error, remote, key, "is no file, or is empty");
    if (st.st_size > (secret ? MOST_SECRET : MOST_CA))
        return fail(error, remote, key, "is too large");
    if (secret && st.st_mode & 077) {
        snprintf(what, sizeof what,
                 "%.60s: others than its owner may use it (mode %04o); chmod 600", path,
                 (unsigned)st.st_mode & 07777);
        return fail(error, remote, key, what);
    }
    return true;
}

/* Checks that a list has words, and only those of `words`; NULL: names of tenants. */
static bool
check_list(const struct remote *remote, const char *key, const char *list,
           const char *words, char error[SETTINGS_ERROR])
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-_.";
    char what[SETTING_WHAT], word[64];
    size_t len, n = 0;
    for (const char *at; (at = next_word(&list, &len)); n++) {
        snprintf(word, sizeof word, "%.*s", len < sizeof word ? (int)len : 0, at);
        bool known = words ? lists(words, word)
                           : !strcmp(word, "*") || strspn(word, letters) == len;
        if (*word && known)
            continue;
        snprintf(what, sizeof what, "\"%.*s\" is not one of: %s", (int)len % 40, at,
                 words ? words : "*, -, a tenant's name");
        return fail(error, remote, key, what);
    }
    return n || fail(error, remote, key, "names nothing");
}

static bool
check_webhook(const struct remote *remote, char error[SETTINGS_ERROR])
{
    const char *equals = strchr(remote->label, '=');
    if (!*remote->secret)
        return fail(error, remote, "secret", "is missing");
    if (*remote->label && (!equals || equals == remote->label))
        return fail(error, remote, "label", "is not KEY=VALUE");
    return check_list(remote, "events", remote->events,
                      "job.succeeded,job.failed,job.rejected,delivery.failed", error);
}

static bool
check_remote(const struct remote *remote, char error[SETTINGS_ERROR])
{
    const char *fault;
    if (!strcmp(remote->section.name, "sha256"))
        return fail(error, remote, "NAME", "is the beginning of stored files' ids");
    if (!check_kind(remote, error))
        return false;
    unsigned bit = kind_bit(remote);
    if ((fault = find_fault(remote->url, bit == S3)))
        return fail(error, remote, "url", fault);
    return check_list(remote, "tenants", remote->tenants, NULL, error) &&
           check_list(remote, "scopes", remote->scopes, "read,submit,admin", error) &&
           check_file(remote, "credentials", remote->credentials, true, error) &&
           check_file(remote, "secret", remote->secret, true, error) &&
           check_file(remote, "secret_old", remote->secret_old, true, error) &&
           check_file(remote, "ca", remote->ca, false, error) &&
           (bit != WEBHOOK || check_webhook(remote, error));
}

/* --- the folder ----------------------------------------------------------- */

static bool
refuse_key(void *arg, const char *section, const char *key, const char *value,
           const char *where, char error[SETTINGS_ERROR])
{
    (void)arg;
    (void)value;
    snprintf(error, SETTINGS_ERROR,
             "%s: %.60s.%.60s: only sections [remote NAME] stand in remotes.d", where,
             section, key);
    return false;
}

static int
is_conf(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);
    return *entry->d_name != '.' && len > 5 &&
           !strcmp(entry->d_name + len - 5, ".conf");
}

static bool
read_folder(struct remotes *remotes, const char *folder, char error[SETTINGS_ERROR])
{
    struct dirent **list;
    char path[PATH_MAX];
    int n = scandir(folder, &list, is_conf, alphasort);
    if (n < 0) {
        if (errno == ENOENT || errno == ENOTDIR)
            return true;
        snprintf(error, SETTINGS_ERROR, "%.200s: %s", folder, strerror(errno));
        return false;
    }
    bool ok = n <= MOST_FILES;
    if (!ok)
        snprintf(error, SETTINGS_ERROR, "%.200s: more than %d files", folder,
                 MOST_FILES);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, list[i]->d_name);
        ok =
            ok && settings_file_read(path, refuse_key, NULL, &remotes->sections, error);
        free(list[i]);
    }
    free(list);
    return ok;
}

bool
remotes_finish(struct remotes *remotes, const char *folder, char error[SETTINGS_ERROR])
{
    error[0] = '\0';
    bool ok = read_folder(remotes, folder, error);
    for (const struct remote *r = remotes_first(remotes); ok && r; r = remotes_next(r))
        ok = check_remote(r, error);
    return ok;
}
