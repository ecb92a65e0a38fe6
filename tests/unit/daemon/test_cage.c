/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that has entered the cage tries each forbidden action, and each action that
 * a worker needs. It reports the result by its exit status, because it can do little
 * else.
 */
#include "config.h"
#include "workers/cage.h"
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

/* Returns the status with which `deed` ends in a caged process; NULL: whether the
   kernel has everything that a cage needs. */
static int
caged(enum cage_profile profile, int (*deed)(void))
{
    char lacking[CAGE_TEXT];
    int status;
    parent = getpid();
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        bool in = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                  cage_enter(profile, scratch_path("own"), lacking);
        _exit(!in ? NOT_CAGED : *lacking && !deed ? NO_LANDLOCK : deed ? deed() : 0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status), "ended by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
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

/* Even in the scratch folder no file with a name can be made. */
static int
name_in_scratch(void)
{
    return result_of(openat(folder, "own/new", O_WRONLY | O_CREAT, 0600));
}

static int
list_scratch(void)
{
    return result_of(openat(folder, "own", O_RDONLY | O_DIRECTORY));
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
    int wanted;      /* expected errno */
    bool gpu_may_do; /* the profile for GPUs allows it */
} walls[] = {
    {"open", open_to_read, EACCES, true},
    {"open by a folder", open_by_folder, EACCES, false},
    {"open another process", open_proc, EACCES, true},
    {"open to write", open_to_write, EACCES, false},
    {"name a file in its own folder", name_in_scratch, EACCES, false},
    {"list its own folder", list_scratch, EACCES, false},
    {"list a folder", list_folder, EACCES, false},
    {"mkdir", make_folder, EPERM, false},
    {"unlink", remove_file, EPERM, false},
    {"rename", rename_file, EPERM, false},
    {"chmod", change_mode, EPERM, false},
    {"TCP socket", tcp_socket, EPERM, false},
    {"Unix socket", unix_socket, EPERM, false},
    {"connect", connect_socket, EPERM, false},
    {"fork", fork_process, EPERM, false},
    {"exec", run_program, EPERM, false},
    {"ptrace", trace_parent, EPERM, false},
    {"kill", kill_parent, EPERM, false},
    {"tgkill", signal_parent, EPERM, false},
    {"mount", mount_something, EPERM, false},
    {"unshare", new_namespace, EPERM, false},
    {"setrlimit", raise_limit, EPERM, false},
    {"setuid", be_somebody_else, EPERM, false},
    {"bpf", load_filter, EPERM, false},
    {"io_uring", queue_calls, EPERM, false},
    {"ioctl", control_device, EPERM, true},
    {"memory that is written and run", write_code, EPERM, true},
    {"memory that becomes code", make_code, EPERM, true},
};

/* Outside the cage the action succeeds, or fails for another reason. So it is the
   cage that stops it. Actions that would change the machine are not tried outside. */
START_TEST(holds)
{
    int got = caged(CAGE_CPU, walls[_i].deed);
    bool whole = caged(CAGE_CPU, NULL) != NO_LANDLOCK;
    ck_assert_int_eq(got, whole ? walls[_i].wanted : EPERM);
}
END_TEST

START_TEST(holds_gpu)
{
    int got = caged(CAGE_GPU, walls[_i].deed);
    if (walls[_i].gpu_may_do || caged(CAGE_GPU, NULL) == NO_LANDLOCK)
        ck_assert_int_lt(got, NOT_CAGED);
    else
        ck_assert_int_eq(got, walls[_i].wanted);
}
END_TEST

static const struct {
    int (*deed)(void);
} harmless[] = {{open_to_read},  {open_by_folder}, {open_to_write}, {list_folder},
                {change_mode},   {tcp_socket},     {unix_socket},   {fork_process},
                {signal_parent}, {kill_parent},    {write_code},    {make_code}};

START_TEST(outside)
{
    parent = getpid();
    ck_assert_int_eq(harmless[_i].deed(), 0);
}
END_TEST

/* --- needed actions: each returns 0 --------------------------------------- */

static void *
add_one(void *n)
{
    ++*(int *)n;
    return n;
}

static int
use_thread(void)
{
    int n = 0;
    pthread_t thread;
    if (pthread_create(&thread, NULL, add_one, &n) || pthread_join(thread, NULL))
        return 1;
    return n != 1;
}

static int
use_memory(void)
{
    char *big = malloc((size_t)64 << 20);
    if (!big)
        return 1;
    memset(big, 1, (size_t)64 << 20);
    char *bigger = realloc(big, (size_t)96 << 20);
    if (!bigger)
        return 1;
    free(bigger);
    return 0;
}

static int
use_file(void)
{
    char text[4] = "";
    if (pwrite(file, "abc", 3, 0) != 3 || ftruncate(file, 4096) ||
        pread(file, text, 3, 0) != 3 || memcmp(text, "abc", 3))
        return 1;
    off_t from = 0, to = 3;
    if (copy_file_range(file, &from, file, &to, 3, 0) != 3)
        return 1;
    void *map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0);
    return map == MAP_FAILED || memcmp(map, "abcabc", 6) != 0;
}

