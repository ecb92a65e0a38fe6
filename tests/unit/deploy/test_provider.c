/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The target chip, whose runtime is an execution provider of ONNX Runtime: the row of the provider
 * in this process, and functions that another process serves in its place, give the same figures.
 * This program is built with the chip in its lists of targets and runtimes (tests/unit/engine.mk);
 * without ONNX Runtime it says so and is skipped.
 */
#include "config.h"
#include "qdq/judge.h"

#include "data_files.h"
#include "ground/base/host.h"
#include "qdq/targets.h"
#include "targets/chip_runtime.h"
#include "unit.h"

#include "builder.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SAMPLES = 24, SIDE = 6, WIDTH = SIDE * SIDE };

/* --- a job ------------------------------------------------------------------ */

/* A model of two convolutions. */
static int
two_convs(void)
{
    struct builder b;
    builder_init(&b, 13);
    builder_input(&b, "x", QDQI_FLOAT32);
    builder_shape(&b, 4, (const int64_t[]){1, 1, SIDE, SIDE});
    builder_output(&b, "y", QDQI_FLOAT32);
    builder_weight(&b, "w", 4, (const int64_t[]){4, 1, 3, 3});
    builder_weight(&b, "v", 4, (const int64_t[]){2, 4, 3, 3});
    builder_node(&b, "Conv", "first", "x,w", "h");
    builder_node(&b, "Conv", "second", "h,v", "y");
    int fd = builder_file(&b);
    builder_fini(&b);
    return fd;
}

static int
samples(void)
{
    float data[SAMPLES * WIDTH];
    for (int i = 0; i < SAMPLES * WIDTH; i++)
        data[i] = (float)(i % 11) / 5 - 1;
    struct bytes b = npy_c("<f4", "(24, 1, 6, 6)", data, sizeof data);
    return file_of(&b);
}

static struct qdq_spec
chip_spec(void)
{
    struct qdq_spec spec;
    qdq_spec_init(&spec);
    spec.target = qdq_target_find("chip");
    spec.profile.runs = 3;
    ck_assert_ptr_nonnull(spec.target);
    return spec;
}

static struct qdq_engine *
open_engine(void)
{
    const struct qdq_engine_options options = {.threads = 1,
                                               .runtime = QDQ_ORT_LIBRARY};
    struct qdq_engine *engine = NULL;
    struct qdq_error err = {0};
    ck_assert_int_eq(qdq_engine_open(&options, &engine, &err), QDQ_OK);
    return engine;
}

static enum qdq_code
quantize(struct qdq_engine *engine, struct qdq_report **ret, struct qdq_error *err)
{
    const struct qdq_spec spec = chip_spec();
    const struct qdq_work work = {.model = two_convs(),
                                  .model_id = "sha256:00",
                                  .dataset = samples(),
                                  .output_data = -1,
                                  .observations = -1,
                                  .spec = &spec,
                                  .output = memfd_create("result", MFD_CLOEXEC)};
    enum qdq_code code = qdq_quantize(engine, &work, ret, err);
    close(work.model);
    close(work.dataset);
    close(work.output);
    return code;
}

static struct qdq_report *
quantize_well(struct qdq_engine *engine)
{
    struct qdq_report *report = NULL;
    struct qdq_error err = {0};
    enum qdq_code code = quantize(engine, &report, &err);
    ck_assert_msg(code == QDQ_OK, "%s: %s", qdq_code_slug(code), err.text);
    ck_assert_ptr_nonnull(report->profile);
    ck_assert_str_eq(report->profile->runtime, "chip");
    return report;
}

static struct qdq_report *
quantize_and_judge(struct qdq_engine *engine)
{
    struct qdq_report *report = quantize_well(engine);
    ck_assert_ptr_nonnull(report->deployed);
    ck_assert_uint_eq(report->deployed->n_outputs, 1);
    ck_assert_str_eq(report->deployed->runtime, "chip");
    ck_assert_ptr_nonnull(report->kernels);
    return report;
}

/* --- a runtime by functions ------------------------------------------------- */

/* ONNX Runtime as an unlinked runtime calls it, with what was asked of it. */
static struct called {
    struct qdqi_runtime *library;
    struct qdq_judge *judge;
    pthread_t thread;
    int socket, connections, dies_at, runs, models, ended;
} called;

struct model {
    struct qdq_model *model;
    struct qdqi_session *session;
    struct qdq_tensor output;
};

static const char *
version(void *arg)
{
    return qdqi_runtime_version(((const struct called *)arg)->library);
}

