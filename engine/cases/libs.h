/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What scripts have of Lua's standard library: functions that end soon or charge the
 * sandbox's budget for what they do, that give the same answer in every run (no
 * addresses, no order of a hash table, no random numbers), and that reach nothing
 * outside of the state.
 */
#ifndef QDQI_CASES_LIBS_H
#define QDQI_CASES_LIBS_H

#include <lua.h>

/* Makes the state's globals anew, of what scripts may have and nothing else. */
void qdqi_libs_open(lua_State *L);

/* A function of Lua's own and what stands in its place; NULL: it is not to be had. */
struct qdqi_tamed {
    const char *name;
    lua_CFunction instead; /* upvalue 1: Lua's own */
};

/* Pushes a library's table with those in it, up to one without a name. */
void qdqi_push_tamed(lua_State *L, const char *library, lua_CFunction open,
                     const struct qdqi_tamed *functions);
/* Calls Lua's own function, upvalue 1, with the arguments of this one, for `return`. */
int qdqi_call_original(lua_State *L);

/* Each pushes its table. */
void qdqi_push_string_lib(lua_State *L);
void qdqi_push_table_lib(lua_State *L);

/* Pushes a value's text: of tables and functions only what they are. */
const char *qdqi_push_text(lua_State *L, int index, size_t *ret_len);

#endif
