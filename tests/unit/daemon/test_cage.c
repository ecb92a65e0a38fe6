/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that has entered the cage tries each forbidden action, and each action that
 * a worker needs, in its first thread and in one that it starts in the cage, as ONNX
 * Runtime's are. It reports the result by its exit status, because it can do little else.
 */
#include "config.h"
#include "workers/cage.h"
#include "workers/trap.h"
#include "daemon.h"
#include "walls.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/eventfd.h>
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

static void *
run_deed(void *arg)
{
    int (*const *deed)(void) = arg;
    return (void *)(intptr_t)(*deed)();
}

static int
do_in_thread(int (*deed)(void))
{
    pthread_t thread;
    void *got = NULL;
    return pthread_create(&thread, NULL, run_deed, &deed) || pthread_join(thread, &got)
               ? NOT_CAGED
               : (int)(intptr_t)got;
}

enum thread { FIRST_THREAD, POOL_THREAD };

/* Returns the status with which `deed` ends in a thread of a caged process; NULL: whether
   the kernel has everything that a cage needs. */
static int
caged_in(enum cage_profile profile, enum thread thread, int (*deed)(void))
{
    char lacking[CAGE_TEXT];
    int status;
    parent = getpid();
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        bool in =
            prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && cage_enter(profile, lacking);
        if (!in || !deed)
            _exit(!in ? NOT_CAGED : *lacking ? NO_LANDLOCK : 0);
        _exit(thread == POOL_THREAD ? do_in_thread(deed) : deed());
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status), "ended by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

static int
caged(enum cage_profile profile, int (*deed)(void))
{
    int first = caged_in(profile, FIRST_THREAD, deed);
    ck_assert_int_eq(caged_in(profile, POOL_THREAD, deed), first);
    return first;
}

/* Outside the cage the action succeeds, or fails for another reason. So it is the
   cage that stops it. Actions that would change the machine are not tried outside. */
UNIT_LOOP(holds, UNIT_SANITIZED ? 0 : sizeof walls / sizeof *walls)
{
    int got = caged(CAGE_CPU, walls[_i].deed);
    ck_assert_msg(got == walls[_i].wanted, "%s: %d", walls[_i].name, got);
}

/* CUDA hears that nothing listens where it would connect. */
UNIT_LOOP(holds_gpu, UNIT_SANITIZED ? 0 : sizeof walls / sizeof *walls)
{
    int got = caged(CAGE_GPU, walls[_i].deed);
    if (walls[_i].deed == connect_socket)
        ck_assert_int_eq(got, ENOENT);
    else if (walls[_i].gpu_may_do || caged(CAGE_GPU, NULL) == NO_LANDLOCK)
        ck_assert_int_lt(got, NOT_CAGED);
    else
        ck_assert_int_eq(got, walls[_i].wanted);
}

UNIT_LOOP(holds_carrier, UNIT_SANITIZED ? 0 : sizeof walls / sizeof *walls)
{
    int got = caged(CAGE_CARRIER, walls[_i].deed);
    if (walls[_i].carrier_may_do)
        ck_assert_msg(got != EPERM && got != EACCES, "%s: %d", walls[_i].name, got);
    else
        ck_assert_msg(got == walls[_i].wanted, "%s: %d", walls[_i].name, got);
}

/* The judging process may make code of its own pages, and read the names in a folder whose
   descriptor it has. stat() is answered by the handler of SIGSYS. */
UNIT_LOOP(holds_judge, UNIT_SANITIZED ? 0 : sizeof walls / sizeof *walls)
{
    int (*const deed)(void) = walls[_i].deed;
    const bool may = deed == make_code || deed == list_names;
    int wanted = may ? 0 : deed == stat_call ? EACCES : walls[_i].wanted;
    int got = caged(CAGE_JUDGE, deed);
    ck_assert_msg(got == wanted, "%s: %d", walls[_i].name, got);
}

static const struct {
    int (*deed)(void);
} harmless[] = {
    {open_to_read},     {open_by_folder}, {open_to_write},       {list_folder},
    {change_mode},      {tcp_socket},     {unix_socket},         {fork_process},
    {signal_parent},    {kill_parent},    {write_code},          {make_code},
    {stat_existing},    {stat_call},      {lstat_call},          {statx_existing},
    {access_existing},  {access_root},    {read_link},           {stat_file_system},
    {list_names},       {send_signals},   {choose_signal},       {change_flags},
    {lock_file},        {share_memory},   {grow_stack},          {open_nameless},
    {make_memory_file}, {slow_parent},    {read_limit_of_parent}};

