/* SPDX-License-Identifier: Apache-2.0 */
/* The globals of scripts: harmless functions of Lua's own library, and replacements
   for the others. */
#include "config.h"
#include "plan/cases/libs.h"

#include "plan/cases/sandbox.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NUMERAL = 200 }; /* limit of Lua's own conversion */

/* --- text ----------------------------------------------------------------- */

static int
base_tostring(lua_State *L)
{
    luaL_checkany(L, 1);
    qdqi_push_text(L, 1, NULL);
    return 1;
}

/* tonumber(v [, base]) calls Lua's own function, but returns nil for long texts,
   because the conversion takes time in proportion to the length. */
static int
base_tonumber(lua_State *L)
{
    if (lua_type(L, 1) == LUA_TSTRING && lua_rawlen(L, 1) > MAX_NUMERAL) {
        lua_pushnil(L);
        return 1;
    }
    return qdqi_call_original(L);
}

/* --- pcall ---------------------------------------------------------------- */

/* pcall(f, …) catches the script's errors, but not the error that ends the script. */
static int
base_pcall(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_pushboolean(L, true);
    lua_insert(L, 1);
    int status = lua_pcall(L, lua_gettop(L) - 2, LUA_MULTRET, 0);
    if (qdqi_sandbox_is_over(L, status))
        return lua_error(L);
    if (status == LUA_OK)
        return lua_gettop(L);
    lua_pushboolean(L, false);
    lua_insert(L, -2);
    return 2;
}

/* --- pairs(), in a defined order ----------------------------------------- */

enum rank { NUMBERS, STRINGS, BOOLEANS, LAYERS, OTHERS };

struct key {
    enum rank rank;
    int place;           /* index in the table of keys */
    double number;       /* value if the rank is NUMBERS or BOOLEANS */
    lua_Integer integer; /* exact value if an integer, as a double may not hold it */
    const char *text;    /* value if the rank is STRINGS */
    size_t len;
    uintptr_t layer; /* value if the rank is LAYERS */
};

/* Reads the key on top of the stack. The text stays valid while the table of keys
   exists. */
static struct key
read_key(lua_State *L, int place)
{
    struct key key = {.rank = OTHERS, .place = place};
    switch (lua_type(L, -1)) {
    case LUA_TNUMBER:
        key.rank = NUMBERS;
        key.number = lua_tonumber(L, -1);
        key.integer = lua_isinteger(L, -1) ? lua_tointeger(L, -1) : 0;
        break;
    case LUA_TSTRING:
        key.rank = STRINGS;
        key.text = lua_tolstring(L, -1, &key.len);
        break;
    case LUA_TBOOLEAN:
        key.rank = BOOLEANS;
        key.number = lua_toboolean(L, -1);
        break;
    case LUA_TLIGHTUSERDATA: /* nodes are in an array, in the order of the file */
        key.rank = LAYERS;
        key.layer = (uintptr_t)lua_touserdata(L, -1);
        break;
    default:
        break;
    }
    return key;
}

static int
compare_strings(const struct key *a, const struct key *b)
{
    int order = memcmp(a->text, b->text, a->len < b->len ? a->len : b->len);
    return order ? order : (a->len > b->len) - (a->len < b->len);
}

static int
compare_keys(const void *left, const void *right)
{
    const struct key *a = left, *b = right;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->rank == STRINGS)
        return compare_strings(a, b);
    if (a->rank == LAYERS)
        return (a->layer > b->layer) - (a->layer < b->layer);
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    if (a->integer != b->integer)
        return a->integer < b->integer ? -1 : 1;
    return (a->place > b->place) - (a->place < b->place);
}

