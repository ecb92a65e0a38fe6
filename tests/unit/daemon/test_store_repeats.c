/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that are answered with an earlier job's result, or join one that has not
   ended. */
#include "config.h"

#include "stored_jobs.h"

/* --- repeated requests ---------------------------------------------------- */

static const struct store_asking same = {.identity = "sha256:i"};

static struct store_job
get(const char *id)
{
    struct store_job job;
    ck_assert_msg(store_job_get(store, id, &job, &problem), "%s", problem.detail);
    return job;
}

static int64_t
end_joined(const char *id, const struct store_end *how)
{
    struct store_ended ended;
    ck_assert(store_job_end(store, id, API_JOB_RUNNING, how, 3000, &ended, &problem));
    ck_assert(ended.was);
    return ended.joined;
}

static const struct store_end made = {.state = API_JOB_SUCCEEDED,
                                      .result_model = "sha256:r",
                                      .report = "sha256:p",
                                      .frozen = "sha256:f",
                                      .summary = "{}",
                                      .result_size = 42};

static void
expect_made(const char *id, const char *from, int64_t changes)
{
    struct store_job job = get(id);
    ck_assert_int_eq(job.state, API_JOB_SUCCEEDED);
    ck_assert_str_eq(job.result_model, "sha256:r");
    ck_assert_str_eq(job.report, "sha256:p");
    ck_assert_str_eq(job.frozen, "sha256:f");
    ck_assert_str_eq(job.summary, "{}");
    ck_assert_uint_eq(job.result_size, 42);
    ck_assert_str_eq(job.cached_from, from);
    ck_assert_ptr_null(job.waits_for);
    ck_assert_int_eq(job.changes, changes);
    ck_assert_int_gt(job.ended_at, 0);
    store_job_fini(&job);
}

UNIT_TEST(answered)
{
    struct store_job job;
    const struct store_asking fresh = {.identity = "sha256:i", .asked = "fresh"};
    const struct store_asking other = {.identity = "sha256:j"};
    ck_assert_int_eq(add_asked("a", 0, NULL, &same), STORE_QUEUED);
    claim("a");
    ck_assert_int_eq(end_joined("a", &made), 0);
    ck_assert_int_eq(add_asked("b", 7, NULL, &same), STORE_ANSWERED);
    expect_made("b", "a", 2);
    ck_assert_int_eq(add_asked("c", 0, NULL, &other), STORE_QUEUED);
    ck_assert_int_eq(add_asked("d", 0, NULL, &fresh), STORE_QUEUED);
    add("e", 0, NULL);
    reopen();
    /* The result stays for the second job when the first is deleted. */
    ck_assert(store_job_remove(store, "a", STORE_REQUEST, &job, &problem));
    store_job_fini(&job);
    ck_assert(store_needs_blob(store, "sha256:r") &&
              store_needs_blob(store, "sha256:p"));
    ck_assert_int_eq(add_asked("f", 0, NULL, &same), STORE_ANSWERED);
    expect_made("f", "b", 2);
}

UNIT_TEST(joined)
{
    int64_t n;
    add("x", 1, NULL);
    ck_assert_int_eq(add_asked("a", 0, NULL, &same), STORE_QUEUED);
    ck_assert_int_eq(add_asked("b", 5, NULL, &same), STORE_JOINED);
    ck_assert_int_eq(add_asked("c", 0, NULL, &same), STORE_JOINED);
    struct store_job job = get("b");
    ck_assert_int_eq(job.state, API_JOB_QUEUED);
    ck_assert_str_eq(job.waits_for, "a");
    ck_assert_ptr_null(job.cached_from);
    store_job_fini(&job);
    ck_assert(store_queue_length(store, &n, &problem));
    ck_assert_int_eq(n, 2);
    ck_assert(store_job_position(store, "b", &n, &problem));
    ck_assert_int_eq(n, 0);
    claim("a"); /* more urgent than x, because b waits for it */
    claim("x");
    claim(NULL);
    /* the other jobs are not affected */
    ck_assert(end("c", API_JOB_QUEUED, API_JOB_CANCELLED));
    reopen();
    ck_assert_int_eq(end_joined("a", &made), 1);
    expect_made("b", "a", 2);
    ck_assert_int_eq(state_of("c"), API_JOB_CANCELLED);
    job = get("c");
    ck_assert(!job.waits_for && !job.cached_from);
    store_job_fini(&job);
}

