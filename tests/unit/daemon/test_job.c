/* SPDX-License-Identifier: Apache-2.0 */
/* The life of jobs; the test plays the lanes and their workers. */
#include "config.h"
#include "jobs/job.h"
#include "workers/process.h"
#include "settings/settings.h"
#include "store/derive.h"
#include "api/spec.h"
#include "daemon.h"

#include <poll.h>

static struct library *library;
static struct jobs *jobs;
static struct bell bell;
static struct settings settings;
static struct process process;
static struct job_slot slot;
static struct api_problem problem;
static char id[JOB_ID_SIZE];
static const char *devices = "";

static void
open_jobs(void)
{
    ck_assert_msg(library_open(scratch_path("state"), &library, &problem), "%s",
                  problem.detail);
    ck_assert(jobs_open(library, &settings, &bell, &jobs, &problem));
    slot = (struct job_slot){.process = &process};
}

static void
set_up(void)
{
    const struct setting_flag flag = {"queue.max", "2"};
    char error[SETTINGS_ERROR];
    scratch_make();
    problem = (struct api_problem){0};
    ck_assert_msg(settings_load(NULL, &flag, 1, NULL, &settings, error), "%s", error);
    process_init(&process, &settings, NULL);
    bell_init(&bell, devices);
    open_jobs();
}

static void
tear_down(void)
{
    jobs_close(&jobs);
    library_close(&library);
    bell_fini(&bell);
    process_fini(&process);
    settings_fini(&settings);
    scratch_remove();
}

static bool
submit_asked(const struct store_asking *asking)
{
    char model[] = "sha256:m";
    const struct store_job request = {.model = model};
    const struct store_file file = {.id = "sha256:m"};
    bool is_new;
    ck_assert(
        store_file_add(library_store(library), STORE_MODEL, &file, &is_new, &problem));
    return jobs_submit(jobs, &request, asking, id, &problem);
}

static bool
submit(void)
{
    return submit_asked(&(struct store_asking){0});
}

static enum api_job_state
state(void)
{
    struct job_view view;
    ck_assert(jobs_get(jobs, id, &view, &problem));
    job_view_fini(&view);
    return view.row.state;
}

static struct store_job
claim(void)
{
    struct store_job job;
    bool any;
    ck_assert(jobs_claim(jobs, &slot, &job, &any, &problem) && any);
    ck_assert_str_eq(slot.id, job.id);
    return job;
}

static void
told(enum qdq_stage stage, uint64_t done, uint64_t total)
{
    jobs_progress(jobs, &slot, &(struct qdq_progress){stage, done, total, 0});
}

static struct spool *
spool_of(const char *text)
{
    struct spool *spool;
    ck_assert(spool_open(library_blobs(library), &spool, &problem));
    ck_assert(spool_write(spool, text, strlen(text), &problem));
    ck_assert(spool_finish(spool, &problem));
    return spool;
}

/* Ends the slot's job with a result; with a problem, as a job whose model was
   rejected. */
static void
end_with(const struct api_problem *refused)
{
    struct spool *model = spool_of("model"), *report = spool_of("report");
    struct spool *frozen = spool_of("frozen");
    const struct job_result result = {
        .model = &model, .report = &report, .frozen = &frozen, .summary = "{}"};
    if (refused)
        jobs_reject(jobs, &slot, &result, refused);
    else
        jobs_succeed(jobs, &slot, &result);
    spool_discard(&model);
    spool_discard(&report);
    spool_discard(&frozen);
}

static void
succeed(void)
{
    end_with(NULL);
}

static void
reject(void)
{
    struct api_problem refused = {0};
    api_problem_set(&refused, API_ACCURACY, QDQ_AT_POINTER, "/accept", "off");
    end_with(&refused);
}

static bool
has_result(const char *text)
{
    char digest[DIGEST_SIZE];
    int fd;
    ck_assert(digest_of(text, strlen(text), digest));
    if (!blob_read(library_blobs(library), digest, &fd, NULL))
        return false;
    close(fd);
    return true;
}

