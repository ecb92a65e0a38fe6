/* SPDX-License-Identifier: Apache-2.0 */
/* The client of runners, against programs that misbehave (fake_runner.py). */
#include "config.h"
#include "unit.h"

#include "runner/session.h"
#include "runner/walls.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char above[] = "/tmp/qdq-runners-XXXXXX";
static struct runner_config runner;
static struct runner_session session;
static struct qdq_error err;

/* Sets the runner to the fake program that misbehaves in one way. */
static void
set_runner(const char *way, const char *allow)
{
    char command[4096];
    snprintf(command, sizeof command,
             "/usr/bin/python3 \"%s/tests/unit/judges/fake_runner.py\" %s",
             getenv("srcdir"), way);
    runner = (struct runner_config){.name = strdup("fake"),
                                    .timeout = 60,
                                    .memory = 512 << 20,
                                    .disk = 16 << 20,
                                    .walls = RUNNER_WALLS_ON};
    ck_assert(!runner_set_command(&runner, command, &err));
    ck_assert(!runner_set_allow(&runner, allow, &err));
}

static void
setup(void)
{
    memcpy(above + strlen(above) - 6, "XXXXXX", 6);
    ck_assert(mkdtemp(above) != NULL);
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    setenv("RUNNER_TEST_SECRET", "1", 1);
    err = (struct qdq_error){0};
}

/* Nothing may be left in the folder. */
static void
teardown(void)
{
    runner_session_close(&session);
    runner_fini(&runner);
    ck_assert_msg(rmdir(above) == 0, "%s: %s", above, strerror(errno));
}

static void
ck_error(enum qdq_code code, enum qdq_code expected, const char *text)
{
    ck_assert_msg(code == expected && strstr(err.text, text), "%s: %s, and not: %s",
                  qdq_code_slug(code), err.text, text);
}

/* --- hello --------------------------------------------------------------------- */

static const struct {
    const char *way;
    enum qdq_code code;
    const char *text;
} bad_hello[] = {
    {"garbage", QDQ_RUNNER_FAILED, "answered no JSON"},
    {"list", QDQ_RUNNER_FAILED, "answered another request"},
    {"twice", QDQ_RUNNER_FAILED, "answered no JSON: duplicate object key"},
    {"huge_line", QDQ_RUNNER_FAILED, "a line of more than 16777216 bytes"},
    {"two_lines", QDQ_RUNNER_FAILED, "more than one line"},
    {"hang", QDQ_RUNNER_FAILED, "took longer than 1 s for one answer (timeout)"},
    {"exit", QDQ_RUNNER_FAILED,
     "the runner 'fake' ended with status 3; its log ends with: no such device"},
    {"log", QDQ_RUNNER_FAILED, "its log ends with: ?[31mlast"},
    {"crash", QDQ_RUNNER_FAILED, "was killed by signal 11"},
    {"close", QDQ_RUNNER_FAILED, "closed its standard output"},
    {"fill_disk", QDQ_RUNNER_FAILED, "more than 16777216 bytes in its files (disk)"},
    {"fill_disk_without_names", QDQ_RUNNER_FAILED, "more than 16777216 bytes"},
    {"dig", QDQ_RUNNER_FAILED, "folders too deep"},
    {"unavailable", QDQ_RUNTIME_MISSING, "the runner 'fake': because of this"},
    {"model", QDQ_RUN_FAILED, "because of this"},
    {"memory", QDQ_NO_MEMORY, "because of this"},
    {"failed", QDQ_RUNNER_FAILED, "because of this"},
    {"unknown", QDQ_RUNNER_FAILED, "an error of the unknown kind 'unknown'"},
    {"too_much_memory", QDQ_NO_MEMORY, "all of it"},
    {"id", QDQ_RUNNER_FAILED, "another request than the one with id 1"},
    {"both", QDQ_RUNNER_FAILED, "neither a result nor an error"},
    {"protocol", QDQ_RUNNER_FAILED, "another protocol than version 1"},
    {"name", QDQ_RUNNER_FAILED, "hello without a name"},
    {"version", QDQ_RUNNER_FAILED, "hello without a name"},
    {"device", QDQ_RUNNER_FAILED, "hello without a name"},
    {"runs", QDQ_RUNNER_FAILED, "a 'runs' that is not true or false"},
};

