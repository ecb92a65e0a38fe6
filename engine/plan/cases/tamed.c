/* SPDX-License-Identifier: Apache-2.0 */
/* How a library of Lua becomes one for scripts, with replacements in it. */
#include "config.h"
#include "plan/cases/libs.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdbool.h>

const char *
qdqi_push_text(lua_State *L, int index, size_t *ret_len)
{
    int type = lua_type(L, index);
    if (type == LUA_TNUMBER || type == LUA_TSTRING)
        lua_pushvalue(L, index);
    else if (type == LUA_TBOOLEAN)
        lua_pushstring(L, lua_toboolean(L, index) ? "true" : "false");
    /* Scripts cannot set metatables, so these are ours. */
    else if (!luaL_callmeta(L, index, "__tostring") &&
             luaL_getmetafield(L, index, "__name") == LUA_TNIL)
        lua_pushstring(L, lua_typename(L, type));
    return lua_tolstring(L, -1, ret_len);
}

int
qdqi_call_original(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

void
qdqi_push_tamed(lua_State *L, const char *library, lua_CFunction open,
                const struct qdqi_tamed *functions)
{
    luaL_requiref(L, library, open, false);
    lua_newtable(L);
    for (; functions->name; functions++) {
        lua_getfield(L, -2, functions->name);
        lua_pushvalue(L, -1);
        lua_setfield(L, -3, functions->name);
        if (functions->instead) {
            lua_pushcclosure(L, functions->instead, 1);
        } else {
            lua_pop(L, 1);
            lua_pushnil(L);
        }
        lua_setfield(L, -3, functions->name);
    }
    /* Lua's messages find the names of functions here. Scripts have no access to it. */
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_insert(L, -2);
    lua_setfield(L, -2, library);
    lua_pop(L, 1);
}
