/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What scripts have of Lua's standard library: functions that end soon or charge the
 * sandbox's budget for what they do, that give the same answer in every run (no
 * addresses, no order of a hash table, no random numbers), and that reach nothing
 * outside of the state.
 */
#ifndef QDQI_LIBS_H
#define QDQI_LIBS_H

#include <lua.h>

/* Makes the state's globals anew, of what scripts may have and nothing else. */
void qdqi_libs_open(lua_State *L);

/* Each pushes its table. */
void qdqi_push_string_lib(lua_State *L);
void qdqi_push_table_lib(lua_State *L);

/* Pushes a value's text: of tables and functions only what they are. */
const char *qdqi_push_text(lua_State *L, int index, size_t *ret_len);

/* Raises unless a string of that many bytes may be made; then charges for it. */
void qdqi_check_text(lua_State *L, size_t len);

#endif
