/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/cases/script.h"

#include "plan/cases/catalog.h"

#include <lauxlib.h>
#include <string.h>

void
qdqi_script_push(lua_State *L, const char *name, const char *text)
{
    qdqi_sandbox_load(L, name, text);
    lua_call(L, 0, 1);
    if (!lua_istable(L, -1))
        luaL_error(L, "the script returned %s, not a table with 'case'",
                   lua_isnil(L, -1) ? "nothing" : luaL_typename(L, -1));
}

void
qdqi_script_push_case(lua_State *L)
{
    lua_pushliteral(L, "case");
    int type = lua_rawget(L, -2);
    if (type != LUA_TFUNCTION && type != LUA_TNIL)
        luaL_error(L, "'case' is a %s, not a function", lua_typename(L, type));
}

/* --- info ----------------------------------------------------------------- */

/* Returns the text as one paragraph: every run of white space, including line
   breaks, becomes one space. */
static char *
paragraph(struct qdqi_arena *arena, const char *text)
{
    char *copy = qdqi_arena_strdup(arena, text);
    char *end = copy;
    for (; copy && *text; text++) {
        bool is_space = (unsigned char)*text <= ' ';
        if (!is_space)
            *end++ = *text;
        else if (end > copy && end[-1] != ' ')
            *end++ = ' ';
    }
    if (copy && end > copy && end[-1] == ' ')
        end--;
    if (copy)
        *end = '\0';
    return copy;
}

const char *
qdqi_script_info(lua_State *L)
{
    struct qdqi_script_host *host = qdqi_sandbox_host(L);
    lua_pushliteral(L, "info");
    if (lua_rawget(L, -2) == LUA_TFUNCTION)
        lua_call(L, 0, 1);
    if (lua_type(L, -1) != LUA_TSTRING && !lua_isnil(L, -1))
        luaL_error(L, "'info' is a %s, not a text or a function that returns one",
                   luaL_typename(L, -1));
    char *info = paragraph(host->arena, lua_isnil(L, -1) ? "" : lua_tostring(L, -1));
    if (!info)
        qdqi_sandbox_no_memory(L);
    lua_pop(L, 1);
    return info;
}

/* --- library() ------------------------------------------------------------ */

/* library(name) returns the table of a case of the catalog. Each script runs once.
   Upvalue 1 has the tables by name, and false for a script that is still running. */
static int
library(lua_State *L)
{
    const struct qdqi_script_host *host = qdqi_sandbox_host(L);
    const char *name = luaL_checkstring(L, 1);
    lua_settop(L, 1);
    int type = lua_getfield(L, lua_upvalueindex(1), name);
    if (type == LUA_TTABLE)
        return 1;
    if (type != LUA_TNIL)
        luaL_error(L, "library: '%s' asks for itself", name);
    const struct qdq_case_info *info = qdqi_catalog_find(host->catalog, name);
    if (!info)
        luaL_error(L, "library: there is no case '%s'", name);
    lua_pushboolean(L, false);
    lua_setfield(L, lua_upvalueindex(1), name);
    qdqi_script_push(L, info->name, info->lua);
    lua_pushvalue(L, -1);
    lua_setfield(L, lua_upvalueindex(1), name);
    return 1;
}

void
qdqi_script_open(lua_State *L)
{
    lua_newtable(L);
    lua_pushcclosure(L, library, 1);
    lua_setglobal(L, "library");
}