UNIT_ROWS(outside, harmless)
{
    parent = getpid();
    ck_assert_int_eq(harmless[_i].deed(), 0);
}

/* --- needed actions: each returns 0 -------------------------------------- */

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

/* Libraries write to an open file by its name in /proc. */
static int
use_open_file(void)
{
    char path[64], text[3];
    struct stat st;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (pwrite(file, "0123456789", 10, 0) != 10)
        return 1;
    int again = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    return again < 0 || again == file || write(again, "abc", 3) != 3 ||
           fcntl(again, F_GETFD) != FD_CLOEXEC || pread(file, text, 3, 0) != 3 ||
           memcmp(text, "abc", 3) != 0 || fstat(file, &st) || st.st_size != 3 ||
           stat(path, &st) || st.st_size != 3 || fallocate(file, 0, 0, 1 << 20);
}

/* Returns whether the path opens nothing but a duplicate of `file`, which it empties. */
static bool
opens_own_file(const char *path)
{
    struct stat st, other;
    if (pwrite(file, "0123456789", 10, 0) != 10)
        return false;
    int again = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool ok = again >= 0 && !fstat(again, &other) && !fstat(file, &st) &&
              other.st_ino == st.st_ino && other.st_dev == st.st_dev && st.st_size == 0;
    if (again >= 0)
        close(again);
    return ok;
}

/* ONNX Runtime's profiler adds the time to the path of its file. */
static int
use_profiler_file(void)
{
    static const char *const refused[] = {
        "/proc/self/fd/%d_/../../../../etc/passwd",
        "/proc/self/fd/%d_x/y",
        "/proc/self/fd/%d-x",
        "/proc/self/fd/_%d",
        "/tmp/proc/self/fd/%d_x",
    };
    char path[96];
    snprintf(path, sizeof path, "/proc/self/fd/%d_2026-01-31_12-00-00.json", file);
    if (!opens_own_file(path))
        return 1;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        snprintf(path, sizeof path, refused[i], file);
        if (open(path, O_WRONLY | O_CREAT, 0600) >= 0 || errno != EACCES)
            return (int)i + 2;
    }
    /* a descriptor that the process does not own */
    return open("/proc/self/fd/9999_x.json", O_RDWR | O_CREAT, 0600) >= 0 ||
           errno != EBADF;
}

/* The handler of SIGSYS keeps errno, and knows no path but those of open files. */
static int
use_other_paths(void)
{
    static const char *const paths[] = {"/proc/self/fd/", "/proc/self/fd/3x",
                                        "/proc/self/fd/99999999999", "", "."};
    struct stat st;
    errno = EDOM;
    if (fstat(file, &st) || errno != EDOM)
        return 1;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (open(paths[i], O_RDONLY) >= 0 || errno != EACCES)
            return (int)i + 2;
    return 0;
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
    bool cpu_only;
} needs[] = {{use_thread, false},   {use_memory, false},       {use_file, false},
             {use_open_file, true}, {use_profiler_file, true}, {use_other_paths, true},
             {use_socket, false},   {use_time, false}};

UNIT_LOOP(works, UNIT_SANITIZED ? 0 : sizeof needs / sizeof *needs)
{
    ck_assert_int_eq(caged(CAGE_CPU, needs[_i].deed), 0);
    ck_assert_int_eq(caged(CAGE_JUDGE, needs[_i].deed), 0);
    if (!needs[_i].cpu_only)
        ck_assert_int_eq(caged(CAGE_GPU, needs[_i].deed), 0);
    if (!needs[_i].cpu_only)
        ck_assert_int_eq(caged(CAGE_CARRIER, needs[_i].deed), 0);
}

static void *
wait_for_ever(void *arg)
{
    pause();
    return arg;
}

