/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/cage.h"
#include "workers/trap.h"
#include "judges/walls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- Landlock ------------------------------------------------------------- */

/* Paths that a GPU's driver and libraries need. */
static const struct wall_path gpu_paths[] = {
    {"/dev", WALL_READ_FILE | WALL_READ_DIR | WALL_WRITE_FILE | WALL_IOCTL_DEV},
    {"/proc", WALL_READ_FILE | WALL_READ_DIR},
    {"/sys", WALL_READ_FILE | WALL_READ_DIR},
    {"/usr", WALL_READ_FILE | WALL_READ_DIR | WALL_EXECUTE},
    {"/lib", WALL_READ_FILE | WALL_READ_DIR | WALL_EXECUTE},
    {"/lib64", WALL_READ_FILE | WALL_READ_DIR | WALL_EXECUTE},
    {"/opt", WALL_READ_FILE | WALL_READ_DIR | WALL_EXECUTE},
    {"/etc", WALL_READ_FILE | WALL_READ_DIR},
    /* CUDA names its threads by their files "comm", and a refusal ends it. */
    {"/proc/self/task",
     WALL_READ_FILE | WALL_READ_DIR | WALL_WRITE_FILE | WALL_TRUNCATE},
};

/* Files by which the C library resolves names, and the folders of services that replace
   resolv.conf by a link to theirs. */
static const struct wall_path carrier_paths[] = {
    {"/etc/hosts", WALL_READ_FILE},
    {"/etc/resolv.conf", WALL_READ_FILE},
    {"/etc/nsswitch.conf", WALL_READ_FILE},
    {"/etc/gai.conf", WALL_READ_FILE},
    {"/etc/host.conf", WALL_READ_FILE},
    {"/etc/services", WALL_READ_FILE},
    {"/etc/protocols", WALL_READ_FILE},
    {"/run/systemd/resolve", WALL_READ_FILE | WALL_READ_DIR},
    {"/run/resolvconf", WALL_READ_FILE | WALL_READ_DIR},
    {"/run/NetworkManager", WALL_READ_FILE | WALL_READ_DIR},
};

static bool
fail(char lacking[CAGE_TEXT], const char *what)
{
    snprintf(lacking, CAGE_TEXT, "%s: %s", what, strerror(errno));
    return false;
}

static const struct {
    const struct wall_path *list;
    size_t n;
} paths_of[] = {
    [CAGE_CPU] = {NULL, 0},
    [CAGE_GPU] = {gpu_paths, sizeof gpu_paths / sizeof *gpu_paths},
    [CAGE_CARRIER] = {carrier_paths, sizeof carrier_paths / sizeof *carrier_paths},
    [CAGE_JUDGE] = {NULL, 0},
};

bool
cage_may_read(enum cage_profile profile, const char *path)
{
    for (size_t i = 0; i < paths_of[profile].n; i++) {
        const char *open = paths_of[profile].list[i].path;
        size_t len = strlen(open);
        if (!strncmp(path, open, len) && (path[len] == '/' || !path[len]))
            return true;
    }
    return false;
}

/* Restricts the file system. *ret_there is false when the kernel has no Landlock. */
static bool
close_files(enum cage_profile profile, bool *ret_there, char lacking[CAGE_TEXT])
{
    return landlock_enter(paths_of[profile].list, paths_of[profile].n,
                          profile == CAGE_CARRIER, ret_there, lacking);
}

/* --- seccomp -------------------------------------------------------------- */

/* System calls that are allowed with any arguments. None of them takes a path, and none
   acts on another process. */
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
    SCMP_SYS(fstat),
    SCMP_SYS(fstatfs),
    SCMP_SYS(ftruncate),
    SCMP_SYS(fdatasync), /* of a journal */
    SCMP_SYS(fallocate),
    SCMP_SYS(fadvise64),
    SCMP_SYS(copy_file_range),
    SCMP_SYS(sync_file_range),
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
    SCMP_SYS(membarrier),
    /* the process's own threads */
    SCMP_SYS(futex),
    SCMP_SYS(set_robust_list),
    SCMP_SYS(rseq),
    SCMP_SYS(set_tid_address),
    SCMP_SYS(gettid),
    SCMP_SYS(sched_yield),
    SCMP_SYS(sched_getaffinity),
    SCMP_SYS(getcpu),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    /* handling signals */
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sigaltstack),
    SCMP_SYS(setitimer),
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

