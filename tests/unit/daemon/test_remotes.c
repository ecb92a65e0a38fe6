/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "settings/remotes.h"
#include "settings/file.h"
#include "daemon.h"

#include <sys/stat.h>

static struct remotes *remotes;
static char error[SETTINGS_ERROR];

static void
set_up(void)
{
    scratch_make();
    scratch_write("secret", "bearer abc\n");
    scratch_write("open", "bearer abc\n");
    scratch_write("empty", "");
    scratch_write("spec", "{\"mod\": \"full\"}");
    scratch_write("good", "{\"mode\": \"full\"}");
    chmod(scratch_path("secret"), 0600);
    chmod(scratch_path("open"), 0640);
    chmod(scratch_path("empty"), 0600);
    remotes = remotes_new();
    ck_assert_ptr_nonnull(remotes);
}

static void
tear_down(void)
{
    remotes_release(&remotes);
    scratch_remove();
}

static bool
note(void *arg, const char *section, const char *key, const char *value,
     const char *where, char problem[SETTINGS_ERROR])
{
    (void)arg;
    snprintf(problem, SETTINGS_ERROR, "%s: %s.%s=%s", where, section, key, value);
    return false;
}

/* Reads a file with the remotes, in which "@" stands for the scratch folder, and the
   folder remotes.d. */
static bool
read_text(const char *text)
{
    char whole[2048], folder[128];
    size_t at = 0;
    for (; *text && at < sizeof whole - 128; text++)
        at += (size_t)(*text == '@' ? snprintf(whole + at, 128, "%s", scratch)
                                    : snprintf(whole + at, 2, "%c", *text));
    scratch_write("qdqd.conf", whole);
    snprintf(folder, sizeof folder, "%s", scratch_path(""));
    return settings_file_read(scratch_path("qdqd.conf"), note, NULL, &remotes->sections,
                              error) &&
           remotes_finish(remotes, folder, error);
}

#define MLFLOW "[remote a]\nkind = mlflow\nurl = http://h:5000\n"
#define S3 "[remote a]\nkind = s3\nurl = https://h/bucket\n"
#define WEBHOOK "[remote a]\nkind = webhook\nurl = https://h/in\nsecret = @/secret\n"

#define HOOK "[hook h]\nmodels = *\npublish = x/{name}\nsecret = @/secret\n"

