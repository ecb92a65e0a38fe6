/* SPDX-License-Identifier: Apache-2.0 */
/* Every action that the cage of a worker forbids, one row each, for test_cage.c. */
#ifndef TESTS_UNIT_WALLS_H
#define TESTS_UNIT_WALLS_H

#include "daemon.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/un.h>
#include <sys/wait.h>

enum { NOT_CAGED = 100, NO_LANDLOCK = 101 };

/* The process gets these before it enters the cage: */
static int file;     /* a writable regular file */
static int folder;   /* the folder of that file */
static int pair[2];  /* connected sockets */
static pid_t parent; /* a process outside the cage */

static int
result_of(long rc)
{
    return rc < 0 ? errno : 0;
}

/* --- forbidden actions: each returns its errno ---------------------------- */

static int
open_to_read(void)
{
    return result_of(open("/etc/passwd", O_RDONLY));
}

static int
open_by_folder(void)
{
    return result_of(openat(folder, "there", O_RDONLY));
}

static int
open_proc(void)
{
    return result_of(open("/proc/1/environ", O_RDONLY));
}

static int
open_to_write(void)
{
    return result_of(openat(folder, "new", O_WRONLY | O_CREAT, 0600));
}

static int
open_nameless(void)
{
    return result_of(open(scratch, O_TMPFILE | O_RDWR, 0600));
}

/* The answer does not tell whether the path exists. */
static int
open_missing(void)
{
    return result_of(openat(folder, "missing", O_RDONLY));
}

static int
stat_existing(void)
{
    struct stat st;
    return result_of(fstatat(folder, "there", &st, 0));
}

static int
stat_missing(void)
{
    struct stat st;
    return result_of(fstatat(folder, "missing", &st, 0));
}

static int
stat_call(void)
{
    struct stat st;
    return result_of(syscall(SYS_stat, "/etc/passwd", &st));
}

static int
lstat_call(void)
{
    struct stat st;
    return result_of(syscall(SYS_lstat, "/etc/passwd", &st));
}

static int
statx_existing(void)
{
    struct statx st;
    return result_of(statx(folder, "there", 0, STATX_SIZE, &st));
}

static int
access_existing(void)
{
    return result_of(faccessat(folder, "there", F_OK, 0));
}

static int
access_root(void)
{
    return result_of(access("/", F_OK));
}

static int
read_link(void)
{
    char text[8];
    return result_of(readlink("/proc/self/exe", text, sizeof text));
}

static int
stat_file_system(void)
{
    struct statfs st;
    return result_of(statfs("/", &st));
}

static int
change_folder(void)
{
    return result_of(chdir("/"));
}

static int
list_names(void)
{
    char names[256];
    return result_of(syscall(SYS_getdents64, folder, names, sizeof names));
}

static int
send_signals(void)
{
    return result_of(fcntl(pair[0], F_SETOWN, parent));
}

static int
choose_signal(void)
{
    return result_of(fcntl(pair[0], F_SETSIG, SIGKILL));
}

/* The daemon's descriptor has the same flags. */
static int
change_flags(void)
{
    return result_of(fcntl(file, F_SETFL, O_APPEND));
}

static int
lock_file(void)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return result_of(fcntl(file, F_SETLK, &lock));
}

static int
make_memory_file(void)
{
    return result_of(memfd_create("caged", MFD_CLOEXEC));
}

static int
map_memory(int flags)
{
    return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0) ==
                   MAP_FAILED
               ? errno
               : 0;
}

static int
share_memory(void)
{
    return map_memory(MAP_SHARED);
}

static int
grow_stack(void)
{
    return map_memory(MAP_PRIVATE | MAP_GROWSDOWN);
}

static int
slow_parent(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    return result_of(sched_setaffinity(parent, sizeof one, &one));
}

static int
read_limit_of_parent(void)
{
    struct rlimit limit;
    return result_of(prlimit(parent, RLIMIT_NOFILE, NULL, &limit));
}

static int
make_shared_segment(void)
{
    return result_of(syscall(SYS_shmget, 0, 4096, 0600));
}

static int
list_folder(void)
{
    return result_of(open("/", O_RDONLY | O_DIRECTORY));
}

static int
make_folder(void)
{
    return result_of(mkdirat(folder, "new", 0700));
}

static int
remove_file(void)
{
    return result_of(unlinkat(folder, "there", 0));
}

static int
rename_file(void)
{
    return result_of(renameat(folder, "there", folder, "here"));
}

static int
change_mode(void)
{
    return result_of(fchmod(file, 0777));
}

static int
tcp_socket(void)
{
    return result_of(socket(AF_INET, SOCK_STREAM, 0));
}

static int
unix_socket(void)
{
    return result_of(socket(AF_UNIX, SOCK_STREAM, 0));
}

static int
connect_socket(void)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    return result_of(connect(pair[0], (struct sockaddr *)&to, sizeof to));
}

