/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/cage.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* --- Landlock ------------------------------------------------------------- */

/*
 * Constants of linux/landlock.h, which Debian 12 has from an older kernel: access
 * rights by the version of the interface that introduced them. The system call numbers
 * are the same on every architecture.
 */
enum { CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446, ASK_VERSION = 1 };

enum { RULE_PATH_BENEATH = 1 };
enum right {
    EXECUTE = 1 << 0,
    WRITE_FILE = 1 << 1,
    READ_FILE = 1 << 2,
    READ_DIR = 1 << 3,
    IOCTL_DEV = 1 << 15,
};

static const struct {
    int since;     /* version of the interface */
    uint64_t mask; /* access rights that this version knows */
} file_rights[] = {
    {5, 0xffff}, /* ioctl on devices */
    {3, 0x7fff}, /* truncate */
    {2, 0x3fff}, /* move between folders */
    {1, 0x1fff},
};

struct ruleset {
    uint64_t files, net, scope;
};

struct path_rule {
    uint64_t allowed;
    int32_t folder;
} __attribute__((packed));

/* Paths that a GPU's driver and libraries need. */
static const struct {
    const char *path;
    uint64_t rights;
} gpu_paths[] = {
    {"/dev", READ_FILE | READ_DIR | WRITE_FILE | IOCTL_DEV},
    {"/proc", READ_FILE | READ_DIR},
    {"/sys", READ_FILE | READ_DIR},
    {"/usr", READ_FILE | READ_DIR | EXECUTE},
    {"/lib", READ_FILE | READ_DIR | EXECUTE},
    {"/lib64", READ_FILE | READ_DIR | EXECUTE},
    {"/opt", READ_FILE | READ_DIR | EXECUTE},
    {"/etc", READ_FILE | READ_DIR},
};

static bool
fail(char lacking[CAGE_TEXT], const char *what)
{
    snprintf(lacking, CAGE_TEXT, "%s: %s", what, strerror(errno));
    return false;
}

/* Allows access below a path. A path that does not exist needs no rule. */
static bool
allow_path(int ruleset, const char *path, uint64_t rights)
{
    struct path_rule rule = {rights, open(path, O_PATH | O_CLOEXEC)};
    if (rule.folder < 0)
        return errno == ENOENT;
    long rc = syscall(ADD_RULE, ruleset, RULE_PATH_BENEATH, &rule, 0);
    close(rule.folder);
    return rc == 0;
}

static struct ruleset
rules_of(long version)
{
    struct ruleset rules = {0, 0, 0};
    for (size_t i = 0; !rules.files && i < sizeof file_rights / sizeof *file_rights;
         i++)
        if (version >= file_rights[i].since)
            rules.files = file_rights[i].mask;
    if (version >= 4)
        rules.net = 3; /* bind and connect */
    if (version >= 6)
        rules.scope = 3; /* abstract sockets, signals */
    return rules;
}

static bool
allow_paths(int ruleset, enum cage_profile profile, const char *scratch, uint64_t known)
{
    bool ok = !scratch || allow_path(ruleset, scratch, READ_FILE | WRITE_FILE);
    for (size_t i = 0;
         ok && profile == CAGE_GPU && i < sizeof gpu_paths / sizeof *gpu_paths; i++)
        ok = allow_path(ruleset, gpu_paths[i].path, gpu_paths[i].rights & known);
    return ok;
}

/* Restricts the file system. *ret_there is false when the kernel has no Landlock. */
static bool
close_files(enum cage_profile profile, const char *scratch, bool *ret_there,
            char lacking[CAGE_TEXT])
{
    long version = syscall(CREATE_RULESET, NULL, 0, ASK_VERSION);
    *ret_there = version > 0;
    if (!*ret_there) {
        snprintf(lacking, CAGE_TEXT, "the kernel has no Landlock: %s", strerror(errno));
        return true;
    }
    struct ruleset rules = rules_of(version);
    size_t size = (version >= 6 ? 3 : version >= 4 ? 2 : 1) * sizeof(uint64_t);
    int ruleset = (int)syscall(CREATE_RULESET, &rules, size, 0);
    if (ruleset < 0)
        return fail(lacking, "landlock_create_ruleset");
    bool ok = allow_paths(ruleset, profile, scratch, rules.files);
    if (!ok)
        fail(lacking, "landlock_add_rule");
    else if (!(ok = syscall(RESTRICT_SELF, ruleset, 0) == 0))
        fail(lacking, "landlock_restrict_self");
    close(ruleset);
    return ok;
}

/* --- seccomp -------------------------------------------------------------- */

