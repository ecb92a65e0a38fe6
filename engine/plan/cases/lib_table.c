/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lua's own functions on lists, which charge for their steps. Scripts cannot set
 * metatables, so the number of elements bounds the work. The sort function is our own.
 */
#include "config.h"
#include "plan/cases/libs.h"

#include "plan/cases/sandbox.h"

#include <lauxlib.h>
#include <limits.h>
#include <lualib.h>

/* Returns the length of the list at index 1. It is less than INT_MAX, so that
   calculations with it cannot overflow. */
static lua_Integer
list_len(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_Unsigned len = lua_rawlen(L, 1);
    luaL_argcheck(L, len < INT_MAX, 1, "list too long");
    return (lua_Integer)len;
}

/* insert(list, [pos,] value) moves the elements behind the position, if there is
   one. */
static int
table_insert(lua_State *L)
{
    lua_Integer len = list_len(L);
    if (lua_gettop(L) > 2)
        qdqi_sandbox_charge(L, (size_t)len);
    return qdqi_call_original(L);
}

static int
table_remove(lua_State *L)
{
    lua_Integer len = list_len(L);
    if (lua_gettop(L) > 1)
        qdqi_sandbox_charge(L, (size_t)len);
    return qdqi_call_original(L);
}

/* concat(list [, sep [, i [, j]]]) stops at the first missing element, so the length
   of the list bounds its work for all arguments. */
static int
table_concat(lua_State *L)
{
    qdqi_sandbox_charge(L, 4 * (size_t)list_len(L));
    return qdqi_call_original(L);
}

/* Returns the number of steps from first to last. If that overflows it returns
   SIZE_MAX, which exceeds every budget. */
static size_t
count(lua_Integer first, lua_Integer last)
{
    if (first > last)
        return 0;
    size_t steps = (size_t)last - (size_t)first;
    return steps == SIZE_MAX ? steps : steps + 1;
}

/* move(a1, f, e, t [, a2]) also walks over missing elements, so it charges for f to
   e. */
static int
table_move(lua_State *L)
{
    qdqi_sandbox_charge(L, count(luaL_checkinteger(L, 2), luaL_checkinteger(L, 3)));
    return qdqi_call_original(L);
}

/* unpack(list [, i [, j]]) also walks over missing elements, so it charges for i to
   j. */
static int
table_unpack(lua_State *L)
{
    enum { MAX_VALUES = 250 };
    lua_Integer len = list_len(L), i = luaL_optinteger(L, 2, 1);
    size_t n = count(i, luaL_optinteger(L, 3, len));
    if (n > MAX_VALUES)
        luaL_error(L, "at most %d values at a time", MAX_VALUES);
    qdqi_sandbox_charge(L, n);
    return qdqi_call_original(L);
}

/* --- sort ----------------------------------------------------------------- */

enum { LIST = 1, LESS = 2, FROM = 3, TO = 4 }; /* stack indices */

/* Returns whether FROM[a] has to stand before FROM[b]. */
static bool
stands_before(lua_State *L, lua_Integer a, lua_Integer b)
{
    bool is_less;
    if (lua_isnil(L, LESS)) {
        lua_rawgeti(L, FROM, a);
        lua_rawgeti(L, FROM, b);
        if (lua_type(L, -1) == LUA_TSTRING)
            qdqi_sandbox_charge(L, lua_rawlen(L, -1) / 16);
        is_less = lua_compare(L, -2, -1, LUA_OPLT);
        lua_pop(L, 2);
    } else {
        lua_pushvalue(L, LESS);
        lua_rawgeti(L, FROM, a);
        lua_rawgeti(L, FROM, b);
        lua_call(L, 2, 1);
        is_less = lua_toboolean(L, -1);
        lua_pop(L, 1);
    }
    return is_less;
}

/* Merges the sorted runs [low, middle) and [middle, high) of FROM into TO. */
static void
merge(lua_State *L, lua_Integer low, lua_Integer middle, lua_Integer high)
{
    lua_Integer a = low, b = middle;
    for (lua_Integer k = low; k < high; k++) {
        qdqi_sandbox_charge(L, 8);
        bool second =
            /* equals keep their order */
            a == middle || (b < high && stands_before(L, b, a));
        lua_rawgeti(L, FROM, second ? b++ : a++);
        lua_rawseti(L, TO, k);
    }
}

static void
copy_list(lua_State *L, lua_Integer n, int from, int to)
{
    qdqi_sandbox_charge(L, (size_t)n);
    for (lua_Integer i = 1; i <= n; i++) {
        lua_rawgeti(L, from, i);
        lua_rawseti(L, to, i);
    }
}

static lua_Integer
least(lua_Integer a, lua_Integer b)
{
    return a < b ? a : b;
}

/* sort(list [, less]) is a bottom-up merge sort. It is stable and needs at most n
   log n comparisons, whatever the order function returns. */
static int
table_sort(lua_State *L)
{
    lua_Integer n = list_len(L);
    if (!lua_isnoneornil(L, LESS))
        luaL_checktype(L, LESS, LUA_TFUNCTION);
    lua_settop(L, LESS);
    lua_createtable(L, (int)n, 0);
    lua_createtable(L, (int)n, 0);
    copy_list(L, n, LIST, FROM);
    for (lua_Integer width = 1; width < n; width *= 2) {
        for (lua_Integer low = 1; low <= n; low += 2 * width)
            merge(L, low, least(low + width, n + 1), least(low + 2 * width, n + 1));
        lua_insert(L, FROM); /* swaps FROM and TO */
    }
    copy_list(L, n, FROM, LIST);
    return 0;
}

/* --- the table ------------------------------------------------------------ */

void
qdqi_push_table_lib(lua_State *L)
{
    static const struct qdqi_tamed functions[] = {
        {"concat", table_concat}, {"insert", table_insert},
        {"move", table_move},     {"remove", table_remove},
        {"sort", table_sort},     {"unpack", table_unpack},
        {"pack", NULL},           {NULL, NULL}};
    qdqi_push_tamed(L, LUA_TABLIBNAME, luaopen_table, functions);
}