/* Pushes an array of the keys of the table at index 1, sorted. */
static void
push_sorted_keys(lua_State *L)
{
    int n = 0;
    lua_newtable(L);
    for (lua_pushnil(L); lua_next(L, 1); n++) {
        qdqi_sandbox_charge(L, 8);
        lua_pop(L, 1);
        lua_pushvalue(L, -1);
        lua_rawseti(L, 2, n + 1);
    }
    struct key *keys = lua_newuserdatauv(L, ((size_t)n + 1) * sizeof *keys, 0);
    for (int i = 0; i < n; i++) {
        lua_rawgeti(L, 2, i + 1);
        keys[i] = read_key(L, i + 1);
        lua_pop(L, 1);
    }
    qdqi_sandbox_charge(L, (size_t)n * 16);
    qsort(keys, (size_t)n, sizeof *keys, compare_keys);
    lua_createtable(L, n, 0);
    for (int i = 0; i < n; i++) {
        lua_rawgeti(L, 2, keys[i].place);
        lua_rawseti(L, -2, i + 1);
    }
}

/* The iterator of pairs(). Its upvalues are the table, its sorted keys (or only
   their number, if the keys are 1, 2, 3, …) and the present index. */
static int
next_pair(lua_State *L)
{
    bool list = lua_isinteger(L, lua_upvalueindex(2));
    lua_Integer i = lua_tointeger(L, lua_upvalueindex(3));
    for (;;) {
        i++;
        lua_settop(L, 0);
        if (!list)
            lua_rawgeti(L, lua_upvalueindex(2), i);
        else if (i <= lua_tointeger(L, lua_upvalueindex(2)))
            lua_pushinteger(L, i);
        else
            lua_pushnil(L);
        if (lua_isnil(L, 1))
            return 1;
        lua_pushvalue(L, 1);
        if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL)
            break;
        qdqi_sandbox_charge(L, 4); /* the key was removed since pairs() was called */
    }
    lua_pushinteger(L, i);
    lua_replace(L, lua_upvalueindex(3));
    return 2;
}

/* Returns whether the table at index 1 has exactly the keys 1 to n. */
static bool
is_list(lua_State *L)
{
    lua_Unsigned n = lua_rawlen(L, 1), seen = 0;
    for (lua_pushnil(L); lua_next(L, 1); seen++) {
        lua_pop(L, 1);
        qdqi_sandbox_charge(L, 2);
        if (!lua_isinteger(L, -1) || (lua_Unsigned)lua_tointeger(L, -1) - 1 >= n) {
            lua_pop(L, 1);
            return false;
        }
    }
    return seen == n;
}

static int
base_pairs(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    bool list = is_list(L);
    if (!list)
        push_sorted_keys(L);
    lua_pushvalue(L, 1);
    if (list)
        lua_pushinteger(L, (lua_Integer)lua_rawlen(L, 1));
    else
        lua_pushvalue(L, -2);
    lua_pushinteger(L, 0);
    lua_pushcclosure(L, next_pair, 3);
    return 1;
}

/* --- installing the libraries -------------------------------------------- */

int
qdqi_libs_open(lua_State *L)
{
    static const char *const kept[] = {"assert", "error", "ipairs", "select", "type"};
    static const struct qdqi_tamed base[] = {{"pairs", base_pairs},
                                             {"pcall", base_pcall},
                                             {"tonumber", base_tonumber},
                                             {"tostring", base_tostring},
                                             {NULL, NULL}};
    static const struct qdqi_tamed math[] = {
        {"random", NULL}, {"randomseed", NULL}, {NULL, NULL}};
    lua_newtable(L);
    qdqi_push_tamed(L, LUA_GNAME, luaopen_base, base);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        lua_getfield(L, -1, kept[i]);
        lua_setfield(L, -3, kept[i]);
    }
    for (const struct qdqi_tamed *f = base; f->name; f++) {
        lua_getfield(L, -1, f->name);
        lua_setfield(L, -3, f->name);
    }
    lua_pop(L, 1);
    qdqi_push_tamed(L, LUA_MATHLIBNAME, luaopen_math, math);
    lua_setfield(L, -2, LUA_MATHLIBNAME);
    qdqi_push_string_lib(L);
    lua_setfield(L, -2, LUA_STRLIBNAME);
    qdqi_push_table_lib(L);
    lua_setfield(L, -2, LUA_TABLIBNAME);
    /* Replaces the globals that luaopen_base() filled; nothing refers to them any
       more. */
    lua_rawseti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
    return 0;
}
