/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "settings/remotes.h"
#include "settings/file.h"
#include "settings/runners.h"
#include "api/digest.h"
#include "api/spec.h"

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

static const struct setting_row hook_rows[] = {
#define HOOK_TEXT(key, def, text) HOOK_CHOICE(key, def, NULL, text)
#define HOOK_CHOICE(key, def, choices, text) \
    ROW_TEXT("hook", #key, struct hook, key, def, choices, NOW, text),
#define HOOK_NUMBER(key, def, min, max, unit, text) \
    ROW_NUMBER("hook", #key, struct hook, key, def, min, max, unit, NOW, text),
#include "settings/hook_keys.h"
#undef HOOK_TEXT
#undef HOOK_CHOICE
#undef HOOK_NUMBER
};

const struct section_kind named_sections[N_NAMED_SECTIONS] = {
    [REMOTE_SECTION] = {"remote", sizeof(struct remote), rows, N_ROWS},
    [HOOK_SECTION] = {"hook", sizeof(struct hook), hook_rows,
                      sizeof hook_rows / sizeof *hook_rows},
    [RUNNER_SECTION] = {"runner", sizeof(struct runner_section), runner_rows,
                        N_RUNNER_ROWS, true}};

/* --- sets ----------------------------------------------------------------- */

struct remotes *
remotes_new(void)
{
    struct remotes *remotes = calloc(1, sizeof *remotes);
    if (!remotes)
        return NULL;
    remotes->sections.kinds = named_sections;
    remotes->sections.n_kinds = N_NAMED_SECTIONS;
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

/* Returns the first section of a kind from `section` on. */
static const struct section *
skip_to(const struct section *section, int kind)
{
    while (section && section->kind != &named_sections[kind])
        section = section->next;
    return section;
}

const struct remote *
remotes_first(const struct remotes *remotes)
{
    return remotes
               ? (const struct remote *)skip_to(remotes->sections.first, REMOTE_SECTION)
               : NULL;
}

const struct remote *
remotes_next(const struct remote *remote)
{
    return (const struct remote *)skip_to(remote->section.next, REMOTE_SECTION);
}

const struct remote *
remotes_find(const struct remotes *remotes, const char *name)
{
    return remotes ? (const struct remote *)sections_find(&remotes->sections, "remote",
                                                          name)
                   : NULL;
}

const struct hook *
hooks_first(const struct remotes *remotes)
{
    return remotes ? (const struct hook *)skip_to(remotes->sections.first, HOOK_SECTION)
                   : NULL;
}

const struct hook *
hooks_next(const struct hook *hook)
{
    return (const struct hook *)skip_to(hook->section.next, HOOK_SECTION);
}

const struct hook *
hooks_find(const struct remotes *remotes, const char *name)
{
    return remotes
               ? (const struct hook *)sections_find(&remotes->sections, "hook", name)
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
    return allowed && tenant_is_listed(remote->tenants, tenant);
}

bool
tenant_is_listed(const char *list, const char *tenant)
{
    return lists(list, "*") || lists(list, *tenant ? tenant : "-");
}

void
remote_host(const struct remote *remote, char ret[REMOTE_HOST])
{
    const char *host = strstr(remote->url, "://");
    host = host ? host + 3 : remote->url;
    snprintf(ret, REMOTE_HOST, "%.*s", (int)strcspn(host, "/"), host);
}

void
webhook_split(const struct remote *remote, struct webhook_texts *ret)
{
    const char *list = remote->events, *equals = strchr(remote->label, '=');
    size_t len, at = 1;
    snprintf(ret->events, sizeof ret->events, ",");
    for (const char *word; (word = next_word(&list, &len));)
        if (at + len + 2 <= sizeof ret->events)
            at += (size_t)snprintf(ret->events + at, sizeof ret->events - at, "%.*s,",
                                   (int)len, word);
    snprintf(ret->key, sizeof ret->key, "%.*s",
             equals ? (int)(equals - remote->label) : 0, remote->label);
    snprintf(ret->value, sizeof ret->value, "%s", equals ? equals + 1 : "");
}

/* --- checks --------------------------------------------------------------- */

static bool
fail(char error[SETTINGS_ERROR], const struct section *section, const char *key,
     const char *what)
{
    snprintf(error, SETTINGS_ERROR, "%.200s: [%s %s] %s: %.200s", section->where,
             section->kind->name, section->name, key, what);
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
named_section_has(const struct section *section, size_t row)
{
    return section->kind != &named_sections[REMOTE_SECTION] ||
           kinds_of_rows[row] & kind_bit((const struct remote *)section);
}

void
named_key_kinds(const struct section_kind *kind, size_t row, char ret[REMOTE_KINDS])
{
    size_t at = 0;
    ret[0] = '\0';
    if (kind != &named_sections[REMOTE_SECTION])
        return;
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
        return fail(error, &remote->section, "kind",
                    "is missing: mlflow, oci, s3 or webhook");
    snprintf(what, sizeof what, "is not for a remote of kind %s", remote->kind);
    for (size_t i = 0; i < N_ROWS; i++)
        if (remote->section.given >> i & 1 && !(kinds_of_rows[i] & bit))
            return fail(error, &remote->section, rows[i].key, what);
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
check_file(const struct section *section, const char *key, const char *path,
           bool secret, char error[SETTINGS_ERROR])
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
        return fail(error, section, key, what);
    }
    close(fd);
    if (!S_ISREG(st.st_mode) || !st.st_size)
        return fail(error, section, key, "is no file, or is empty");
    if (st.st_size > (secret ? MOST_SECRET : MOST_CA))
        return fail(error, section, key, "is too large");
    if (secret && st.st_mode & 077) {
        snprintf(what, sizeof what,
                 "%.60s: others than its owner may use it (mode %04o); chmod 600", path,
                 (unsigned)st.st_mode & 07777);
        return fail(error, section, key, what);
    }
    return true;
}

/* Checks that a list has words, and only those of `words`; NULL: names of tenants. */
static bool
check_list(const struct section *section, const char *key, const char *list,
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
        return fail(error, section, key, what);
    }
    return n || fail(error, section, key, "names nothing");
}

static bool
check_webhook(const struct remote *remote, char error[SETTINGS_ERROR])
{
    const char *equals = strchr(remote->label, '=');
    if (!*remote->secret)
        return fail(error, &remote->section, "secret", "is missing");
    if (*remote->label && (!equals || equals == remote->label))
        return fail(error, &remote->section, "label", "is not KEY=VALUE");
    return check_list(&remote->section, "events", remote->events,
                      "job.succeeded,job.failed,job.rejected,delivery.failed", error);
}

static bool
check_remote(const struct remote *remote, char error[SETTINGS_ERROR])
{
    const char *fault;
    if (!check_kind(remote, error))
        return false;
    unsigned bit = kind_bit(remote);
    if ((fault = find_fault(remote->url, bit == S3)))
        return fail(error, &remote->section, "url", fault);
    if (*remote->artifacts_url && (fault = find_fault(remote->artifacts_url, true)))
        return fail(error, &remote->section, "artifacts_url", fault);
    if (*remote->artifacts_credentials && !*remote->artifacts_url)
        return fail(error, &remote->section, "artifacts_credentials",
                    "needs an artifacts_url");
    return check_list(&remote->section, "tenants", remote->tenants, NULL, error) &&
           check_list(&remote->section, "scopes", remote->scopes, "read,submit,admin",
                      error) &&
           check_file(&remote->section, "credentials", remote->credentials, true,
                      error) &&
           check_file(&remote->section, "artifacts_credentials",
                      remote->artifacts_credentials, true, error) &&
           check_file(&remote->section, "secret", remote->secret, true, error) &&
           check_file(&remote->section, "secret_old", remote->secret_old, true,
                      error) &&
           check_file(&remote->section, "ca", remote->ca, false, error) &&
           check_file(&remote->section, "signers", remote->signers, false, error) &&
           (bit != WEBHOOK || check_webhook(remote, error));
}

/* --- hooks ---------------------------------------------------------------- */

static bool
check_spec(const struct hook *hook, char error[SETTINGS_ERROR])
{
    struct api_problem problem = {0};
    struct api_spec *spec = NULL;
    char what[SETTINGS_ERROR] = "cannot be read", *text;
    if (!*hook->spec)
        return true;
    if (!check_file(&hook->section, "spec", hook->spec, false, error))
        return false;
    FILE *file = fopen(hook->spec, "re");
    text = file ? malloc(MOST_CA + 1) : NULL;
    size_t len = text ? fread(text, 1, MOST_CA + 1, file) : 0;
    bool ok = text && !ferror(file) && len <= MOST_CA;
    if (ok && !(ok = api_spec_decode(text, len, &spec, &problem)))
        snprintf(what, sizeof what, "%.60s: %.60s%s%.120s", hook->spec, problem.where,
                 *problem.where ? ": " : "", problem.detail);
    api_spec_free(&spec);
    free(text);
    if (file)
        fclose(file);
    return ok || fail(error, &hook->section, "spec", what);
}

/* Checks "sha256:…", or REMOTE:REF with a remote of the set that holds files. */
static bool
check_calibration(const struct remotes *remotes, const struct hook *hook,
                  char error[SETTINGS_ERROR])
{
    char name[SECTION_NAME];
    const char *text = hook->calibration, *colon = strchr(text, ':');
    if (!*text || digest_is_id(text))
        return true;
    size_t len = colon ? (size_t)(colon - text) : 0;
    if (!len || len >= sizeof name || !colon[1])
        return fail(error, &hook->section, "calibration",
                    "is neither an id sha256:... nor REMOTE:REF");
    snprintf(name, sizeof name, "%.*s", (int)len, text);
    const struct remote *remote = remotes_find(remotes, name);
    return (remote && kind_bit(remote) & STORES) ||
           fail(error, &hook->section, "calibration",
                "names no remote that holds files");
}

static bool
check_hook_texts(const struct hook *hook, char error[SETTINGS_ERROR])
{
    if (!*hook->models)
        return fail(error, &hook->section, "models", "is missing");
    if (!*hook->publish)
        return fail(error, &hook->section, "publish", "is missing");
    if (!strstr(hook->publish, "{name}") && strpbrk(hook->models, "*,"))
        return fail(error, &hook->section, "publish",
                    "lacks {name}, so that all models would go to one place");
    return *hook->secret || hook->poll ||
           fail(error, &hook->section, "secret", "is missing, and so is poll");
}

static bool
check_hook(const struct remotes *remotes, const struct hook *hook,
           char error[SETTINGS_ERROR])
{
    const struct section *section = &hook->section;
    const struct remote *remote = remotes_find(remotes, hook->remote);
    if (!*hook->remote)
        return fail(error, section, "remote", "is missing");
    if (!remote || !(kind_bit(remote) & STORES))
        return fail(error, section, "remote", "names no remote that holds models");
    if (*hook->tenant && strpbrk(hook->tenant, ", \t*"))
        return fail(error, section, "tenant", "is not the name of a tenant");
    if (*hook->tenant && !check_list(section, "tenant", hook->tenant, NULL, error))
        return false;
    if (!remote_allows(remote, hook->tenant, "admin"))
        return fail(error, section, "tenant", "may not use the remote");
    if (hook->poll && kind_bit(remote) != MLFLOW)
        return fail(error, section, "poll", "is for remotes of kind mlflow alone");
    return check_hook_texts(hook, error) &&
           check_file(section, "secret", hook->secret, true, error) &&
           check_calibration(remotes, hook, error) && check_spec(hook, error);
}

/* --- the folder ----------------------------------------------------------- */

/* A folder of files with named sections of some kinds. */
struct conf_folder {
    const char *name, *allowed;
    int first, n; /* the kinds */
};

static const struct conf_folder folders[] = {
    {"remotes.d", "[remote NAME] and [hook NAME]", REMOTE_SECTION, 2},
    {"runners.d", "[runner NAME]", RUNNER_SECTION, 1},
};

static bool
refuse_key(void *arg, const char *section, const char *key, const char *value,
           const char *where, char error[SETTINGS_ERROR])
{
    const struct conf_folder *folder = arg;
    (void)value;
    snprintf(error, SETTINGS_ERROR, "%s: %.60s.%.60s: only sections %s stand in %s",
             where, section, key, folder->allowed, folder->name);
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
read_files(struct remotes *remotes, const char *folder, const struct conf_folder *which,
           char error[SETTINGS_ERROR])
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
        snprintf(path, sizeof path, "%.3800s/%.255s", folder, list[i]->d_name);
        ok = ok && settings_file_read(path, refuse_key, (void *)(uintptr_t)which,
                                      &remotes->sections, error);
        free(list[i]);
    }
    free(list);
    return ok;
}

/* Reads a folder, in which sections of its kinds alone may stand. */
static bool
read_folder(struct remotes *remotes, const char *above, const struct conf_folder *which,
            char error[SETTINGS_ERROR])
{
    char path[PATH_MAX];
    struct sections *sections = &remotes->sections;
    snprintf(path, sizeof path, "%.3800s%s", above, which->name);
    sections->kinds = named_sections + which->first;
    sections->n_kinds = (size_t)which->n;
    bool ok = read_files(remotes, path, which, error);
    sections->kinds = named_sections;
    sections->n_kinds = N_NAMED_SECTIONS;
    return ok;
}

static bool
check_section(const struct remotes *remotes, const struct section *s,
              char error[SETTINGS_ERROR])
{
    if (!strcmp(s->name, "sha256"))
        return fail(error, s, "NAME", "is the beginning of stored files' ids");
    if (s->kind == &named_sections[REMOTE_SECTION])
        return check_remote((const struct remote *)s, error);
    if (s->kind == &named_sections[HOOK_SECTION])
        return check_hook(remotes, (const struct hook *)s, error);
    return runner_section_check(remotes, (const struct runner_section *)s, error);
}

bool
remotes_finish(struct remotes *remotes, const char *above, char error[SETTINGS_ERROR])
{
    bool ok = true;
    error[0] = '\0';
    for (size_t i = 0; ok && i < sizeof folders / sizeof *folders; i++)
        ok = read_folder(remotes, above, &folders[i], error);
    for (const struct section *s = remotes->sections.first; ok && s; s = s->next)
        ok = check_section(remotes, s, error);
    return ok;
}
