/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lua's own string library without patterns. A string of a script is short
 * (QDQI_MAX_STRING), so what walks over one needs no other bound.
 */
#include "config.h"
#include "cases/libs.h"

#include "cases/sandbox.h"

#include <lauxlib.h>
#include <lualib.h>
#include <string.h>

static void
check_length(lua_State *L, size_t len)
{
    if (len > QDQI_MAX_STRING)
        luaL_error(L, "a string takes at most %d bytes (memory)", QDQI_MAX_STRING);
    qdqi_sandbox_charge(L, 1 + len / 16);
}

/* rep(s, n [, sep]): Lua's own loops n times also where nothing is repeated. */
static int
string_rep(lua_State *L)
{
    size_t len, gap, total;
    luaL_checklstring(L, 1, &len);
    lua_Integer n = luaL_checkinteger(L, 2);
    luaL_optlstring(L, 3, "", &gap);
    if (n <= 0 || len + gap == 0) {
        lua_pushliteral(L, "");
        return 1;
    }
    if (__builtin_mul_overflow(len + gap, (size_t)n, &total))
        total = SIZE_MAX;
    check_length(L, total - gap);
    return qdqi_call_original(L);
}

/*
 * format(text, …): without %p, and %s shows of tables and functions only what they are:
 * addresses differ from run to run.
 */
static int
string_format(lua_State *L)
{
    static const char options[] = "-+ #0123456789.";
    size_t len;
    const char *text = luaL_checklstring(L, 1, &len);
    qdqi_sandbox_charge(L, 1 + len / 16);
    for (const char *at = text; (at = memchr(at, '%', len - (size_t)(at - text)));) {
        at += 1 + strspn(at + 1, options);
        luaL_argcheck(L, *at != 'p', 1, "%p is not to be had");
        at += *at != '\0';
    }
    for (int i = lua_gettop(L); i > 1; i--) {
        int type = lua_type(L, i);
        if (type != LUA_TTABLE && type != LUA_TFUNCTION && type < LUA_TUSERDATA &&
            type != LUA_TLIGHTUSERDATA)
            continue;
        qdqi_push_text(L, i, NULL);
        lua_replace(L, i);
    }
    return qdqi_call_original(L);
}

/*
 * find(s, text, init, true): the text itself. Lua's own takes a pattern where the fourth
 * argument is not true; one that has none of a pattern's characters is what it stands
 * for, any other is refused rather than misunderstood.
 */
static int
string_find(lua_State *L)
{
    size_t len, text_len;
    luaL_checklstring(L, 1, &len);
    const char *text = luaL_checklstring(L, 2, &text_len);
    bool plain = lua_toboolean(L, 4);
    if (!plain && text[strcspn(text, "^$*+?.([%-")] != '\0')
        luaL_error(L, "there are no patterns here: find(s, text, 1, true) finds the "
                      "text as it stands");
    /* Each byte of one may be held against each of the other. */
    qdqi_sandbox_charge(L, 1 + len * text_len / 16);
    lua_settop(L, 3);
    lua_pushboolean(L, true);
    return qdqi_call_original(L);
}

void
qdqi_push_string_lib(lua_State *L)
{
    static const struct qdqi_tamed functions[] = {
        {"find", string_find}, {"format", string_format},
        {"rep", string_rep},   {"dump", NULL},
        {"gmatch", NULL},      {"gsub", NULL},
        {"match", NULL},       {"pack", NULL},
        {"packsize", NULL},    {"unpack", NULL},
        {NULL, NULL}};
    /* ("x"):rep(3) finds its functions in the same table. */
    qdqi_push_tamed(L, LUA_STRLIBNAME, luaopen_string, functions);
}
