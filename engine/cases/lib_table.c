/* SPDX-License-Identifier: Apache-2.0 */
/* Lists. Raw access alone; whatever walks charges for its steps. */
#include "config.h"
#include "cases/libs.h"

#include "cases/sandbox.h"

#include <lauxlib.h>
#include <limits.h>
#include <string.h>

enum { MAX_VALUES = 250 }; /* that one call returns */

/* The length of the list at index 1; small enough to be reckoned with. */
static lua_Integer
list_len(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_Unsigned len = lua_rawlen(L, 1);
    luaL_argcheck(L, len < INT_MAX, 1, "list too long");
    return (lua_Integer)len;
}

/* How many there are from first to last; more than any budget when that overflows. */
static size_t
count(lua_Integer first, lua_Integer last)
{
    if (first > last)
        return 0;
    size_t steps = (size_t)last - (size_t)first;
    return steps == SIZE_MAX ? steps : steps + 1;
}

/* a[f], …, a[e] into b[t]…; backwards when asked. Leaves the stack as it was. */
static void
copy(lua_State *L, int a, lua_Integer f, size_t n, int b, lua_Integer t, bool backwards)
{
    qdqi_sandbox_charge(L, n);
    for (size_t i = 0; i < n; i++) {
        lua_Integer k = (lua_Integer)(backwards ? n - 1 - i : i);
        lua_rawgeti(L, a, f + k);
        lua_rawseti(L, b, t + k);
    }
}

static int
table_insert(lua_State *L)
{
    lua_Integer end = list_len(L) + 1, at = end;
    int n = lua_gettop(L);
    luaL_argcheck(L, n == 2 || n == 3, n + 1, "insert takes two or three arguments");
    if (n == 3) {
        at = luaL_checkinteger(L, 2);
        luaL_argcheck(L, at >= 1 && at <= end, 2, "position out of bounds");
        copy(L, 1, at, count(at, end - 1), 1, at + 1, true);
    }
    lua_settop(L, n);
    lua_rawseti(L, 1, at);
    return 0;
}

static int
table_remove(lua_State *L)
{
    lua_Integer len = list_len(L), at = luaL_optinteger(L, 2, len);
    if (len + 1 != at && !(len == 0 && at == 0))
        luaL_argcheck(L, at >= 1 && at <= len + 1, 2, "position out of bounds");
    lua_rawgeti(L, 1, at);
    if (at >= 1 && at <= len) {
        copy(L, 1, at + 1, count(at + 1, len), 1, at, false);
        lua_pushnil(L);
        lua_rawseti(L, 1, len);
    }
    return 1;
}

/* move(a1, f, e, t [, a2]) */
static int
table_move(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_Integer f = luaL_checkinteger(L, 2), e = luaL_checkinteger(L, 3),
                t = luaL_checkinteger(L, 4);
    int to = lua_isnoneornil(L, 5) ? 1 : 5;
    luaL_checktype(L, to, LUA_TTABLE);
    size_t n = count(f, e);
    lua_settop(L, 5);
    /* Spent here already where there are too many, so the sums below do not overflow
       but for places near the end of all integers. */
    qdqi_sandbox_charge(L, n);
    luaL_argcheck(L, f <= LUA_MAXINTEGER - (lua_Integer)n, 2, "too large");
    luaL_argcheck(L, t <= LUA_MAXINTEGER - (lua_Integer)n, 4, "too large");
    copy(L, 1, f, n, to, t, to == 1 && t > f && t <= e);
    lua_pushvalue(L, to);
    return 1;
}

static int
table_unpack(lua_State *L)
{
    lua_Integer len = list_len(L), i = luaL_optinteger(L, 2, 1);
    size_t n = count(i, luaL_optinteger(L, 3, len));
    if (n > MAX_VALUES)
        luaL_error(L, "at most %d values at a time", MAX_VALUES);
    luaL_checkstack(L, (int)n, NULL);
    qdqi_sandbox_charge(L, n);
    for (size_t k = 0; k < n; k++)
        lua_rawgeti(L, 1, i + (lua_Integer)k);
    return (int)n;
}

