/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Support for loops that the compiler vectorizes, with AVX2 or AVX-512 if the processor has
 * it. Such a loop is an inline function NAME_loop. QDQI_VARIANTS() compiles it once for each
 * row of one table of levels and makes the function NAME, which calls the variant of the
 * level in use. All variants give the same bits: products and sums are not fused
 * (-ffp-contract=off), and the compiler does not change the order of sums. (target_clones
 * is not used because its resolvers run before the runtimes of the sanitizers are
 * initialized.)
 *
 * numbers/arithmetic/products.c, graph/weights/updates.c and graph/weights/approximate.c fuse them, which is twice as
 * fast and more exact. There the levels from AVX2 on give the same bits, and the plain level of
 * x86-64, which has no fused instruction, rounds each product besides: a sum of n products
 * may differ by n times 2^-53 (2^-24 in float32) of the sum of their magnitudes.
 */
#ifndef QDQI_NUMBERS_ARITHMETIC_SIMD_H
#define QDQI_NUMBERS_ARITHMETIC_SIMD_H

#include <stdbool.h>

/* The levels, of which each has the instructions of those before it. */
enum qdqi_simd { QDQI_SIMD_PLAIN, QDQI_SIMD_AVX2, QDQI_SIMD_AVX512, QDQI_N_SIMD };

/* In front of the functions of a file whose products and sums are fused. */
#ifdef __clang__
#define QDQI_FUSED _Pragma("clang fp contract(fast)")
#else
#define QDQI_FUSED _Pragma("GCC optimize(\"fp-contract=fast\")")
#endif

#define QDQI_LOOP static inline __attribute__((always_inline))

#if defined(__x86_64__) && defined(__GNUC__)
#define QDQI_AVX2 __attribute__((target("avx2,fma")))
#define QDQI_AVX512 \
    __attribute__(( \
        target("avx512f,avx512dq,avx512bw,avx512vl,prefer-vector-width=512")))
#else
#define QDQI_AVX2
#define QDQI_AVX512
#endif

/* Defines NAME, which returns `type` and calls NAME_loop. `parameters` and `arguments` are
   in parentheses. */
#define QDQI_VARIANTS(type, name, parameters, arguments)    \
    QDQI_NARROW_VARIANTS(type, name, parameters, arguments) \
    QDQI_AVX512 static type name##_avx512 parameters        \
    {                                                       \
        return name##_loop arguments;                       \
    }                                                       \
    QDQI_DISPATCH(type, name, parameters, arguments)

/* The parts of it, for a NAME_avx512 that is written by hand. */
#define QDQI_NARROW_VARIANTS(type, name, parameters, arguments) \
    static type name##_plain parameters                         \
    {                                                           \
        return name##_loop arguments;                           \
    }                                                           \
    QDQI_AVX2 static type name##_avx2 parameters                \
    {                                                           \
        return name##_loop arguments;                           \
    }
#define QDQI_DISPATCH(type, name, parameters, arguments)             \
    static type name parameters                                      \
    {                                                                \
        static type(*const variants[QDQI_N_SIMD])                    \
            parameters = {name##_plain, name##_avx2, name##_avx512}; \
        return variants[qdqi_simd()] arguments;                      \
    }

/* Returns the level in use: the highest that runs here. Any thread may ask. */
enum qdqi_simd qdqi_simd(void);

const char *qdqi_simd_name(enum qdqi_simd level);
/* Returns whether this processor and its system have the level's instructions. */
bool qdqi_simd_runs(enum qdqi_simd level);
/* Uses another level that runs here from now on, to compare variants with each other. No
   other thread may be in such a loop. */
void qdqi_simd_use(enum qdqi_simd level);

#endif
