/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "numbers/arithmetic/simd.h"

#include <stdatomic.h>

static bool
plain_runs(void)
{
    return true;
}

#if defined(__x86_64__) && defined(__GNUC__)
static bool
avx2_runs(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static bool
avx512_runs(void)
{
    return avx2_runs() && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl");
}
#else
static bool
avx2_runs(void)
{
    return false;
}

static bool
avx512_runs(void)
{
    return false;
}
#endif

static const struct {
    const char *name;
    bool (*runs)(void);
} levels[QDQI_N_SIMD] = {
    [QDQI_SIMD_PLAIN] = {"plain", plain_runs},
    [QDQI_SIMD_AVX2] = {"avx2", avx2_runs},
    [QDQI_SIMD_AVX512] = {"avx512", avx512_runs},
};

/* The level in use plus 1; 0: it is not chosen yet. */
static atomic_int chosen;

enum qdqi_simd
qdqi_simd(void)
{
    int level = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (level > 0)
        return (enum qdqi_simd)(level - 1);
    level = QDQI_N_SIMD - 1;
    while (!levels[level].runs())
        level--;
    qdqi_simd_use((enum qdqi_simd)level);
    return (enum qdqi_simd)level;
}

const char *
qdqi_simd_name(enum qdqi_simd level)
{
    return levels[level].name;
}

bool
qdqi_simd_runs(enum qdqi_simd level)
{
    return levels[level].runs();
}

void
qdqi_simd_use(enum qdqi_simd level)
{
    atomic_store_explicit(&chosen, (int)level + 1, memory_order_relaxed);
}
