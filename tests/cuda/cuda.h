/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the programs that compare the kernels with the CPU's arithmetic: a device,
 * memory on both sides, data of all kinds, and a main() that says why nothing was
 * tested when there is no device.
 *
 * The module is the one in the build, or $QDQ_CUDA_MODULE. Without a module or a
 * device, the tests count as skipped: TAP says so, and a program that is run by hand
 * exits with 77. With QDQ_CUDA_REQUIRED in the environment it fails instead.
 * QDQ_CUDA_BRIEF leaves out the largest sizes and the deliberate errors;
 * compute-sanitizer and the emulator need that.
 */
#ifndef TESTS_CUDA_CUDA_H
#define TESTS_CUDA_CUDA_H

#include "numbers/cuda/device.h"
#include "unit.h"

#include <math.h>
#include <string.h>

static struct qdqi_cuda *cuda;
static const struct qdqi_cuda_api *gpu;
static void *stream;

/* --- calls ---------------------------------------------------------------- */

static inline void
fine(int status)
{
    if (status)
        ck_abort_msg("status %d: %s", status, gpu->text(status));
}

static inline void
finish(void)
{
    fine(gpu->stream_wait(stream));
}

static inline void *
device_memory(size_t bytes)
{
    void *memory = NULL;
    fine(gpu->alloc(bytes, &memory));
    return memory;
}

static inline void
to_device(void *device, const void *host, size_t bytes)
{
    if (bytes)
        fine(gpu->upload(device, host, bytes, stream));
    finish();
}

static inline void
from_device(void *host, const void *device, size_t bytes)
{
    if (bytes)
        fine(gpu->download(host, device, bytes, stream));
    finish();
}

/* --- data ----------------------------------------------------------------- */

static inline uint32_t
next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(*state >> 32);
}

/* Returns a number from a distribution that is roughly normal. */
static inline float
next_normal(uint64_t *state)
{
    double sum = 0;
    for (int i = 0; i < 4; i++)
        sum += (double)next_random(state) * 0x1p-32 - 0.5;
    return (float)(sum * 1.7);
}

enum kind {
    NORMAL,
    RELU,  /* half of them zeros, of both signs */
    SIZES, /* all exponents, also of subnormal numbers; finite */
    TIES,  /* multiples of a half and of a quarter */
    ONE,   /* equal elements */
    /* number of kinds up to here; all are finite in float32 and, without TIES, in
       float16 */
    FINITE,
    BITS = FINITE, /* any bits: NaN, infinities */
    N_KINDS
};

static inline float
value_of(enum kind kind, uint64_t *state)
{
    uint32_t bits = next_random(state);
    float x = next_normal(state);
    switch (kind) {
    case NORMAL:
        return x;
    case RELU:
        return x > 0 ? x : x > -0.5f ? 0.0f : -0.0f;
    case SIZES:
        return qdqi_float_of_bits((bits >> 23 & 0xff) == 0xff ? bits ^ (1u << 30)
                                                              : bits);
    case TIES:
        return (float)((int32_t)bits >> 20) * 0.25f;
    case ONE:
        return -5;
    default:
        return qdqi_float_of_bits(bits);
    }
}

static inline uint16_t
half_of(enum kind kind, uint64_t *state)
{
    if (kind != SIZES && kind != BITS)
        return qdqi_half_narrowed(value_of(kind, state));
    uint16_t bits = (uint16_t)(next_random(state) >> 16);
    return kind == SIZES && (bits & 0x7c00) == 0x7c00 ? bits ^ 0x4000 : bits;
}

static inline size_t
size_of(int type)
{
    return type == QDQI_FLOAT16 ? 2 : 4;
}

/* Fills `data` with n elements of a type, and `wide` with the same numbers as
   float32. */
static inline void
make(int type, enum kind kind, uint64_t seed, size_t n, void *data, float *wide)
{
    uint64_t state = seed;
    for (size_t i = 0; i < n; i++)
        if (type == QDQI_FLOAT16) {
            uint16_t half = half_of(kind, &state);
            ((uint16_t *)data)[i] = half;
            wide[i] = qdqi_half_widened(half);
        } else
            ((float *)data)[i] = wide[i] = value_of(kind, &state);
}

/* Sizes next to every boundary in a kernel: of a vector, of the elements that a
   thread loads ahead, of a warp, of a block and of a full grid. */
static const size_t sizes[] = {
    0,    1,    2,    3,     4,     5,     7,     8,      9,       15,
    16,   17,   31,   32,    33,    63,    64,    65,     255,     256,
    257,  511,  512,  513,   1023,  1024,  1025,  4095,   4096,    4097,
    8191, 8192, 8193, 16383, 16385, 65535, 65537, 262143, 1000003, 4194309};
enum { N_SIZES = sizeof sizes / sizeof *sizes, N_LARGE = 3, MAX_SIZE = 4194309 + 16 };

static inline bool
is_brief(void)
{
    return getenv("QDQ_CUDA_BRIEF") != NULL;
}

static inline int
n_sizes(void)
{
    return is_brief() ? N_SIZES - N_LARGE : N_SIZES;
}

static const int types[] = {QDQI_FLOAT32, QDQI_FLOAT16};

/* Numbers of elements by which a tensor begins behind a 16-byte boundary. */
static const size_t offsets[] = {0, 1, 3, 5};
enum { N_OFFSETS = sizeof offsets / sizeof *offsets };

/* --- main ----------------------------------------------------------------- */

static inline int
skipped(const char *why)
{
    if (getenv("CK_TAP_LOG_FILE_NAME")) {
        printf("1..0 # SKIP %s\n", why);
        return EXIT_SUCCESS;
    }
    printf("skipped: %s\n", why);
    return 77;
}

static inline int
no_device(const char *why)
{
    if (!getenv("QDQ_CUDA_REQUIRED"))
        return skipped(why);
    fprintf(stderr, "%s\n", why);
    return EXIT_FAILURE;
}

/* Runs the suite. `memory` is the number of bytes that the device must have. */
static inline int
cuda_main(Suite *(*suite)(void), uint64_t memory)
{
    struct qdq_error err = {0};
    const char *module = getenv("QDQ_CUDA_MODULE");
    if (qdqi_cuda_open(module ? module : "engine/numbers/cuda/qdq_cuda.so", &cuda,
                       &err) ||
        qdqi_cuda_use(cuda, 0, &err)) {
        qdqi_cuda_close(&cuda);
        return no_device(err.text);
    }
    if (qdqi_cuda_device(cuda, 0)->memory < memory) {
        qdqi_cuda_close(&cuda);
        return skipped("the device has too little memory for it");
    }
    gpu = qdqi_cuda_functions(cuda);
    if (gpu->stream_open(&stream)) {
        qdqi_cuda_close(&cuda);
        fprintf(stderr, "no stream\n");
        return EXIT_FAILURE;
    }
    unit_begin();
    int result = unit_run(suite(), CK_NOFORK);
    qdqi_cuda_close(&cuda);
    return result;
}

/* Tests do not run in processes of their own, because a device does not survive a
   fork. */
#define CUDA_MAIN(suite)            \
    int main(void)                  \
    {                               \
        return cuda_main(suite, 0); \
    }

#endif
