/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a job with several targets: the job follows its targets, and is one for all who list,
   cancel and remove. */
#include "config.h"

#include "stored_jobs.h"
#include "store/outbox.h"
#include "store/several/targets.h"

/* Adds the job "all" with two targets, "one" and "two", the second with an identity. */
static void
add_two(const char *identity)
{
    char first[] = "tensorrt", second[] = "openvino";
    struct store_target targets[2] = {
        {.job = {.target = first}}, {.job = {.target = second}, .identity = identity}};
    struct store_job all = {
        .id = "all", .created_at = 1000, .model = model, .spec = spec};
    add_inputs();
    for (size_t i = 0; i < 2; i++) {
        targets[i].job.created_at = 1000;
        targets[i].job.model = model;
        targets[i].job.calibration = data;
        snprintf(targets[i].job.id, JOB_ID_SIZE, "%s", i ? "two" : "one");
    }
    ck_assert_msg(
        store_targets_add(store, &all, &(struct store_asking){0}, targets, 2, &problem),
        "%s", problem.detail);
}

static const struct store_end made = {.state = API_JOB_SUCCEEDED,
                                      .result_model = "sha256:r",
                                      .report = "sha256:p",
                                      .frozen = "sha256:f",
                                      .summary = "{}",
                                      .result_size = 42};

static void
end_as(const char *id, const struct store_end *how)
{
    struct store_ended ended;
    ck_assert(store_job_end(store, id, API_JOB_RUNNING, how, 3000, &ended, &problem));
    ck_assert(ended.was);
}

static struct store_job
get(const char *id)
{
    struct store_job job;
    ck_assert_msg(store_job_get(store, id, &job, &problem), "%s", problem.detail);
    return job;
}

UNIT_TEST(the_job_follows)
{
    struct store_counts counts;
    int64_t n;
    add_two(NULL);
    ck_assert(store_count_queued(store, &n, &problem));
    ck_assert_int_eq(n, 2);
    ck_assert(store_queue_length(store, &n, &problem));
    ck_assert_int_eq(n, 2);
    ck_assert(store_count(store, &counts, &problem));
    ck_assert_int_eq(counts.jobs[API_JOB_QUEUED], 1);
    claim("one");
    ck_assert_int_eq(state_of("all"), API_JOB_RUNNING);
    end_as("one", &made);
    ck_assert_int_eq(state_of("all"), API_JOB_RUNNING);
    /* A restart puts the target back, and the job stays as it is. */
    claim("two");
    ck_assert(store_recover(store, &n, &problem));
    ck_assert_int_eq(n, 1);
    ck_assert_int_eq(state_of("all"), API_JOB_RUNNING);
    claim("two");
    end_as("two", &made);
    struct store_job all = get("all");
    ck_assert_int_eq(all.state, API_JOB_SUCCEEDED);
    ck_assert_int_eq(all.changes, 3);
    ck_assert_int_eq(all.ended_at, 3000);
    ck_assert(all.targets &&
              strstr(all.targets, "\"target\":\"tensorrt\",\"job\":\"one\""));
    ck_assert(strstr(all.targets, "\"target\":\"tensorrt\"") <
              strstr(all.targets, "\"target\":\"openvino\""));
    ck_assert_ptr_null(all.waits_for);
    store_job_fini(&all);
    claim(NULL);
}

UNIT_LOOP(one_fails, 2)
{
    struct api_problem missed = {
        .set = true, .code = API_ACCURACY, .detail = "too low"};
    struct api_problem broken = {.set = true, .code = API_RUN_FAILED, .detail = "no"};
    const struct store_end rejected = {.state = API_JOB_FAILED, .error = &missed};
    const struct store_end failed = {.state = API_JOB_FAILED, .error = &broken};
    add_two(NULL);
    claim("one");
    end_as("one", &rejected);
    claim("two");
    end_as("two", _i ? &failed : &made);
    struct store_job all = get("all");
    ck_assert_int_eq(all.state, API_JOB_FAILED);
    ck_assert_int_eq(all.error.code, _i ? API_RUN_FAILED : API_ACCURACY);
    ck_assert_str_eq(all.error.detail,
                     _i ? "target openvino: no" : "target tensorrt: too low");
    store_job_fini(&all);
}

