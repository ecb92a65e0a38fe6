/* SPDX-License-Identifier: Apache-2.0 */
/* `qdqd token add|limit|list|revoke`. */
#include "config.h"
#include "settings/settings.h"
#include "tenants/tokens.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define USAGE 2
#define SCOPE_TEXT 128

/* Limits of the token's tenant, each read as the setting that holds for every tenant. */
static const struct {
    const char *option, *setting;
    size_t offset;
} limit_options[] = {
    {"queue", "tenants.queue", offsetof(struct tenant_limits, queue)},
    {"max-bytes", "tenants.max_bytes", offsetof(struct tenant_limits, max_bytes)},
    {"job-timeout", "tenants.job_timeout", offsetof(struct tenant_limits, job_timeout)},
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
    fprintf(
        to,
        "Usage: qdqd token add NAME [--scope read|submit|admin|metrics]... [--tenant T "
        "[LIMIT]...]\n"
        "       qdqd token limit NAME LIMIT...\n"
        "       qdqd token list\n"
        "       qdqd token revoke NAME\n"
        "with --config FILE and --state-dir DIR as the daemon has them. A token is\n"
        "printed once, when it is added; without --scope it is for read and submit.\n"
        "LIMIT is --queue N, --max-bytes SIZE or --job-timeout SECONDS, of all that "
        "its\n"
        "tenant does; 0 takes it away. Of those that a tenant's tokens state the "
        "smallest\n"
        "holds, in the place of the setting tenants.*.\n"
        "A running daemon goes by what was changed at once.\n");
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

enum { OPTION_LIMIT = 256 }; /* and those behind it: a row of limit_options each */

/* Writes down an option; false: it is said what is wrong, or the help was asked for. */
static bool
take_option(int option, char *value, struct arguments *ret, int *ret_status)
{
    size_t limit = (size_t)option - OPTION_LIMIT;
    switch (option) {
    case 'h':
        *ret_status = print_usage(stdout);
        return false;
    case '?':
        return false;
    case 'c':
        ret->config = value;
        return true;
    case 's':
        ret->flags[0] = (struct setting_flag){"state.dir", value};
        return true;
    case 't':
        ret->tenant = value;
        return true;
    case 'o':
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
    struct option options[N_LIMITS + 6] = {{"config", required_argument, NULL, 'c'},
                                           {"state-dir", required_argument, NULL, 's'},
                                           {"scope", required_argument, NULL, 'o'},
                                           {"tenant", required_argument, NULL, 't'},
                                           {"help", no_argument, NULL, 'h'}};
    int option;
    for (size_t i = 0; i < N_LIMITS; i++)
        options[5 + i] = (struct option){limit_options[i].option, required_argument,
                                         NULL, OPTION_LIMIT + (int)i};
    *ret_status = USAGE;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        if (!take_option(option, optarg, ret, ret_status))
            return false;
    ret->words = argv + optind;
    ret->n_words = argc - optind;
    return true;
}

/* The limits that were asked for, as they were read; `absent` for the others. */
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

static bool
add(const char *path, const struct arguments *a, const struct settings *settings,
    struct api_problem *p)
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
    if (!token_file_add(path, &token, secret, p))
        return false;
    printf("%s\n", secret);
    return true;
}

static bool
limit(const char *path, const struct arguments *a, const struct settings *settings,
      struct api_problem *p)
{
    const struct tenant_limits limits = limits_of(a, settings, TOKEN_AS_IT_WAS);
    return token_file_limit(path, a->words[1], &limits, p);
}

static bool
list(const char *path, struct api_problem *p)
{
    struct token *tokens;
    size_t n;
    bool there;
    char scopes[TOKEN_SCOPES], limits[TOKEN_LIMITS];
    if (!token_file_read(path, &tokens, &n, &there, p))
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
    char path[TOKEN_PATH];
    const char *word = a->n_words ? a->words[0] : "";
    bool named = a->n_words == 2, ok = tokens_path(settings, path, &problem);
    if (!strcmp(word, "add") && named)
        ok = ok && add(path, a, settings, &problem);
    else if (!strcmp(word, "limit") && named && a->n_limits)
        ok = ok && limit(path, a, settings, &problem);
    else if (!strcmp(word, "revoke") && named && !a->n_limits)
        ok = ok && token_file_remove(path, a->words[1], &problem);
    else if (!strcmp(word, "list") && a->n_words == 1 && !a->n_limits)
        ok = ok && list(path, &problem);
    else
        return print_usage(stderr);
    if (!ok)
        fprintf(stderr, "qdqd: %s\n", problem.detail);
    return ok && !fflush(stdout) ? EXIT_SUCCESS : EXIT_FAILURE;
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
    if (!settings_load(arguments.config, flags, n, &settings, error)) {
        fprintf(stderr, "qdqd: %s\n", error);
        return USAGE;
    }
    status = run(&arguments, &settings);
    settings_fini(&settings);
    return status;
}
