/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages between a process that quantizes and one that judges. Each side reads what the
 * other one never should send: the messages of an honest conversation with some of their
 * numbers changed, or cut off. OpenVINO is a library without OpenVINO (fake_openvino.c).
 */
#include "config.h"
#include "qdq/judge.h"

#include "runtimes/process/remote.h"
#include "runtimes/process/wire.h"
#include "unit.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FAKE "tests/unit/deploy/.libs/libfake_openvino.so"

/* The address sanitizer takes 15 ms for each allocation of gigabytes that a message asks for. */
#ifdef __SANITIZE_ADDRESS__
enum { TRIES = 300 };
#else
enum { TRIES = 4000 };
#endif
enum { ROWS = 2, COLUMNS = 3, MOST = 8192, TRACED = 2 };

static const int64_t shape[] = {ROWS, COLUMNS};
static const float values[ROWS * COLUMNS] = {0, 1, 2, 3, 4, 5};
static const struct qdqi_input input = {.name = "x",
                                        .dtype = QDQI_FLOAT32,
                                        .shape = shape,
                                        .rank = 2,
                                        .data = values,
                                        .size = sizeof values};
static char whole[] = "a model";
static struct qdqi_mapped file = {.map = (uint8_t *)whole, .size = sizeof whole};
static const struct qdq_model model = {.files = &file, .n_files = 1};
static const struct qdqi_deploy_options options = {.threads = 1, .traced = true};

static struct qdq_judge *judge;

static void
open_fake(void)
{
    struct qdq_error err = {0};
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    ck_assert_msg(qdq_judge_open(FAKE, &judge, &err) == QDQ_OK, "%s", err.text);
}

static void
close_fake(void)
{
    qdq_judge_close(&judge);
}

static void
make_pair(int sockets[2])
{
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
}

/* --- bytes of a conversation ------------------------------------------------ */

struct bytes {
    uint8_t data[MOST];
    size_t n;
};

/* Appends a message, and frees its body. */
static void
add(struct bytes *to, enum qdqi_wire_kind kind, struct qdqi_wire *body,
    const char *attached)
{
    int sockets[2];
    make_pair(sockets);
    ck_assert(qdqi_wire_send(sockets[0], kind, body, attached,
                             attached ? strlen(attached) : 0));
    close(sockets[0]);
    for (ssize_t got; (got = read(sockets[1], to->data + to->n, MOST - to->n)) > 0;)
        to->n += (size_t)got;
    close(sockets[1]);
    ck_assert_uint_lt(to->n, MOST);
    qdqi_wire_free(body);
}

static void
put_input(struct qdqi_wire *body)
{
    qdqi_wire_put(body, 1);
    qdqi_wire_put_text(body, "x");
    qdqi_wire_put(body, QDQI_FLOAT32);
    qdqi_wire_put_bytes(body, shape, sizeof shape);
    qdqi_wire_put_bytes(body, values, sizeof values);
}

static void
put_numbers(struct qdqi_wire *body, const uint64_t *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        qdqi_wire_put(body, numbers[i]);
}

/* The requests of an honest engine. */
static struct bytes
questions(void)
{
    struct bytes all = {.n = 0};
    struct qdqi_wire body = {0};
    qdqi_wire_put_text(&body, "openvino");
    add(&all, QDQI_WIRE_VERSION, &body, NULL);
    put_numbers(&body, (const uint64_t[]){1, 0, 1, 0}, 4);
    add(&all, QDQI_WIRE_OPEN, &body, "a model");
    for (int i = 0; i < 2; i++) {
        qdqi_wire_put(&body, 0);
        put_input(&body);
        add(&all, QDQI_WIRE_RUN, &body, NULL);
    }
    qdqi_wire_put(&body, 0);
    add(&all, QDQI_WIRE_NODES, &body, NULL);
    qdqi_wire_put(&body, 0);
    add(&all, QDQI_WIRE_CLOSE, &body, NULL);
    return all;
}

/* Appends an answer with one node. */
static void
add_nodes(struct bytes *to, double ms)
{
    static const char *const names[] = {"node", "short"};
    struct qdqi_wire body = {0};
    qdqi_wire_put(&body, 2);
    for (int i = 0; i < 2; i++) {
        qdqi_wire_put_text(&body, names[i]);
        qdqi_wire_put_text(&body, "Identity");
        qdqi_wire_put_text(&body, "fake_I8");
        qdqi_wire_put(&body, QDQ_NODE_BY_NAME);
        qdqi_wire_put_real(&body, i == 0 ? ms : 0);
        qdqi_wire_put(&body, 1); /* a name of a node of the model */
        qdqi_wire_put_text(&body, names[i]);
        qdqi_wire_put_text(&body, i == 0 ? "refused" : ""); /* why it is elsewhere */
    }
    add(to, QDQI_WIRE_OK, &body, NULL);
}