static const struct {
    const char *text, *wanted[3]; /* texts that the error contains */
} bad[] = {
    {"\n[remote a]\nurl = http://h\n", {"conf:2: [remote a] kind", "is missing"}},
    {"[remote a]\nkind = ftp\n", {"conf:2: [remote a] kind", "not one of"}},
    {"[remote a]\nkind = mlflow\n", {"conf:1: [remote a] url", "is missing"}},
    {"[remote A]\n", {"conf:1: [remote A]", "name"}},
    {"[remote sha256]\n", {"conf:1: [remote sha256]", "ids"}},
    {"[remote a]\nkind = oci\nurl = ftp://h\n", {"url", "http://"}},
    {"[remote a]\nkind = oci\nurl = https://\n", {"url", "names no host"}},
    {"[remote a]\nkind = oci\nurl = https://:80/x\n", {"url", "names no host"}},
    {"[remote a]\nkind = oci\nurl = https://h/x?y=1\n", {"url", "query"}},
    {"[remote a]\nkind = oci\nurl = https://h/a b\n", {"url", "space"}},
    {"[remote a]\nkind = s3\nurl = https://h/\n", {"url", "names no bucket"}},
    {MLFLOW "events = job.failed\n",
     {"[remote a] events", "not for a remote of kind mlflow"}},
    {MLFLOW "artifacts_url = https://h\n", {"artifacts_url", "names no bucket"}},
    {MLFLOW "artifacts_credentials = @/secret\n", {"needs an artifacts_url"}},
    {MLFLOW "artifacts_url = https://h/b\nartifacts_credentials = @/open\n",
     {"artifacts_credentials", "0640"}},
    {MLFLOW "secret = @/secret\n", {"secret", "not for a remote of kind mlflow"}},
    {MLFLOW "timeout = 0\n", {"conf:4: [remote a] timeout", "between"}},
    {MLFLOW "allow_private = yes\n", {"conf:4", "allow_private", "false true"}},
    {MLFLOW "tenants =\n", {"tenants", "names nothing"}},
    {MLFLOW "tenants = a,B\n", {"tenants", "\"B\""}},
    {MLFLOW "scopes = submit,write\n", {"scopes", "\"write\"", "read,submit,admin"}},
    {MLFLOW "credentials = @/none\n", {"credentials", "No such file"}},
    {MLFLOW "credentials = @/open\n", {"credentials", "0640", "chmod 600"}},
    {MLFLOW "credentials = @/empty\n", {"credentials", "empty"}},
    {MLFLOW "credentials = @\n", {"credentials", "is no file"}},
    {MLFLOW "ca = @/none\n", {"ca", "No such file"}},
    {S3 "path_style = maybe\n", {"path_style", "true false"}},
    {WEBHOOK "credentials = @/secret\n", {"credentials", "kind webhook"}},
    {WEBHOOK "secret_old = @/open\n", {"secret_old", "0640"}},
    {WEBHOOK "label = team\n", {"label", "KEY=VALUE"}},
    {WEBHOOK "events = job.started\n", {"events", "\"job.started\""}},
    {"[hook sha256]\n", {"conf:1: [hook sha256]", "ids"}},
    {"[hook a]\nmodels = *\n", {"conf:1: [hook a] remote", "is missing"}},
    {HOOK "remote = b\n", {"[hook h] remote", "names no remote"}},
    {WEBHOOK HOOK "remote = a\n", {"[hook h] remote", "names no remote"}},
    {MLFLOW HOOK "remote = a\ncolour = red\n", {"conf:9", "colour: unknown key"}},
    {MLFLOW HOOK "remote = a\nsignature = none\n", {"conf:9", "standard mlflow"}},
    {MLFLOW HOOK "remote = a\ntenant = a b\n", {"tenant", "name of a tenant"}},
    {MLFLOW HOOK "remote = a\ntenant = A\n", {"tenant", "\"A\""}},
    {MLFLOW "tenants = b\n" HOOK "remote = a\n", {"tenant", "may not use"}},
    {MLFLOW HOOK "remote = a\nspec = @/none\n", {"spec", "No such file"}},
    {MLFLOW HOOK "remote = a\nspec = @/open\n", {"spec", "/open"}},
    {MLFLOW HOOK "remote = a\nspec = @/spec\n", {"spec: ", "/mod"}},
    {MLFLOW HOOK "remote = a\ncalibration = x\n", {"calibration", "REMOTE:REF"}},
    {MLFLOW HOOK "remote = a\ncalibration = b:k\n", {"calibration", "no remote"}},
    {MLFLOW "[hook h]\nremote = a\npublish = x\npoll = 9\n", {"models", "is missing"}},
    {MLFLOW "[hook h]\nremote = a\nmodels = m\npoll = 9\n", {"publish", "missing"}},
    {MLFLOW "[hook h]\nremote = a\nmodels = *\npublish = x\n", {"publish", "{name}"}},
    {MLFLOW "[hook h]\nremote = a\nmodels = m\npublish = x\n", {"secret", "poll"}},
    {MLFLOW HOOK "remote = a\npoll = 86401\n", {"conf:9", "poll", "between"}},
    {S3 HOOK "remote = a\npoll = 9\n", {"[hook h] poll", "mlflow alone"}},
    {"[remote a]\nkind = webhook\nurl = https://h\n", {"secret", "is missing"}},
};

UNIT_ROWS(refuses, bad)
{
    ck_assert_msg(!read_text(bad[_i].text), "row %d is read", _i);
    for (size_t i = 0; i < 3 && bad[_i].wanted[i]; i++)
        ck_assert_msg(strstr(error, bad[_i].wanted[i]), "\"%s\" lacks \"%s\"", error,
                      bad[_i].wanted[i]);
}