START_TEST(succeeds)
{
    struct job_view view;
    ck_assert(submit());
    struct store_job job = claim();
    told(QDQ_STAGE_CALIBRATE, 3, 7);
    ck_assert(jobs_get(jobs, id, &view, &problem));
    ck_assert_str_eq(view.stage, "calibrate");
    ck_assert_uint_eq(view.done, 3);
    ck_assert_int_eq(view.eta_s, -1);
    job_view_fini(&view);
    succeed();
    ck_assert_str_eq(slot.id, "");
    ck_assert_int_eq(state(), API_JOB_SUCCEEDED);
    ck_assert(has_result("model") && has_result("report") && has_result("frozen"));
    ck_assert_int_eq(scratch_count("state/tmp"), 0);
    ck_assert(library_job_remove(library, id, STORE_REQUEST, &problem));
    ck_assert(!has_result("model") && !has_result("report") && !has_result("frozen"));
    store_job_fini(&job);
}
END_TEST

/* A run gives an estimate of the time left once it has a speed; the next run with
   the same model has one from its start. */
START_TEST(time_left)
{
    struct job_view view;
    for (int run = 0; run < 2; run++) {
        ck_assert(submit());
        struct store_job job = claim();
        told(QDQ_STAGE_CALIBRATE, 0, 1000000);
        ck_assert(jobs_get(jobs, id, &view, &problem));
        if (run == 0)
            ck_assert_int_eq(view.eta_s, -1);
        else
            ck_assert_int_gt(view.eta_s, 100);
        job_view_fini(&view);
        usleep(600000);
        told(QDQ_STAGE_CALIBRATE, 1000, 1000000);
        ck_assert(jobs_get(jobs, id, &view, &problem));
        ck_assert_int_gt(view.eta_s, 100);
        job_view_fini(&view);
        succeed();
        ck_assert(jobs_get(jobs, id, &view, &problem));
        ck_assert_int_eq(view.eta_s, -1);
        ck_assert_ptr_null(view.stage);
        job_view_fini(&view);
        store_job_fini(&job);
    }
}
END_TEST

/* A rejected job has failed, and its model and report are kept, also by the next
   daemon. */
START_TEST(rejected)
{
    struct job_view view;
    char digest[DIGEST_SIZE];
    ck_assert(submit());
    struct store_job job = claim();
    reject();
    ck_assert_str_eq(slot.id, "");
    jobs_close(&jobs);
    library_close(&library);
    open_jobs();
    ck_assert(jobs_get(jobs, id, &view, &problem));
    ck_assert_int_eq(view.row.state, API_JOB_FAILED);
    ck_assert_int_eq(view.row.error.code, API_ACCURACY);
    ck_assert(digest_of("model", 5, digest));
    ck_assert_str_eq(view.row.error.model, digest);
    job_view_fini(&view);
    ck_assert(has_result("model") && has_result("report") && has_result("frozen"));
    ck_assert(library_job_remove(library, id, STORE_REQUEST, &problem));
    ck_assert(!has_result("model") && !has_result("report") && !has_result("frozen"));
    store_job_fini(&job);
}
END_TEST

/* After the first death of its worker a job is queued again; the second one fails
   it. */
START_TEST(worker_dies)
{
    struct job_view view;
    ck_assert(submit());
    struct store_job job = claim();
    jobs_lost(jobs, &slot, &job, "was killed by signal 9");
    ck_assert_int_eq(state(), API_JOB_QUEUED);
    store_job_fini(&job);
    job = claim();
    ck_assert_int_eq(job.attempts, 1);
    jobs_lost(jobs, &slot, &job, "was killed by signal 9");
    store_job_fini(&job);
    ck_assert(jobs_get(jobs, id, &view, &problem));
    ck_assert_int_eq(view.row.state, API_JOB_FAILED);
    ck_assert_int_eq(view.row.error.code, API_WORKER_DIED);
    ck_assert_ptr_nonnull(strstr(view.row.error.detail, "signal 9"));
    job_view_fini(&view);
}
END_TEST

