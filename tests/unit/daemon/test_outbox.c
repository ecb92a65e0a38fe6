/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that fetch, and the deliveries of jobs that have ended. */
#include "config.h"

#include "stored_jobs.h"
#include "store/outbox.h"

#define PUBLISH                                                                 \
    "[{\"remote\":\"prod\",\"ref\":\"models:/a\"},{\"remote\":\"far\",\"ref\":" \
    "\"models:/b\",\"tags\":{\"k\":\"v\"}}]"

static char publish[] = PUBLISH, none[] = "", source[] = "{\"model\":null}";

static struct store_job
get(const char *id)
{
    struct store_job job;
    ck_assert_msg(store_job_get(store, id, &job, &problem), "%s", problem.detail);
    return job;
}

static void
check_deliveries(const char *id, const char *expected)
{
    struct store_job job = get(id);
    ck_assert_str_eq(job.deliveries, expected);
    store_job_fini(&job);
}

/* Adds a job that publishes, or one that fetches its model. */
static enum store_added
add_with(const char *id, char *to, bool fetches, char *labels, const char *identity)
{
    enum store_added added;
    const struct store_asking asking = {.identity = identity};
    struct store_job job = {.created_at = 1000,
                            .model = fetches ? none : model,
                            .calibration = fetches ? NULL : data,
                            .publish = to,
                            .labels = labels,
                            .source = fetches ? source : NULL,
                            .fetching = fetches};
    snprintf(job.id, sizeof job.id, "%s", id);
    add_inputs();
    ck_assert_msg(store_job_add(store, &job, &asking, &added, &problem), "%s",
                  problem.detail);
    return added;
}

static bool told; /* there may be deliveries of the last end */

static bool
end_as(const char *id, enum api_job_state state, enum api_code code)
{
    struct api_problem error = {.set = true, .code = code};
    struct store_end how = {.state = state, .error = code ? &error : NULL};
    struct store_ended ended;
    ck_assert(store_job_end(store, id, API_JOB_RUNNING, &how, 3000, &ended, &problem));
    told = ended.tells;
    return ended.was;
}

#define ROW(id, remote, ref, event, state, attempts, location, error)               \
    "{\"id\":\"" id "\",\"remote\":\"" remote "\",\"ref\":" ref ",\"event\":" event \
    ",\"state\":\"" state "\",\"attempts\":" attempts ",\"location\":" location     \
    ",\"error\":" error "}"

/* Only a job that succeeded publishes, whatever way it got there. */
UNIT_TEST(publications)
{
    static const char two[] =
        "[" ROW("d1-0", "prod", "\"models:/a\"", "null", "pending", "0", "null",
                "null") "," ROW("d1-1", "far", "\"models:/b\"", "null", "pending", "0",
                                "null", "null") "]";
    add_with("j1", publish, false, NULL, "same");
    check_deliveries("j1", "[]");
    ck_assert_int_eq(add_with("j2", publish, false, NULL, "same"), STORE_JOINED);
    claim("j1");
    ck_assert(end_as("j1", API_JOB_SUCCEEDED, 0));
    reopen();
    check_deliveries("j1", two);
    ck_assert_int_eq(add_with("j3", publish, false, NULL, "same"), STORE_ANSWERED);
    for (int i = 0; i < 2; i++) {
        struct store_job job = get(i ? "j3" : "j2");
        ck_assert_uint_eq(strlen(job.deliveries), sizeof two - 1);
        store_job_fini(&job);
    }
    ck_assert(told);
    add_with("j4", publish, false, NULL, NULL);
    claim("j4");
    ck_assert(end_as("j4", API_JOB_FAILED, API_ACCURACY));
    check_deliveries("j4", "[]");
    add_with("j5", NULL, false, NULL, NULL);
    claim("j5");
    ck_assert(end_as("j5", API_JOB_SUCCEEDED, 0));
    ck_assert(!told);
    struct store_job gone;
    ck_assert(store_job_remove(store, "j1", STORE_REQUEST, &gone, &problem));
    store_job_fini(&gone);
}

/* Ends an attempt at time 10. Returns whether the claim was the last one. */
static bool
end_attempt(const struct store_delivery *delivery, enum store_delivery_state state,
            const char *location, const char *error, int64_t wait_ms)
{
    const struct store_attempt made = {state, location, error, 10, wait_ms};
    bool held;
    ck_assert_msg(store_delivery_end(store, delivery, &made, &held, &problem), "%s",
                  problem.detail);
    return held;
}

/* Returns how long it is until something is due, at time 10. */
static int64_t
waits(void)
{
    int64_t ms;
    ck_assert(store_outbox_wait(store, 10, true, true, &ms, &problem));
    return ms;
}

static struct store_delivery
take(const char *id, int64_t now)
{
    struct store_delivery got = {0};
    bool any;
    ck_assert(store_delivery_claim(store, now, &got, &any, &problem));
    ck_assert_int_eq(any, id != NULL);
    if (any)
        ck_assert_str_eq(got.id, id);
    return got;
}

/* A delivery is claimed by one thread, waits for its time, survives a crash, and is tried
   again when it has failed. */
