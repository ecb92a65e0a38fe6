/* SPDX-License-Identifier: Apache-2.0 */
/* `qdqd token add|list|revoke`. */
#include "config.h"
#include "settings.h"
#include "tokens.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define USAGE 2
#define SCOPE_TEXT 128

struct arguments {
    const char *config, *tenant;
    char scopes[SCOPE_TEXT];
    struct setting_flag flags[1];
    size_t n_flags;
    char **words;
    int n_words;
};

static int
print_usage(FILE *to)
{
    fprintf(
        to,
        "Usage: qdqd token add NAME [--scope read|submit|admin|metrics]... [--tenant "
        "T]\n"
        "       qdqd token list\n"
        "       qdqd token revoke NAME\n"
        "with --config FILE and --state-dir DIR as the daemon has them. A token is\n"
        "printed once, when it is added; without --scope it is for read and submit.\n"
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

/* False: it is said what is wrong, or the help was asked for. */
static bool
parse(int argc, char **argv, struct arguments *ret, int *ret_status)
{
    static const struct option options[] = {{"config", required_argument, NULL, 'c'},
                                            {"state-dir", required_argument, NULL, 's'},
                                            {"scope", required_argument, NULL, 'o'},
                                            {"tenant", required_argument, NULL, 't'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    int option;
    *ret_status = USAGE;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'h') {
            *ret_status = print_usage(stdout);
            return false;
        }
        if (option == '?')
            return false;
        if (option == 'c')
            ret->config = optarg;
        if (option == 's')
            ret->flags[0] = (struct setting_flag){"state.dir", optarg};
        if (option == 's')
            ret->n_flags = 1;
        if (option == 't')
            ret->tenant = optarg;
        if (option == 'o' && !add_scope(ret, optarg)) {
            fprintf(stderr, "qdqd: --scope %s: not read, submit, admin or metrics\n",
                    optarg);
            return false;
        }
    }
    ret->words = argv + optind;
    ret->n_words = argc - optind;
    return true;
}

static bool
add(const char *path, const struct arguments *a, struct api_problem *p)
{
    char secret[TOKEN_SIZE];
    const char *name = a->words[1], *tenant = a->tenant ? a->tenant : "";
    struct token token = {.scopes = *a->scopes ? token_scopes_parse(a->scopes)
                                               : TOKEN_READ | TOKEN_SUBMIT};
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
list(const char *path, struct api_problem *p)
{
    struct token *tokens;
    size_t n;
    bool there;
    char scopes[TOKEN_SCOPES];
    if (!token_file_read(path, &tokens, &n, &there, p))
        return false;
    for (size_t i = 0; i < n; i++) {
        token_scopes_print(tokens[i].scopes, scopes);
        printf("%s %s %s %s\n", tokens[i].name, scopes,
               *tokens[i].tenant ? tokens[i].tenant : "-", tokens[i].made);
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
        ok = ok && add(path, a, &problem);
    else if (!strcmp(word, "revoke") && named)
        ok = ok && token_file_remove(path, a->words[1], &problem);
    else if (!strcmp(word, "list") && a->n_words == 1)
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
    if (!settings_load(arguments.config, arguments.flags, arguments.n_flags, &settings,
                       error)) {
        fprintf(stderr, "qdqd: %s\n", error);
        return USAGE;
    }
    status = run(&arguments, &settings);
    settings_fini(&settings);
    return status;
}