/* Calls with paths that the handler of SIGSYS answers (trap.h). */
static const int trapped_calls[] = {
    SCMP_SYS(openat),
    SCMP_SYS(open),
    SCMP_SYS(newfstatat),
};

/*
 * Calls with paths, for CUDA. They are allowed only where Landlock restricts the paths, and
 * Landlock lets the last three make or remove nothing: CUDA would repair its device files
 * and its cache, and where it hears another refusal than a file system's it ends.
 */
static const int gpu_path_calls[] = {
    SCMP_SYS(openat),     SCMP_SYS(open),      SCMP_SYS(newfstatat),
    SCMP_SYS(statx),      SCMP_SYS(readlink),  SCMP_SYS(readlinkat),
    SCMP_SYS(access),     SCMP_SYS(faccessat), SCMP_SYS(faccessat2),
    SCMP_SYS(getdents64), SCMP_SYS(stat),      SCMP_SYS(lstat),
    SCMP_SYS(mkdir),      SCMP_SYS(symlink),   SCMP_SYS(unlink),
};

static const int gpu_calls[] = {
    SCMP_SYS(ioctl),
    SCMP_SYS(mmap),
    SCMP_SYS(mprotect),
    SCMP_SYS(mlock),
    SCMP_SYS(munlock),
    SCMP_SYS(eventfd2),
    SCMP_SYS(pipe2),
    SCMP_SYS(epoll_create1),
    SCMP_SYS(epoll_ctl),
    SCMP_SYS(epoll_wait),
    SCMP_SYS(timerfd_create),
    SCMP_SYS(timerfd_settime),
    SCMP_SYS(get_mempolicy),
    SCMP_SYS(set_mempolicy),
    SCMP_SYS(mbind),
    SCMP_SYS(memfd_create),
    SCMP_SYS(mincore),
    SCMP_SYS(fsync),
    SCMP_SYS(sched_get_priority_max),
    SCMP_SYS(sched_get_priority_min),
    SCMP_SYS(bind),
    SCMP_SYS(listen),
};

/* Calls with paths, for the resolver. They are allowed only where Landlock restricts
   the paths. */
static const int carrier_path_calls[] = {
    SCMP_SYS(openat),
    SCMP_SYS(open),
    SCMP_SYS(newfstatat),
};

/* Connections are opened and none is accepted: there is no listen() and no accept(). */
static const int carrier_calls[] = {
    SCMP_SYS(connect),     SCMP_SYS(bind),       SCMP_SYS(getsockname),
    SCMP_SYS(getpeername), SCMP_SYS(getsockopt), SCMP_SYS(setsockopt),
    SCMP_SYS(sendto),      SCMP_SYS(sendmmsg),   SCMP_SYS(recvmmsg),
    SCMP_SYS(shutdown),    SCMP_SYS(eventfd2),   SCMP_SYS(pipe2),
};

static int
add_rules(scmp_filter_ctx filter, uint32_t action, const int *list, size_t n)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < n; i++)
        rc = seccomp_rule_add(filter, action, list[i], 0);
    return rc;
}
#define ALLOW(filter, list) \
    add_rules(filter, SCMP_ACT_ALLOW, list, sizeof(list) / sizeof *(list))
#define TRAP(filter, list) \
    add_rules(filter, SCMP_ACT_TRAP, list, sizeof(list) / sizeof *(list))

/* Any combination of these makes a process, or puts a thread into another namespace. */
#define CLONE_OTHER                                                                \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | \
     CLONE_NEWPID | CLONE_NEWNET | CLONE_PTRACE | CLONE_VFORK | CLONE_PARENT)
/* Mappings that the limit of a process's data does not count. */
#define UNCOUNTED (MAP_GROWSDOWN | MAP_HUGETLB)

struct conditional {
    int call;
    unsigned n;
    struct scmp_arg_cmp when[2];
};

