/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops that the compiler vectorizes, with AVX2 where the machine has it: a loop is an
 * inline function, called from a plain function and from one for AVX2, and the caller
 * asks the processor. (Not by target_clones: its resolvers run before the sanitizers'
 * runtimes are up.)
 */
#ifndef QDQI_NUMBER_SIMD_H
#define QDQI_NUMBER_SIMD_H

#include <stdbool.h>

#define QDQI_LOOP static inline __attribute__((always_inline))

#if defined(__x86_64__) && defined(__GNUC__)
#define QDQI_AVX2 __attribute__((target("avx2")))
static inline bool
qdqi_has_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}
#else
#define QDQI_AVX2
static inline bool
qdqi_has_avx2(void)
{
    return false;
}
#endif

#endif