/* Joined jobs fail with the first when its error follows from the request. After an
   error that may pass, and after a cancellation, the next of them runs. */
static const struct {
    enum api_job_state state;
    enum api_code code;
    bool shared;
} ends_of_twins[] = {
    {API_JOB_FAILED, API_NONFINITE, true},    {API_JOB_FAILED, API_ACCURACY, true},
    {API_JOB_FAILED, API_WORKER_DIED, false}, {API_JOB_FAILED, API_DISK_FULL, false},
    {API_JOB_CANCELLED, API_N_CODES, false},
};

UNIT_ROWS(twin_ends, ends_of_twins)
{
    struct api_problem error = {0};
    struct store_end how = {.state = ends_of_twins[_i].state};
    if (ends_of_twins[_i].code != API_N_CODES) {
        api_problem_set(&error, ends_of_twins[_i].code, QDQ_AT_NODE, "n", "why");
        how.error = &error;
    }
    add_asked("a", 0, NULL, &same);
    claim("a");
    add_asked("b", 0, NULL, &same);
    add_asked("c", 0, NULL, &same);
    ck_assert_int_eq(end_joined("a", &how), 2);
    struct store_job b = get("b"), c = get("c");
    if (ends_of_twins[_i].shared) {
        ck_assert_int_eq(b.state, API_JOB_FAILED);
        ck_assert_int_eq(c.error.code, error.code);
        ck_assert_str_eq(c.error.detail, "why");
        ck_assert_str_eq(c.cached_from, "a");
        claim(NULL);
    } else {
        ck_assert(b.state == API_JOB_QUEUED && !b.waits_for && !b.cached_from);
        ck_assert(c.state == API_JOB_QUEUED && !c.cached_from);
        ck_assert_str_eq(c.waits_for, "b");
        claim("b");
        claim(NULL);
        ck_assert_int_eq(end_joined("b", &made), 1);
        expect_made("c", "b", 2);
    }
    store_job_fini(&b);
    store_job_fini(&c);
    /* A later request is not answered with a failure, but runs. */
    if (ends_of_twins[_i].shared)
        ck_assert_int_eq(add_asked("d", 0, NULL, &same), STORE_QUEUED);
}

UNIT_TEST(keys)
{
    struct store_job job;
    char id[JOB_ID_SIZE], asked[DIGEST_SIZE];
    bool any;
    const struct store_asking asking = {.key = "k", .asked = "sha256:a"};
    ck_assert(store_job_of_key(store, "k", id, asked, &any, &problem) && !any);
    add_asked("a", 0, NULL, &asking);
    add("b", 0, NULL);
    reopen();
    ck_assert(store_job_of_key(store, "k", id, asked, &any, &problem) && any);
    ck_assert_str_eq(id, "a");
    ck_assert_str_eq(asked, "sha256:a");
    ck_assert(end("a", API_JOB_QUEUED, API_JOB_CANCELLED));
    ck_assert(store_job_remove(store, "a", STORE_REQUEST, &job, &problem));
    store_job_fini(&job);
    ck_assert(store_job_of_key(store, "k", id, asked, &any, &problem) && !any);
}

/* Every change of the state is counted, whichever function makes it. */
UNIT_TEST(changes)
{
    bool was;
    int64_t n;
    add("a", 0, NULL);
    claim("a");
    ck_assert(store_job_requeue(store, "a", 0, 0, &was, &problem) && was);
    claim("a");
    ck_assert(store_recover(store, &n, &problem));
    struct store_job job = get("a");
    ck_assert_int_eq(job.changes, 5);
    store_job_fini(&job);
    ck_assert(end("a", API_JOB_QUEUED, API_JOB_CANCELLED));
    job = get("a");
    ck_assert_int_eq(job.changes, 6);
    store_job_fini(&job);
}

UNIT_TEST(remove_live)
{
    struct store_job job;
    add("a", 0, NULL);
    ck_assert(!store_job_remove(store, "a", STORE_REQUEST, &job, &problem));
    ck_assert_int_eq(problem.code, API_IN_USE);
    problem = (struct api_problem){0};
    ck_assert(!store_job_remove(store, "b", STORE_REQUEST, &job, &problem));
    ck_assert_int_eq(problem.code, API_NOT_FOUND);
    ck_assert_int_eq(state_of("a"), API_JOB_QUEUED);
    claim("a"); /* no transaction was left open */
}

UNIT_SUITE("daemon/store", .setup = set_up, .teardown = tear_down)