/* Also opens the file by its name in /proc, as libraries do. */
static int
use_memory_file(void)
{
    char path[64];
    int fd = memfd_create("caged", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int again = open(path, O_WRONLY | O_TRUNC);
    char text[3];
    return fd < 0 || again < 0 || write(again, "abc", 3) != 3 ||
           pread(fd, text, 3, 0) != 3 || memcmp(text, "abc", 3) != 0;
}

static int
use_scratch(void)
{
    char text[3];
    int fd = open(scratch_path("own"), O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    return fd < 0 || fallocate(fd, 0, 0, 1 << 20) || pwrite(fd, "abc", 3, 4096) != 3 ||
           pread(fd, text, 3, 4096) != 3 || memcmp(text, "abc", 3) != 0;
}

static int
use_socket(void)
{
    char c = 'x', got = 0;
    struct iovec out = {&c, 1}, in = {&got, 1};
    struct msghdr message = {.msg_iov = &out, .msg_iovlen = 1};
    struct msghdr receive = {.msg_iov = &in, .msg_iovlen = 1};
    if (sendmsg(pair[0], &message, 0) != 1 || recvmsg(pair[1], &receive, 0) != 1 ||
        got != 'x')
        return 1;
    c = 'y';
    return send(pair[0], &c, 1, MSG_NOSIGNAL) != 1 || recv(pair[1], &got, 1, 0) != 1 ||
           got != 'y';
}

static int
use_time(void)
{
    struct timespec nap = {0, 1000}, now;
    return nanosleep(&nap, NULL) || clock_gettime(CLOCK_REALTIME, &now);
}

static const struct {
    int (*deed)(void);
} needs[] = {{use_thread},  {use_memory}, {use_file}, {use_memory_file},
             {use_scratch}, {use_socket}, {use_time}};

START_TEST(works)
{
    if ((needs[_i].deed == use_memory_file || needs[_i].deed == use_scratch) &&
        caged(CAGE_CPU, NULL) == NO_LANDLOCK)
        return; /* no path is allowed then */
    ck_assert_int_eq(caged(CAGE_CPU, needs[_i].deed), 0);
    ck_assert_int_eq(caged(CAGE_GPU, needs[_i].deed), 0);
}
END_TEST

static int
read_system(void)
{
    return result_of(open("/proc/self/maps", O_RDONLY)) ||
           result_of(open("/dev/null", O_RDWR)) ||
           result_of(open("/usr", O_RDONLY | O_DIRECTORY));
}

START_TEST(gpu_reads_system)
{
    bool whole = caged(CAGE_GPU, NULL) != NO_LANDLOCK;
    ck_assert_int_eq(caged(CAGE_GPU, read_system), whole ? 0 : EPERM);
}
END_TEST

/* --- tests ---------------------------------------------------------------- */

static void
set_up(void)
{
    scratch_make();
    scratch_write("there", "");
    ck_assert_int_eq(mkdir(scratch_path("own"), 0700), 0);
    scratch_write("own/named", "");
    folder = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    file = openat(folder, "there", O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
}

static void
tear_down(void)
{
    close(file);
    close(folder);
    close(pair[0]);
    close(pair[1]);
    scratch_remove();
}

/* Builds with sanitizers have no cage. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

static Suite *
suite(void)
{
    Suite *s = suite_create("daemon/cage");
    TCase *t = tcase_create("walls");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_loop_test(t, outside, 0, (int)(sizeof harmless / sizeof *harmless));
    if (!SANITIZED) {
        tcase_add_loop_test(t, holds, 0, (int)(sizeof walls / sizeof *walls));
        tcase_add_loop_test(t, holds_gpu, 0, (int)(sizeof walls / sizeof *walls));
        tcase_add_loop_test(t, works, 0, (int)(sizeof needs / sizeof *needs));
        tcase_add_test(t, gpu_reads_system);
    }
    suite_add_tcase(s, t);
    return s;
}

UNIT_MAIN(suite)