/* A job that was cancelled while it ran stays cancelled, whatever the lane reports. */
START_TEST(cancelled_while_running)
{
    const struct api_problem failed = {.code = API_INTERNAL, .set = true};
    ck_assert(submit());
    struct store_job job = claim();
    ck_assert(!jobs_is_unwanted(jobs, &slot));
    ck_assert(jobs_cancel(jobs, id, &problem));
    ck_assert(jobs_is_unwanted(jobs, &slot));
    if (_i == 0)
        succeed();
    else if (_i == 3)
        reject();
    else if (_i == 1)
        jobs_fail(jobs, &slot, &failed);
    else
        jobs_lost(jobs, &slot, &job, "was killed by signal 9");
    ck_assert_int_eq(state(), API_JOB_CANCELLED);
    ck_assert(!has_result("model"));
    ck_assert_int_eq(scratch_count("state/tmp"), 0);
    ck_assert(!jobs_is_unwanted(jobs, &slot));
    ck_assert(jobs_cancel(jobs, id, &problem)); /* cancelling is idempotent */
    store_job_fini(&job);
}
END_TEST

START_TEST(cancel_too_late)
{
    ck_assert(submit());
    struct store_job job = claim();
    succeed();
    ck_assert(!jobs_cancel(jobs, id, &problem));
    ck_assert_int_eq(problem.code, API_ENDED);
    store_job_fini(&job);
}
END_TEST

START_TEST(queue_full)
{
    ck_assert(submit() && submit());
    ck_assert(!submit());
    ck_assert_int_eq(problem.code, API_QUEUE_FULL);
    problem = (struct api_problem){0};
    struct store_job job = claim();
    ck_assert(submit());
    store_job_fini(&job);
}
END_TEST

static void *
end_job(void *arg)
{
    (void)arg;
    struct store_job job = claim();
    usleep(50000);
    succeed();
    store_job_fini(&job);
    return NULL;
}

START_TEST(waits)
{
    pthread_t thread;
    struct job_view view;
    ck_assert(submit());
    ck_assert(jobs_wait(jobs, id, 1, &view, &problem)); /* no lane claims the job */
    ck_assert_int_eq(view.row.state, API_JOB_QUEUED);
    ck_assert_int_eq(view.position, 1);
    job_view_fini(&view);
    pthread_create(&thread, NULL, end_job, NULL);
    ck_assert(jobs_wait(jobs, id, 60, &view, &problem));
    ck_assert_int_eq(view.row.state, API_JOB_SUCCEEDED);
    job_view_fini(&view);
    pthread_join(thread, NULL);
}
END_TEST

/* The same key finds the same job, also when the queue is full or the daemon is
   draining. With another request it is an error. */
START_TEST(keyed)
{
    const struct store_asking one = {.key = "k", .asked = "sha256:a"};
    const struct store_asking other = {.key = "k", .asked = "sha256:b"};
    char first[JOB_ID_SIZE], found[JOB_ID_SIZE];
    bool any;
    ck_assert(submit_asked(&one));
    memcpy(first, id, sizeof first);
    ck_assert(submit());
    ck_assert(submit_asked(&one)); /* queue.max is 2 */
    ck_assert_str_eq(id, first);
    jobs_drain(jobs);
    ck_assert(submit_asked(&one));
    ck_assert(jobs_find_key(jobs, "k", NULL, found, &any, &problem) && any);
    ck_assert_str_eq(found, first);
    ck_assert(jobs_find_key(jobs, "l", "x", found, &any, &problem) && !any);
    ck_assert(!submit_asked(&other));
    ck_assert_int_eq(problem.code, API_IDEMPOTENCY_MISMATCH);
}
END_TEST

/* A thread that waits for a job that joined another is woken at the other's end. */
START_TEST(waits_for_twin)
{
    const struct store_asking same = {.identity = "sha256:i"};
    pthread_t thread;
    struct job_view view;
    ck_assert(submit_asked(&same));
    ck_assert(submit_asked(&same));
    pthread_create(&thread, NULL, end_job, NULL);
    ck_assert(jobs_wait(jobs, id, 60, &view, &problem));
    ck_assert_int_eq(view.row.state, API_JOB_SUCCEEDED);
    ck_assert_ptr_nonnull(view.row.cached_from);
    job_view_fini(&view);
    pthread_join(thread, NULL);
    ck_assert(submit_asked(&same));
    ck_assert_int_eq(state(), API_JOB_SUCCEEDED);
}
END_TEST