/* --- concat --------------------------------------------------------------- */

/* Pushes element i of the list at index 1 as text. */
static const char *
push_element(lua_State *L, lua_Integer i, size_t *ret_len)
{
    int type = lua_rawgeti(L, 1, i);
    if (type != LUA_TSTRING && type != LUA_TNUMBER)
        luaL_error(L, "element %I of the list is a %s, not a text", (LUAI_UACINT)i,
                   lua_typename(L, type));
    return lua_tolstring(L, -1, ret_len);
}

/* concat(list [, sep [, i [, j]]]): measured first, so one string is made. */
static int
table_concat(lua_State *L)
{
    size_t gap_len, total = 0, len;
    lua_Integer n_list = list_len(L);
    const char *gap = luaL_optlstring(L, 2, "", &gap_len);
    lua_Integer first = luaL_optinteger(L, 3, 1);
    size_t n = count(first, luaL_optinteger(L, 4, n_list));
    for (size_t i = 0; i < n; i++) {
        qdqi_sandbox_charge(L, 4);
        push_element(L, first + (lua_Integer)i, &len);
        lua_pop(L, 1);
        total += len + (i ? gap_len : 0);
        if (total > QDQI_MAX_STRING)
            break;
    }
    qdqi_check_text(L, total);
    char *bytes = lua_newuserdatauv(L, total + 1, 0), *end = bytes;
    for (size_t i = 0; i < n; i++) {
        const char *s = push_element(L, first + (lua_Integer)i, &len);
        if (i)
            memcpy(end, gap, gap_len);
        end += i ? gap_len : 0;
        memcpy(end, s, len);
        end += len;
        lua_pop(L, 1);
    }
    lua_pushlstring(L, bytes, total);
    return 1;
}

/* --- sort ----------------------------------------------------------------- */

enum { LIST = 1, LESS = 2, FROM = 3, TO = 4 }; /* stack indices */

/* Whether FROM[a] stands before FROM[b]. */
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

/* The sorted runs [low, middle) and [middle, high) of FROM into TO. */
static void
merge(lua_State *L, lua_Integer low, lua_Integer middle, lua_Integer high)
{
    lua_Integer a = low, b = middle;
    for (lua_Integer k = low; k < high; k++) {
        qdqi_sandbox_charge(L, 8);
        bool second =
            a == middle || (b < high && stands_before(L, b, a)); /* else stable */
        lua_rawgeti(L, FROM, second ? b++ : a++);
        lua_rawseti(L, TO, k);
    }
}

static lua_Integer
least(lua_Integer a, lua_Integer b)
{
    return a < b ? a : b;
}

/* sort(list [, less]): by merging, bottom up. Stable, and n log n comparisons, whatever
   the order function says and does. */
static int
table_sort(lua_State *L)
{
    lua_Integer n = list_len(L);
    if (!lua_isnoneornil(L, LESS))
        luaL_checktype(L, LESS, LUA_TFUNCTION);
    lua_settop(L, LESS);
    lua_createtable(L, (int)n, 0);
    lua_createtable(L, (int)n, 0);
    copy(L, LIST, 1, (size_t)n, FROM, 1, false);
    for (lua_Integer width = 1; width < n; width *= 2) {
        for (lua_Integer low = 1; low <= n; low += 2 * width)
            merge(L, low, least(low + width, n + 1), least(low + 2 * width, n + 1));
        lua_insert(L, FROM); /* what was filled is read next */
    }
    copy(L, FROM, 1, (size_t)n, LIST, 1, false);
    return 0;
}

/* --- the table ------------------------------------------------------------ */

void
qdqi_push_table_lib(lua_State *L)
{
    static const luaL_Reg functions[] = {{"concat", table_concat},
                                         {"insert", table_insert},
                                         {"move", table_move},
                                         {"remove", table_remove},
                                         {"sort", table_sort},
                                         {"unpack", table_unpack},
                                         {NULL, NULL}};
    luaL_newlib(L, functions);
}