/* Landlock would not bind a thread that exists already. */
UNIT_LOOP(needs_one_thread, !UNIT_SANITIZED)
{
    char lacking[CAGE_TEXT];
    int status;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        pthread_t thread;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
            pthread_create(&thread, NULL, wait_for_ever, NULL))
            _exit(2);
        bool in = cage_enter(CAGE_CPU, lacking);
        _exit(in || !strstr(lacking, "2 threads"));
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static int
read_system(void)
{
    return result_of(open("/proc/self/maps", O_RDONLY)) ||
           result_of(open("/dev/null", O_RDWR)) ||
           result_of(open("/usr", O_RDONLY | O_DIRECTORY));
}

UNIT_LOOP(gpu_reads_system, !UNIT_SANITIZED)
{
    bool whole = caged(CAGE_GPU, NULL) != NO_LANDLOCK;
    ck_assert_int_eq(caged(CAGE_GPU, read_system), whole ? 0 : EPERM);
}

/* A key of the daemon's user, by its path. */
static char key[64];

static int
read_key(void)
{
    char byte;
    int fd = open(key, O_RDONLY);
    return result_of(fd < 0 ? -1 : read(fd, &byte, 1));
}

/* Hostile code in a cage reads a key where cage_may_read() says so, and nowhere else. */
UNIT_LOOP(keys_are_out_of_reach, UNIT_SANITIZED ? 0 : 2)
{
    static const char *const places[] = {"/var/tmp", "/dev/shm"};
    static const enum cage_profile profiles[] = {CAGE_CPU, CAGE_GPU, CAGE_CARRIER,
                                                 CAGE_JUDGE};
    snprintf(key, sizeof key, "%s/qdqd-key-XXXXXX", places[_i]);
    int fd = mkstemp(key);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, "k", 1), 1);
    close(fd);
    int got[4];
    for (int i = 0; i < 4; i++)
        got[i] = caged(profiles[i], read_key);
    bool has_landlock = caged(CAGE_GPU, NULL) != NO_LANDLOCK;
    unlink(key);
    for (int i = 0; i < 4; i++) {
        bool may = has_landlock && cage_may_read(profiles[i], key);
        ck_assert_msg((got[i] == 0) == may, "profile %d: %d", i, got[i]);
        ck_assert_int_eq(cage_may_read(profiles[i], key),
                         profiles[i] == CAGE_GPU && _i == 1);
    }
}

/* Binds a socket to an abstract name and listens there. */
static int
listen_at_name(int type)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const int on = 1;
    int n = snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "qdqd-test-%d", getpid());
    int fd = socket(AF_UNIX, type, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) ||
        bind(fd, (struct sockaddr *)&at,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) ||
        listen(fd, 1))
        return errno;
    return accept4(fd, NULL, NULL, SOCK_NONBLOCK) < 0 && errno == EPERM ? 0 : NOT_CAGED;
}

static int
listen_as_cuda(void)
{
    return listen_at_name(SOCK_SEQPACKET | SOCK_CLOEXEC);
}

/* A socket of datagrams could send to others without a connection. */
static int
listen_for_datagrams(void)
{
    return listen_at_name(SOCK_DGRAM | SOCK_CLOEXEC);
}

/* pause() is no call that the cage allows. */
static void *
sleep_long(void *arg)
{
    const struct timespec minute = {60, 0};
    nanosleep(&minute, NULL);
    return arg;
}

static int
name_a_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, sleep_long, NULL))
        return 1;
    for (int i = 0; i < 100; i++)
        if (pthread_setname_np(thread, "named"))
            return 2;
    return 0;
}

static int
unblock_event(void)
{
    int fd = eventfd(0, EFD_CLOEXEC);
    return fd < 0 ? 1 : result_of(fcntl(fd, F_SETFL, O_NONBLOCK));
}

/* Each of these ends CUDA when it is refused. */
UNIT_LOOP(gpu_does_what_cuda_needs, !UNIT_SANITIZED)
{
    bool whole = caged(CAGE_GPU, NULL) != NO_LANDLOCK;
    ck_assert_int_eq(caged(CAGE_GPU, listen_as_cuda), 0);
    ck_assert_int_eq(caged(CAGE_GPU, unblock_event), 0);
    ck_assert_int_eq(caged(CAGE_GPU, name_a_thread), whole ? 0 : 2);
    ck_assert_int_eq(caged(CAGE_GPU, listen_for_datagrams), EPERM);
    ck_assert_int_eq(caged(CAGE_CPU, listen_as_cuda), EPERM);
    ck_assert_int_eq(caged(CAGE_CPU, unblock_event), 1);
    ck_assert_int_eq(caged(CAGE_CPU, name_a_thread), 2);
}

