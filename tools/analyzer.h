/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contracts that clang's analyser cannot see from one file: functions that set an error never return
 * success, and Lua's errors do not return. tools/analyze puts this in front of every file but those
 * that define these functions.
 */
#ifndef TOOLS_ANALYZER_H
#define TOOLS_ANALYZER_H

#include "config.h"

#if __has_include("ground/base/arena.h")
#include "ground/base/arena.h"
#define qdqi_no_memory(err) ((void)qdqi_no_memory(err), QDQ_NO_MEMORY)
#endif

#if __has_include("qdq/error.h")
#include "qdq/error.h"
static inline enum qdq_code
analyzer_failure(enum qdq_code code)
{
    if (code == QDQ_OK)
        __builtin_unreachable();
    return code;
}
#define qdq_error_set(err, code, ...) \
    ((void)qdq_error_set(err, code, __VA_ARGS__), analyzer_failure(code))
#endif

#if __has_include(<lauxlib.h>)
#include <lauxlib.h>
int(luaL_error)(lua_State *L, const char *fmt, ...) __attribute__((analyzer_noreturn));
#endif

#if __has_include("api/problem.h")
#include "api/problem.h"
#define api_problem_set(...) ((void)api_problem_set(__VA_ARGS__), false)
#define api_problem_vset(...) ((void)api_problem_vset(__VA_ARGS__), false)
#define api_problem_no_memory(p) ((void)api_problem_no_memory(p), false)
#define api_problem_set_engine(p, err) ((void)api_problem_set_engine(p, err), false)
#endif

#endif