/* Calls that depend on their arguments. */
static const struct conditional conditionals[] = {
    /* of a descriptor only what concerns this process alone: no signal, lock or lease */
    {SCMP_SYS(fcntl), 1, {SCMP_A1(SCMP_CMP_EQ, F_DUPFD)}},
    {SCMP_SYS(fcntl), 1, {SCMP_A1(SCMP_CMP_EQ, F_DUPFD_CLOEXEC)}},
    {SCMP_SYS(fcntl), 1, {SCMP_A1(SCMP_CMP_EQ, F_GETFD)}},
    {SCMP_SYS(fcntl), 1, {SCMP_A1(SCMP_CMP_EQ, F_SETFD)}},
    {SCMP_SYS(fcntl), 1, {SCMP_A1(SCMP_CMP_EQ, F_GETFL)}},
    {SCMP_SYS(clone),
     1,
     {SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD | CLONE_OTHER, CLONE_THREAD)}},
    {SCMP_SYS(prctl), 1, {SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME)}},
    {SCMP_SYS(sendto), 1, {SCMP_A4(SCMP_CMP_EQ, 0)}}, /* only to the connected peer */
    {SCMP_SYS(prlimit64), 2, {SCMP_A0(SCMP_CMP_EQ, 0), SCMP_A2(SCMP_CMP_EQ, 0)}},
};

/* A mapping is private, or one of a file. */
static const struct conditional cpu_conditionals[] = {
    {SCMP_SYS(mmap),
     2,
     {SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0),
      SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_SHARED | UNCOUNTED, 0)}},
    {SCMP_SYS(mmap),
     2,
     {SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0),
      SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_SHARED | MAP_ANONYMOUS | UNCOUNTED, MAP_SHARED)}},
    {SCMP_SYS(mprotect), 1, {SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)}},
};

/*
 * CUDA listens at an abstract name, where processes that share its memory would ask; a
 * refusal ends it. Nothing can be accepted there, and this kind of socket carries no
 * message without a connection. CUDA also sets its event descriptors to answer at once.
 */
static const struct conditional gpu_conditionals[] = {
    {SCMP_SYS(fcntl),
     2,
     {SCMP_A1(SCMP_CMP_EQ, F_SETFL), SCMP_A2(SCMP_CMP_EQ, O_NONBLOCK)}},
    {SCMP_SYS(socket),
     2,
     {SCMP_A0(SCMP_CMP_EQ, AF_UNIX),
      SCMP_A1(SCMP_CMP_EQ, SOCK_SEQPACKET | SOCK_CLOEXEC)}},
    {SCMP_SYS(setsockopt),
     2,
     {SCMP_A1(SCMP_CMP_EQ, SOL_SOCKET), SCMP_A2(SCMP_CMP_EQ, SO_PASSCRED)}},
};

/* A runtime writes machine code and then makes its pages executable. Its threads choose
   their own processors. A timer ends the process where it takes too long. */
static const int judge_calls[] = {SCMP_SYS(mbind), SCMP_SYS(getdents64),
                                  SCMP_SYS(setitimer)};
static const int judge_trapped_calls[] = {SCMP_SYS(stat)};
static const struct conditional judge_conditionals[] = {
    {SCMP_SYS(mprotect), 1, {SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, PROT_EXEC)}},
    {SCMP_SYS(sched_setaffinity), 1, {SCMP_A0(SCMP_CMP_EQ, 0)}},
};

/* Netlink tells the resolver which addresses this machine has; the pair of sockets wakes
   curl, and is a stream because one of datagrams could be connected to others. FIONREAD is the resolver's. */
static const struct conditional carrier_conditionals[] = {
    {SCMP_SYS(socket), 1, {SCMP_A0(SCMP_CMP_EQ, AF_INET)}},
    {SCMP_SYS(socket), 1, {SCMP_A0(SCMP_CMP_EQ, AF_INET6)}},
    {SCMP_SYS(socket),
     2,
     {SCMP_A0(SCMP_CMP_EQ, AF_NETLINK), SCMP_A2(SCMP_CMP_EQ, NETLINK_ROUTE)}},
    {SCMP_SYS(socketpair),
     2,
     {SCMP_A0(SCMP_CMP_EQ, AF_UNIX),
      SCMP_A1(SCMP_CMP_MASKED_EQ, ~(scmp_datum_t)(SOCK_CLOEXEC | SOCK_NONBLOCK),
              SOCK_STREAM)}},
    {SCMP_SYS(fcntl), 1, {SCMP_A1(SCMP_CMP_EQ, F_SETFL)}},
    {SCMP_SYS(ioctl), 1, {SCMP_A1(SCMP_CMP_EQ, FIONREAD)}},
    {SCMP_SYS(ioctl), 1, {SCMP_A1(SCMP_CMP_EQ, FIONBIO)}},
};

