/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "tenants/tokens.h"
#include "daemon.h"

static struct api_problem problem;
static char path[TOKEN_PATH];

static void
set_up(void)
{
    scratch_make();
    problem = (struct api_problem){0};
    snprintf(path, sizeof path, "%s", scratch_path("tokens"));
}

#define HASH "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define MADE "2026-01-01T00:00:00Z"

/* --- the file ------------------------------------------------------------- */

static const struct {
    const char *text;
    int n; /* number of tokens; -1: the file is refused */
} files[] = {
    {"", 0},
    {"# a comment\n\n", 0},
    {"a " HASH " read - " MADE "\n", 1},
    {"a " HASH " read - " MADE, 1},
    {"a " HASH " read,submit,admin t " MADE "\n#\nb " HASH " admin - " MADE "\n", 2},
    {"a " HASH " read -\n", -1},
    {"a " HASH " read - " MADE " more\n", -1},
    {"a " HASH " read - " MADE " \n", -1},
    {" a " HASH " read - " MADE "\n", -1},
    {"a  " HASH " read - " MADE "\n", -1},
    {"a " HASH "0 read - " MADE "\n", -1},
    {"a sha256:0 read - " MADE "\n", -1},
    {"a " HASH " write - " MADE "\n", -1},
    {"a " HASH " read, - " MADE "\n", -1},
    {"a " HASH " ,read - " MADE "\n", -1},
    {"a " HASH " read ../x " MADE "\n", -1},
    {"A " HASH " read - " MADE "\n", -1},
    {"a " HASH " read - 2026-01-01T00:00:00.123456789Z\n", -1},
    {"a " HASH " read t " MADE " queue=2\n", 1},
    {"a " HASH " read t " MADE " job_timeout=1,queue=2,max_bytes=3", 1},
    {"a " HASH " read - " MADE " queue=2\n", -1}, /* limits need a tenant */
    {"a " HASH " read t " MADE " queue=2 \n", -1},
    {"a " HASH " read t " MADE " queue=0\n", -1},
    {"a " HASH " read t " MADE " \n", -1},
};

UNIT_ROWS(reads, files)
{
    struct token *list;
    size_t n;
    bool there;
    scratch_write("tokens", files[_i].text);
    chmod(path, 0600);
    ck_assert_int_eq(token_file_read(path, &list, &n, &there, &problem),
                     files[_i].n >= 0);
    ck_assert(there);
    if (files[_i].n >= 0)
        ck_assert_uint_eq(n, (size_t)files[_i].n);
    else
        ck_assert_ptr_nonnull(strstr(problem.detail, "line 1 is no token"));
    free(list);
}

/* A line that is longer than any token is refused, wherever the buffer cuts it. */
UNIT_TEST(long_line)
{
    char text[2000];
    struct token *list;
    size_t n;
    bool there;
    memset(text, 'a', sizeof text);
    memcpy(text + sizeof text - 2, "\n", 2);
    scratch_write("tokens", text);
    chmod(path, 0600);
    ck_assert(!token_file_read(path, &list, &n, &there, &problem));
}

static const struct {
    const char *text;
    unsigned scopes;
} scopes[] = {
    {"read", TOKEN_READ},
    {"submit", TOKEN_SUBMIT},
    {"admin", TOKEN_ADMIN},
    {"read,submit", TOKEN_READ | TOKEN_SUBMIT},
    {"submit,read,read", 3},
    {"", 0},
    {"rea", 0},
    {"reads", 0},
    {"read submit", 0},
    {",", 0},
};

UNIT_ROWS(parses_scopes, scopes)
{
    char printed[TOKEN_SCOPES];
    ck_assert_uint_eq(token_scopes_parse(scopes[_i].text), scopes[_i].scopes);
    token_scopes_print(scopes[_i].scopes, printed);
    ck_assert_uint_eq(token_scopes_parse(printed), scopes[_i].scopes);
}

static const struct {
    const char *text, *printed; /* NULL: refused */
} limits[] = {
    {"", ""},
    {"queue=1", "queue=1"},
    {"job_timeout=7,max_bytes=9223372036854775807,queue=1",
     "queue=1,max_bytes=9223372036854775807,job_timeout=7"},
    {"max_bytes=9223372036854775808", NULL},
    {"queue=1,queue=2", NULL},
    {"queue=1,", NULL},
    {",queue=1", NULL},
    {"queue=1,,job_timeout=2", NULL},
    {"queue", NULL},
    {"queue=", NULL},
    {"queue=+1", NULL},
    {"queue=-1", NULL},
    {"queue=0", NULL},
    {"queue=1K", NULL},
    {"queue=01", NULL},
    {"queu=1", NULL},
    {"queues=1", NULL},
    {"queue,=1", NULL},
    {"=1", NULL},
};

UNIT_ROWS(parses_limits, limits)
{
    struct tenant_limits parsed;
    char printed[TOKEN_LIMITS];
    ck_assert_int_eq(token_limits_parse(limits[_i].text, &parsed),
                     limits[_i].printed != NULL);
    if (!limits[_i].printed)
        return;
    token_limits_print(&parsed, printed);
    ck_assert_str_eq(printed, limits[_i].printed);
}