UNIT_LOOP(refuses_bad_hello, UNIT_SANITIZED ? 0 : sizeof bad_hello / sizeof *bad_hello)
{
    set_runner(bad_hello[_i].way, "");
    if (!strcmp(bad_hello[_i].way, "hang"))
        runner.timeout = 1;
    ck_error(runner_session_open(&runner, above, &session, &err), bad_hello[_i].code,
             bad_hello[_i].text);
}

UNIT_LOOP(explains_missing_program, !UNIT_SANITIZED)
{
    set_runner("good", "");
    ck_assert(!runner_set_command(&runner, "/no/such/program", &err));
    ck_error(runner_session_open(&runner, above, &session, &err), QDQ_RUNNER_FAILED,
             "cannot be started: /no/such/program: No such file or directory");
}

/* The log is kept up to its limit. */
UNIT_LOOP(bounds_log, !UNIT_SANITIZED)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "%s-log", above);
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int kept = dup(STDERR_FILENO);
    set_runner("log", "");
    dup2(file, STDERR_FILENO);
    enum qdq_code code = runner_session_open(&runner, above, &session, &err);
    dup2(kept, STDERR_FILENO);
    ck_assert_int_eq(code, QDQ_RUNNER_FAILED);
    ck_assert(fstat(file, &st) == 0 && st.st_size == 64 << 10);
    close(file);
    close(kept);
    unlink(path);
}

/* --- what it sees, and what it cannot do ------------------------------------------ */

UNIT_LOOP(passes_options_and_little_else, !UNIT_SANITIZED)
{
    set_runner("echo", "");
    ck_assert(!runner_add_option(&runner, "provider", "QNN", &err));
    ck_assert(!runner_add_option(&runner, "soc_model", "43", &err));
    ck_assert_msg(!runner_session_open(&runner, above, &session, &err), "%s", err.text);
    ck_assert_str_eq(session.about.version,
                     "{\"provider\": \"QNN\", \"soc_model\": \"43\"}");
    char expected[512];
    snprintf(expected, sizeof expected,
             "HOME=%.99s LANG=C.UTF-8 PATH=/usr/local/bin:/usr/bin:/bin TMPDIR=%.99s",
             session.program.folder.path, session.program.folder.path);
    expected[128] = '\0';
    ck_assert_str_eq(session.about.device, expected);
}

UNIT_LOOP(stands_behind_walls, !UNIT_SANITIZED)
{
    set_runner("walls", "");
    ck_assert_msg(!runner_session_open(&runner, above, &session, &err), "%s", err.text);
    ck_assert_str_eq(session.about.version, "none");
}

/* Without walls the same program does what it likes: the test would notice their absence. */
UNIT_LOOP(test_of_walls_can_fail, !UNIT_SANITIZED)
{
    set_runner("walls", "");
    runner.walls = RUNNER_WALLS_OFF;
    ck_assert_msg(!runner_session_open(&runner, above, &session, &err), "%s", err.text);
    ck_assert_str_ne(session.about.version, "none");
    unlink("/tmp/runner-wrote");
    unlink("/tmp/runner-moved");
    char made[64];
    snprintf(made, sizeof made, "%s/made", above);
    rmdir(made);
}

/* The process that starts programs has walls, too, and they leave those of the programs as
   they are. */
