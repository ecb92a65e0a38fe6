/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Nth allocation fails. The linker's --wrap puts these functions in the way of the
 * engine's, so the engine itself carries no hook; a program that includes this is linked
 * with FAILING (engine.mk).
 */
#ifndef TESTS_UNIT_FAILING_H
#define TESTS_UNIT_FAILING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

static long fail_at; /* 0: never; else counts down */

/*
 * How far apart the allocations are that a loop lets fail: 1, all of them, or what
 * $QDQ_FAULT_STRIDE says, for a build in which each takes long. The loop goes on until
 * one was not reached, so its last assertion holds whatever the stride.
 */
static inline long
fault_stride(void)
{
    const char *text = getenv("QDQ_FAULT_STRIDE");
    long stride = text ? strtol(text, NULL, 10) : 1;
    return stride > 0 ? stride : 1;
}

static bool
fails_now(void)
{
    return fail_at > 0 && --fail_at == 0;
}

void *
__wrap_malloc(size_t size)
{
    return fails_now() ? NULL : __real_malloc(size);
}

void *
__wrap_calloc(size_t n, size_t size)
{
    return fails_now() ? NULL : __real_calloc(n, size);
}

void *
__wrap_realloc(void *p, size_t size)
{
    return fails_now() ? NULL : __real_realloc(p, size);
}

#endif
