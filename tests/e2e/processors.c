/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library to preload (LD_PRELOAD) that shows a process and its children a processor without
 * some of its vector instructions: PROCESSOR_CLASS is `avx512` (no VNNI, no AMX) or `avx2` (no
 * AVX-512 either). Programs that ask CPUID which kernels to use then take the older ones.
 *
 * Linux makes CPUID fault on request on processors of Intel. All of its answers are read
 * beforehand, so that the handler of the fault makes no system call: processes with a seccomp
 * filter allow few. Exits with 77 where CPUID cannot be made to fault.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { SET_CPUID = 0x1012 }; /* of arch_prctl; with 0, CPUID faults */
enum { A, B, C, D, N_REGISTERS };
enum { MOST_LEAVES = 64, SUBLEAVES = 32, ROWS = 3 * MOST_LEAVES * SUBLEAVES };
enum { AVX512 = 1, AVX2 = 2 }; /* classes that lack a feature */

static const uint32_t ranges[] = {0, 0x40000000, 0x80000000};

struct row {
    uint32_t leaf, sub, registers[N_REGISTERS];
};

/* The features that are hidden, by the classes that lack them. */
static const struct feature {
    uint32_t leaf, sub, reg, bits;
    int lacked_by;
} features[] = {
    {7, 0, C, 1U << 11, AVX512 | AVX2},                         /* AVX512-VNNI */
    {7, 1, A, 1U << 4, AVX512 | AVX2},                          /* AVX-VNNI */
    {7, 1, D, 1U << 4 | 1U << 10, AVX512 | AVX2},               /* its INT8, INT16 */
    {7, 0, D, 1U << 22 | 1U << 24 | 1U << 25, AVX512 | AVX2},   /* AMX */
    {7, 1, A, 1U << 21, AVX512 | AVX2},                         /* AMX-FP16 */
    {0x1d, 0, A, UINT32_MAX, AVX512 | AVX2},                    /* tiles */
    {7, 0, B, 1U << 16 | 1U << 17 | 1U << 21 | 1U << 28, AVX2}, /* F, DQ, IFMA, CD */
    {7, 0, B, 1U << 30 | 1U << 31, AVX2},                       /* BW, VL */
    {7, 0, C, 1U << 1 | 1U << 6 | 1U << 12 | 1U << 14, AVX2},   /* VBMI and the like */
    {7, 0, D, 1U << 2 | 1U << 3 | 1U << 8 | 1U << 23, AVX2},    /* FP16 and the like */
    {7, 1, A, 1U << 5, AVX2},                                   /* BF16 */
};

static struct row rows[ROWS];
static size_t n_rows;
static struct sigaction theirs; /* the program's own action on SIGSEGV */
static int (*real_action)(int, const struct sigaction *, struct sigaction *);
static int (*real_mask)(int, const sigset_t *, sigset_t *);

/* --- the answers ------------------------------------------------------------------ */

static struct row
ask(uint32_t leaf, uint32_t sub)
{
    struct row r = {.leaf = leaf, .sub = sub};
    __asm__ volatile("cpuid"
                     : "=a"(r.registers[A]), "=b"(r.registers[B]), "=c"(r.registers[C]),
                       "=d"(r.registers[D])
                     : "a"(leaf), "c"(sub));
    return r;
}

/* Reads all answers of a leaf. Leaves without sub-leaves answer all of them alike. */
static void
read_leaf(uint32_t leaf)
{
    const struct row first = ask(leaf, 0);
    rows[n_rows++] = first;
    for (uint32_t sub = 1; sub < SUBLEAVES; sub++) {
        const struct row r = ask(leaf, sub);
        if (memcmp(r.registers, first.registers, sizeof r.registers) != 0)
            rows[n_rows++] = r;
    }
}

static void
read_answers(void)
{
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        const uint32_t n = ask(ranges[i], 0).registers[A] - ranges[i] + 1;
        for (uint32_t k = 0; k < n && k < MOST_LEAVES; k++)
            read_leaf(ranges[i] + k);
    }
}

