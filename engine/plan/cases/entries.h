/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the values that scripts return into the spec's structs. Every error names
   the element and the member. The members are those of the spec's JSON. */
#ifndef QDQI_PLAN_CASES_ENTRIES_H
#define QDQI_PLAN_CASES_ENTRIES_H

#include "plan/cases/script.h"

/* Reads the list on top of the stack into the host's arena. `max` bounds its length;
   the total of its bytes is bounded, too. Raises Lua errors. */
struct qdq_layer_entry *qdqi_read_entries(lua_State *L, size_t max, size_t *ret_n);
struct qdq_support *qdqi_read_support(lua_State *L, size_t max, size_t *ret_n);

#endif
