/* SPDX-License-Identifier: Apache-2.0 */
/* Strings without patterns. All are bounded by QDQI_MAX_STRING, so each call is short. */
#include "config.h"
#include "cases/libs.h"

#include "cases/sandbox.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

enum {
    MAX_VALUES = 250,    /* that one call returns */
    MAX_CONVERSION = 8,  /* bytes of "%-+12.34" */
    MAX_FORMATTED = 512, /* bytes of one number: 309 digits, a point and 99 more */
    MAX_PADDED = 400,    /* bytes of a text that a format pads or cuts */
};

void
qdqi_check_text(lua_State *L, size_t len)
{
    if (len > QDQI_MAX_STRING)
        luaL_error(L, "a string takes at most %d bytes (memory)", QDQI_MAX_STRING);
    qdqi_sandbox_charge(L, 1 + len / 16);
}

/* Bytes of a string to come, to be filled and given to lua_pushlstring(). */
static char *
new_bytes(lua_State *L, size_t len)
{
    qdqi_check_text(L, len);
    return lua_newuserdatauv(L, len + 1, 0);
}

/* Position i of a string, from its end when negative: 0 and less for before it. */
static lua_Integer
position(lua_Integer i, size_t len)
{
    if (i >= 0)
        return i;
    return i < -(lua_Integer)len ? 0 : (lua_Integer)len + i + 1;
}

/* Arguments `at` and the next as first and last position, kept inside. Returns how many
   bytes these are. */
static size_t
range(lua_State *L, int at, size_t len, lua_Integer from, lua_Integer to, size_t *start)
{
    from = position(luaL_optinteger(L, at, from), len);
    to = position(luaL_optinteger(L, at + 1, to), len);
    if (from < 1)
        from = 1;
    if (to > (lua_Integer)len)
        to = (lua_Integer)len;
    *start = from > to ? 0 : (size_t)from - 1;
    return from > to ? 0 : (size_t)(to - from + 1);
}

static int
string_byte(lua_State *L)
{
    size_t len, start;
    const char *s = luaL_checklstring(L, 1, &len);
    lua_Integer from = luaL_optinteger(L, 2, 1);
    size_t n = range(L, 2, len, 1, from, &start);
    if (n > MAX_VALUES)
        luaL_error(L, "at most %d bytes at a time", MAX_VALUES);
    luaL_checkstack(L, (int)n, NULL);
    for (size_t i = 0; i < n; i++)
        lua_pushinteger(L, (unsigned char)s[start + i]);
    return (int)n;
}

static int
string_char(lua_State *L)
{
    int n = lua_gettop(L);
    char *bytes = new_bytes(L, (size_t)n);
    for (int i = 0; i < n; i++) {
        lua_Integer byte = luaL_checkinteger(L, i + 1);
        luaL_argcheck(L, byte >= 0 && byte <= 255, i + 1, "not a byte");
        bytes[i] = (char)byte;
    }
    lua_pushlstring(L, bytes, (size_t)n);
    return 1;
}

static int
string_len(lua_State *L)
{
    size_t len;
    luaL_checklstring(L, 1, &len);
    lua_pushinteger(L, (lua_Integer)len);
    return 1;
}

/* Letters of ASCII, whatever the locale. */
static char
to_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c;
}

static char
to_upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c + 'A' - 'a') : c;
}

static int
map_bytes(lua_State *L, char (*map)(char))
{
    size_t len;
    const char *s = luaL_checklstring(L, 1, &len);
    char *bytes = new_bytes(L, len);
    for (size_t i = 0; i < len; i++)
        bytes[i] = map(s[i]);
    lua_pushlstring(L, bytes, len);
    return 1;
}

static int
string_lower(lua_State *L)
{
    return map_bytes(L, to_lower);
}

static int
string_upper(lua_State *L)
{
    return map_bytes(L, to_upper);
}

static int
string_reverse(lua_State *L)
{
    size_t len;
    const char *s = luaL_checklstring(L, 1, &len);
    char *bytes = new_bytes(L, len);
    for (size_t i = 0; i < len; i++)
        bytes[i] = s[len - 1 - i];
    lua_pushlstring(L, bytes, len);
    return 1;
}

static int
string_sub(lua_State *L)
{
    size_t len, start;
    const char *s = luaL_checklstring(L, 1, &len);
    luaL_checkinteger(L, 2);
    size_t n = range(L, 2, len, 1, -1, &start);
    qdqi_check_text(L, n);
    lua_pushlstring(L, s + start, n);
    return 1;
}

static int
string_rep(lua_State *L)
{
    size_t len, gap_len, total;
    const char *s = luaL_checklstring(L, 1, &len);
    lua_Integer n = luaL_checkinteger(L, 2);
    const char *gap = luaL_optlstring(L, 3, "", &gap_len);
    if (n <= 0 || len + gap_len == 0) {
        lua_pushliteral(L, "");
        return 1;
    }
    if (__builtin_mul_overflow(len + gap_len, (size_t)n, &total))
        total = SIZE_MAX;
    char *bytes = new_bytes(L, total - gap_len), *end = bytes;
    for (lua_Integer i = 0; i < n; i++) {
        memcpy(end, s, len);
        end += len;
        if (i + 1 == n)
            break;
        memcpy(end, gap, gap_len);
        end += gap_len;
    }
    lua_pushlstring(L, bytes, total - gap_len);
    return 1;
}

