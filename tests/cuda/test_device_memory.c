/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job whose operators use the CUDA module gives the same ranges, what-ifs and bytes
 * as one on the CPU. The module is the emulator's, so ONNX Runtime itself still runs on
 * the CPU; running models on a real device is not tested here.
 */
#include "config.h"

#include "numbers/range/method.h"
#include "runtimes/engine.h"
#include "emulated.h"
#include "run/operators/device_memory.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOST "EMULATED_CUDA_LOST"
#define MOST "EMULATED_CUDA_MOST"
#define FAKED "EMULATED_CUDA_FAKED"
#define BYTES "EMULATED_CUDA_BYTES"
#define SUMMED "EMULATED_CUDA_SUMMED"

/* --- jobs ----------------------------------------------------------------- */

struct job {
    struct qdq_spec spec;
    const char *model;
    bool keeps;       /* observations are kept */
    bool reads_ahead; /* another thread reads samples during the runs */
    int damaged;      /* index of the sample that is not finite; 0: all are finite */
    struct neighbour *neighbour; /* another job that wants the GPU; NULL: none */
};

struct end {
    enum qdq_code code;
    struct qdq_error err;
    struct qdq_report *report;
    int output, observations;
};

static struct job
job_of(const char *method, const char *model)
{
    struct job job = {.model = model};
    qdq_spec_init(&job.spec);
    job.spec.calibration.method = method;
    job.spec.calibration.max_samples = 6;
    job.spec.calibration.batch = 4;
    job.spec.evaluate = QDQ_NO;
    return job;
}

/* The pieces of one call of the executor, and the next one. */
struct pieces {
    qdq_piece_fn piece;
    void *arg;
    size_t n;
    _Atomic size_t next;
};

static void *
do_pieces(void *arg)
{
    struct pieces *p = arg;
    for (size_t i; (i = p->next++) < p->n;)
        p->piece(p->arg, i);
    return NULL;
}

/* Does pieces on the calling thread and on another one. */
static void
run_pieces(void *arg, int threads, size_t n, qdq_piece_fn piece, void *piece_arg)
{
    struct pieces pieces = {.piece = piece, .arg = piece_arg, .n = n};
    pthread_t other;
    (void)arg;
    (void)threads;
    ck_assert_int_eq(pthread_create(&other, NULL, do_pieces, &pieces), 0);
    do_pieces(&pieces);
    ck_assert_int_eq(pthread_join(other, NULL), 0);
}

static const struct qdq_executor executor = {run_pieces, NULL};

