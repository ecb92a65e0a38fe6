/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "ground/base/host.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

static const struct qdqi_host_row rows[QDQ_N_HOSTS] = {
#define QDQ_HOST(id, name, adds_in_16_bits, is_accelerator, text) \
    [QDQ_HOST_##id] = {name, adds_in_16_bits, is_accelerator, text},
#include "qdq/hosts.h"
#undef QDQ_HOST
};

const struct qdqi_host_row *
qdqi_host_row(enum qdq_host host)
{
    return host >= 0 && host < QDQ_N_HOSTS ? &rows[host] : NULL;
}

const char *
qdq_host_name(size_t i)
{
    return i < QDQ_N_HOSTS ? rows[i].name : NULL;
}

bool
qdq_host_is_accelerator(enum qdq_host host)
{
    const struct qdqi_host_row *row = qdqi_host_row(host);
    return row && row->is_accelerator;
}

enum { LARGEST_BLOCK = 16 }; /* channels of a block on any processor */

#if defined(__x86_64__) || defined(__i386__)

#include <cpuid.h>

struct answer {
    unsigned a, b, c, d;
};

/* Returns the processor's answer for a leaf; zeros if it has no such leaf. */
static struct answer
ask(unsigned leaf, unsigned sub)
{
    struct answer r = {0};
    if (!__get_cpuid_count(leaf, sub, &r.a, &r.b, &r.c, &r.d))
        return (struct answer){0};
    return r;
}

/*
 * Returns whether ONNX Runtime finds VNNI, which it looks for in this way: AVX-VNNI on
 * registers of 256 bits, or AVX512-VNNI beside AVX512 F, BW, DQ and VL. The system must
 * save the registers, which the compiler's function looks at, too.
 */
static bool
has_vnni(void)
{
    if (!__builtin_cpu_supports("avx2"))
        return false;
    if (ask(7, 0).a > 0 && ask(7, 1).a >> 4 & 1)
        return true;
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni");
}

/* The answers do not change, and a virtual machine takes tens of microseconds for each
   CPUID, so they are kept. Threads that ask at the same time store the same. */
static struct {
    atomic_bool asked;
    atomic_uint class, block;
    atomic_uint brand[12]; /* text that is padded with spaces or NULs on either side */
} processor;

static void
ask_processor(void)
{
    if (processor.asked)
        return;
    processor.class = has_vnni() ? QDQ_HOST_VNNI : QDQ_HOST_AVX2;
    /* ONNX Runtime then computes with registers of 512 bits */
    processor.block =
        __builtin_cpu_supports("avx512f") ? LARGEST_BLOCK : LARGEST_BLOCK / 2;
    for (unsigned i = 0; i < 3; i++) {
        const struct answer r = ask(0x80000002 + i, 0);
        const unsigned words[] = {r.a, r.b, r.c, r.d};
        for (unsigned k = 0; k < 4; k++)
            processor.brand[4 * i + k] = words[k];
    }
    processor.asked = true;
}

enum qdq_host
qdqi_host_here(void)
{
    ask_processor();
    return (enum qdq_host)processor.class;
}

size_t
qdqi_host_block(void)
{
    ask_processor();
    return processor.block;
}

void
qdqi_host_processor(char *to, size_t size)
{
    unsigned words[12];
    char brand[sizeof words + 1] = "";
    ask_processor();
    for (unsigned i = 0; i < 12; i++)
        words[i] = processor.brand[i];
    memcpy(brand, words, sizeof words);
    const char *first = brand + strspn(brand, " ");
    size_t n = strlen(first);
    while (n > 0 && first[n - 1] == ' ')
        n--;
    snprintf(to, size, "%.*s", (int)n, n > 0 ? first : "x86");
}

#else

enum qdq_host
qdqi_host_here(void)
{
    return QDQ_HOST_ARM;
}

size_t
qdqi_host_block(void)
{
    return LARGEST_BLOCK;
}

void
qdqi_host_processor(char *to, size_t size)
{
    struct utsname name;
    snprintf(to, size, "%s", uname(&name) == 0 ? name.machine : "unknown");
}

#endif