/* A target that an earlier job answers, before the others are claimed. */
UNIT_TEST(answered)
{
    const struct store_asking same = {.identity = "sha256:i"};
    ck_assert_int_eq(add_asked("earlier", 0, NULL, &same), STORE_QUEUED);
    claim("earlier");
    end_as("earlier", &made);
    add_two("sha256:i");
    ck_assert_int_eq(state_of("two"), API_JOB_SUCCEEDED);
    ck_assert_int_eq(state_of("all"), API_JOB_RUNNING);
    claim("one");
    end_as("one", &made);
    ck_assert_int_eq(state_of("all"), API_JOB_SUCCEEDED);
}

UNIT_TEST(cancelled)
{
    const struct store_asking same = {.identity = "sha256:i"};
    add_two("sha256:i");
    ck_assert_int_eq(add_asked("joined", 0, NULL, &same), STORE_JOINED);
    claim("one");
    ck_assert(end("all", API_JOB_RUNNING, API_JOB_CANCELLED));
    ck_assert_int_eq(state_of("all"), API_JOB_CANCELLED);
    ck_assert_int_eq(state_of("one"), API_JOB_CANCELLED);
    ck_assert_int_eq(state_of("two"), API_JOB_CANCELLED);
    claim("joined"); /* whoever joined a target runs instead */
    struct store_job all = get("all");
    ck_assert_int_eq(all.changes, 3);
    store_job_fini(&all);
}

/* The list has the job alone, webhooks are told of it alone, and it goes as a whole. */
UNIT_TEST(one_for_all)
{
    const struct store_webhook hook = {.name = "h", .events = ",job.succeeded,"};
    const struct store_filter filter = {
        .state = API_N_JOB_STATES, .before = INT64_MAX, .limit = 10};
    struct store_job *jobs, gone, row;
    char(*ids)[JOB_ID_SIZE];
    size_t n;
    ck_assert(store_set_webhooks(store, &hook, 1, &problem));
    add_two(NULL);
    claim("one");
    end_as("one", &made);
    claim("two");
    end_as("two", &made);
    ck_assert(store_job_list(store, &filter, &jobs, &n, &problem));
    ck_assert_uint_eq(n, 1);
    ck_assert_str_eq(jobs[0].id, "all");
    ck_assert(strstr(jobs[0].deliveries, "job.succeeded"));
    store_job_fini(&jobs[0]);
    free(jobs);
    row = get("one");
    ck_assert_str_eq(row.deliveries, "[]");
    ck_assert_str_eq(row.parent, "all");
    store_job_fini(&row);
    ck_assert(store_target_get(store, "all", "openvino", &row, &problem));
    ck_assert_str_eq(row.id, "two");
    store_job_fini(&row);
    ck_assert(store_target_ids(store, "all", &ids, &n, &problem));
    ck_assert_uint_eq(n, 2);
    ck_assert_str_eq(ids[1], "two");
    free(ids);
    ck_assert(!store_job_remove(store, "one", STORE_REQUEST, &gone, &problem));
    ck_assert_int_eq(problem.code, API_IN_USE);
    problem = (struct api_problem){0};
    ck_assert(store_job_remove(store, "all", STORE_REQUEST, &gone, &problem));
    store_job_fini(&gone);
    ck_assert(!store_job_get(store, "two", &row, &problem));
    ck_assert_int_eq(problem.code, API_NOT_FOUND);
    ck_assert(!store_needs_blob(store, "sha256:r"));
}

UNIT_SUITE("store/targets", .setup = set_up, .teardown = tear_down)