/* When the other job is cancelled, the joined one runs. */
START_TEST(runs_instead_of_twin)
{
    const struct store_asking same = {.identity = "sha256:i"};
    char first[JOB_ID_SIZE];
    ck_assert(submit_asked(&same));
    struct store_job job = claim();
    memcpy(first, id, sizeof first);
    ck_assert(submit_asked(&same));
    ck_assert(jobs_cancel(jobs, first, &problem));
    jobs_lost(jobs, &slot, &job, "was killed by signal 9");
    store_job_fini(&job);
    job = claim();
    ck_assert_str_eq(job.id, id);
    succeed();
    ck_assert_int_eq(state(), API_JOB_SUCCEEDED);
    store_job_fini(&job);
}
END_TEST

/* Returns whether the watch was notified since the last call. */
static bool
was_told(struct job_watch *watch, bool *ret_useful)
{
    struct pollfd fd = {.fd = job_watch_fd(watch), .events = POLLIN};
    bool is_told = poll(&fd, 1, 0) == 1;
    *ret_useful = job_watch_clear(jobs, watch);
    return is_told;
}

/* A watch is notified of each change of its own job's state, and of no other's. */
START_TEST(watched)
{
    struct job_watch *watch, *other;
    bool useful;
    ck_assert(submit());
    ck_assert(jobs_watch(jobs, id, &watch, &problem));
    ck_assert(jobs_watch(jobs, "other", &other, &problem));
    ck_assert(!was_told(watch, &useful) && useful);
    struct store_job job = claim();
    ck_assert(was_told(watch, &useful) && useful);
    told(QDQ_STAGE_CALIBRATE, 3, 7);
    ck_assert(!was_told(watch, &useful) && useful);
    jobs_lost(jobs, &slot, &job, "was killed by signal 9");
    ck_assert(was_told(watch, &useful) && useful);
    store_job_fini(&job);
    job = claim();
    ck_assert(was_told(watch, &useful) && useful);
    ck_assert(!was_told(other, &useful) && useful);
    jobs_drain(jobs);
    /* the job runs, so another change will come */
    ck_assert(was_told(watch, &useful) && useful);
    ck_assert(was_told(other, &useful) && !useful);
    jobs_unwatch(jobs, &other);
    succeed();
    ck_assert(was_told(watch, &useful) && !useful);
    jobs_unwatch(jobs, &watch);
    ck_assert_ptr_null(watch);
    store_job_fini(&job);
}
END_TEST

static void *
drain(void *arg)
{
    (void)arg;
    usleep(50000);
    jobs_drain(jobs);
    return NULL;
}

/* A draining daemon accepts no new jobs, wakes the threads that wait for jobs that
   will not run, and queues the running job again without counting an attempt. */
START_TEST(drains)
{
    pthread_t thread;
    struct job_view view;
    struct store_job none;
    bool any;
    ck_assert(submit());
    struct store_job job = claim();
    ck_assert(submit());
    pthread_create(&thread, NULL, drain, NULL);
    ck_assert(jobs_wait(jobs, id, 60, &view, &problem));
    ck_assert_int_eq(view.row.state, API_JOB_QUEUED);
    job_view_fini(&view);
    pthread_join(thread, NULL);
    ck_assert(!submit());
    ck_assert_int_eq(problem.code, API_DRAINING);
    ck_assert(!jobs_are_idle(jobs));
    jobs_stop(jobs);
    ck_assert(jobs_is_unwanted(jobs, &slot));
    jobs_lost(jobs, &slot, &job, "was killed by signal 9");
    ck_assert(jobs_are_idle(jobs));
    ck_assert(jobs_claim(jobs, &slot, &none, &any, &problem) && !any);
    memcpy(id, job.id, sizeof id);
    ck_assert_int_eq(state(), API_JOB_QUEUED);
    store_job_fini(&job);
    /* The next daemon still has the job. */
    jobs_close(&jobs);
    library_close(&library);
    open_jobs();
    job = claim();
    ck_assert_str_eq(job.id, id);
    ck_assert_int_eq(job.attempts, 0);
    store_job_fini(&job);
}
END_TEST

/* Blobs that no row refers to are removed after a grace period; a second daemon cannot
   open the folder. */