UNIT_LOOP(stands_behind_walls_twice, !UNIT_SANITIZED)
{
    struct runner_folder own;
    char lacking[WALL_TEXT];
    int status;
    set_runner("walls", "");
    ck_assert(!runner_folder_make(above, &own, &err));
    pid_t pid = fork();
    if (pid == 0) {
        int failed = !walls_enter_around(&runner, own.path, lacking) || *lacking;
        failed |= (open("/etc/shadow", O_RDONLY | O_CLOEXEC) >= 0) << 1;
        failed |= (socket(AF_UNIX, SOCK_STREAM, 0) >= 0) << 2;
        failed |= (mkdir("/tmp/runner-around", 0700) == 0) << 3;
        failed |= (kill(getppid(), 0) == 0) << 4;
        failed |= (runner_session_open(&runner, own.path, &session, &err) ||
                   strcmp(session.about.version, "none") != 0)
                  << 5;
        runner_session_close(&session);
        runner_folder_remove(&own);
        _exit(failed);
    }
    waitpid(pid, &status, 0);
    close(own.fd);
    ck_assert_int_eq(status, 0);
}

UNIT_LOOP(allows_executable_memory, !UNIT_SANITIZED)
{
    set_runner("walls", "exec");
    ck_assert_msg(!runner_session_open(&runner, above, &session, &err), "%s", err.text);
    ck_assert_str_eq(session.about.version, "make memory code");
}

static bool
is_alive(pid_t pid)
{
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool got = read(fd, text, sizeof text - 1) > 0;
    close(fd);
    return got && !strstr(text, ") Z ");
}

/* Waits for the end of the processes that a text lists. */
static bool
have_ended(const char *pids)
{
    struct timespec nap = {0, 10000000};
    for (int i = 0; i < 500; i++) {
        bool any = false;
        char *next;
        for (const char *at = pids; *at; at = next)
            any |= is_alive((pid_t)strtol(at, &next, 10));
        if (!any)
            return true;
        nanosleep(&nap, NULL);
    }
    return false;
}

UNIT_LOOP(ends_all_processes, !UNIT_SANITIZED)
{
    set_runner("outlive", "processes");
    ck_assert_msg(!runner_session_open(&runner, above, &session, &err), "%s", err.text);
    char *end, pids[129];
    snprintf(pids, sizeof pids, "%s", session.about.version);
    ck_assert(is_alive((pid_t)strtol(pids, &end, 10)));
    runner_session_close(&session);
    ck_assert(have_ended(pids));
}

