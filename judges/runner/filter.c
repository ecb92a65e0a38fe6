/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "runner/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined __x86_64__
enum { HERE = AUDIT_ARCH_X86_64 };
#elif defined __aarch64__
enum { HERE = AUDIT_ARCH_AARCH64 };
#else
enum { HERE = 0 };
#endif

/* System calls that newer headers name, with the same number on every architecture. */
enum {
    PIDFD_SEND_SIGNAL = 424,
    IO_URING_SETUP = 425,
    IO_URING_ENTER = 426,
    IO_URING_REGISTER = 427,
    OPEN_TREE = 428,
    MOVE_MOUNT = 429,
    FSOPEN = 430,
    FSMOUNT = 432,
    PIDFD_OPEN = 434,
    CLONE3 = 435,
    PIDFD_GETFD = 438,
    PROCESS_MADVISE = 440,
    MOUNT_SETATTR = 442,
    MEMFD_SECRET = 447,
    PROCESS_MRELEASE = 448,
    FCHMODAT2 = 452,
    SETXATTRAT = 463,
    REMOVEXATTRAT = 466,
};

/* Calls that are refused whatever their arguments. */
static const int refused[] = {
    /* the network; a pair of sockets is a row of its own below */
    SYS_accept,
    SYS_accept4,
    /* other processes, and leaving the process group */
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    SYS_migrate_pages,
    SYS_move_pages,

    SYS_setpriority,
    SYS_ioprio_set,
    SYS_sched_setscheduler,
    SYS_sched_setparam,
    SYS_sched_setattr,
    PIDFD_SEND_SIGNAL,
    PIDFD_OPEN,
    PIDFD_GETFD,
    PROCESS_MADVISE,
    PROCESS_MRELEASE,
    /* rights, owners, attributes and times of files, which Landlock leaves alone */
    SYS_fchmod,
    SYS_fchmodat,
    FCHMODAT2,
    SYS_fchown,
    SYS_fchownat,
    SYS_setxattr,
    SYS_lsetxattr,
    SYS_fsetxattr,
    SYS_removexattr,
    SYS_lremovexattr,
    SYS_fremovexattr,
    SETXATTRAT,
    REMOVEXATTRAT,
    SYS_utimensat,
    /* memory that outlives a process, or that no limit counts */
    SYS_shmget,
    SYS_shmat,
    SYS_semget,
    SYS_msgget,
    SYS_mq_open,
    MEMFD_SECRET,
    SYS_remap_file_pages,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    /* large parts of the kernel that no runtime needs */
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    IO_URING_SETUP,
    IO_URING_ENTER,
    IO_URING_REGISTER,
    SYS_fanotify_init,
    SYS_inotify_add_watch,
    SYS_personality,
    SYS_name_to_handle_at,
    SYS_open_by_handle_at,
    /* mounts and namespaces */
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_unshare,
    SYS_setns,
    OPEN_TREE,
    MOVE_MOUNT,
    FSOPEN,
    FSMOUNT,
    MOUNT_SETATTR,
#if defined __x86_64__
    SYS_chmod,
    SYS_chown,
    SYS_lchown,
    SYS_utime,
    SYS_utimes,
    SYS_futimesat,
    SYS_modify_ldt,
#endif
};

/* A condition on the low 32 bits of an argument: (argument & mask) == value. */
struct condition {
    int argument;
    uint32_t mask, value;
};

#define EQUALS(argument, value) \
    {                           \
        argument, ~0u, value    \
    }
#define HAS_BITS(argument, bits) \
    {                            \
        argument, bits, bits     \
    }
#define HAS_NO_BITS(argument, bits) \
    {                               \
        argument, bits, 0           \
    }

/* A call that a rule refuses, or allows before a later rule refuses it, where the conditions hold. */
struct rule {
    int call;
    int error; /* 0: it is allowed */
    size_t n;
    struct condition when[2];
};

#define CLONE_SPACES                                                               \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | \
     CLONE_NEWPID | CLONE_NEWNET)

/* --- the program of the filter ------------------------------------------------ */

enum { MOST_INSTRUCTIONS = 1024 };

