/* SPDX-License-Identifier: Apache-2.0 */
/* Lua's own string library without patterns. A string of a script has at most
   QDQI_MAX_STRING bytes, so functions that walk over one string need no other bound. */
#include "config.h"
#include "plan/cases/libs.h"

#include "plan/cases/sandbox.h"

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

/* rep(s, n [, sep]) returns at once if the result is empty: Lua's own function would
   still loop n times. */
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

/* format(text, …) has no %p, and its %s prints only the type of a table or function:
   addresses would differ from run to run. */
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
 * find(s, text, init, true) finds a literal text. Lua's own function searches for a
 * pattern unless the fourth argument is true. A pattern without special characters is a
 * literal text, so it is allowed; any other pattern raises an error.
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
    /* In the worst case each byte of one string is compared with each of the other. */
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
    /* Method calls like ("x"):rep(3) find their functions in the same table. */
    qdqi_push_tamed(L, LUA_STRLIBNAME, luaopen_string, functions);
}