/* find(s, text [, init]): the text itself, never a pattern. */
static int
string_find(lua_State *L)
{
    size_t len, text_len, start;
    const char *s = luaL_checklstring(L, 1, &len);
    const char *text = luaL_checklstring(L, 2, &text_len);
    lua_Integer init = position(luaL_optinteger(L, 3, 1), len);
    start = init > 0 ? (size_t)init - 1 : 0;
    qdqi_sandbox_charge(L, 1 + (len + text_len) / 4);
    const char *found =
        start <= len ? memmem(s + start, len - start, text, text_len) : NULL;
    if (!found) {
        lua_pushnil(L);
        return 1;
    }
    lua_pushinteger(L, found - s + 1);
    lua_pushinteger(L, found - s + (lua_Integer)text_len);
    return 2;
}

/* --- format --------------------------------------------------------------- */

/* Copies "%-5.2" with a length modifier for what follows. Returns the conversion. */
static char
read_conversion(lua_State *L, const char *at, char spec[MAX_CONVERSION + 4])
{
    size_t flags = strspn(at + 1, "-+ #0"), n = 1 + flags, width, precision = 0;
    width = strspn(at + n, "0123456789");
    n += width;
    if (at[n] == '.') {
        precision = strspn(at + n + 1, "0123456789");
        n += 1 + precision;
    }
    char conversion = at[n];
    if (width > 2 || precision > 2 || n > MAX_CONVERSION || !conversion ||
        !strchr("dicuxXoeEfFgGs%", conversion) || (conversion == '%' && n > 1))
        luaL_error(L, "invalid conversion '%s' to 'format'",
                   lua_pushlstring(L, at, strnlen(at, 1 + MAX_CONVERSION)));
    memcpy(spec, at, n);
    if (strchr("diuxXo", conversion)) {
        memcpy(spec + n, "ll", 2);
        n += 2;
    }
    spec[n] = conversion;
    spec[n + 1] = '\0';
    return conversion;
}

/* Pushes argument `arg` as a format wants it; the format was checked. */
static void
push_formatted(lua_State *L, const char *spec, char conversion, int arg)
{
    char text[MAX_FORMATTED];
    int len;
    if (strchr("diuxXo", conversion)) {
        len = snprintf(text, sizeof text, spec, (long long)luaL_checkinteger(L, arg));
    } else if (conversion == 'c') {
        len = snprintf(text, sizeof text, spec, (int)luaL_checkinteger(L, arg));
    } else if (conversion != 's') {
        len = snprintf(text, sizeof text, spec, (double)luaL_checknumber(L, arg));
    } else {
        luaL_checkany(L, arg);
        size_t n;
        const char *s = qdqi_push_text(L, arg, &n);
        if (strcmp(spec, "%s") == 0)
            return;
        if (n > MAX_PADDED || memchr(s, 0, n))
            luaL_argerror(L, arg, "too long to be padded, or holds a zero byte");
        len = snprintf(text, sizeof text, spec, s);
        lua_pop(L, 1);
    }
    lua_pushlstring(L, text, (size_t)len);
}

static int
string_format(lua_State *L)
{
    char spec[MAX_CONVERSION + 4];
    size_t len;
    const char *at = luaL_checklstring(L, 1, &len), *end = at + len;
    int arg = 1;
    qdqi_sandbox_charge(L, 1 + len / 16);
    luaL_checkstack(L, 4, NULL);
    lua_pushliteral(L, "");
    while (at < end) {
        const char *percent = memchr(at, '%', (size_t)(end - at));
        if (percent == at) {
            char conversion = read_conversion(L, at, spec);
            if (conversion == '%')
                lua_pushliteral(L, "%");
            else
                push_formatted(L, spec, conversion, ++arg);
            at = strchr(at + 1, conversion) + 1;
        } else {
            size_t n = (size_t)((percent ? percent : end) - at);
            lua_pushlstring(L, at, n);
            at += n;
        }
        qdqi_check_text(L, lua_rawlen(L, -1) + lua_rawlen(L, -2));
        lua_concat(L, 2);
    }
    return 1;
}

/* --- the table ------------------------------------------------------------ */

void
qdqi_push_string_lib(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"byte", string_byte}, {"char", string_char},
        {"find", string_find}, {"format", string_format},
        {"len", string_len},   {"lower", string_lower},
        {"rep", string_rep},   {"reverse", string_reverse},
        {"sub", string_sub},   {"upper", string_upper},
        {NULL, NULL}};
    luaL_newlib(L, functions);
    /* ("x"):rep(3) finds the same functions; no other metamethods. */
    lua_pushliteral(L, "");
    lua_createtable(L, 0, 1);
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
    lua_pop(L, 1);
}