static int
open_data(const char *name)
{
    char path[512];
    const char *source = getenv("srcdir");
    snprintf(path, sizeof path, "%s/tests/data/%s", source ? source : ".", name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_msg(fd >= 0, "%s is not here", path);
    return fd;
}

/* Makes a dataset for the model's input, of which one sample holds a NaN. */
static int
make_damaged(int sample)
{
    enum { SAMPLES = 6, SIZE = 32 * 32, HEAD = 128 };
    char head[HEAD + 1];
    int fd = memfd_create("damaged", MFD_CLOEXEC);
    uint32_t state = 1;
    snprintf(head, sizeof head, "%-127s\n",
             "\x93NUMPY\x01"
             "0v"
             "0"
             "{'descr': '<f4', 'fortran_order': False, "
             "'shape': (6, 1, 32, 32), }");
    memcpy(head + 7, "\0\x76\0", 3);
    ck_assert_int_eq(write(fd, head, HEAD), HEAD);
    for (int i = 0; i < SAMPLES * SIZE; i++) {
        state = state * 1664525 + 1013904223;
        float x = i == sample * SIZE + 7 ? NAN : (float)(state >> 8) * 0x1p-24f;
        ck_assert_int_eq(write(fd, &x, sizeof x), sizeof x);
    }
    return fd;
}

/* Another job, which gets the device each time that it wants it. */
struct neighbour {
    int every, asked, had;
    bool cancels;
};

static bool
want(void *arg)
{
    struct neighbour *n = arg;
    return ++n->asked % n->every == 0;
}

/* Checks that the job has freed all of its device memory. */
static bool
regain(void *arg)
{
    struct neighbour *n = arg;
    ck_assert_uint_eq(in_use(), 0);
    n->had++;
    return !n->cancels;
}

static struct end
run(const struct job *job, bool there)
{
    struct qdq_spec spec = job->spec;
    const struct qdq_engine_options options = {.runtime = QDQ_ORT_LIBRARY,
                                               .threads = job->reads_ahead ? 2 : 1,
                                               .executor =
                                                   job->reads_ahead ? &executor : NULL,
                                               .cuda_module = there ? module : NULL};
    struct qdq_engine *engine = NULL;
    struct end end = {.output = memfd_create("result", MFD_CLOEXEC),
                      .observations = memfd_create("observed", MFD_CLOEXEC)};
    spec.device = there ? QDQ_DEVICE_CUDA : QDQ_DEVICE_CPU;
    const struct qdq_work work = {.model = open_data(job->model),
                                  .model_id = "sha256:00",
                                  .dataset = job->damaged ? make_damaged(job->damaged)
                                                          : open_data("calib_32.npz"),
                                  .dataset_id = "sha256:01",
                                  .spec = &spec,
                                  .output = end.output,
                                  .output_data = -1,
                                  .observations = job->keeps ? end.observations : -1,
                                  .wanted = job->neighbour ? want : NULL,
                                  .regain = regain,
                                  .gpu_arg = job->neighbour};
    ck_assert_int_eq(qdq_engine_open(&options, &engine, &end.err), QDQ_OK);
    end.code = qdq_quantize(engine, &work, &end.report, &end.err);
    qdq_engine_close(&engine);
    close(work.model);
    close(work.dataset);
    return end;
}

static struct end
run_well(const struct job *job, bool there)
{
    struct end end = run(job, there);
    ck_assert_msg(end.code == QDQ_OK, "%s", end.err.text);
    return end;
}

static void
finish(struct end *end)
{
    qdq_report_free(&end->report);
    close(end->output);
    close(end->observations);
}

static size_t
size_of_file(int fd)
{
    struct stat st;
    ck_assert_int_eq(fstat(fd, &st), 0);
    return (size_t)st.st_size;
}

static void *
map(int fd)
{
    void *bytes = mmap(NULL, size_of_file(fd), PROT_READ, MAP_PRIVATE, fd, 0);
    ck_assert_ptr_ne(bytes, MAP_FAILED);
    return bytes;
}

static void
assert_same_file(int a, int b)
{
    ck_assert_uint_eq(size_of_file(a), size_of_file(b));
    ck_assert_int_eq(memcmp(map(a), map(b), size_of_file(a)), 0);
}

static void
assert_same_ranges(const struct qdq_report *a, const struct qdq_report *b)
{
    ck_assert_uint_gt(a->n_tensors, 0);
    ck_assert_uint_eq(a->n_tensors, b->n_tensors);
    for (size_t i = 0; i < a->n_tensors; i++) {
        ck_assert_double_eq(a->tensors[i].min, b->tensors[i].min);
        ck_assert_double_eq(a->tensors[i].max, b->tensors[i].max);
    }
}

static size_t
count_warnings(const struct qdq_report *report, const char *code)
{
    size_t n = 0;
    for (size_t i = 0; i < report->n_warnings; i++)
        n += strcmp(report->warnings[i].code, code) == 0;
    return n;
}

/* --- the same ------------------------------------------------------------- */

START_TEST(a_calibration_gives_the_same_ranges)
{
    struct qdq_range_method method;
    ck_assert(qdq_range_method((size_t)_i, &method));
    struct job job = job_of(method.name, "glyph_mobilenet.onnx");
    struct end here = run_well(&job, false), there = run_well(&job, true);
    ck_assert_str_eq(here.report->device, "cpu");
    ck_assert_str_eq(there.report->device, "cuda:0 emulated on the host");
    assert_same_ranges(here.report, there.report);
    assert_same_file(here.output, there.output);
    finish(&here);
    finish(&there);
}
END_TEST

/* Batches of one sample are read and uploaded by another thread, and one of them is left
   out. */
START_TEST(samples_that_are_read_ahead_give_the_same_ranges)
{
    static const char *const methods[] = {"minmax", "entropy", "output_mse"};
    struct job job = job_of(methods[_i % 3], "glyph_mobilenet.onnx");
    job.spec.calibration.batch = 1;
    job.spec.calibration.on_nonfinite = QDQ_NONFINITE_SKIP;
    job.damaged = _i < 3 ? 0 : 3;
    struct end alone = run_well(&job, true);
    job.reads_ahead = true;
    struct end ahead = run_well(&job, true);
    ck_assert_int_eq(ahead.report->calibration_samples, _i < 3 ? 6 : 5);
    assert_same_ranges(alone.report, ahead.report);
    assert_same_file(alone.output, ahead.output);
    finish(&alone);
    finish(&ahead);
}
END_TEST

/* The identity in the file's head differs between the two; all accumulators behind
   it are equal. */
START_TEST(observations_are_the_same)
{
    struct job job = job_of("entropy", "glyph_mobilenet.onnx");
    job.keeps = true;
    struct end here = run_well(&job, false), there = run_well(&job, true);
    size_t n = size_of_file(here.observations), m = size_of_file(there.observations);
    const char *a = map(here.observations), *b = map(there.observations);
    const char *end_a = memmem(a, n, "ran on cpu\n", 11);
    const char *end_b = memmem(b, m, "ran on cuda\n", 12);
    ck_assert(end_a && end_b);
    n -= (size_t)(end_a + 11 - a);
    m -= (size_t)(end_b + 12 - b);
    ck_assert_uint_gt(n, sizeof(struct qdqi_histogram) / 16);
    size_t shorter = n < m ? n : m;
    ck_assert_int_eq(
        memcmp(end_a + 11 + (n - shorter), end_b + 12 + (m - shorter), shorter), 0);
    finish(&here);
    finish(&there);
}
END_TEST

/* The job fails and names the sample, or it leaves the sample out of what the device
   has accumulated. */
START_TEST(samples_that_are_not_finite_are_found)
{
    struct job job = job_of("entropy", "glyph_mobilenet.onnx");
    char says[40];
    job.damaged = _i ? 5 : 2; /* in the first batch, or in the second and last */
    snprintf(says, sizeof says, "an infinity in sample %d", job.damaged);
    struct end end = run(&job, true);
    ck_assert_int_eq(end.code, QDQ_NONFINITE);
    ck_assert_msg(strstr(end.err.text, says), "%s", end.err.text);
    finish(&end);
    job.spec.calibration.on_nonfinite = QDQ_NONFINITE_SKIP;
    struct end here = run_well(&job, false), there = run_well(&job, true);
    ck_assert_int_eq(there.report->calibration_samples, 5);
    assert_same_ranges(here.report, there.report);
    finish(&here);
    finish(&there);
}
END_TEST

/* Returns a job with all kinds of what-ifs, on few samples. */
static struct job
what_ifs(const char *model)
{
    struct job job = job_of("output_mse", model);
    job.spec.sensitivity_samples = 4;
    job.spec.calibration.max_samples = 4;
    job.spec.search.min_sqnr_db = 60;
    job.spec.search.samples = 4;
    job.spec.search.max_float_layers = 2;
    return job;
}

/* Tolerance in dB. On the host the what-ifs' model runs in parts, which rounds
   differently: an element may fall on the other side of a quantization step. */
#define PARTS 0.02

static void
assert_same_db(double a, double b, double near)
{
    ck_assert_msg(a == b || fabs(a - b) <= near, "%.17g dB, not %.17g", a, b);
}

static void
assert_same_sensitivity(const struct qdq_report *a, const struct qdq_report *b,
                        double near)
{
    ck_assert_uint_gt(a->n_sensitivity, 0);
    ck_assert_uint_eq(a->n_sensitivity, b->n_sensitivity);
    for (size_t i = 0; i < a->n_sensitivity; i++) {
        ck_assert_str_eq(a->sensitivity[i].name, b->sensitivity[i].name);
        assert_same_db(a->sensitivity[i].sqnr_db_alone, b->sensitivity[i].sqnr_db_alone,
                       near);
        assert_same_db(a->sensitivity[i].gain_db, b->sensitivity[i].gain_db, near);
    }
}

static void
assert_same_search(const struct qdq_search_report *a, const struct qdq_search_report *b,
                   double near)
{
    ck_assert(a && b);
    ck_assert_uint_gt(a->n_steps, 1);
    ck_assert_uint_eq(a->n_steps, b->n_steps);
    for (size_t i = 0; i < a->n_steps; i++)
        assert_same_db(a->steps[i].sqnr_db, b->steps[i].sqnr_db, near);
}

static void
assert_same_what_ifs(const struct end *a, const struct end *b, double near)
{
    assert_same_ranges(a->report, b->report);
    assert_same_sensitivity(a->report, b->report, near);
    assert_same_search(a->report->search, b->report->search, near);
    assert_same_db(a->report->refinement->sqnr_db_after,
                   b->report->refinement->sqnr_db_after, near);
    assert_same_file(a->output, b->output);
}

START_TEST(what_ifs_give_the_same_report)
{
    struct job job = what_ifs("glyph_resnet.onnx");
    struct end here = run_well(&job, false), there = run_well(&job, true);
    assert_same_what_ifs(&here, &there, PARTS);
    ck_assert_int_eq(here.report->what_ifs, there.report->what_ifs);
    finish(&here);
    finish(&there);
}
END_TEST

/* --- evaluation ----------------------------------------------------------- */

static struct job
evaluation(enum qdq_float kind)
{
    struct job job = job_of("minmax", "glyph_mobilenet.onnx");
    job.spec.evaluate = QDQ_YES;
    job.spec.evaluate_samples = 6;
    job.spec.float_type = kind;
    return job;
}

/* The sums may differ in the last bits, because they are added in another order. */
static void
assert_same_evaluation(const struct qdq_report *a, const struct qdq_report *b)
{
    ck_assert_uint_eq(a->n_outputs, b->n_outputs);
    for (size_t i = 0; i < a->n_outputs; i++)
        ck_assert_double_eq(a->outputs[i].sqnr_db, b->outputs[i].sqnr_db);
    ck_assert_uint_gt(a->n_layer_errors, 3);
    ck_assert_uint_eq(a->n_layer_errors, b->n_layer_errors);
    for (size_t i = 0; i < a->n_layer_errors; i++) {
        ck_assert_str_eq(a->layer_errors[i].name, b->layer_errors[i].name);
        assert_same_db(a->layer_errors[i].sqnr_db, b->layer_errors[i].sqnr_db, 1e-9);
    }
}

/* Also tests a model whose float twin is float16. */
START_TEST(an_evaluation_gives_the_same_figures)
{
    struct job job = evaluation(_i ? QDQ_FLOAT_FLOAT16 : QDQ_FLOAT_KEEP);
    struct end here = run_well(&job, false), there = run_well(&job, true);
    assert_same_evaluation(here.report, there.report);
    finish(&here);
    finish(&there);
}
END_TEST

START_TEST(an_evaluation_that_is_too_large_is_halved)
{
    struct job job = evaluation(QDQ_FLOAT_KEEP);
    struct end here = run_well(&job, false);
    setenv(SUMMED, "70000", 1);
    struct end there = run(&job, true);
    unsetenv(SUMMED);
    ck_assert_msg(there.code == QDQ_OK, "%s", there.err.text);
    ck_assert_uint_eq(count_warnings(there.report, "batch_halved"), 1);
    ck_assert_int_eq(there.report->evaluated_samples, 6);
    ck_assert_uint_eq(here.report->n_layer_errors, there.report->n_layer_errors);
    for (size_t i = 0; i < here.report->n_layer_errors; i++)
        assert_same_db(here.report->layer_errors[i].sqnr_db,
                       there.report->layer_errors[i].sqnr_db, 1e-9);
    finish(&here);
    finish(&there);
}
END_TEST

/* --- turns with another job ----------------------------------------------- */

START_TEST(a_job_continues_when_a_lent_device_is_back)
{
    struct neighbour neighbour = {.every = 7};
    struct job job = what_ifs("glyph_resnet.onnx");
    struct end alone = run_well(&job, true);
    job.neighbour = &neighbour;
    struct end beside = run_well(&job, true);
    ck_assert_int_gt(neighbour.had, 10);
    ck_assert_int_eq(neighbour.had, neighbour.asked / neighbour.every);
    assert_same_what_ifs(&alone, &beside, 0);
    ck_assert_int_eq(alone.report->what_ifs, beside.report->what_ifs);
    finish(&alone);
    finish(&beside);
}
END_TEST

START_TEST(a_job_ends_when_a_lent_device_stays_away)
{
    struct neighbour neighbour = {.every = 7, .cancels = true};
    struct job job = what_ifs("glyph_resnet.onnx");
    job.neighbour = &neighbour;
    struct end end = run(&job, true);
    ck_assert_int_eq(end.code, QDQ_CANCELLED);
    ck_assert_int_eq(neighbour.had, 1);
    finish(&end);
}
END_TEST

START_TEST(a_job_on_the_cpu_is_not_asked_for_a_device)
{
    struct neighbour neighbour = {.every = 1};
    struct job job = what_ifs("glyph_resnet.onnx");
    job.neighbour = &neighbour;
    struct end end = run_well(&job, false);
    ck_assert_int_eq(neighbour.asked, 0);
    finish(&end);
}
END_TEST

/* --- failures ------------------------------------------------------------- */

START_TEST(a_lost_device_is_its_own_error)
{
    struct job job = job_of("entropy", "glyph_mobilenet.onnx");
    setenv(LOST, "5", 1);
    struct end end = run(&job, true);
    unsetenv(LOST);
    ck_assert_int_eq(end.code, QDQ_DEVICE_LOST);
    ck_assert_str_eq(end.err.text, "emulated on the host: fell off the bus");
    finish(&end);
}
END_TEST

/* The limits leave room for the largest tensor of 2 samples, or of 1. */
START_TEST(a_batch_that_is_too_large_is_halved)
{
    struct job job = job_of("entropy", "glyph_mobilenet.onnx");
    struct end here = run_well(&job, false);
    char most[24];
    snprintf(most, sizeof most, "%ld", _i ? 40000L : 70000L);
    setenv(MOST, most, 1);
    struct end there = run(&job, true);
    unsetenv(MOST);
    ck_assert_msg(there.code == QDQ_OK, "%s", there.err.text);
    ck_assert_uint_eq(count_warnings(there.report, "batch_halved"), _i + 1);
    assert_same_ranges(here.report, there.report);
    ck_assert_uint_eq(here.report->calibration_samples,
                      there.report->calibration_samples);
    finish(&here);
    finish(&there);
}
END_TEST

/* The failure comes with the first run, while the inputs of the second one are sent. */
START_TEST(inputs_that_are_too_large_are_halved)
{
    struct job job = job_of("minmax", "glyph_mobilenet.onnx");
    struct end here = run_well(&job, false);
    setenv(BYTES, "20000", 1);
    struct end there = run(&job, true);
    unsetenv(BYTES);
    ck_assert_msg(there.code == QDQ_OK, "%s", there.err.text);
    ck_assert_uint_eq(count_warnings(there.report, "batch_halved"), 1);
    assert_same_ranges(here.report, there.report);
    finish(&here);
    finish(&there);
}
END_TEST

/*
 * The first runs of the what-ifs quantize nothing, and fit. The results after the batch
 * was halved equal those of a smaller batch from the start, to the last bit: no result
 * of the larger batch is kept.
 */
START_TEST(what_ifs_of_a_batch_that_is_too_large_are_done_again)
{
    struct job job = what_ifs("glyph_se.onnx");
    setenv(FAKED, "70000", 1);
    struct end there = run(&job, true);
    unsetenv(FAKED);
    ck_assert_msg(there.code == QDQ_OK, "%s", there.err.text);
    ck_assert_uint_eq(count_warnings(there.report, "batch_halved"), 1);
    job.spec.calibration.batch = 2;
    struct end smaller = run_well(&job, true);
    assert_same_what_ifs(&smaller, &there, 0);
    ck_assert_int_gt(there.report->what_ifs, smaller.report->what_ifs);
    finish(&smaller);
    finish(&there);
}
END_TEST

START_TEST(what_ifs_of_one_sample_that_is_too_large_are_an_error)
{
    struct job job = what_ifs("glyph_resnet.onnx");
    setenv(FAKED, "100", 1);
    struct end end = run(&job, true);
    unsetenv(FAKED);
    ck_assert_int_eq(end.code, QDQ_DEVICE_MEMORY);
    finish(&end);
}
END_TEST

START_TEST(one_sample_that_is_too_large_is_an_error)
{
    struct job job = job_of("entropy", "glyph_mobilenet.onnx");
    setenv(MOST, "100", 1);
    struct end end = run(&job, true);
    unsetenv(MOST);
    ck_assert_int_eq(end.code, QDQ_DEVICE_MEMORY);
    finish(&end);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("device");
    TCase *t = tcase_create("device");
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, a_calibration_gives_the_same_ranges, 0, QDQI_N_METHODS);
    tcase_add_loop_test(t, samples_that_are_read_ahead_give_the_same_ranges, 0, 6);
    tcase_add_test(t, observations_are_the_same);
    tcase_add_loop_test(t, samples_that_are_not_finite_are_found, 0, 2);
    tcase_add_test(t, what_ifs_give_the_same_report);
    tcase_add_test(t, a_job_continues_when_a_lent_device_is_back);
    tcase_add_test(t, a_job_ends_when_a_lent_device_stays_away);
    tcase_add_test(t, a_job_on_the_cpu_is_not_asked_for_a_device);
    tcase_add_test(t, what_ifs_of_a_batch_that_is_too_large_are_done_again);
    tcase_add_test(t, what_ifs_of_one_sample_that_is_too_large_are_an_error);
    tcase_add_test(t, a_lost_device_is_its_own_error);
    tcase_add_loop_test(t, a_batch_that_is_too_large_is_halved, 0, 2);
    tcase_add_test(t, one_sample_that_is_too_large_is_an_error);
    tcase_add_test(t, inputs_that_are_too_large_are_halved);
    tcase_add_loop_test(t, an_evaluation_gives_the_same_figures, 0, 2);
    tcase_add_test(t, an_evaluation_that_is_too_large_is_halved);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return run_emulated(suite);
}