/* Returns the answer for a leaf, or the one for its first sub-leaf, or zeros. */
static struct row
find(uint32_t leaf, uint32_t sub)
{
    struct row found = {.leaf = leaf};
    for (size_t i = 0; i < n_rows; i++)
        if (rows[i].leaf == leaf && (rows[i].sub == 0 || rows[i].sub == sub))
            found = rows[i];
    return found;
}

static void
hide(int class)
{
    for (size_t i = 0; i < sizeof features / sizeof *features; i++)
        for (size_t k = 0; k < n_rows; k++)
            if ((features[i].lacked_by & class) && rows[k].leaf == features[i].leaf &&
                rows[k].sub == features[i].sub)
                rows[k].registers[features[i].reg] &= ~features[i].bits;
}

/* --- the fault -------------------------------------------------------------------- */

/* Answers a CPUID. Another fault happens again, under the action of the program. */
static void
on_fault(int number, siginfo_t *info, void *arg)
{
    greg_t *g = ((ucontext_t *)arg)->uc_mcontext.gregs;
    const unsigned char *at = (const unsigned char *)(uintptr_t)g[REG_RIP];
    if (info->si_code != SI_KERNEL || at[0] != 0x0f || at[1] != 0xa2) {
        real_action(number, &theirs, NULL);
        return;
    }
    const struct row r = find((uint32_t)g[REG_RAX], (uint32_t)g[REG_RCX]);
    g[REG_RAX] = r.registers[A];
    g[REG_RBX] = r.registers[B];
    g[REG_RCX] = r.registers[C];
    g[REG_RDX] = r.registers[D];
    g[REG_RIP] += 2;
}

/* Keeps the action of a program on SIGSEGV for real faults. */
int
sigaction(int number, const struct sigaction *new, struct sigaction *old)
{
    if (!real_action)
        *(void **)&real_action = dlsym(RTLD_NEXT, "sigaction");
    if (number != SIGSEGV || n_rows == 0)
        return real_action(number, new, old);
    const struct sigaction before = theirs;
    if (new)
        theirs = *new;
    if (old)
        *old = before;
    return 0;
}

/* Leaves SIGSEGV unblocked: a fault while it is blocked ends the process. */
int
pthread_sigmask(int how, const sigset_t *new, sigset_t *old)
{
    sigset_t set;
    if (!real_mask)
        *(void **)&real_mask = dlsym(RTLD_NEXT, "pthread_sigmask");
    if (!new || how == SIG_UNBLOCK || n_rows == 0)
        return real_mask(how, new, old);
    set = *new;
    sigdelset(&set, SIGSEGV);
    return real_mask(how, &set, old);
}

int
sigprocmask(int how, const sigset_t *new, sigset_t *old)
{
    const int code = pthread_sigmask(how, new, old);
    if (code)
        errno = code;
    return code ? -1 : 0;
}

__attribute__((constructor)) static void
begin(void)
{
    const struct sigaction action = {.sa_sigaction = on_fault,
                                     .sa_flags = SA_SIGINFO | SA_ONSTACK};
    const char *name = getenv("PROCESSOR_CLASS");
    if (!name)
        return;
    const int class = strcmp(name, "avx2") == 0     ? AVX2
                      : strcmp(name, "avx512") == 0 ? AVX512
                                                    : 0;
    *(void **)&real_action = dlsym(RTLD_NEXT, "sigaction");
    if (class && real_action && real_action(SIGSEGV, &action, &theirs) == 0) {
        read_answers();
        hide(class);
        if (syscall(SYS_arch_prctl, (long)SET_CPUID, 0L) == 0)
            return;
    }
    fprintf(stderr, "PROCESSOR_CLASS '%s': %s\n", name,
            class ? strerror(errno) : "it is avx2 or avx512");
    _exit(77);
}
