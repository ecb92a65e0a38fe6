/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model, its layers and the spec as scripts see them; docs/extend/adding-a-case.md is the
 * reference. A layer is light userdata with the address of a node: it costs nothing,
 * and two values for one node are equal. Scripts cannot make such a value themselves.
 */
#ifndef QDQI_PLAN_CASES_BIND_H
#define QDQI_PLAN_CASES_BIND_H

#include "plan/cases/script.h"

/* These functions raise Lua errors. The sandbox's host has the layers and the spec. */
void qdqi_bind_layers(lua_State *L); /* called once, before the others */
void qdqi_push_model(lua_State *L);
void qdqi_push_spec(lua_State *L);

#endif