static void
add_opened(struct bytes *to)
{
    struct qdqi_wire body = {0};
    qdqi_wire_put(&body, 0);
    qdqi_wire_put_text(&body, "f32");
    add(to, QDQI_WIRE_OK, &body, NULL);
}

static void
add_outputs(struct bytes *to)
{
    struct qdqi_wire body = {0};
    qdqi_wire_put_real(&body, 1.5);
    qdqi_wire_put_real(&body, 1.25); /* of the processor */
    put_numbers(&body, (const uint64_t[]){1, QDQI_FLOAT32}, 2);
    qdqi_wire_put_bytes(&body, shape, sizeof shape);
    qdqi_wire_put_bytes(&body, values, sizeof values);
    add(to, QDQI_WIRE_OK, &body, NULL);
}

/* The answers of an honest judge to use_remote(). */
static struct bytes
answers(void)
{
    struct bytes all = {.n = 0};
    struct qdqi_wire body = {0};
    qdqi_wire_put_text(&body, "2000.0");
    for (int i = 0; i < 3; i++) /* its own name, device and runner */
        qdqi_wire_put_text(&body, "");
    qdqi_wire_put(&body, 0); /* it does not only plan */
    add(&all, QDQI_WIRE_OK, &body, NULL);
    add_opened(&all);
    add_outputs(&all);
    add_nodes(&all, 3);
    add(&all, QDQI_WIRE_OK, &body, NULL);
    add_opened(&all);
    add_outputs(&all);
    for (int i = 0; i < TRACED; i++) {
        add_outputs(&all);
        add_nodes(&all, 1.5);
    }
    add(&all, QDQI_WIRE_OK, &body, NULL);
    return all;
}

/* Numbers that break what does not check them. Sizes of gigabytes are among them, for which
   there may be memory. */
static const uint64_t evil[] = {0,
                                1,
                                2,
                                3,
                                5,
                                6,
                                7,
                                8,
                                64,
                                65,
                                1000,
                                1001,
                                4096,
                                UINT64_C(1) << 31,
                                UINT64_C(1) << 32,
                                (UINT64_C(1) << 32) + 1,
                                UINT64_C(1) << 61,
                                UINT64_C(1) << 63,
                                UINT64_MAX,
                                UINT64_MAX - 7};

/* A generator of its own, so that a failure repeats. */
static uint32_t
draw(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Changes up to three numbers or bytes, and cuts one in four off. */
static void
spoil(struct bytes *b, uint32_t *state)
{
    for (uint32_t i = 0, n = 1 + draw(state) % 3; i < n; i++) {
        size_t at = draw(state) % b->n;
        uint64_t value = evil[draw(state) % (sizeof evil / sizeof *evil)];
        size_t aligned = at / 8 * 8;
        if (draw(state) % 3 == 0)
            b->data[at] = (uint8_t)draw(state);
        else if (aligned + sizeof value <= b->n)
            memcpy(b->data + aligned, &value, sizeof value);
    }
    if (draw(state) % 4 == 0)
        b->n = draw(state) % b->n;
}

/* Returns a socket from which these bytes come, and then the end. *ret_other takes what is
   written. */
static int
say(const struct bytes *b, int *ret_other)
{
    int sockets[2];
    make_pair(sockets);
    ck_assert_int_eq(write(sockets[0], b->data, b->n), (ssize_t)b->n);
    shutdown(sockets[0], SHUT_WR);
    *ret_other = sockets[0];
    return sockets[1];
}

/* --- both sides ------------------------------------------------------------- */

/* Reads everything of the outputs, and checks that their sizes fit. */
static void
check_outputs(const struct qdqi_output *outputs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const volatile uint8_t *data = outputs[i].data;
        size_t elements = 1;
        if (outputs[i].dtype == QDQI_UNKNOWN)
            continue;
        ck_assert_uint_le(outputs[i].rank, 64);
        for (size_t k = 0; k < outputs[i].rank; k++)
            elements *= (size_t)outputs[i].shape[k];
        ck_assert_uint_eq(elements, outputs[i].n);
        for (size_t k = 0; k < elements * qdqi_dtype_size((int)outputs[i].dtype); k++)
            (void)data[k];
    }
}

/* Reads everything of the nodes. */
static void
check_nodes(const struct qdqi_trace *trace)
{
    for (size_t i = 0; i < trace->n_nodes; i++)
        ck_assert(strlen(trace->nodes[i].name) + strlen(trace->nodes[i].op) +
                      strlen(trace->nodes[i].provider) <
                  MOST);
}