struct filter {
    struct sock_filter code[MOST_INSTRUCTIONS];
    unsigned short n;
};

static void
emit(struct filter *f, unsigned short op, uint32_t k, uint8_t if_true, uint8_t if_false)
{
    f->code[f->n++] = (struct sock_filter){op, if_true, if_false, k};
}

static void
load(struct filter *f, size_t offset)
{
    emit(f, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

/* Adds a rule: every comparison that fails jumps behind it. */
static void
add_rule(struct filter *f, const struct rule *rule)
{
    const uint8_t left = (uint8_t)(rule->n * 3 + 1);
    load(f, offsetof(struct seccomp_data, nr));
    emit(f, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)rule->call, 0, left);
    for (size_t i = 0; i < rule->n; i++) {
        const struct condition *c = &rule->when[i];
        load(f, offsetof(struct seccomp_data, args) + 8 * (size_t)c->argument);
        emit(f, BPF_ALU | BPF_AND | BPF_K, c->mask, 0, 0);
        emit(f, BPF_JMP | BPF_JEQ | BPF_K, c->value, 0,
             (uint8_t)((rule->n - i - 1) * 3 + 1));
    }
    emit(f, BPF_RET | BPF_K,
         rule->error ? SECCOMP_RET_ERRNO | (uint32_t)rule->error : SECCOMP_RET_ALLOW, 0,
         0);
}

static void
add_rules(struct filter *f, const struct rule *rules, size_t n)
{
    for (size_t i = 0; i < n; i++)
        add_rule(f, &rules[i]);
}
#define ADD_RULES(filter, rules) \
    add_rules(filter, rules, sizeof(rules) / sizeof *(rules))

/* A program of another architecture would have other numbers of calls. */
static void
begin(struct filter *f)
{
    load(f, offsetof(struct seccomp_data, arch));
    emit(f, BPF_JMP | BPF_JEQ | BPF_K, HERE, 1, 0);
    emit(f, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
#if defined __x86_64__
    enum { X32 = 0x40000000 };
    load(f, offsetof(struct seccomp_data, nr));
    emit(f, BPF_JMP | BPF_JGE | BPF_K, X32, 0, 1);
    emit(f, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM, 0, 0);
#endif
}

/* --- what is refused ---------------------------------------------------------- */

static void
add_always(struct filter *f)
{
    static const struct rule rules[] = {
        /* A stream cannot be connected to others, as a pair of datagram sockets can be. */
        {SYS_socketpair, 0, 2, {EQUALS(0, AF_UNIX), {1, 0xf, SOCK_STREAM}}},
        {SYS_socketpair, EPERM, 0, {{0}}},
        /* who gets the signals of a descriptor: the last two are FIOSETOWN and SIOCSPGRP */
        {SYS_fcntl, EPERM, 1, {EQUALS(1, F_SETOWN)}},
        {SYS_fcntl, EPERM, 1, {EQUALS(1, F_SETOWN_EX)}},
        {SYS_ioctl, EPERM, 1, {EQUALS(1, 0x8901)}},
        {SYS_ioctl, EPERM, 1, {EQUALS(1, 0x8902)}},
        /* clone3() hides its arguments; the C library falls back to clone() */
        {CLONE3, ENOSYS, 0, {{0}}},
        {SYS_clone, EPERM, 1, {HAS_BITS(0, CLONE_PARENT)}},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        add_rule(f, &(struct rule){refused[i], EPERM, 0, {{0}}});
    ADD_RULES(f, rules);
    for (int bit = 0; bit < 32; bit++)
        if ((uint32_t)CLONE_SPACES >> bit & 1)
            add_rule(f, &(struct rule){
                            SYS_clone, EPERM, 1, {HAS_BITS(0, (uint32_t)1 << bit)}});
}

/* Leaves a program its own signals and limits, and has it end with its group and with the process
   that started it. */
static void
add_group(struct filter *f)
{
    const uint32_t own = (uint32_t)getpid();
    const struct rule rules[] = {
        {SYS_kill, 0, 1, {EQUALS(0, own)}},
        {SYS_kill, EPERM, 0, {{0}}},
        {SYS_tgkill, 0, 1, {EQUALS(0, own)}},
        {SYS_tgkill, EPERM, 0, {{0}}},
        {SYS_tkill, EPERM, 0, {{0}}},
        {SYS_rt_sigqueueinfo, 0, 1, {EQUALS(0, own)}},
        {SYS_rt_sigqueueinfo, EPERM, 0, {{0}}},
        {SYS_rt_tgsigqueueinfo, 0, 1, {EQUALS(0, own)}},
        {SYS_rt_tgsigqueueinfo, EPERM, 0, {{0}}},
        {SYS_prlimit64, 0, 1, {EQUALS(0, 0)}},
        {SYS_prlimit64, 0, 1, {EQUALS(0, own)}},
        {SYS_prlimit64, EPERM, 0, {{0}}},
        {SYS_setpgid, EPERM, 0, {{0}}},
        {SYS_setsid, EPERM, 0, {{0}}},
        {SYS_prctl, EPERM, 1, {EQUALS(0, PR_SET_PDEATHSIG)}},
        {SYS_prctl, EPERM, 1, {EQUALS(0, PR_SET_CHILD_SUBREAPER)}},
    };
    ADD_RULES(f, rules);
}

static void
add_processes(struct filter *f)
{
    static const struct rule rules[] = {
        {SYS_clone, EPERM, 1, {HAS_NO_BITS(0, CLONE_THREAD)}},
#if defined __x86_64__
        {SYS_fork, EPERM, 0, {{0}}},
        {SYS_vfork, EPERM, 0, {{0}}},
#endif
    };
    ADD_RULES(f, rules);
}

/* A mapping of a file may be code, because libraries are loaded so. */
static void
add_code(struct filter *f)
{
    static const struct rule rules[] = {
        {SYS_mmap, EPERM, 2, {HAS_BITS(2, PROT_EXEC), HAS_BITS(3, MAP_ANONYMOUS)}},
        {SYS_mprotect, EPERM, 1, {HAS_BITS(2, PROT_EXEC)}},
        {SYS_pkey_mprotect, EPERM, 1, {HAS_BITS(2, PROT_EXEC)}},
    };
    ADD_RULES(f, rules);
}

static void
add_no_devices(struct filter *f)
{
    static const struct rule rules[] = {
        {SYS_socket, EPERM, 0, {{0}}},
        {SYS_connect, EPERM, 0, {{0}}},
        {SYS_bind, EPERM, 0, {{0}}},
        {SYS_listen, EPERM, 0, {{0}}},
        /* memory that is not counted as the process's data */
        {SYS_memfd_create, EPERM, 0, {{0}}},
        {SYS_mmap, EPERM, 1, {HAS_BITS(3, MAP_SHARED | MAP_ANONYMOUS)}},
    };
    ADD_RULES(f, rules);
}

/*
 * CUDA listens at an abstract name, where processes that share its memory would ask; a refusal
 * ends it. Nothing can be accepted there, this kind of socket carries no message without a
 * connection, and CUDA hears that there is nobody to connect to.
 */
static void
add_devices(struct filter *f)
{
    static const struct rule rules[] = {
        {SYS_socket,
         0,
         2,
         {EQUALS(0, AF_UNIX), EQUALS(1, SOCK_SEQPACKET | SOCK_CLOEXEC)}},
        {SYS_socket, EPERM, 0, {{0}}},
        {SYS_connect, ENOENT, 0, {{0}}},
    };
    ADD_RULES(f, rules);
}

bool
filter_enter(const struct filter_allows *allows, char lacking[WALL_TEXT])
{
    struct filter f = {.n = 0};
    if (HERE == 0) {
        snprintf(lacking, WALL_TEXT, "no filter of system calls for this processor");
        return false;
    }
    begin(&f);
    add_always(&f);
    if (!allows->around)
        add_group(&f);
    if (!allows->around && !allows->processes)
        add_processes(&f);
    if (!allows->exec)
        add_code(&f);
    if (allows->devices)
        add_devices(&f);
    else
        add_no_devices(&f);
    emit(&f, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    const struct sock_fprog program = {f.n, f.code};
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0)
        return true;
    snprintf(lacking, WALL_TEXT, "seccomp: %s", strerror(errno));
    return false;
}
