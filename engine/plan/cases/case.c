/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/cases/case.h"

#include "plan/cases/bind.h"
#include "plan/cases/catalog.h"
#include "plan/cases/libs.h"
#include "plan/cases/entries.h"
#include "qdq/words.h"

#include <lauxlib.h>
#include <stdio.h>

/* Arguments and results of run_case(). */
struct run {
    const char *name, *lua;
    struct qdqi_script_host host;
    struct qdq_layer_entry *entries;
    size_t n;
};

/* Returns the maximum number of entries. It exceeds the number of nodes because
   several entries may select the same node. */
static size_t
max_entries(const struct run *run)
{
    return 1024 + 4 * run->host.layers->model->graph.n_nodes;
}

/* Runs the case. Called inside the sandbox. */
static int
run_case(lua_State *L)
{
    struct run *run = lua_touserdata(L, 1);
    qdqi_script_open(L);
    qdqi_bind_layers(L);
    qdqi_script_push(L, run->name, run->lua);
    qdqi_script_push_case(L);
    if (lua_isnil(L, -1))
        luaL_error(L, "the script's table has no 'case'");
    qdqi_sandbox_blame(L);
    qdqi_push_model(L);
    qdqi_push_spec(L);
    lua_call(L, 2, 1);
    if (lua_isnil(L, -1))
        return 0;
    if (!lua_istable(L, -1))
        luaL_error(L, "'case' returned a %s, not a list of entries",
                   luaL_typename(L, -1));
    run->entries = qdqi_read_entries(L, max_entries(run), &run->n);
    return 0;
}

static const char *
case_name(const void *catalog, size_t i)
{
    const struct qdq_case_info *info = qdq_catalog_case(catalog, i);
    return info ? info->name : NULL;
}

static enum qdq_code
unknown_case(const struct qdq_catalog *catalog, const char *name, const char *pointer,
             struct qdq_error *err)
{
    const char *nearest = qdq_nearest_word(name, case_name, catalog);
    return qdq_error_set(err, QDQ_INVALID_SPEC, QDQ_AT_POINTER, pointer,
                         "there is no case \"%.64s\"%s%s%s", name,
                         nearest ? ", did you mean \"" : "", nearest ? nearest : "",
                         nearest ? "\"?" : "");
}

enum qdq_code
qdqi_case_run(const struct qdqi_script_host *host, const struct qdq_case_use *use,
              const char *pointer, int64_t *left, struct qdq_layer_entry **ret,
              size_t *ret_n, struct qdq_error *err)
{
    struct run run = {.name = use->name, .lua = use->lua, .host = *host};
    if (!run.lua) {
        const struct qdq_case_info *info = qdqi_catalog_find(host->catalog, use->name);
        if (!info)
            return unknown_case(host->catalog, use->name, pointer, err);
        run.lua = info->lua;
    }
    char label[96];
    snprintf(label, sizeof label, "case '%.64s'", use->name);
    struct qdqi_sandbox *sandbox = NULL;
    enum qdq_code code =
        qdqi_sandbox_new(label, pointer, host->layers->model->graph.n_nodes, left,
                         qdqi_libs_open, &run.host, &sandbox, err);
    if (!code)
        code = qdqi_sandbox_run(sandbox, run_case, &run, err);
    qdqi_sandbox_free(&sandbox);
    if (code)
        return code;
    *ret = run.entries;
    *ret_n = run.n;
    return QDQ_OK;
}