UNIT_TEST(deliveries)
{
    char oldest[JOB_ID_SIZE];
    bool any;
    ck_assert_int_eq(waits(), -1);
    add_with("j1", publish, false, NULL, NULL);
    claim("j1");
    ck_assert(end_as("j1", API_JOB_SUCCEEDED, 0));
    ck_assert_int_eq(waits(), 0);
    struct store_delivery first = take("d1-0", 10), second = take("d1-1", 10);
    ck_assert_str_eq(first.job, "j1");
    ck_assert_str_eq(first.remote, "prod");
    ck_assert_ptr_null(first.event);
    ck_assert_str_eq(second.publication, "{\"remote\":\"far\",\"ref\":\"models:/b\","
                                         "\"tags\":{\"k\":\"v\"}}");
    take(NULL, 10);
    ck_assert(end_attempt(&first, STORE_PENDING, NULL,
                          "{\"code\":\"remote_unavailable\"}", 490));
    ck_assert(!end_attempt(&first, STORE_DELIVERED, NULL, NULL, 0));
    ck_assert_int_eq(waits(), 490);
    take(NULL, 499);
    ck_assert(store_oldest_job(store, INT64_C(1) << 60, 0, oldest, &any, &problem));
    ck_assert(!any);
    store_delivery_fini(&first);
    reopen();
    int64_t n;
    ck_assert(store_recover(store, &n, &problem));
    store_delivery_fini(&second);
    second = take("d1-1", 20);
    ck_assert_int_eq(second.attempts, 2);
    ck_assert(!store_delivery_retry(store, "j1", "d1-1", &problem));
    ck_assert_int_eq(problem.code, API_ENDED);
    problem = (struct api_problem){0};
    ck_assert(!store_delivery_retry(store, "j2", "d1-1", &problem));
    ck_assert_int_eq(problem.code, API_NOT_FOUND);
    problem = (struct api_problem){0};
    ck_assert(end_attempt(&second, STORE_UNDELIVERED, NULL,
                          "{\"code\":\"remote_denied\"}", 0));
    first = take("d1-0", 500);
    ck_assert(end_attempt(&first, STORE_DELIVERED, "models:/a/1", NULL, 0));
    check_deliveries("j1", "[" ROW("d1-0", "prod", "\"models:/a\"", "null", "delivered",
                                   "2", "\"models:/a/1\"",
                                   "null") "," ROW("d1-1", "far", "\"models:/b\"",
                                                   "null", "failed", "2", "null",
                                                   "{\"code\":\"remote_denied\"}") "]");
    ck_assert(store_oldest_job(store, INT64_C(1) << 60, 0, oldest, &any, &problem));
    ck_assert(any);
    ck_assert(store_delivery_retry(store, "j1", "d1-1", &problem));
    store_delivery_fini(&second);
    second = take("d1-1", 20);
    ck_assert_int_eq(second.attempts, 1);
    ck_assert(store_delivery_unclaim(store, &second, &problem));
    store_delivery_fini(&first);
    store_delivery_fini(&second);
}

static const struct store_webhook hooks[] = {
    {"all", ",job.succeeded,job.failed,job.rejected,delivery.failed,", NULL, NULL},
    {"some", ",job.failed,", NULL, NULL},
    {"ours", ",job.succeeded,delivery.failed,", "team", "a"},
};

/* How a job ends, its labels, and the webhooks that are told of what. */
static const struct {
    enum api_job_state state;
    enum api_code code;
    const char *labels, *first, *second;
} ends[] = {
    {API_JOB_SUCCEEDED, 0, NULL, "d1-succeeded-all", NULL},
    {API_JOB_SUCCEEDED, 0, "{\"team\":\"a\"}", "d1-succeeded-all", "d1-succeeded-ours"},
    {API_JOB_SUCCEEDED, 0, "{\"team\":\"b\"}", "d1-succeeded-all", NULL},
    {API_JOB_FAILED, API_NONFINITE, NULL, "d1-failed-all", "d1-failed-some"},
    {API_JOB_FAILED, API_ACCURACY, NULL, "d1-rejected-all", NULL},
    {API_JOB_CANCELLED, 0, NULL, NULL, NULL},
};

UNIT_ROWS(events, ends)
{
    ck_assert(store_set_webhooks(store, hooks, 1, &problem));
    ck_assert(store_set_webhooks(store, hooks, 3, &problem));
    char *labels = ends[_i].labels ? strdup(ends[_i].labels) : NULL;
    add_with("j1", NULL, false, labels, NULL);
    free(labels);
    claim("j1");
    ck_assert(end_as("j1", ends[_i].state, ends[_i].code));
    ck_assert(told);
    struct store_delivery got = take(ends[_i].first, 0);
    store_delivery_fini(&got);
    got = take(ends[_i].second, 0);
    store_delivery_fini(&got);
    take(NULL, 0);
}