START_TEST(state_folder)
{
    struct library *second = NULL;
    struct store_file file;
    bool is_new;
    struct spool *lost = spool_of("lost"), *kept = spool_of("kept");
    ck_assert(spool_commit(&lost, &problem));
    ck_assert(library_add(library, STORE_MODEL, &kept, NULL, &file, &is_new, &problem));
    store_file_fini(&file);
    ck_assert(!library_open(scratch_path("state"), &second, &problem));
    ck_assert_ptr_nonnull(strstr(problem.detail, "another daemon"));
    ck_assert(has_result("lost"));
    jobs_close(&jobs);
    library_close(&library);
    problem = (struct api_problem){0};
    open_jobs();
    ck_assert(library_remove_leftovers(library, 3600000, &problem));
    ck_assert(has_result("lost"));
    ck_assert(library_remove_leftovers(library, 0, &problem));
    ck_assert(!has_result("lost") && has_result("kept"));
}
END_TEST

static void
set_up_gpu(void)
{
    devices = "3";
    set_up();
}

static void
tear_down_gpu(void)
{
    tear_down();
    devices = "";
}

static void
submit_spec(const char *spec)
{
    char model[] = "sha256:m", copy[200];
    snprintf(copy, sizeof copy, "%s", spec);
    struct store_job request = {.model = model, .spec = copy};
    struct api_spec *decoded;
    ck_assert(api_spec_decode(copy, strlen(copy), &decoded, &problem));
    ck_assert(store_derive(api_spec_get(decoded), &request, &problem));
    api_spec_free(&decoded);
    const struct store_file file = {.id = "sha256:m"};
    const struct store_asking asking = {0};
    bool is_new;
    ck_assert(
        store_file_add(library_store(library), STORE_MODEL, &file, &is_new, &problem));
    ck_assert_msg(jobs_submit(jobs, &request, &asking, id, &problem), "%s",
                  problem.detail);
}

static bool
waits_for_gpu(void)
{
    struct job_view view;
    ck_assert(jobs_get(jobs, id, &view, &problem));
    job_view_fini(&view);
    return view.waits_for_gpu;
}

/* A job that waits for a GPU does not hold up the next one, which needs none. */
START_TEST(gpu)
{
    struct job_slot other = {.process = &process}, third = {.process = &process};
    struct store_job first, cpu, second;
    bool any;
    submit_spec("{\"device\":\"cuda\"}");
    ck_assert(!waits_for_gpu());
    first = claim();
    ck_assert_int_eq(slot.device, 3);
    submit_spec("{\"device\":\"auto\",\"calibration\":{\"random_samples\":1}}");
    ck_assert(waits_for_gpu());
    ck_assert(jobs_claim(jobs, &other, &cpu, &any, &problem) && !any);
    char waiting[JOB_ID_SIZE];
    memcpy(waiting, id, sizeof waiting);
    submit_spec("{\"device\":\"cpu\"}");
    ck_assert(!waits_for_gpu());
    ck_assert(jobs_claim(jobs, &other, &cpu, &any, &problem) && any);
    ck_assert_str_eq(cpu.id, id);
    ck_assert_int_eq(other.device, GPUS_NONE);
    uint64_t heard = bell_heard(&bell);
    succeed();
    ck_assert_uint_gt(bell_heard(&bell), heard);
    ck_assert(jobs_claim(jobs, &third, &second, &any, &problem) && any);
    ck_assert_str_eq(second.id, waiting);
    ck_assert_int_eq(third.device, 3);
    store_job_fini(&first);
    store_job_fini(&cpu);
    store_job_fini(&second);
    struct api_problem why = {0};
    api_problem_set(&why, API_IO, QDQ_AT_NOTHING, NULL, "over");
    jobs_fail(jobs, &other, &why);
    jobs_fail(jobs, &third, &why);
    ck_assert(!gpus_are_taken(&bell.gpus));
}
END_TEST

/* A job that has lent its GPU keeps running, and waits for the GPU until the other
   job has ended. */
