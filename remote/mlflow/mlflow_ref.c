/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "mlflow/mlflow_ref.h"

#include <stdio.h>
#include <string.h>

#define PREFIX "models:/"

static bool
fail(const char *ref, bool to_publish, struct api_problem *problem)
{
    return api_problem_set(problem, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL,
                           "\"%.200s\" is no ref of MLflow: %s", ref,
                           to_publish ? "models:/NAME or models:/NAME@ALIAS"
                                      : "models:/NAME/VERSION or models:/NAME@ALIAS");
}

/* The names that MLflow takes have no '/', ':' and, here, no '%', which servers decode. */
static bool
is_name(const char *name)
{
    return *name && !strpbrk(name, "/:%\\@") && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

static bool
is_alias(const char *alias)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_-.";
    return *alias && strspn(alias, letters) == strlen(alias);
}

static bool
is_version(const char *version)
{
    size_t len = strspn(version, "0123456789");
    return len > 0 && len < 19 && !version[len] && *version != '0';
}

bool
parse_mlflow_ref(const char *ref, bool to_publish, struct mlflow_ref *ret,
                 struct api_problem *problem)
{
    *ret = (struct mlflow_ref){.name = ""};
    if (strlen(ref) >= QDQR_REF || strncmp(ref, PREFIX, strlen(PREFIX)) != 0)
        return fail(ref, to_publish, problem);
    const char *name = ref + strlen(PREFIX);
    size_t len = strcspn(name, "/@");
    memcpy(ret->name, name, len);
    ret->name[len] = '\0';
    if (name[len] == '/')
        snprintf(ret->version, sizeof ret->version, "%s", name + len + 1);
    else if (name[len] == '@')
        snprintf(ret->alias, sizeof ret->alias, "%s", name + len + 1);
    bool ok = is_name(ret->name) && (name[len] != '/' || is_version(ret->version)) &&
              (name[len] != '@' || is_alias(ret->alias)) &&
              (to_publish ? name[len] != '/' : name[len] != '\0');
    return ok || fail(ref, to_publish, problem);
}
