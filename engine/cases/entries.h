/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What scripts return, as the spec's structs. Every mistake is named: which element,
 * which member. The members are those that a spec's JSON has.
 */
#ifndef QDQI_CASES_ENTRIES_H
#define QDQI_CASES_ENTRIES_H

#include "cases/script.h"

/*
 * Reads the list on top of the stack into the host's arena. `max` bounds its length; the
 * bytes of it all are bounded, too. Raise Lua errors.
 */
struct qdq_layer_entry *qdqi_read_entries(lua_State *L, size_t max, size_t *ret_n);
struct qdq_support *qdqi_read_support(lua_State *L, size_t max, size_t *ret_n);

#endif