/* System calls that are allowed with any arguments. */
static const int calls[] = {
    /* descriptors that are open already */
    SCMP_SYS(read),
    SCMP_SYS(write),
    SCMP_SYS(readv),
    SCMP_SYS(writev),
    SCMP_SYS(pread64),
    SCMP_SYS(pwrite64),
    SCMP_SYS(preadv),
    SCMP_SYS(pwritev),
    SCMP_SYS(lseek),
    SCMP_SYS(close),
    SCMP_SYS(dup),
    SCMP_SYS(dup3),
    SCMP_SYS(fcntl),
    SCMP_SYS(fstat),
    SCMP_SYS(newfstatat),
    SCMP_SYS(statx),
    SCMP_SYS(fstatfs),
    SCMP_SYS(fsync),
    SCMP_SYS(fdatasync),
    SCMP_SYS(ftruncate),
    SCMP_SYS(fallocate),
    SCMP_SYS(fadvise64),
    SCMP_SYS(copy_file_range),
    SCMP_SYS(sendfile),
    SCMP_SYS(sendmsg),
    SCMP_SYS(recvmsg),
    SCMP_SYS(recvfrom),
    SCMP_SYS(poll),
    SCMP_SYS(ppoll),
    /* memory */
    SCMP_SYS(brk),
    SCMP_SYS(munmap),
    SCMP_SYS(mremap),
    SCMP_SYS(madvise),
    SCMP_SYS(mincore),
    SCMP_SYS(msync),
    SCMP_SYS(memfd_create),
    SCMP_SYS(membarrier),
    /* the process's own threads */
    SCMP_SYS(futex),
    SCMP_SYS(set_robust_list),
    SCMP_SYS(get_robust_list),
    SCMP_SYS(rseq),
    SCMP_SYS(set_tid_address),
    SCMP_SYS(gettid),
    SCMP_SYS(sched_yield),
    SCMP_SYS(sched_getaffinity),
    SCMP_SYS(sched_setaffinity),
    SCMP_SYS(getcpu),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    /* handling signals */
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sigaltstack),
    SCMP_SYS(restart_syscall),
    /* time, identity and processor */
    SCMP_SYS(nanosleep),
    SCMP_SYS(clock_nanosleep),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(clock_getres),
    SCMP_SYS(gettimeofday),
    SCMP_SYS(time),
    SCMP_SYS(times),
    SCMP_SYS(getrusage),
    SCMP_SYS(getpid),
    SCMP_SYS(getppid),
    SCMP_SYS(getuid),
    SCMP_SYS(geteuid),
    SCMP_SYS(getgid),
    SCMP_SYS(getegid),
    SCMP_SYS(getrandom),
    SCMP_SYS(uname),
    SCMP_SYS(sysinfo),
};

/* Calls with paths. They are allowed only where Landlock restricts the paths. */
static const int path_calls[] = {
    SCMP_SYS(openat), SCMP_SYS(open),      SCMP_SYS(readlink),   SCMP_SYS(readlinkat),
    SCMP_SYS(access), SCMP_SYS(faccessat), SCMP_SYS(faccessat2), SCMP_SYS(getdents64),
};

static const int gpu_calls[] = {
    SCMP_SYS(ioctl),         SCMP_SYS(mmap),           SCMP_SYS(mprotect),
    SCMP_SYS(mlock),         SCMP_SYS(munlock),        SCMP_SYS(eventfd2),
    SCMP_SYS(pipe2),         SCMP_SYS(epoll_create1),  SCMP_SYS(epoll_ctl),
    SCMP_SYS(epoll_wait),    SCMP_SYS(timerfd_create), SCMP_SYS(timerfd_settime),
    SCMP_SYS(get_mempolicy), SCMP_SYS(set_mempolicy),  SCMP_SYS(mbind),
};

static int
allow(scmp_filter_ctx filter, const int *list, size_t n)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < n; i++)
        rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, list[i], 0);
    return rc;
}
#define ALLOW(filter, list) allow(filter, list, sizeof(list) / sizeof *(list))

/* Allows calls that depend on their arguments. clone3() hides them behind a pointer,
   so it is refused, and the C library falls back to clone(). */
static int
allow_some(scmp_filter_ctx filter, enum cage_profile profile)
{
    const struct {
        int call;
        struct scmp_arg_cmp when;
    } rows[] = {
        {SCMP_SYS(clone), SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD)},
        {SCMP_SYS(tgkill), SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid())},
        {SCMP_SYS(prctl), SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME)},
        {SCMP_SYS(sendto), SCMP_A4(SCMP_CMP_EQ, 0)},    /* only to the connected peer */
        {SCMP_SYS(prlimit64), SCMP_A2(SCMP_CMP_EQ, 0)}, /* only to read a limit */
        {SCMP_SYS(mmap), SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)},
        {SCMP_SYS(mprotect), SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)},
    };
    size_t n = sizeof rows / sizeof *rows - (profile == CAGE_GPU ? 2 : 0);
    int rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    for (size_t i = 0; !rc && i < n; i++)
        rc = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, rows[i].call, 1,
                                    &rows[i].when);
    return rc;
}

static bool
close_calls(enum cage_profile profile, bool paths, char lacking[CAGE_TEXT])
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    int rc = filter ? ALLOW(filter, calls) : -ENOMEM;
    if (!rc && paths)
        rc = ALLOW(filter, path_calls);
    if (!rc && profile == CAGE_GPU)
        rc = ALLOW(filter, gpu_calls);
    if (!rc && !(rc = allow_some(filter, profile)))
        rc = seccomp_load(filter);
    seccomp_release(filter);
    errno = -rc;
    return !rc || fail(lacking, "seccomp");
}

/* Returns whether a sanitizer is built in: they read /proc, and look for leaks from
   a process that traces this one. */
static bool
is_sanitized(void)
{
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    return true;
#else
    return false;
#endif
}

bool
cage_enter(enum cage_profile profile, const char *scratch, char lacking[CAGE_TEXT])
{
    bool there;
    lacking[0] = '\0';
    if (is_sanitized()) {
        snprintf(lacking, CAGE_TEXT, "this is a build with a sanitizer");
        return false;
    }
    return close_files(profile, scratch, &there, lacking) &&
           close_calls(profile, there, lacking);
}