/* Where the process that started the program is killed, everything ends, too. */
UNIT_LOOP(ends_with_starter, UNIT_SANITIZED ? 0 : 2)
{
    int ends[2];
    char pids[129] = "";
    const char *const ways[] = {"good", "outlive"};
    ck_assert(pipe(ends) == 0);
    pid_t starter = fork();
    if (starter == 0) {
        set_runner(ways[_i], _i ? "processes" : "");
        if (runner_session_open(&runner, above, &session, &err))
            _exit(1);
        int n = _i ? snprintf(pids, sizeof pids, "%s %d", session.about.version,
                              session.program.pid)
                   : snprintf(pids, sizeof pids, "%d", session.program.pid);
        (void)!write(ends[1], pids, (size_t)n);
        pause();
    }
    close(ends[1]);
    ck_assert(read(ends[0], pids, sizeof pids - 1) > 0);
    kill(starter, SIGKILL);
    waitpid(starter, NULL, 0);
    ck_assert(have_ended(pids));
    struct runner_folder left = {.fd = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    snprintf(left.path, sizeof left.path, "%s", above);
    runner_folder_remove(&left);
    ck_assert(mkdir(above, 0700) == 0);
}

/* --- a model -------------------------------------------------------------------- */

static const int64_t shape[] = {2, 2};
static float values[] = {1, 2, 3, 4};
static struct qdq_tensor input = {.name = "x",
                                  .dtype = 1,
                                  .rank = 2,
                                  .shape = shape,
                                  .data = values,
                                  .size = sizeof values};

static void
open_model(const char *way, int threads)
{
    const struct qdq_run_options options = {.threads = threads, .traced = !threads};
    set_runner(way, "");
    ck_assert_msg(!runner_session_open(&runner, above, &session, &err), "%s", err.text);
    ck_assert_msg(!runner_session_load(&session, "model", 5, &options, &err), "%s",
                  err.text);
}

static const float *
run_model(void)
{
    double ms;
    ck_assert_msg(!runner_session_run(&session, &input, 1, &ms, &err), "%s", err.text);
    ck_assert(ms == 0.5);
    ck_assert_uint_eq(session.outputs.n, 1);
    return session.outputs.list[0].data;
}

UNIT_LOOP(runs_model, !UNIT_SANITIZED)
{
    size_t n;
    open_model("good", 0);
    ck_assert_str_eq(session.precision, "f32");
    const float *out = run_model();
    const struct qdq_tensor *t = session.outputs.list;
    ck_assert(t->dtype == 1 && t->rank == 2 && t->shape[1] == 2 && t->size == 16);
    ck_assert(out[0] == 2 && out[3] == 8);
    values[3] = 5;
    ck_assert(run_model()[3] == 10);
    values[3] = 4;
    ck_assert_msg(!runner_session_ask_kernels(&session, &n, &err), "%s", err.text);
    ck_assert_uint_eq(n, 1);
    ck_assert_str_eq(session.nodes[0].op, "QLinearConv");
    ck_assert(session.nodes[0].kind == QDQ_NODE_INTEGER && session.nodes[0].ms == 0.25);
}

/* An input keeps its file as long as its bytes, and a name never comes again with others. */
UNIT_LOOP(keeps_names_of_files, !UNIT_SANITIZED)
{
    open_model("names", 0);
    run_model();
    run_model();
    values[0] = 7;
    run_model();
    values[0] = 1;
    run_model();
    struct qdq_error unused = {0};
    ck_assert(program_fail(&session.program, &unused, "is asked") == QDQ_RUNNER_FAILED);
    ck_assert_msg(
        strstr(unused.text, "in-1.bin in-1.bin in-2.bin in-3.bin of in-3.bin"), "%s",
        unused.text);
}

UNIT_LOOP(measures_latency, !UNIT_SANITIZED)
{
    double ms;
    open_model("good", 3);
    ck_assert_msg(!runner_session_run(&session, &input, 1, &ms, &err), "%s", err.text);
    ck_assert(ms == 0.125 && session.outputs.n == 0);
}

UNIT_LOOP(takes_what_is_no_tensor, !UNIT_SANITIZED)
{
    open_model("no_tensor", 0);
    run_model();
    ck_assert(session.outputs.list[0].dtype == 0 && session.outputs.list[0].size == 0);
}

static const struct {
    const char *way, *text;
} bad_outputs[] = {
    {"short_file", "the file out-0 has 16 bytes, and its shape needs 24"},
    {"negative", "without a shape"},
    {"overflow", "without a shape"},
    {"real_shape", "without a shape"},
    {"rank", "without a shape"},
    {"large", "outputs of more than 2 GiB"},
    {"path", "without a file"},
    {"hidden", "without a file"},
    {"missing_file", "the file nothing cannot be read: No such file or directory"},
    {"folder_as_file", "folder is no plain file"},
    {"type", "without a known type"},
    {"nameless", "an output without a name"},
    {"no_list", "no list of outputs"},
    {"no_time", "outputs without their time"},
    {"exit_later", "ended with status 0"},
};

UNIT_LOOP(refuses_bad_outputs,
          UNIT_SANITIZED ? 0 : sizeof bad_outputs / sizeof *bad_outputs)
{
    double ms;
    open_model(bad_outputs[_i].way, 0);
    ck_error(runner_session_run(&session, &input, 1, &ms, &err), QDQ_RUNNER_FAILED,
             bad_outputs[_i].text);
}

UNIT_LOOP(refuses_bad_load, !UNIT_SANITIZED)
{
    const struct qdq_run_options options = {0};
    set_runner("precision", "");
    ck_assert(!runner_session_open(&runner, above, &session, &err));
    ck_error(runner_session_load(&session, "model", 5, &options, &err),
             QDQ_RUNNER_FAILED, "load without a precision");
}

UNIT_LOOP(refuses_bad_latency, !UNIT_SANITIZED)
{
    double ms;
    open_model("latency", 1);
    ck_error(runner_session_run(&session, &input, 1, &ms, &err), QDQ_RUNNER_FAILED,
             "latency without a time");
}

static const struct {
    const char *way, *text;
} bad_kernels[] = {
    {"kernel_kind", "kernel 0 badly"},     {"kernel_time", "kernel 0 badly"},
    {"kernel_list", "no list of kernels"}, {"kernel_nodes", "kernel 0 badly"},
    {"kernel_names", "kernel 0 badly"},
};

UNIT_LOOP(refuses_bad_kernels,
          UNIT_SANITIZED ? 0 : sizeof bad_kernels / sizeof *bad_kernels)
{
    size_t n;
    open_model(bad_kernels[_i].way, 0);
    ck_error(runner_session_ask_kernels(&session, &n, &err), QDQ_RUNNER_FAILED,
             bad_kernels[_i].text);
}

UNIT_LOOP(names_the_nodes_of_kernels, !UNIT_SANITIZED)
{
    size_t n;
    open_model("plans", 0);
    ck_assert(session.about.only_plans);
    for (int i = 0; i < 2; i++) {
        ck_assert(!runner_session_ask_kernels(&session, &n, &err));
        ck_assert_uint_eq(n, 1);
        ck_assert_uint_eq(session.nodes[0].n_names, 2);
        ck_assert_str_eq(session.nodes[0].names[1], "Relu_0");
        ck_assert_str_eq(session.nodes[0].reason, "no such kernel");
    }
}

UNIT_LOOP(refuses_unknown_types, !UNIT_SANITIZED)
{
    double ms;
    open_model("good", 0);
    struct qdq_tensor text = input;
    text.dtype = 8;
    ck_error(runner_session_run(&session, &text, 1, &ms, &err), QDQ_RUN_FAILED,
             "a type");
    err = (struct qdq_error){0};
    text = input;
    text.name = "\xff";
    ck_error(runner_session_run(&session, &text, 1, &ms, &err), QDQ_RUN_FAILED,
             "UTF-8");
    run_model();
}

/* --- the section ----------------------------------------------------------------- */

static const struct {
    const char *command, *text;
} bad_commands[] = {
    {"", "is missing"},
    {"  ", "is missing"},
    {"python3 x", "absolute path"},
    {"/a \"b", "does not end"},
    {"/a b\"c", "in the middle"},
};

UNIT_ROWS(refuses_bad_commands, bad_commands)
{
    ck_error(runner_set_command(&runner, bad_commands[_i].command, &err),
             QDQ_INVALID_SPEC, bad_commands[_i].text);
}

UNIT_TEST(encodes_and_decodes)
{
    struct runner_config copy;
    set_runner("\"a way\"", " /dev/nvidia*, exec,/opt/a b , processes");
    ck_assert(!runner_add_option(&runner, "provider", "CPU", &err));
    char *text = runner_encode(&runner);
    ck_assert_msg(!runner_decode(text, &copy, &err), "%s", err.text);
    ck_assert_str_eq(copy.words[2], "a way");
    ck_assert(!copy.words[3]);
    ck_assert_str_eq(copy.paths[0], "/dev/nvidia*");
    ck_assert_str_eq(copy.paths[1], "/opt/a b");
    ck_assert(!copy.paths[2] && copy.may_make_code && copy.may_start_processes);
    ck_assert(copy.timeout == 60 && copy.memory == 512 << 20 && copy.disk == 16 << 20);
    ck_assert(copy.walls == RUNNER_WALLS_ON && copy.n_options == 1);
    ck_assert_str_eq(copy.options[0].value, "CPU");
    runner_fini(&copy);
    free(text);
    ck_error(runner_set_allow(&runner, "exec, network", &err), QDQ_INVALID_SPEC,
             "not exec, processes or an absolute path");
}

UNIT_SUITE("runner", .setup = setup, .teardown = teardown)
