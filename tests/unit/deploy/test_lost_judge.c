/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantizes with a judge in another thread, whose connection breaks at chosen moments, as if its
 * process ended. OpenVINO is a library without OpenVINO (fake_openvino.c), so that only ONNX
 * Runtime is needed; without it the program says so and is skipped.
 */
#include "config.h"
#include "qdq/judge.h"

#include "deploy/fake_job.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

enum { FOREVER = 1000000, MOST_JUDGES = 4 };

/* --- a judge whose connection breaks ---------------------------------------- */

static struct {
    struct qdq_judge *judge;
    pthread_t thread;
    int socket;             /* its end; -1: none was asked for */
    int lives[MOST_JUDGES]; /* models and runs that each connection bears */
    int work;               /* that the present one has borne */
    int n;                  /* connections that were asked for */
    size_t opened;          /* models that were opened on all of them */
} it;

/* Called on the thread that serves. */
static void
on_work(const char *precision)
{
    it.opened += precision == NULL;
    if (it.work++ == it.lives[it.n - 1])
        shutdown(it.socket, SHUT_RDWR);
}

static void *
serve(void *arg)
{
    (void)arg;
    qdq_judge_serve(it.judge, it.socket, NULL);
    return NULL;
}

static void
end_serving(void)
{
    if (it.socket < 0)
        return;
    pthread_join(it.thread, NULL);
    close(it.socket);
    it.socket = -1;
}

static int
connect_judge(void *arg, bool again, char *text, size_t size)
{
    int sockets[2];
    (void)arg;
    ck_assert_int_eq(again, it.n > 0);
    (void)text;
    (void)size;
    end_serving();
    ck_assert_int_lt(it.n, MOST_JUDGES);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    it.socket = sockets[1];
    it.work = 0;
    it.n++;
    ck_assert_int_eq(pthread_create(&it.thread, NULL, serve, NULL), 0);
    return sockets[0];
}

