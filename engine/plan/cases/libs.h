/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of Lua's standard library that scripts have. Its functions end soon or
 * charge the sandbox's budget for their work, give the same answer in every run (no
 * addresses, no order of a hash table, no random numbers), and reach nothing outside of
 * the state.
 */
#ifndef QDQI_PLAN_CASES_LIBS_H
#define QDQI_PLAN_CASES_LIBS_H

#include <lua.h>

/* Replaces the globals of the state by those that scripts may use; a lua_CFunction. */
int qdqi_libs_open(lua_State *L);

/* A function of Lua's own and its replacement; NULL: scripts do not have it. */
struct qdqi_tamed {
    const char *name;
    lua_CFunction instead; /* upvalue 1: Lua's own */
};

/* Pushes the table of a library with the replacements in it. `functions` ends with a
   row that has no name. */
void qdqi_push_tamed(lua_State *L, const char *library, lua_CFunction open,
                     const struct qdqi_tamed *functions);
/* Calls Lua's own function, upvalue 1, with the arguments of the calling function,
   whose results it returns. */
int qdqi_call_original(lua_State *L);

/* Each of these functions pushes the table of its library. */
void qdqi_push_string_lib(lua_State *L);
void qdqi_push_table_lib(lua_State *L);

/* Pushes the text of a value. The text of a table or a function is the name of its
   type. */
const char *qdqi_push_text(lua_State *L, int index, size_t *ret_len);

#endif
