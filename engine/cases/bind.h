/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model, its layers and the spec as scripts see them; docs/adding-a-case.md is their
 * reference. A layer is light userdata, a node's address: it costs nothing, and two of
 * one node are equal. Scripts have no way to make another.
 */
#ifndef QDQI_CASES_BIND_H
#define QDQI_CASES_BIND_H

#include "cases/script.h"

/* Raise Lua errors. The host has layers and spec. */
void qdqi_bind_layers(lua_State *L); /* once, before the others */
void qdqi_push_model(lua_State *L);
void qdqi_push_spec(lua_State *L);

#endif
