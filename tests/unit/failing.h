/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the Nth allocation fail. The linker's --wrap replaces the engine's allocation
 * functions by these, so the engine itself has no hook. A program that includes this
 * file is linked with FAILING (engine.mk).
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

static long fail_at; /* counts down to the failure; 0: none fails */

/*
 * Returns the step of a loop over the allocations that fail: 1 for all of them, or
 * $QDQ_FAULT_STRIDE in a build in which each takes long. The loop ends after a run in
 * which nothing failed, so its last assertion holds with any step.
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
