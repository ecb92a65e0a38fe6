/* SPDX-License-Identifier: Apache-2.0 */
/* The command `qdqd token add|limit|list|revoke`. */
#include "config.h"
#include "base/options.h"
#include "settings/remotes.h"
#include "store/store.h"
#include "tenants/token_rows.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define USAGE 2
#define SCOPE_TEXT 128

enum {
    OPTION_CONFIG,
    OPTION_STATE_DIR,
    OPTION_SCOPE,
    OPTION_TENANT,
    OPTION_QUEUE, /* the first of the limits */
    OPTION_MAX_BYTES,
    OPTION_JOB_TIMEOUT,
    OPTION_HELP,
    N_OPTIONS
};

static const struct option_row option_rows[N_OPTIONS] = {
    [OPTION_CONFIG] = {"config", '\0', "FILE", "The daemon's file of settings."},
    [OPTION_STATE_DIR] = {"state-dir", '\0', "DIR", "The daemon's state folder."},
    [OPTION_SCOPE] = {"scope", '\0', "SCOPE",
                      "A right of the token: read, submit, admin or metrics. May be "
                      "given several times; without it, read and submit."},
    [OPTION_TENANT] = {"tenant", '\0', "TENANT",
                       "The tenant that the token acts for; by default none."},
    [OPTION_QUEUE] = {"queue", '\0', "N",
                      "LIMIT: the jobs of the tenant that may wait."},
    [OPTION_MAX_BYTES] = {"max-bytes", '\0', "SIZE",
                          "LIMIT: the bytes that the tenant may store."},
    [OPTION_JOB_TIMEOUT] = {"job-timeout", '\0', "SECONDS",
                            "LIMIT: the time that a job of the tenant may run."},
    [OPTION_HELP] = {"help", 'h', NULL, "Prints this page."},
};

/* Options for the limits of the token's tenant. Each is parsed like the setting for
   all tenants. */
static const struct {
    const char *setting;
    size_t offset;
} limit_options[] = {
    {"tenants.queue", offsetof(struct tenant_limits, queue)},
    {"tenants.max_bytes", offsetof(struct tenant_limits, max_bytes)},
    {"tenants.job_timeout", offsetof(struct tenant_limits, job_timeout)},
};

#define N_LIMITS (sizeof limit_options / sizeof *limit_options)

struct arguments {
    const char *config, *tenant;
    char scopes[SCOPE_TEXT];
    struct setting_flag flags[1 + N_LIMITS]; /* state.dir, then the limits */
    size_t n_limits;
    char **words;
    int n_words;
};

static int
print_usage(FILE *to)
{
    fputs("Usage: qdqd token add NAME [--scope SCOPE]... [--tenant TENANT [LIMIT]...]\n"
          "       qdqd token limit NAME LIMIT...\n"
          "       qdqd token list\n"
          "       qdqd token revoke NAME\n"
          "\n"
          "Adds, limits, lists or revokes access tokens. A token is printed once, when "
          "it\n"
          "is added. A running daemon knows a change at once.\n"
          "\n",
          to);
    options_print(to, option_rows, N_OPTIONS);
    fputs(
        "\n"
        "A LIMIT is of all that the token's tenant does, in the place of the setting\n"
        "tenants.*; 0 removes it. The smallest that the tenant's tokens state holds.\n",
        to);
    return to == stdout ? EXIT_SUCCESS : USAGE;
}

static bool
add_scope(struct arguments *a, const char *scope)
{
    size_t len = strlen(a->scopes);
    int n = snprintf(a->scopes + len, sizeof a->scopes - len, "%s%s", len ? "," : "",
                     scope);
    return (size_t)n < sizeof a->scopes - len && token_scopes_parse(scope) != 0;
}

/* Stores an option. Returns false when the process is to exit with *ret_status. */
static bool
store_option(int option, char *value, struct arguments *ret, int *ret_status)
{
    size_t limit = (size_t)(option - OPTION_QUEUE);
    switch (option) {
    case OPTION_HELP:
        *ret_status = print_usage(stdout);
        return false;
    case OPTIONS_WRONG:
        return false;
    case OPTION_CONFIG:
        ret->config = value;
        return true;
    case OPTION_STATE_DIR:
        ret->flags[0] = (struct setting_flag){"state.dir", value};
        return true;
    case OPTION_TENANT:
        ret->tenant = value;
        return true;
    case OPTION_SCOPE:
        if (add_scope(ret, value))
            return true;
        fprintf(stderr, "qdqd: --scope %s: not read, submit, admin or metrics\n",
                value);
        return false;
    default:
        ret->flags[1 + limit] =
            (struct setting_flag){limit_options[limit].setting, value};
        ret->n_limits++;
        return true;
    }
}

static bool
parse(int argc, char **argv, struct arguments *ret, int *ret_status)
{
    int option;
    *ret_status = USAGE;
    while ((option = options_next(argc, argv, option_rows, N_OPTIONS)) != OPTIONS_END)
        if (!store_option(option, optarg, ret, ret_status))
            return false;
    ret->words = argv + optind;
    ret->n_words = argc - optind;
    return true;
}