/* --- the file's life ------------------------------------------------------ */

static void
add(const char *name, unsigned bits, char ret[TOKEN_SIZE])
{
    struct token token = {.scopes = bits};
    snprintf(token.name, sizeof token.name, "%s", name);
    snprintf(token.tenant, sizeof token.tenant, "of-%s", name);
    ck_assert_msg(token_file_add(path, &token, ret, &problem), "%s", problem.detail);
}

static bool
check(struct tokens *tokens, const char *token, struct token *ret)
{
    char header[TOKEN_SIZE + 16];
    problem = (struct api_problem){0};
    snprintf(header, sizeof header, "Bearer %s", token);
    return tokens_check(tokens, *token ? header : NULL, ret, &problem);
}

/* A change is noticed even when the file changes twice within one tick of the clock
   and keeps its size. */
UNIT_TEST(sees_every_change)
{
    struct tokens *tokens;
    struct token who;
    char secrets[2][TOKEN_SIZE];
    ck_assert(tokens_open(path, &tokens, &problem));
    ck_assert(check(tokens, "", &who));
    ck_assert_uint_eq(who.scopes, TOKEN_ADMIN);
    ck_assert_str_eq(who.tenant, "");
    for (int i = 0; i < 50; i++) {
        add("a", TOKEN_READ, secrets[0]);
        ck_assert(check(tokens, secrets[0], &who));
        ck_assert_str_eq(who.tenant, "of-a");
        ck_assert_uint_eq(who.scopes, TOKEN_READ);
        ck_assert(token_file_remove(path, "a", &problem));
        add("b", TOKEN_READ, secrets[1]);
        ck_assert(!check(tokens, secrets[0], &who));
        ck_assert_int_eq(problem.code, API_UNAUTHORIZED);
        ck_assert(check(tokens, secrets[1], &who));
        ck_assert(token_file_remove(path, "b", &problem));
        ck_assert(!check(tokens, secrets[1], &who));
    }
    ck_assert_uint_eq(tokens_count(tokens), 0);
    ck_assert(!unlink(path));
    ck_assert(!check(tokens, "", &who));
    tokens_close(&tokens);
}

UNIT_TEST(names_are_one_tokens)
{
    char secret[TOKEN_SIZE];
    struct token token = {.name = "a", .scopes = TOKEN_READ};
    add("a", TOKEN_READ, secret);
    ck_assert(!token_file_add(path, &token, secret, &problem));
    problem = (struct api_problem){0};
    ck_assert(!token_file_remove(path, "b", &problem));
    ck_assert_int_eq(problem.code, API_NOT_FOUND);
}

static void
expect_limits(const char *name, int64_t queue, int64_t max_bytes, int64_t job_timeout)
{
    struct token *list;
    size_t n;
    bool there;
    ck_assert(token_file_read(path, &list, &n, &there, &problem));
    for (size_t i = 0; i < n; i++)
        if (!strcmp(list[i].name, name)) {
            ck_assert_int_eq(list[i].limits.queue, queue);
            ck_assert_int_eq(list[i].limits.max_bytes, max_bytes);
            ck_assert_int_eq(list[i].limits.job_timeout, job_timeout);
            name = "";
        }
    ck_assert_str_eq(name, "");
    free(list);
}

UNIT_TEST(limits_are_changed_one_by_one)
{
    enum { KEEP = TOKEN_AS_IT_WAS };
    char secret[TOKEN_SIZE];
    struct token nobodys = {.name = "n", .scopes = TOKEN_READ, .limits = {.queue = 1}};
    add("a", TOKEN_READ, secret);
    add("b", TOKEN_READ, secret);
    ck_assert(
        token_file_limit(path, "a", &(struct tenant_limits){2, KEEP, 60}, &problem));
    expect_limits("a", 2, 0, 60);
    ck_assert(
        token_file_limit(path, "a", &(struct tenant_limits){KEEP, 9, 0}, &problem));
    expect_limits("a", 2, 9, 0);
    expect_limits("b", 0, 0, 0);
    ck_assert(!token_file_limit(path, "c", &(struct tenant_limits){1, 1, 1}, &problem));
    ck_assert_int_eq(problem.code, API_NOT_FOUND);
    problem = (struct api_problem){0};
    ck_assert(!token_file_add(path, &nobodys, secret, &problem));
    ck_assert_int_eq(problem.code, API_BAD_REQUEST);
    problem = (struct api_problem){0};
    nobodys.limits.queue = 0;
    ck_assert(token_file_add(path, &nobodys, secret, &problem));
    ck_assert(!token_file_limit(path, "n", &(struct tenant_limits){1, 0, 0}, &problem));
    expect_limits("n", 0, 0, 0);
}

static const struct {
    const char *name;
    bool good;
} names[] = {{"a", true},  {"a-b_c.9", true}, {"0", true},   {"", false},
             {".", false}, {"..", false},     {"-a", false}, {"a/b", false},
             {"A", false}, {"a b", false}};

UNIT_ROWS(tenant_names, names)
{
    ck_assert_int_eq(tenant_is_name(names[_i].name), names[_i].good);
}

UNIT_SUITE("daemon/tokens", .setup = set_up, .teardown = scratch_remove)
