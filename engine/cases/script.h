/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scripts: what one returns, and what it may ask about. A script is a chunk that returns
 * a table with `info` (a text, or a function that returns one), `case` (a function of
 * model and spec) and, in an operator's file, `layer_support`.
 */
#ifndef QDQI_CASES_SCRIPT_H
#define QDQI_CASES_SCRIPT_H

#include "base/arena.h"
#include "cases/sandbox.h"
#include "layers/layers.h"
#include "qdq/catalog.h"

/* State that the scripts of one sandbox share; passed to qdqi_sandbox_new() as its
   host. */
struct qdqi_script_host {
    const struct qdq_catalog
        *catalog;               /* whose cases library() finds; NULL: the library's */
    struct qdqi_layers *layers; /* NULL where there is no model */
    const struct qdq_spec *spec;
    struct qdqi_arena *arena; /* for what leaves the sandbox */
};

/* The functions below raise Lua errors: call them from qdqi_sandbox_run(). */

/* Pushes the table that a script returns. */
void qdqi_script_push(lua_State *L, const char *name, const char *text);
/* Pushes member `case` of the table on top; nil, when it has none. */
void qdqi_script_push_case(lua_State *L);
/* The text of member `info` of the table on top, in the host's arena; "" without one. */
const char *qdqi_script_info(lua_State *L);
/* Makes the global library(). */
void qdqi_script_open(lua_State *L);

#endif