static enum qdq_code
open_model(void *arg, const void *bytes, size_t size,
           const struct qdq_run_options *options, void **ret, struct qdq_error *err)
{
    const struct qdqi_session_options plain = {.plain = options->threads == 0,
                                               .threads = options->threads};
    struct called *c = arg;
    struct model *m = calloc(1, sizeof *m);
    int fd = memfd_create("model", MFD_CLOEXEC);
    ck_assert(m && fd >= 0);
    ck_assert_int_eq(write(fd, bytes, size), (ssize_t)size);
    enum qdq_code code = qdq_model_open(fd, &m->model, err);
    if (!code)
        code = qdqi_session_open(c->library, m->model, m->model->proto, &plain,
                                 &m->session, err);
    ck_assert_int_eq(code, QDQ_OK);
    close(fd);
    c->models++;
    *ret = m;
    return QDQ_OK;
}

static const char *
precision(void *model)
{
    (void)model;
    return "f32";
}

static enum qdq_code
run(void *model, const struct qdq_tensor *inputs, size_t n,
    const struct qdq_tensor **ret, size_t *ret_n, double *ret_ms, struct qdq_error *err)
{
    struct model *m = model;
    const struct qdqi_input input = {.name = inputs[0].name,
                                     .dtype = (enum qdqi_dtype)inputs[0].dtype,
                                     .shape = inputs[0].shape,
                                     .rank = inputs[0].rank,
                                     .data = inputs[0].data,
                                     .size = inputs[0].size};
    const struct qdqi_output *outputs;
    size_t n_outputs;
    ck_assert_uint_eq(n, 1);
    if (++called.runs == called.dies_at)
        return qdq_error_set(err, QDQ_JUDGE_GONE, QDQ_AT_NOTHING, NULL, "it is gone");
    enum qdq_code code =
        qdqi_session_run(m->session, &input, 1, &outputs, &n_outputs, err);
    ck_assert_int_eq(code, QDQ_OK);
    m->output = (struct qdq_tensor){.dtype = (int)outputs[0].dtype,
                                    .rank = outputs[0].rank,
                                    .shape = outputs[0].shape,
                                    .data = outputs[0].data,
                                    .size = outputs[0].n * sizeof(float)};
    *ret = &m->output;
    *ret_n = 1;
    *ret_ms = 0.5;
    return QDQ_OK;
}

static enum qdq_code
nodes(void *model, const struct qdq_run_node **ret, size_t *ret_n,
      struct qdq_error *err)
{
    static const struct qdq_run_node all[] = {
        {"first", "Convolution", "i8", QDQ_NODE_INTEGER, 1, NULL, 0, NULL},
        {"second", "Convolution", "f32", QDQ_NODE_FLOAT_LAYER, 1, NULL, 0, NULL},
        {"", "Round", "", QDQ_NODE_CONVERSION, 1, NULL, 0, NULL},
        {"", "Reorder", "", QDQ_NODE_OTHER, 1, NULL, 0, NULL}};
    (void)model;
    (void)err;
    *ret = all;
    *ret_n = sizeof all / sizeof *all;
    return QDQ_OK;
}

static void
close_model(void *model)
{
    struct model *m = model;
    called.models--;
    qdqi_session_close(&m->session);
    qdq_model_free(&m->model);
    free(m);
}

static void
end(void *arg)
{
    ((struct called *)arg)->ended++;
}

static const struct qdq_runtime_calls calls = {.name = "chip",
                                               .version = version,
                                               .open = open_model,
                                               .precision = precision,
                                               .run = run,
                                               .nodes = nodes,
                                               .close = close_model,
                                               .end = end};

static void *
serve(void *arg)
{
    (void)arg;
    qdq_judge_serve(called.judge, called.socket, NULL);
    shutdown(called.socket, SHUT_RDWR);
    return NULL;
}

static void
end_serving(void)
{
    if (called.socket < 0)
        return;
    pthread_join(called.thread, NULL);
    close(called.socket);
    called.socket = -1;
}

static int
connect_judge(void *arg, bool again, char *text, size_t size)
{
    int sockets[2];
    (void)text;
    (void)size;
    ck_assert_ptr_eq(arg, &called);
    ck_assert_int_eq(again, called.connections > 0);
    end_serving();
    called.connections++;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    called.socket = sockets[1];
    ck_assert_int_eq(pthread_create(&called.thread, NULL, serve, NULL), 0);
    return sockets[0];
}

/* Opens an engine to which the chip is served by the functions. The run of that number loses
   the runtime; 0: none. */