/* Returns the limits that were given as options; the others are `absent`. */
static struct tenant_limits
limits_of(const struct arguments *a, const struct settings *settings, int64_t absent)
{
    const int64_t values[N_LIMITS] = {settings->tenants_queue,
                                      settings->tenants_max_bytes,
                                      settings->tenants_job_timeout};
    struct tenant_limits ret;
    for (size_t i = 0; i < N_LIMITS; i++)
        *(int64_t *)((char *)&ret + limit_options[i].offset) =
            a->flags[1 + i].name ? values[i] : absent;
    return ret;
}

/* The place of the tokens: the record of a store, or else a file. */
struct place {
    char path[TOKEN_PATH];
    struct store *store; /* NULL: in the file */
};

static bool
add(const struct place *place, const struct arguments *a,
    const struct settings *settings, struct api_problem *p)
{
    char secret[TOKEN_SIZE];
    const char *name = a->words[1], *tenant = a->tenant ? a->tenant : "";
    struct token token = {.scopes = *a->scopes ? token_scopes_parse(a->scopes)
                                               : TOKEN_READ | TOKEN_SUBMIT,
                          .limits = limits_of(a, settings, 0)};
    if (!tenant_is_name(name) || (*tenant && !tenant_is_name(tenant)))
        return api_problem_set(p, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL,
                               "%s: a name has up to %d lower case letters, digits, -, "
                               "_ and ., and begins with one of the first two",
                               tenant_is_name(name) ? tenant : name, TENANT_SIZE - 1);
    snprintf(token.name, sizeof token.name, "%s", name);
    snprintf(token.tenant, sizeof token.tenant, "%s", tenant);
    if (!(place->store ? token_rows_add(place->store, &token, secret, p)
                       : token_file_add(place->path, &token, secret, p)))
        return false;
    printf("%s\n", secret);
    return true;
}

static bool
limit(const struct place *place, const struct arguments *a,
      const struct settings *settings, struct api_problem *p)
{
    const struct tenant_limits limits = limits_of(a, settings, TOKEN_AS_IT_WAS);
    return place->store ? token_rows_limit(place->store, a->words[1], &limits, p)
                        : token_file_limit(place->path, a->words[1], &limits, p);
}

static bool
withdraw(const struct place *place, const char *name, struct api_problem *p)
{
    return place->store ? token_rows_remove(place->store, name, p)
                        : token_file_remove(place->path, name, p);
}

static bool
list(const struct place *place, struct api_problem *p)
{
    struct token *tokens;
    size_t n;
    bool there;
    char scopes[TOKEN_SCOPES], limits[TOKEN_LIMITS];
    if (!(place->store ? token_rows_read(place->store, &tokens, &n, p)
                       : token_file_read(place->path, &tokens, &n, &there, p)))
        return false;
    for (size_t i = 0; i < n; i++) {
        token_scopes_print(tokens[i].scopes, scopes);
        token_limits_print(&tokens[i].limits, limits);
        printf("%s %s %s %s%s%s\n", tokens[i].name, scopes,
               *tokens[i].tenant ? tokens[i].tenant : "-", tokens[i].made,
               *limits ? " " : "", limits);
    }
    free(tokens);
    return true;
}

static int
run(const struct arguments *a, const struct settings *settings)
{
    struct api_problem problem = {0};
    struct place place = {.store = NULL};
    bool is_usage = false;
    const char *word = a->n_words ? a->words[0] : "";
    bool named = a->n_words == 2,
         ok = tokens_path(settings, place.path, &problem) &&
              token_rows_open(settings, &place.store, &problem);
    if (!strcmp(word, "add") && named)
        ok = ok && add(&place, a, settings, &problem);
    else if (!strcmp(word, "limit") && named && a->n_limits)
        ok = ok && limit(&place, a, settings, &problem);
    else if (!strcmp(word, "revoke") && named && !a->n_limits)
        ok = ok && withdraw(&place, a->words[1], &problem);
    else if (!strcmp(word, "list") && a->n_words == 1 && !a->n_limits)
        ok = ok && list(&place, &problem);
    else
        is_usage = true;
    store_close(&place.store);
    if (is_usage)
        return print_usage(stderr);
    if (!ok)
        fprintf(stderr, "qdqd: %s\n", problem.detail);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

int
token_main(int argc, char **argv)
{
    struct arguments arguments = {0};
    struct settings settings;
    char error[SETTINGS_ERROR];
    int status;
    if (!parse(argc, argv, &arguments, &status))
        return status;
    if (!arguments.config && !access(QDQD_DEFAULT_CONFIG, F_OK))
        arguments.config = QDQD_DEFAULT_CONFIG;
    struct setting_flag flags[1 + N_LIMITS];
    size_t n = 0;
    for (size_t i = 0; i <= N_LIMITS; i++)
        if (arguments.flags[i].name)
            flags[n++] = arguments.flags[i];
    struct remotes *remotes = remotes_new();
    if (!remotes || !settings_load(arguments.config, flags, n, &remotes->sections,
                                   &settings, error)) {
        fprintf(stderr, "qdqd: %s\n", remotes ? error : "out of memory");
        remotes_release(&remotes);
        return USAGE;
    }
    status = run(&arguments, &settings);
    settings_fini(&settings);
    remotes_release(&remotes);
    return status;
}