/* --- the judging process -------------------------------------------------- */

/* Counts the files of the folder, without "." and "..". Returns -1 and sets errno when it
   cannot be opened. */
static int
count_files(const char *path)
{
    DIR *listing = opendir(path);
    int n = 0;
    if (!listing)
        return -1;
    for (const struct dirent *entry; (entry = readdir(listing));)
        n += entry->d_name[0] != '.';
    closedir(listing);
    return n;
}

/* Lists the folder twice and describes its file, whose size is that at the start. */
static int
use_listing(void)
{
    char path[PATH_MAX];
    struct stat st;
    snprintf(path, sizeof path, "%s/there", scratch);
    if (count_files(scratch) != 1 || count_files(scratch) != 1)
        return 1;
    if (stat(path, &st) || st.st_size != 0 || !S_ISREG(st.st_mode))
        return 2;
    return stat(scratch, &st) || !S_ISDIR(st.st_mode) ? 3 : 0;
}

/* Nothing in the folder can be opened, and nothing beside it is told. */
static int
use_more_than_listing(void)
{
    static const char *const formats[] = {"%s/there", "%s/.", "%s/../", "%s/", "%sx"};
    char path[PATH_MAX];
    struct stat st;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        snprintf(path, sizeof path, formats[i], scratch);
        if (open(path, O_RDONLY) >= 0 || errno != EACCES)
            return (int)i + 1;
    }
    snprintf(path, sizeof path, "%s/missing", scratch);
    if (stat(path, &st) == 0 || errno != EACCES || stat("/etc/passwd", &st) == 0)
        return 10;
    return open(scratch, O_WRONLY | O_TRUNC) >= 0 || errno != EACCES ? 11 : 0;
}

UNIT_LOOP(judge_lists_one_folder, !UNIT_SANITIZED)
{
    ck_assert_int_eq(caged(CAGE_JUDGE, use_listing), 1); /* not yet */
    ck_assert(trap_allow_listing(scratch));
    ck_assert_int_eq(caged(CAGE_JUDGE, use_listing), 0);
    ck_assert_int_eq(caged(CAGE_JUDGE, use_more_than_listing), 0);
}

UNIT_LOOP(no_folder_is_listed, !UNIT_SANITIZED)
{
    ck_assert(!trap_allow_listing("/nonexistent"));
    ck_assert_int_eq(errno, ENOENT);
}

/* --- the carrier ---------------------------------------------------------- */

/* Returns a socket that listens at a free port of the loopback. */
static int
listen_somewhere(struct sockaddr_in *ret)
{
    socklen_t len = sizeof *ret;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *ret = (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)ret, sizeof *ret), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)ret, &len), 0);
    return fd;
}

static struct sockaddr_in server;

static int
reach_server(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    int error = 0;
    socklen_t len = sizeof error;
    if (fd < 0 || (connect(fd, (struct sockaddr *)&server, sizeof server) &&
                   errno != EINPROGRESS))
        return errno;
    if (poll(&ready, 1, 5000) != 1 ||
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len))
        return 1;
    return error;
}

static int
resolve_name(void)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    if (getaddrinfo("localhost", "80", &hints, &found))
        return 1;
    freeaddrinfo(found);
    return 0;
}

static int
listen_for_others(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd < 0 ? 1 : result_of(listen(fd, 1));
}

UNIT_LOOP(carrier_connects, !UNIT_SANITIZED)
{
    bool whole = caged(CAGE_CARRIER, NULL) != NO_LANDLOCK;
    int fd = listen_somewhere(&server);
    ck_assert_int_eq(caged(CAGE_CARRIER, reach_server), 0);
    if (whole)
        ck_assert_int_eq(caged(CAGE_CARRIER, resolve_name), 0);
    ck_assert_int_eq(caged(CAGE_CARRIER, listen_for_others), EPERM);
    close(fd);
}

/* --- tests --------------------------------------------------------------- */

static void
set_up(void)
{
    /* A worker with a GPU may use what lies in /dev, so /dev/shm would be no wall. */
    unsetenv("TMPDIR");
    scratch_make();
    scratch_write("there", "");
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

UNIT_SUITE("daemon/cage", .setup = set_up, .teardown = tear_down)
