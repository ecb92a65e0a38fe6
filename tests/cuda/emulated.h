/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the programs that use the module of the emulator, which $QDQ_CUDA_EMULATED names.
 * Without it they are skipped.
 */
#ifndef TESTS_CUDA_EMULATED_H
#define TESTS_CUDA_EMULATED_H

#include "unit.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static const char *module;

/* Returns the bytes of device memory in use. */
static inline size_t
in_use(void)
{
    size_t (*count)(void);
    *(void **)&count = dlsym(dlopen(module, RTLD_NOW), "emulated_cuda_in_use");
    ck_assert_ptr_nonnull(count);
    return count();
}

/* Runs the tests, or says why they are skipped. Returns the exit status. */
static inline int
run_emulated(Suite *(*suite)(void))
{
    const char *text =
        "the module of the emulator is not here (tests/check-kernels.sh)";
    module = getenv("QDQ_CUDA_EMULATED");
    if (!module) {
        if (getenv("CK_TAP_LOG_FILE_NAME"))
            printf("1..0 # SKIP %s\n", text);
        else
            printf("skipped: %s\n", text);
        return getenv("CK_TAP_LOG_FILE_NAME") ? EXIT_SUCCESS : 77;
    }
    unit_begin();
    return unit_run(suite(), CK_NOFORK);
}

#endif