/* Makes the judge, whose connections bear so much work each. Returns the fake library. */
static void *
open_fake(const int lives[MOST_JUDGES])
{
    struct qdq_error err = {0};
    void *library = dlopen(FAKE, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(library != NULL, "%s", dlerror());
    it.socket = -1;
    it.n = 0;
    it.opened = 0;
    memcpy(it.lives, lives, sizeof it.lives);
    ck_assert_msg(qdq_judge_open(FAKE, &it.judge, &err) == QDQ_OK, "%s", err.text);
    *(void (**)(const char *))dlsym(library, "fake_openvino_on_work") = on_work;
    return library;
}

/* --- a job -------------------------------------------------------------------- */

/* Quantizes with a judge whose connections bear so much work each. */
static struct qdq_report *
quantize(const struct qdq_spec *spec, const int lives[MOST_JUDGES])
{
    const struct qdq_engine_options options = {.threads = 1,
                                               .runtime = QDQ_ORT_LIBRARY};
    struct qdq_engine *engine = NULL;
    struct qdq_report *report = NULL;
    struct qdq_error err = {0};
    const struct qdq_work work = {.model = two_products(),
                                  .model_id = "sha256:00",
                                  .dataset = samples(),
                                  .output_data = -1,
                                  .observations = -1,
                                  .spec = spec,
                                  .output = memfd_create("result", MFD_CLOEXEC)};
    void *fake = open_fake(lives);
    ck_assert_int_eq(qdq_engine_open(&options, &engine, &err), QDQ_OK);
    qdq_engine_set_judge(engine, connect_judge, NULL);
    enum qdq_code code = qdq_quantize(engine, &work, &report, &err);
    ck_assert_msg(code == QDQ_OK, "%s: %s", qdq_code_slug(code), err.text);
    qdq_engine_close(&engine);
    end_serving();
    qdq_judge_close(&it.judge);
    dlclose(fake);
    close(work.model);
    close(work.dataset);
    close(work.output);
    return report;
}

static const int unbroken[MOST_JUDGES] = {FOREVER};

/* --- tests -------------------------------------------------------------------- */

UNIT_TEST(a_judge_that_lives)
{
    const struct qdq_spec spec = openvino_spec();
    struct qdq_report *report = quantize(&spec, unbroken);
    ck_assert_ptr_nonnull(report->deployed);
    ck_assert_ptr_nonnull(report->recipe);
    ck_assert_uint_gt(report->recipe->n_steps, 1);
    ck_assert_ptr_null(find_warning(report, "deployed_not_measured"));
    ck_assert_ptr_null(find_warning(report, "judged_literally"));
    ck_assert_int_eq(it.n, 1);
    qdq_report_free(&report);
}

/* The result is the candidate that a recipe judged last, which costs no more models than a job
   without a recipe opens. */
UNIT_TEST(a_candidate_is_not_opened_again)
{
    struct qdq_spec spec = openvino_spec();
    spec.recipe_sqnr_db = -1000; /* the first candidate is good enough */
    spec.recipe = QDQ_RECIPE_NONE;
    struct qdq_report *report = quantize(&spec, unbroken);
    const size_t without = it.opened;
    ck_assert_ptr_null(report->recipe);
    qdq_report_free(&report);

    spec.recipe = QDQ_RECIPE_AUTO;
    report = quantize(&spec, unbroken);
    ck_assert_uint_eq(report->recipe->n_steps, 1);
    ck_assert_uint_eq(it.opened, without);
    ck_assert_ptr_nonnull(report->deployed);
    ck_assert_ptr_nonnull(report->kernels);
    ck_assert_uint_eq(report->kernels->integer, 1);
    qdq_report_free(&report);
}

/* Whenever the first judge ends before the result is run, another one takes its place, and the
   recipe is the same. */
UNIT_LOOP(one_loss_costs_nothing, 4)
{
    const struct qdq_spec spec = openvino_spec();
    const int lives[MOST_JUDGES] = {_i, FOREVER};
    struct qdq_report *whole = quantize(&spec, unbroken);
    struct qdq_report *report = quantize(&spec, lives);
    ck_assert_int_eq(it.n, 2);
    ck_assert_ptr_nonnull(report->deployed);
    ck_assert_ptr_null(find_warning(report, "judged_literally"));
    ck_assert_uint_eq(report->recipe->n_steps, whole->recipe->n_steps);
    for (size_t i = 0; i < whole->recipe->n_steps; i++)
        ck_assert_double_eq(report->recipe->steps[i].sqnr_db,
                            whole->recipe->steps[i].sqnr_db);
    qdq_report_free(&whole);
    qdq_report_free(&report);
}

/* A second loss costs the figures as deployed, and no job. */
UNIT_LOOP(two_losses_cost_the_figures, 4)
{
    const struct qdq_spec spec = openvino_spec();
    const int lives[MOST_JUDGES] = {_i, 0};
    struct qdq_report *report = quantize(&spec, lives);
    ck_assert_int_eq(it.n, 2);
    ck_assert_ptr_null(report->deployed);
    ck_assert_uint_gt(report->n_outputs, 0);
    const struct qdq_warning *why = find_warning(report, "deployed_not_measured");
    ck_assert_ptr_nonnull(why);
    ck_assert_ptr_nonnull(strstr(why->detail, "the process that judges"));
    qdq_report_free(&report);
}

/* The recipe goes on by the literal arithmetic, and says so. */
UNIT_TEST(a_recipe_goes_on)
{
    struct qdq_spec spec = openvino_spec();
    const int lives[MOST_JUDGES] = {2, 0};
    spec.evaluate = QDQ_NO;
    struct qdq_report *report = quantize(&spec, lives);
    ck_assert_ptr_nonnull(report->recipe);
    ck_assert_double_gt(report->recipe->steps[0].sqnr_db, 20);
    const struct qdq_warning *why = find_warning(report, "judged_literally");
    ck_assert_ptr_nonnull(why);
    ck_assert_ptr_nonnull(strstr(why->detail, "the process that judges"));
    qdq_report_free(&report);
}

int
main(void)
{
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    return run_with_onnx_runtime("lost_judge");
}
