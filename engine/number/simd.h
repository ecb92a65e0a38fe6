/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Support for loops that the compiler vectorizes, with AVX2 or AVX-512 if the processor has
 * it.
 * Such a loop is an inline function that is called from a plain function and from those
 * compiled for AVX2 and AVX-512; the caller asks the processor which one to call. (target_clones is
 * not used because its resolvers run before the runtimes of the sanitizers are
 * initialized.)
 */
#ifndef QDQI_NUMBER_SIMD_H
#define QDQI_NUMBER_SIMD_H

#include <stdbool.h>

#define QDQI_LOOP static inline __attribute__((always_inline))

#if defined(__x86_64__) && defined(__GNUC__)
#define QDQI_AVX2 __attribute__((target("avx2")))
#define QDQI_AVX512 \
    __attribute__(( \
        target("avx512f,avx512dq,avx512bw,avx512vl,prefer-vector-width=512")))
static inline bool
qdqi_has_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}

static inline bool
qdqi_has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}
#else
#define QDQI_AVX2
#define QDQI_AVX512
static inline bool
qdqi_has_avx2(void)
{
    return false;
}

static inline bool
qdqi_has_avx512(void)
{
    return false;
}
#endif

#endif