/* A user in the URL would be a secret that --print shows. */
UNIT_TEST(refuses_a_password_in_the_url)
{
    scratch_write("one.conf", "[remote a]\nkind = oci\nurl = https://u:p@h\n");
    ck_assert(settings_file_read(scratch_path("one.conf"), note, NULL,
                                 &remotes->sections, error));
    ck_assert(!remotes_finish(remotes, scratch_path(""), error));
    ck_assert_ptr_nonnull(strstr(error, "user or password"));
    ck_assert_ptr_null(strstr(error, "u:p"));
}

/* Valid hooks, behind a remote a. */
static const char *const good[] = {
    HOOK "remote = a\n",
    HOOK "remote = a\nspec = @/good\nsignature = mlflow\npoll = 60\n",
    HOOK "remote = a\ncalibration = a:models:/data/1\n",
    HOOK "remote = a\ncalibration = sha256:"
         "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n",
    HOOK "remote = a\ntenant = acme\n",
    "[hook a]\nremote = a\nmodels = m\npublish = models:/m-int8@new\npoll = 5\n",
};

UNIT_ROWS(reads_hooks, good)
{
    char text[512];
    snprintf(text, sizeof text, "%s%s", good[_i], MLFLOW);
    ck_assert_msg(read_text(text), "row %d: %s", _i, error);
    ck_assert_ptr_nonnull(remotes_find(remotes, "a"));
    ck_assert_ptr_null(remotes_next(remotes_first(remotes)));
}

/* --- the folder ----------------------------------------------------------- */

static const struct {
    const char *name, *text;
    const char *wanted; /* text of the error; NULL: it is read */
} files[] = {
    {"b.conf", "[remote b]\nkind = oci\nurl = https://h\n", NULL},
    {"b.conf", MLFLOW, "b.conf:1: [remote a]: given twice"},
    {"b.conf", "[queue]\nmax = 5\n", "b.conf:2: queue.max"},
    {"b.conf", "[remote b]\nkind = s3\n", "b.conf:1: [remote b] url"},
    {"b.conf~", "[queue]\nmax = 5\n", NULL},
    {".b.conf", "[queue]\nmax = 5\n", NULL},
};

UNIT_ROWS(reads_the_folder, files)
{
    char name[64];
    ck_assert_int_eq(mkdir(scratch_path("remotes.d"), 0700), 0);
    snprintf(name, sizeof name, "remotes.d/%s", files[_i].name);
    scratch_write(name, files[_i].text);
    ck_assert_msg(read_text(MLFLOW) == !files[_i].wanted, "row %d: %s", _i, error);
    if (files[_i].wanted)
        ck_assert_msg(strstr(error, files[_i].wanted), "%s", error);
    ck_assert_ptr_nonnull(remotes_find(remotes, "a"));
}

/* --- who may use a remote ------------------------------------------------- */

static const struct {
    const char *keys, *tenant, *scopes;
    bool allowed;
} may[] = {
    {"", "", "submit", true},
    {"", "acme", "read,submit", true},
    {"", "acme", "read", false},
    {"", "acme", "admin", true},
    {"", "acme", "", false},
    {"tenants = acme, initech\n", "acme", "submit", true},
    {"tenants = acme, initech\n", "initech", "submit", true},
    {"tenants = acme, initech\n", "acm", "submit", false},
    {"tenants = acme, initech\n", "", "submit", false},
    {"tenants = acme, initech\n", "other", "admin", false},
    {"tenants = -\n", "", "submit", true},
    {"tenants = -\n", "acme", "submit", false},
    {"scopes = admin\n", "", "read,submit", false},
    {"scopes = admin\n", "", "admin", true},
    {"scopes = read,submit\n", "", "read", true},
    {"scopes = read,submit\n", "", "metrics", false},
};

UNIT_ROWS(allows, may)
{
    char text[256];
    snprintf(text, sizeof text, MLFLOW "%s", may[_i].keys);
    ck_assert_msg(read_text(text), "%s", error);
    ck_assert_msg(remote_allows(remotes_find(remotes, "a"), may[_i].tenant,
                                may[_i].scopes) == may[_i].allowed,
                  "row %d", _i);
}

UNIT_SUITE("daemon/remotes", .setup = set_up, .teardown = tear_down)