static struct qdq_engine *
open_served(int dies_at)
{
    const struct qdq_served_runtime served = {
        .name = "chip", .title = "The chip", .connect = connect_judge, .arg = &called};
    struct qdq_engine *engine = open_engine();
    struct qdq_error err = {0};
    called = (struct called){.socket = -1, .dies_at = dies_at};
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    ck_assert_int_eq(qdqi_runtime_open(QDQ_ORT_LIBRARY, 1, &called.library, &err),
                     QDQ_OK);
    ck_assert_int_eq(qdq_judge_new(&calls, &called, &called.judge, &err), QDQ_OK);
    ck_assert_str_eq(qdq_judge_runtime(called.judge), "chip");
    ck_assert_int_eq(qdq_engine_serve(engine, &served, &err), QDQ_OK);
    return engine;
}

static void
close_served(struct qdq_engine *engine)
{
    qdq_engine_close(&engine);
    end_serving();
    ck_assert_int_eq(called.models, 0);
    qdq_judge_close(&called.judge);
    ck_assert_int_eq(called.ended, 1);
    qdqi_runtime_close(&called.library);
}

/* --- tests ------------------------------------------------------------------- */

UNIT_TEST(a_provider_judges)
{
    struct qdq_engine *engine = open_engine();
    struct qdq_report *report = quantize_and_judge(engine);
    /* The chip has no rule against sums that saturate, which a processor without VNNI has. */
    const bool saturates = qdqi_host_row(qdqi_host_here())->adds_in_16_bits;
    ck_assert_double_gt(report->deployed->outputs[0].sqnr_db, saturates ? -20 : 20);
    /* the last Conv has no pair behind it, and so no integer kernel */
    ck_assert_uint_eq(report->kernels->integer, 1);
    qdq_report_free(&report);
    /* ONNX Runtime starts anew with the threads, and so does its provider. */
    qdq_engine_set_threads(engine, 2);
    report = quantize_and_judge(engine);
    qdq_report_free(&report);
    qdq_engine_close(&engine);
}

/* The name of the row's provider is the one that ONNX Runtime is asked for. */
UNIT_TEST(a_provider_that_is_not_there)
{
    struct qdq_engine *engine = open_engine();
    struct qdq_report *report = NULL;
    struct qdq_error err = {0};
    chip_provider.name = "NoSuch";
    enum qdq_code code = quantize(engine, &report, &err);
    chip_provider.name = "CPU";
    ck_assert_int_eq(code, QDQ_CANNOT_LOAD);
    ck_assert_ptr_nonnull(strstr(err.text, "Chip cannot load the model"));
    ck_assert_ptr_nonnull(strstr(err.text, "NoSuch"));
    qdq_engine_close(&engine);
}

UNIT_TEST(functions_give_the_same_figures)
{
    struct qdq_engine *own = open_engine(), *engine = open_served(0);
    struct qdq_report *wanted = quantize_and_judge(own),
                      *report = quantize_and_judge(engine);
    const struct qdq_output_report *w = wanted->deployed->outputs;
    const struct qdq_output_report *r = report->deployed->outputs;
    ck_assert_double_eq(r->sqnr_db, w->sqnr_db);
    ck_assert_double_eq(r->cosine, w->cosine);
    ck_assert_str_eq(report->deployed->version, wanted->deployed->version);
    ck_assert_double_eq(report->profile->sides[QDQ_SIDE_QUANTIZED].p50_ms, 0.5);
    ck_assert_uint_eq(report->kernels->integer, 1);
    ck_assert_uint_eq(report->kernels->conversions, 1);
    ck_assert_uint_eq(report->kernels->n_floats, 1);
    ck_assert_str_eq(report->kernels->floats[0].name, "second");
    ck_assert_int_eq(called.connections, 1);
    qdq_report_free(&wanted);
    qdq_engine_close(&own);
    close_served(engine);
    /* The report has its own texts. */
    ck_assert_str_eq(report->deployed->runtime, "chip");
    qdq_report_free(&report);
}

/* A runtime that is lost costs the figures of that moment, and is asked for once more. */
UNIT_TEST(functions_that_lose_their_runtime)
{
    struct qdq_engine *engine = open_served(2);
    struct qdq_report *report = quantize_well(engine);
    ck_assert_int_eq(called.connections, 2);
    ck_assert_ptr_null(report->deployed);
    ck_assert_str_eq(report->warnings[0].code, "deployed_not_measured");
    ck_assert_ptr_nonnull(strstr(report->warnings[0].detail, "has ended"));
    qdq_report_free(&report);
    close_served(engine);
}

int
main(void)
{
    struct qdqi_runtime *runtime = NULL;
    struct qdq_error err = {0};
    if (qdqi_runtime_open(QDQ_ORT_LIBRARY, 1, &runtime, &err)) {
        printf("1..0 # SKIP %s\n", err.text);
        return 0;
    }
    qdqi_runtime_close(&runtime);
    return unit_main(
        (struct unit_suite){.title = "provider", .timeout = 120, .fork = CK_NOFORK});
}