/* The failure of a publication is an event, that of an event is none. */
UNIT_TEST(failed_deliveries)
{
    ck_assert(store_set_webhooks(store, hooks, 3, &problem));
    char labels[] = "{\"team\":\"a\"}", one[] = "[{\"remote\":\"x\",\"ref\":\"y\"}]";
    add_with("j1", one, false, labels, NULL);
    claim("j1");
    ck_assert(end_as("j1", API_JOB_SUCCEEDED, 0));
    for (const char *const *id =
             (const char *const[]){"d1-0", "d1-succeeded-all", "d1-succeeded-ours",
                                   "d1-0-failed1-all", "d1-0-failed1-ours", NULL};
         *id; id++) {
        struct store_delivery got = take(*id, 0);
        ck_assert(end_attempt(&got, STORE_UNDELIVERED, NULL, "{}", 0));
        store_delivery_fini(&got);
    }
    take(NULL, 0);
}

/* Lets the fetch of j1 wait at time 10. Returns whether the claim was the last one. */
static bool
wait_for(int charge, int64_t for_ms, int64_t fence)
{
    const struct store_fetch_wait wait = {fence, charge, 10, for_ms};
    bool held;
    ck_assert(store_fetch_later(store, "j1", &wait, &held, &problem));
    return held;
}

/* No lane claims a job before its files are there, and no attempt is lost in a crash. */
UNIT_TEST(fetches)
{
    struct store_job job;
    int64_t n;
    bool any, was;
    enum store_added added;
    add_with("j1", NULL, true, NULL, NULL);
    claim(NULL);
    ck_assert(store_queue_length(store, &n, &problem) && n == 0);
    ck_assert(store_job_position(store, "j1", &n, &problem) && n == 0);
    ck_assert(store_fetch_claim(store, 5, &job, &any, &problem) && any);
    ck_assert(job.fetching && job.fetch_attempts == 0);
    ck_assert_str_eq(job.model, "");
    store_job_fini(&job);
    ck_assert(store_fetch_claim(store, 5, &job, &any, &problem) && !any);
    ck_assert(wait_for(1, 40, 0));
    ck_assert_int_eq(waits(), 40);
    ck_assert(store_fetch_claim(store, 49, &job, &any, &problem) && !any);
    ck_assert(store_fetch_claim(store, 50, &job, &any, &problem) && any);
    ck_assert_int_eq(job.fetch_attempts, 1);
    store_job_fini(&job);
    reopen();
    ck_assert(store_recover(store, &n, &problem));
    ck_assert(store_fetch_claim(store, 50, &job, &any, &problem) && any);
    store_job_fini(&job);
    job = get("j1");
    free(job.model);
    job.model = strdup("sha256:gone");
    ck_assert(store_fetch_done(store, &job, "same", &added, &was, &problem) && !was);
    free(job.model);
    job.model = strdup(model);
    job.calibration = strdup(data);
    ck_assert(store_fetch_done(store, &job, "same", &added, &was, &problem) && was);
    ck_assert_int_eq(added, STORE_QUEUED);
    store_job_fini(&job);
    claim("j1");
    add_with("j2", NULL, true, NULL, NULL);
    ck_assert(store_fetch_claim(store, 50, &job, &any, &problem) && any);
    free(job.model);
    job.model = strdup(model);
    ck_assert(store_fetch_done(store, &job, "same", &added, &was, &problem) && was);
    ck_assert_int_eq(added, STORE_JOINED);
    store_job_fini(&job);
}

/* A cancelled job takes no files any more. */
UNIT_TEST(cancelled_fetch)
{
    struct store_job job;
    bool any, was;
    enum store_added added;
    add_with("j1", NULL, true, NULL, NULL);
    ck_assert(store_fetch_claim(store, 5, &job, &any, &problem) && any);
    ck_assert(end("j1", API_JOB_QUEUED, API_JOB_CANCELLED));
    free(job.model);
    job.model = strdup(model);
    ck_assert(store_fetch_done(store, &job, NULL, &added, &was, &problem) && !was);
    ck_assert(!wait_for(1, 0, 0));
    store_job_fini(&job);
    ck_assert(store_fetch_claim(store, 50, &job, &any, &problem) && !any);
}

UNIT_TEST(fetched)
{
    const struct store_fetched key = {"prod", "models:/a/1", "m-1", STORE_MODEL};
    const struct store_fetched other = {"prod", "models:/a/1", "m-2", STORE_MODEL};
    char id[DIGEST_SIZE];
    bool any;
    ck_assert(store_fetched_put(store, &key, model, &problem));
    ck_assert(store_fetched_get(store, &key, id, &any, &problem) && !any);
    add_inputs();
    ck_assert(store_fetched_put(store, &key, model, &problem));
    ck_assert(store_fetched_get(store, &key, id, &any, &problem) && any);
    ck_assert_str_eq(id, model);
    ck_assert(store_fetched_get(store, &other, id, &any, &problem) && !any);
    ck_assert(store_file_remove(store, STORE_MODEL, model, STORE_REQUEST, &problem));
    ck_assert(store_fetched_get(store, &key, id, &any, &problem) && !any);
}

UNIT_SUITE("daemon/outbox", .setup = set_up, .teardown = tear_down)
