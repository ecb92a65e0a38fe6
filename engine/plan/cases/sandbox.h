/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Lua state for untrusted scripts. It bounds instructions, memory and time, and gives
 * no access to the machine.
 *
 * The bounds, and their purposes:
 *   - an instruction hook counts what the script itself does;
 *   - functions in C charge the same budget for the work that they do, because the hook
 *     does not run inside of them;
 *   - the allocator bounds what is held at once, what is allocated in all, and how long
 *     one string is: each instruction then takes a bounded time, so the hook comes back;
 *   - hook, charge and allocator look at the processor time;
 *   - a bound that was reached ends the script: pcall passes that error on, there is no
 *     other way to catch one, and no script code runs behind the script's back (no
 *     metatables, so no __gc and no __close; no coroutines).
 *
 * One state serves one run of one caller. Everything that can raise a Lua error runs
 * inside qdqi_sandbox_run().
 */
#ifndef QDQI_PLAN_CASES_SANDBOX_H
#define QDQI_PLAN_CASES_SANDBOX_H

#include "qdq/error.h"

#include <lua.h>

enum {
    QDQI_MAX_SOURCE = 256 * 1024, /* bytes of a script */
    QDQI_MAX_STRING = 64 * 1024,  /* bytes of a string that a script makes */
    QDQI_MAX_SCRIPTS = 32,        /* scripts that take part in one run, by library() */
    QDQI_MAX_SECONDS = 2,         /* seconds of processor time */
};

struct qdqi_sandbox;

/*
 * Creates a sandbox. `label` is the script's name in errors ("case 'mine'"), and
 * `pointer` its place in the spec or NULL; the sandbox borrows both. The budgets grow
 * with the model's number of nodes. *left is the processor time, in nanoseconds, that is
 * left to all scripts together; NULL: there is no such bound. qdqi_sandbox_free()
 * subtracts what this one used. `libs` fills in the globals (qdqi_libs_open()).
 * qdqi_sandbox_host() returns `host`. NO_MEMORY.
 */
enum qdq_code qdqi_sandbox_new(const char *label, const char *pointer, size_t n_nodes,
                               int64_t *left, lua_CFunction libs, void *host,
                               struct qdqi_sandbox **ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_sandbox_free(struct qdqi_sandbox **sandbox);

/* Calls `function` with `arg` as light userdata, its only argument. CASE_FAILED
   names script and line; NO_MEMORY. After a failure the sandbox can only be freed. */
enum qdq_code qdqi_sandbox_run(struct qdqi_sandbox *sandbox, lua_CFunction function,
                               void *arg, struct qdq_error *err) QDQ_MUST_CHECK;

/* --- functions that are called inside the sandbox ------------------------ */

void *qdqi_sandbox_host(lua_State *L);
/* Subtracts `work`, in about instructions, from the budget. Raises an error when the
   budget is spent. */
void qdqi_sandbox_charge(lua_State *L, size_t work);
/* Attributes errors that no line of a script raises to the function on top of the
   stack. */
void qdqi_sandbox_blame(lua_State *L);
/* Returns whether a call that ended in `status` has to end the script as a whole. */
bool qdqi_sandbox_is_over(lua_State *L, int status);
/* Raises an error that ends the run in NO_MEMORY. */
int qdqi_sandbox_no_memory(lua_State *L);
/*
 * Compiles a script of that name and pushes its main function. Raises its syntax errors
 * and when there are too many scripts.
 */
void qdqi_sandbox_load(lua_State *L, const char *name, const char *text);

#endif