START_TEST(gpu_lent)
{
    struct job_slot other = {.process = &process};
    struct store_job first, second;
    struct api_problem why = {0};
    bool any;
    submit_spec("{\"device\":\"cuda\"}");
    char lender[JOB_ID_SIZE];
    memcpy(lender, id, sizeof lender);
    first = claim();
    ck_assert(!jobs_gpu_is_wanted(jobs, &slot));
    submit_spec("{\"device\":\"cuda\",\"evaluate\":false}");
    ck_assert(!jobs_gpu_is_wanted(jobs, &slot)); /* no lane is idle */
    ck_assert(jobs_claim(jobs, &other, &second, &any, &problem) && !any);
    ck_assert(jobs_gpu_is_wanted(jobs, &slot));
    uint64_t heard = bell_heard(&bell);
    jobs_lend_gpu(jobs, &slot);
    ck_assert_uint_gt(bell_heard(&bell), heard);
    ck_assert_int_eq(slot.device, GPUS_NONE);
    ck_assert(!jobs_regain_gpu(jobs, &slot));
    ck_assert(jobs_claim(jobs, &other, &second, &any, &problem) && any);
    ck_assert_int_eq(other.device, 3);
    ck_assert(!jobs_regain_gpu(jobs, &slot));
    memcpy(id, lender, sizeof lender);
    ck_assert(waits_for_gpu());
    api_problem_set(&why, API_IO, QDQ_AT_NOTHING, NULL, "over");
    jobs_fail(jobs, &other, &why);
    ck_assert(jobs_regain_gpu(jobs, &slot));
    ck_assert_int_eq(slot.device, 3);
    ck_assert(!waits_for_gpu());
    store_job_fini(&first);
    store_job_fini(&second);
    jobs_fail(jobs, &slot, &why);
    ck_assert(!gpus_are_taken(&bell.gpus));
}
END_TEST

/* The end of a job that has lent its GPU does not release the GPU, which is another
   job's now. */
START_TEST(gpu_lent_to_the_end)
{
    struct job_slot other = {.process = &process};
    struct store_job first, second;
    struct api_problem why = {0};
    bool any;
    submit_spec("{\"device\":\"cuda\"}");
    first = claim();
    submit_spec("{\"device\":\"cuda\",\"evaluate\":false}");
    ck_assert(jobs_claim(jobs, &other, &second, &any, &problem) && !any);
    jobs_lend_gpu(jobs, &slot);
    ck_assert(jobs_claim(jobs, &other, &second, &any, &problem) && any);
    api_problem_set(&why, API_IO, QDQ_AT_NOTHING, NULL, "over");
    jobs_fail(jobs, &slot, &why);
    ck_assert(gpus_are_taken(&bell.gpus));
    ck_assert(!jobs_gpu_is_wanted(jobs, &other));
    jobs_fail(jobs, &other, &why);
    ck_assert(!gpus_are_taken(&bell.gpus));
    store_job_fini(&first);
    store_job_fini(&second);
}
END_TEST

static const struct {
    const char *text;
    bool ok;
    size_t n;
} lists[] = {
    {"", true, 0},      {"0", true, 1},   {"0,1", true, 2}, {"63,5", true, 2},
    {"64", false, 0},   {"0,", false, 0}, {",", false, 0},  {"0,0", false, 0},
    {"0, 1", false, 0}, {"-1", false, 0}, {"a", false, 0},  {"007", false, 0},
};

START_TEST(gpu_lists)
{
    int ret[GPUS_MOST];
    size_t n;
    ck_assert_int_eq(gpus_parse(lists[_i].text, ret, &n), lists[_i].ok);
    ck_assert_uint_eq(n, lists[_i].n);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("daemon/job");
    TCase *t = tcase_create("job");
    tcase_add_checked_fixture(t, set_up, tear_down);
    TCase *g = tcase_create("gpu");
    tcase_add_checked_fixture(g, set_up_gpu, tear_down_gpu);
    tcase_add_test(g, gpu);
    tcase_add_test(g, gpu_lent);
    tcase_add_test(g, gpu_lent_to_the_end);
    suite_add_tcase(s, g);
    tcase_add_loop_test(t, gpu_lists, 0, sizeof lists / sizeof *lists);
    tcase_add_test(t, succeeds);
    tcase_add_test(t, time_left);
    tcase_add_test(t, rejected);
    tcase_add_test(t, worker_dies);
    tcase_add_loop_test(t, cancelled_while_running, 0, 4);
    tcase_add_test(t, cancel_too_late);
    tcase_add_test(t, queue_full);
    tcase_add_test(t, waits);
    tcase_add_test(t, keyed);
    tcase_add_test(t, waits_for_twin);
    tcase_add_test(t, runs_instead_of_twin);
    tcase_add_test(t, watched);
    tcase_add_test(t, drains);
    tcase_add_test(t, state_folder);
    suite_add_tcase(s, t);
    return s;
}

UNIT_MAIN(suite)
