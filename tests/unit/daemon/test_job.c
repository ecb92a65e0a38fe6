/* SPDX-License-Identifier: Apache-2.0 */
/* The life of jobs; the test plays the lanes and their workers. */
#include "config.h"
#include "running_jobs.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

static void
progress(enum qdq_stage stage, uint64_t done, uint64_t total)
{
    jobs_progress(jobs, &slot, &(struct qdq_progress){stage, done, total, 0, 0});
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

UNIT_TEST(succeeds)
{
    struct job_view view;
    ck_assert(submit());
    struct store_job job = claim();
    progress(QDQ_STAGE_CALIBRATE, 3, 7);
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

/* A run gives an estimate of the time left once it has a speed; the next run with
   the same model has one from its start. */
UNIT_TEST(time_left)
{
    struct job_view view;
    for (int run = 0; run < 2; run++) {
        ck_assert(submit());
        struct store_job job = claim();
        progress(QDQ_STAGE_CALIBRATE, 0, 1000000);
        ck_assert(jobs_get(jobs, id, &view, &problem));
        if (run == 0)
            ck_assert_int_eq(view.eta_s, -1);
        else
            ck_assert_int_gt(view.eta_s, 100);
        job_view_fini(&view);
        usleep(600000);
        progress(QDQ_STAGE_CALIBRATE, 1000, 1000000);
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

/* A rejected job has failed, and its model and report are kept, also by the next
   daemon. */
UNIT_TEST(rejected)
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

/* After the first death of its worker a job is queued again; the second one fails
   it. */
UNIT_TEST(worker_dies)
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

/* A job that was cancelled while it ran stays cancelled, whatever the lane reports. */
UNIT_LOOP(cancelled_while_running, 4)
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

/* Cancelling ends the worker, unless it is done with the job: then it may run another. */
UNIT_LOOP(worker_after_cancelling, 2)
{
    bool is_done = _i == 1;
    int status = 0;
    ck_assert(submit());
    struct store_job job = claim();
    process.pid = fork();
    ck_assert_int_ge(process.pid, 0);
    while (process.pid == 0)
        pause();
    if (is_done)
        jobs_leave_worker(jobs, &slot);
    ck_assert(jobs_cancel(jobs, id, &problem));
    ck_assert(jobs_is_unwanted(jobs, &slot));
    ck_assert_int_eq(waitpid(process.pid, &status, is_done ? WNOHANG : 0),
                     is_done ? 0 : process.pid);
    if (is_done) {
        kill(process.pid, SIGKILL);
        ck_assert_int_eq(waitpid(process.pid, &status, 0), process.pid);
    }
    process.pid = 0;
    succeed();
    ck_assert_int_eq(state(), API_JOB_CANCELLED);
    slot.process = &process;
    store_job_fini(&job);
}

UNIT_TEST(cancel_too_late)
{
    ck_assert(submit());
    struct store_job job = claim();
    succeed();
    ck_assert(!jobs_cancel(jobs, id, &problem));
    ck_assert_int_eq(problem.code, API_ENDED);
    store_job_fini(&job);
}

UNIT_TEST(queue_full)
{
    ck_assert(submit() && submit());
    ck_assert(!submit());
    ck_assert_int_eq(problem.code, API_QUEUE_FULL);
    problem = (struct api_problem){0};
    struct store_job job = claim();
    ck_assert(submit());
    store_job_fini(&job);
}

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

UNIT_TEST(waits)
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

/* The same key finds the same job, also when the queue is full or the daemon is
   draining. With another request it is an error. */
UNIT_TEST(keyed)
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

/* A thread that waits for a job that joined another is woken at the other's end. */
UNIT_TEST(waits_for_twin)
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

/* When the other job is cancelled, the joined one runs. */
UNIT_TEST(runs_instead_of_twin)
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

/* Returns whether the watch was notified since the last call. */
static bool
was_notified(struct job_watch *watch, bool *ret_useful)
{
    struct pollfd fd = {.fd = job_watch_fd(watch), .events = POLLIN};
    bool is_notified = poll(&fd, 1, 0) == 1;
    *ret_useful = job_watch_clear(jobs, watch);
    return is_notified;
}

/* A watch is notified of each change of its own job's state, and of no other's. */
UNIT_TEST(watched)
{
    struct job_watch *watch, *other;
    bool useful;
    ck_assert(submit());
    ck_assert(jobs_watch(jobs, id, &watch, &problem));
    ck_assert(jobs_watch(jobs, "other", &other, &problem));
    ck_assert(!was_notified(watch, &useful) && useful);
    struct store_job job = claim();
    ck_assert(was_notified(watch, &useful) && useful);
    progress(QDQ_STAGE_CALIBRATE, 3, 7);
    ck_assert(!was_notified(watch, &useful) && useful);
    jobs_lost(jobs, &slot, &job, "was killed by signal 9");
    ck_assert(was_notified(watch, &useful) && useful);
    store_job_fini(&job);
    job = claim();
    ck_assert(was_notified(watch, &useful) && useful);
    ck_assert(!was_notified(other, &useful) && useful);
    jobs_drain(jobs);
    /* the job runs, so another change will come */
    ck_assert(was_notified(watch, &useful) && useful);
    ck_assert(was_notified(other, &useful) && !useful);
    jobs_unwatch(jobs, &other);
    succeed();
    ck_assert(was_notified(watch, &useful) && !useful);
    jobs_unwatch(jobs, &watch);
    ck_assert_ptr_null(watch);
    store_job_fini(&job);
}

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
UNIT_TEST(drains)
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

/* Blobs that no row refers to are removed after a grace period; a second daemon cannot
   open the folder. */
UNIT_TEST(state_folder)
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

UNIT_SUITE("daemon/job", .setup = set_up, .teardown = tear_down)