/* The row of OpenVINO in another process. */
static struct qdqi_deploy
remote_openvino(struct qdqi_remote *remote)
{
    static struct qdqi_deploy_ops ops;
    ops = qdqi_remote_ops(qdq_runtime_find("openvino"), NULL);
    return (struct qdqi_deploy){&ops, remote};
}

/* Returns whether the nodes of some runs have the times of all of them, but for the first run of the
   model, and are all there. */
static bool
can_trace(const struct qdqi_deploy *remote, struct qdq_error *err)
{
    struct qdqi_arena *arena = qdqi_arena_new();
    struct qdqi_trace trace;
    bool can = qdqi_deploy_trace(remote, &model, &options, &input, 1, TRACED, arena,
                                 NULL, &trace, err) == QDQ_OK;
    if (can)
        check_nodes(&trace);
    can = can && trace.n_nodes == 2 && fabs(trace.nodes[0].ms - TRACED * 1.5) < 0.01 &&
          fabs(trace.nodes[0].least_ms - 1.5) < 0.01 && trace.nodes[1].ms >= 0;
    qdqi_arena_free(&arena);
    return can;
}

/* Whether the first one of the last nodes alone had the reason of an honest judge's answers. */
static bool has_reason;

/* Returns whether the nodes of the last run are those of the run. */
static bool
has_nodes(const struct qdqi_deployed_model *opened, struct qdq_error *err)
{
    struct qdqi_arena *arena = qdqi_arena_new();
    struct qdqi_trace trace;
    bool has = opened->ops->nodes(opened->model, arena, &trace, err) == QDQ_OK;
    if (has)
        check_nodes(&trace);
    has = has && trace.n_nodes == 2 && strcmp(trace.nodes[0].name, "node") == 0 &&
          trace.nodes[0].ms == 3;
    has_reason = has && trace.nodes[0].reason && !trace.nodes[1].reason &&
                 strcmp(trace.nodes[0].reason, "refused") == 0;
    qdqi_arena_free(&arena);
    return has;
}

/* Does all that an engine does with a judge. Returns the number of steps that went well, six
   with an honest one. */
static int
use_remote(int socket)
{
    const struct qdqi_output *outputs;
    struct qdqi_deployed_model opened = {0};
    struct qdqi_remote *remote = NULL;
    struct qdq_error err = {0};
    size_t n = 0;
    int good = 0;
    if (qdqi_remote_open(socket, "openvino", &remote, &err))
        return good;
    const struct qdqi_deploy deploy = remote_openvino(remote);
    good += strlen(deploy.ops->version(remote)) < MOST;
    if (qdqi_deploy_model(&deploy, &model, &options, &opened, &err) == QDQ_OK) {
        good += strlen(opened.ops->precision(opened.model)) < MOST;
        if (!qdqi_deployed_model_run(&opened, &input, 1, &outputs, &n, NULL, &err)) {
            check_outputs(outputs, n);
            good++;
            good += has_nodes(&opened, &err);
        }
        qdqi_deployed_model_close(&opened);
        good++;
    }
    good += can_trace(&deploy, &err);
    qdqi_remote_close(&remote);
    return good;
}

static void *
serve(void *arg)
{
    const int *socket = arg;
    qdq_judge_serve(judge, *socket, NULL);
    close(*socket);
    return NULL;
}

