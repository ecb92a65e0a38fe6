/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scripts and the values that they return. A script is a chunk that returns a table
 * with `info` (a text, or a function that returns one), `case` (a function of model and
 * spec) and, in an operator's file, `layer_support`.
 */
#ifndef QDQI_PLAN_CASES_SCRIPT_H
#define QDQI_PLAN_CASES_SCRIPT_H

#include "plan/cases/case.h"
#include "plan/cases/sandbox.h"

/* The functions below raise Lua errors: call them from qdqi_sandbox_run(). */

/* Pushes the table that a script returns. */
void qdqi_script_push(lua_State *L, const char *name, const char *text);
/* Pushes member `case` of the table on top, or nil if it has none. */
void qdqi_script_push_case(lua_State *L);
/* Returns the text of member `info` of the table on top, in the host's arena; "" if
   it has none. */
const char *qdqi_script_info(lua_State *L);
/* Defines the global function library(). */
void qdqi_script_open(lua_State *L);

#endif