static int
fork_process(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    return result_of(pid);
}

static int
run_program(void)
{
    char name[] = "true", *argv[] = {name, NULL}, *none[] = {NULL};
    return result_of(execve("/bin/true", argv, none));
}

static int
trace_parent(void)
{
    return result_of(ptrace(PTRACE_SEIZE, parent, NULL, NULL));
}

static int
kill_parent(void)
{
    return result_of(kill(parent, 0));
}

static int
signal_parent(void)
{
    return result_of(syscall(SYS_tgkill, parent, parent, 0));
}

static int
mount_something(void)
{
    return result_of(mount("none", "/mnt", "tmpfs", 0, NULL));
}

static int
new_namespace(void)
{
    return result_of(unshare(CLONE_NEWUSER));
}

static int
raise_limit(void)
{
    const struct rlimit most = {RLIM_INFINITY, RLIM_INFINITY};
    return result_of(setrlimit(RLIMIT_CORE, &most));
}

static int
be_somebody_else(void)
{
    return result_of(setuid(1));
}

static int
load_filter(void)
{
    return result_of(syscall(SYS_bpf, 0, NULL, 0));
}

static int
queue_calls(void)
{
    return result_of(syscall(SYS_io_uring_setup, 1, NULL));
}

static int
control_device(void)
{
    int n;
    return result_of(ioctl(0, TIOCSTI, &n));
}

static int
write_code(void)
{
    return mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED
               ? errno
               : 0;
}

static int
make_code(void)
{
    void *page =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return page == MAP_FAILED ? NOT_CAGED
                              : result_of(mprotect(page, 4096, PROT_READ | PROT_EXEC));
}

static const struct {
    const char *name;
    int (*deed)(void);
    int wanted;          /* expected errno */
    bool gpu_may_do;     /* the profile for GPUs allows it */
    bool carrier_may_do; /* the profile of the carrier allows it */
} walls[] = {
    {"open", open_to_read, EACCES, true, false},
    {"open by a folder", open_by_folder, EACCES, false, false},
    {"open another process", open_proc, EACCES, true, false},
    {"open to write", open_to_write, EACCES, false, false},
    {"open a file without a name", open_nameless, EACCES, false, false},
    {"list a folder", list_folder, EACCES, false, false},
    {"open what is not there", open_missing, EACCES, true, true},
    {"fstatat", stat_existing, EACCES, true, true},
    {"fstatat of what is not there", stat_missing, EACCES, true, true},
    {"stat", stat_call, EPERM, true, false},
    {"lstat", lstat_call, EPERM, true, false},
    {"statx", statx_existing, EPERM, true, false},
    {"faccessat", access_existing, EPERM, true, false},
    {"access", access_root, EPERM, true, false},
    {"readlink", read_link, EPERM, true, false},
    {"statfs", stat_file_system, EPERM, false, false},
    {"chdir", change_folder, EPERM, false, false},
    {"getdents", list_names, EPERM, true, false},
    {"F_SETOWN", send_signals, EPERM, false, false},
    {"F_SETSIG", choose_signal, EPERM, false, false},
    {"F_SETFL", change_flags, EPERM, false, true},
    {"F_SETLK", lock_file, EPERM, false, false},
    {"memfd", make_memory_file, EPERM, true, false},
    {"shared memory", share_memory, EPERM, true, false},
    {"a stack that grows", grow_stack, EPERM, true, false},
    {"sched_setaffinity", slow_parent, EPERM, false, false},
    {"a limit of another process", read_limit_of_parent, EPERM, false, false},
    {"System V shared memory", make_shared_segment, EPERM, false, false},
    {"mkdir", make_folder, EPERM, false, false},
    {"unlink", remove_file, EPERM, false, false},
    {"rename", rename_file, EPERM, false, false},
    {"chmod", change_mode, EPERM, false, false},
    {"TCP socket", tcp_socket, EPERM, false, true},
    {"Unix socket", unix_socket, EPERM, false, false},
    {"connect", connect_socket, EPERM, false, true},
    {"fork", fork_process, EPERM, false, false},
    {"exec", run_program, EPERM, false, false},
    {"ptrace", trace_parent, EPERM, false, false},
    {"kill", kill_parent, EPERM, false, false},
    {"tgkill", signal_parent, EPERM, false, false},
    {"mount", mount_something, EPERM, false, false},
    {"unshare", new_namespace, EPERM, false, false},
    {"setrlimit", raise_limit, EPERM, false, false},
    {"setuid", be_somebody_else, EPERM, false, false},
    {"bpf", load_filter, EPERM, false, false},
    {"io_uring", queue_calls, EPERM, false, false},
    {"ioctl", control_device, EPERM, true, false},
    {"memory that is written and run", write_code, EPERM, true, false},
    {"memory that becomes code", make_code, EPERM, true, false},
};

#endif