static int
allow_when(scmp_filter_ctx filter, const struct conditional *rows, size_t n)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < n; i++)
        rc = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, rows[i].call, rows[i].n,
                                    rows[i].when);
    return rc;
}
#define ALLOW_WHEN(filter, list) allow_when(filter, list, sizeof(list) / sizeof *(list))

/* Builds the filter. clone3() hides its arguments behind a pointer, so it is refused, and
   the C library falls back to clone(). */
static int
fill_filter(scmp_filter_ctx filter, enum cage_profile profile, bool landlock)
{
    const struct conditional own_thread[] = {
        {SCMP_SYS(tgkill), 1, {SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid())}}};
    int rc = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
    if (!rc)
        rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    if (!rc)
        rc = ALLOW(filter, calls);
    if (!rc)
        rc = ALLOW_WHEN(filter, conditionals);
    if (!rc)
        rc = ALLOW_WHEN(filter, own_thread);
    if (rc)
        return rc;
    if (profile != CAGE_GPU && (rc = ALLOW_WHEN(filter, cpu_conditionals)))
        return rc;
    if (profile == CAGE_CARRIER &&
        ((rc = ALLOW(filter, carrier_calls)) ||
         (rc = ALLOW_WHEN(filter, carrier_conditionals)) ||
         (landlock && (rc = ALLOW(filter, carrier_path_calls)))))
        return rc;
    if (profile == CAGE_JUDGE && ((rc = ALLOW(filter, judge_calls)) ||
                                  (rc = TRAP(filter, judge_trapped_calls)) ||
                                  (rc = ALLOW_WHEN(filter, judge_conditionals))))
        return rc;
    if (profile == CAGE_CPU || profile == CAGE_JUDGE ||
        (profile == CAGE_CARRIER && !landlock))
        return TRAP(filter, trapped_calls);
    if (profile == CAGE_CARRIER)
        return 0;
    if (landlock && (rc = ALLOW(filter, gpu_path_calls)))
        return rc;
    /* CUDA looks for its Multi-Process Service, and hears that there is none. */
    if ((rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOENT), SCMP_SYS(connect), 0)) ||
        (rc = ALLOW_WHEN(filter, gpu_conditionals)))
        return rc;
    return ALLOW(filter, gpu_calls);
}

static bool
close_calls(enum cage_profile profile, bool landlock, char lacking[CAGE_TEXT])
{
    if (!trap_install())
        return fail(lacking, "the handler of SIGSYS");
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    int rc = filter ? fill_filter(filter, profile, landlock) : -ENOMEM;
    if (!rc)
        rc = seccomp_load(filter);
    seccomp_release(filter);
    errno = -rc;
    return !rc || fail(lacking, "seccomp");
}

/* --- before both ---------------------------------------------------------- */

/* Checks that the process has one thread: procfs counts a folder's subfolders as links,
   and two more. */
static bool
is_alone(char lacking[CAGE_TEXT])
{
    struct stat st;
    if (stat("/proc/self/task", &st))
        return fail(lacking, "/proc/self/task");
    if (st.st_nlink > 3)
        snprintf(lacking, CAGE_TEXT, "the process has %ld threads, not one",
                 (long)st.st_nlink - 2);
    return st.st_nlink <= 3;
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
cage_enter(enum cage_profile profile, char lacking[CAGE_TEXT])
{
    bool landlock;
    lacking[0] = '\0';
    if (is_sanitized()) {
        snprintf(lacking, CAGE_TEXT, "this is a build with a sanitizer");
        return false;
    }
    return is_alone(lacking) && privileges_drop(lacking) &&
           close_files(profile, &landlock, lacking) &&
           close_calls(profile, landlock, lacking);
}