/* Runs all steps with the serving side, in a thread of its own. */
static void
use_judge(void)
{
    pthread_t thread;
    int sockets[2];
    make_pair(sockets);
    ck_assert_int_eq(pthread_create(&thread, NULL, serve, &sockets[1]), 0);
    ck_assert_int_eq(use_remote(sockets[0]), 6);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

UNIT_TEST(both_sides_understand_each_other)
{
    use_judge();
}

UNIT_TEST(an_error_is_one_line)
{
    static char bad[] = "refused";
    struct qdqi_mapped other = {.map = (uint8_t *)bad, .size = sizeof bad};
    const struct qdq_model refused = {.files = &other, .n_files = 1};
    struct qdqi_remote *remote = NULL;
    struct qdq_error err = {0};
    pthread_t thread;
    struct qdqi_deployed_model opened;
    int sockets[2];
    make_pair(sockets);
    ck_assert_int_eq(pthread_create(&thread, NULL, serve, &sockets[1]), 0);
    ck_assert_int_eq(qdqi_remote_open(sockets[0], "openvino", &remote, &err), QDQ_OK);
    const struct qdqi_deploy deploy = remote_openvino(remote);
    ck_assert_int_eq(qdqi_deploy_model(&deploy, &refused, &options, &opened, &err),
                     QDQ_RUN_FAILED);
    ck_assert_str_eq(err.text, "OpenVINO cannot read the model: the fake refuses it");
    qdqi_remote_close(&remote);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

/* --- a hostile worker -------------------------------------------------------- */

/* Counts the answers that succeeded, and reads the rest. */
static size_t
count_good(int socket)
{
    struct qdqi_wire answer;
    enum qdqi_wire_kind kind;
    void *attached;
    size_t n, good = 0;
    while (qdqi_wire_receive(socket, &kind, &answer, &attached, &n)) {
        good += kind == QDQI_WIRE_OK;
        qdqi_wire_free(&answer);
        free(attached);
    }
    return good;
}

static size_t
ask_judge(const struct bytes *b)
{
    int other, socket = say(b, &other);
    qdq_judge_serve(judge, socket, NULL);
    close(socket);
    size_t good = count_good(other);
    close(other);
    return good;
}

UNIT_TEST(a_judge_survives_any_worker)
{
    const struct bytes honest = questions();
    uint32_t state = 1;
    size_t fewest = SIZE_MAX;
    ck_assert_uint_eq(ask_judge(&honest), 6);
    for (int i = 0; i < TRIES; i++) {
        struct bytes b = honest;
        spoil(&b, &state);
        size_t good = ask_judge(&b);
        fewest = good < fewest ? good : fewest;
    }
    ck_assert_uint_eq(fewest, 0);
    use_judge();
}

/* A run without its input would read that of the run before, which is gone. */
UNIT_TEST(a_run_names_each_input_once)
{
    for (uint64_t n = 0; n < 3; n++) {
        struct bytes b = {.n = 0};
        struct qdqi_wire body = {0};
        put_numbers(&body, (const uint64_t[]){1, 0, 0, 0}, 4);
        add(&b, QDQI_WIRE_OPEN, &body, "a model");
        qdqi_wire_put(&body, 0);
        put_input(&body);
        add(&b, QDQI_WIRE_RUN, &body, NULL);
        put_numbers(&body, (const uint64_t[]){0, n}, 2);
        for (uint64_t i = 0; i < n; i++) {
            struct qdqi_wire again = {0};
            put_input(&again);
            qdqi_wire_get(&again);
            /* what follows the count */
            for (size_t at = again.at; at < again.size; at += 8) {
                uint64_t word;
                memcpy(&word, again.data + at, sizeof word);
                qdqi_wire_put(&body, word);
            }
            qdqi_wire_free(&again);
        }
        add(&b, QDQI_WIRE_RUN, &body, NULL);
        ck_assert_uint_eq(ask_judge(&b), n == 1 ? 3 : 2);
    }
}

/* --- a hostile judge --------------------------------------------------------- */

static int
hear_judge(const struct bytes *b)
{
    int other, socket = say(b, &other);
    int good = use_remote(socket);
    close(other);
    return good;
}

UNIT_TEST(an_engine_survives_any_judge)
{
    const struct bytes honest = answers();
    uint32_t state = 2;
    int fewest = 6;
    ck_assert_int_eq(hear_judge(&honest), 6);
    ck_assert(has_reason);
    for (int i = 0; i < TRIES; i++) {
        struct bytes b = honest;
        spoil(&b, &state);
        int good = hear_judge(&b);
        fewest = good < fewest ? good : fewest;
    }
    ck_assert_int_eq(fewest, 0);
}

/* A judge that closes its end, or has nothing to say. */
UNIT_TEST(a_judge_that_is_gone)
{
    struct qdqi_remote *remote = NULL;
    struct qdq_error err = {0};
    int sockets[2];
    make_pair(sockets);
    close(sockets[1]);
    ck_assert_int_eq(qdqi_remote_open(sockets[0], "openvino", &remote, &err),
                     QDQ_RUNTIME_MISSING);
    ck_assert_ptr_null(remote);
    ck_assert_str_eq(err.text, "the process that judges has ended or does not answer");
}

/* Each side says which runtime it means. */
UNIT_TEST(a_judge_of_another_runtime)
{
    struct qdqi_remote *remote = NULL;
    struct qdq_error err = {0};
    pthread_t thread;
    int sockets[2];
    make_pair(sockets);
    ck_assert_int_eq(pthread_create(&thread, NULL, serve, &sockets[1]), 0);
    ck_assert_int_eq(qdqi_remote_open(sockets[0], "other", &remote, &err),
                     QDQ_RUNTIME_MISSING);
    ck_assert_str_eq(err.text, "the process judges by openvino, and not by other");
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

UNIT_SUITE("wire", .setup = open_fake, .teardown = close_fake)
