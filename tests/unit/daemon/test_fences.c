/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two daemons share a record, and the first stands still for longer than its leases. Each of
 * its later writes is refused. With SQLite one daemon has the record: its claims have
 * no leases, and whatever was claimed stays its own.
 */
#include "config.h"

#include "stored_jobs.h"
#include "store/leader.h"
#include "store/outbox.h"

#include <time.h>

static int n_aside;         /* number of blobs that were set aside */
static struct store *other; /* the second daemon's; with SQLite the same */

static void
set_up_two(void)
{
    static char tenant[64];
    const struct timespec a_while = {0, 20 * 1000000};
    struct store_place place = {
        .url = getenv("QDQD_TEST_STORE"), .tenant = tenant, .lease_ms = 600000};
    set_up();
    n_aside = 0;
    other = store;
    if (!place.url)
        return;
    snprintf(tenant, sizeof tenant, "unit-%d", (int)getpid());
    ck_assert_msg(store_open_at(&place, &other, &problem), "%s", problem.detail);
    nanosleep(&a_while, NULL);
}

static void
tear_down_two(void)
{
    if (other != store)
        store_close(&other);
    tear_down();
}

static bool
is_shared(void)
{
    return store_is_shared(store);
}

/* The second daemon takes over what the first one has claimed. The leases of the first one
   last no time at all. */
static void
take_over(void)
{
    int64_t n;
    ck_assert(!is_shared() || store_recover(other, &n, &problem));
}

static struct store_job
claim_at(struct store *at)
{
    struct store_job job = {0};
    bool any;
    ck_assert(store_job_claim(at, 2000, true, &job, &any, &problem));
    ck_assert_int_eq(any, at == store || is_shared());
    return job;
}

static bool
ends(struct store *at, int64_t fence)
{
    const struct store_end how = {.state = API_JOB_SUCCEEDED, .fence = fence};
    struct store_ended ended;
    ck_assert(store_job_end(at, "j1", API_JOB_RUNNING, &how, 3000, &ended, &problem));
    return ended.was;
}

static bool
is_held(struct store *at, int64_t fence)
{
    const struct store_progress none = {.eta_s = -1};
    bool held;
    ck_assert(store_job_renew(at, "j1", fence, &none, &held, &problem));
    return held;
}

UNIT_TEST(jobs)
{
    bool was;
    add("j1", 0, NULL);
    struct store_job first = claim_at(store);
    take_over();
    if (is_shared()) {
        ck_assert(!is_held(store, first.fence));
        ck_assert(!ends(store, first.fence));
        struct store_job second = claim_at(other);
        ck_assert_int_eq(second.fence, first.fence + 1);
        ck_assert(is_held(other, second.fence));
        ck_assert(!is_held(store, first.fence));
        ck_assert(!ends(store, first.fence));
        ck_assert(store_job_requeue(store, "j1", first.fence, 1, &was, &problem));
        ck_assert(!was);
        ck_assert(ends(other, second.fence));
        store_job_fini(&second);
    } else {
        ck_assert(is_held(store, first.fence));
        ck_assert(ends(store, first.fence));
    }
    store_job_fini(&first);
}

static bool
delivers(struct store *at, const struct store_delivery *delivery)
{
    const struct store_attempt made = {.state = STORE_DELIVERED, .now = 10};
    bool held;
    ck_assert(store_delivery_end(at, delivery, &made, &held, &problem));
    return held;
}

UNIT_TEST(deliveries)
{
    static const struct store_webhook hook = {"told", ",job.succeeded,", NULL, NULL};
    struct store_delivery first, second;
    bool any, held;
    ck_assert(store_set_webhooks(store, &hook, 1, &problem));
    add("j1", 0, NULL);
    struct store_job job = claim_at(store);
    ck_assert(ends(store, job.fence));
    store_job_fini(&job);
    ck_assert(store_delivery_claim(store, 10, &first, &any, &problem) && any);
    take_over();
    ck_assert(store_delivery_claim(other, 10, &second, &any, &problem));
    ck_assert_int_eq(any, is_shared());
    ck_assert(store_delivery_renew(store, first.id, first.fence, &held, &problem));
    ck_assert_int_eq(held, !is_shared());
    if (is_shared()) {
        ck_assert_int_eq(second.fence, first.fence + 1);
        ck_assert_int_eq(second.attempts, 2);
        ck_assert(store_delivery_unclaim(store, &first, &problem));
        ck_assert(!delivers(store, &first));
        ck_assert(
            store_delivery_renew(other, second.id, second.fence, &held, &problem));
        ck_assert(held);
        ck_assert(delivers(other, &second));
        store_delivery_fini(&second);
    } else {
        ck_assert(delivers(store, &first));
    }
    store_delivery_fini(&first);
}

/* Stores what was fetched. Returns whether that was recorded. */
static bool
fetches(struct store *at, struct store_job *job)
{
    enum store_added added;
    bool was;
    free(job->model);
    job->model = strdup(model);
    ck_assert(store_fetch_done(at, job, NULL, &added, &was, &problem));
    return was;
}

UNIT_TEST(fetch)
{
    static char none[] = "", source[] = "{\"model\":null}";
    struct store_job first, second,
        job = {.id = "j1", .model = none, .source = source, .fetching = true};
    enum store_added added;
    bool any, held;
    add_inputs();
    ck_assert(store_job_add(store, &job, &(struct store_asking){0}, &added, &problem));
    ck_assert(store_fetch_claim(store, 10, &first, &any, &problem) && any);
    take_over();
    ck_assert(store_fetch_claim(other, 10, &second, &any, &problem));
    ck_assert_int_eq(any, is_shared());
    if (is_shared()) {
        const struct store_fetch_wait wait = {.fence = first.fence, .charge = 1};
        ck_assert(store_fetch_later(store, "j1", &wait, &held, &problem) && !held);
        ck_assert(!fetches(store, &first));
        ck_assert(fetches(other, &second));
        store_job_fini(&second);
    } else {
        ck_assert(fetches(store, &first));
    }
    store_job_fini(&first);
}

static void
count_aside(void *arg, const char *id)
{
    ck_assert_ptr_eq(arg, &n_aside);
    ck_assert_str_eq(id, "sha256:b");
    n_aside++;
}

/* Sweeps a blob that no row names, at `now`. Returns whether it was set aside. */
static bool
sweeps_blob(struct store *at, int64_t now)
{
    const struct store_blob_sweep sweep = {now, 1000, count_aside, &n_aside};
    bool gone;
    ck_assert(store_sweep_blob(at, "sha256:b", &sweep, &gone, &problem));
    return gone;
}

/* The sweep of a daemon that leads no more removes neither jobs, files nor blobs; requests
   to it do. */
UNIT_TEST(leader)
{
    const struct store_blob_sweep sweep = {0, 0, count_aside, &n_aside};
    struct store_job gone;
    bool aside;
    add("j1", 0, NULL);
    struct store_job job = claim_at(store);
    ck_assert(ends(store, job.fence));
    store_job_fini(&job);
    ck_assert(store_lead(store, "first", &problem) && store_leads(store));
    if (is_shared()) {
        ck_assert(store_lead(other, "second", &problem) && store_leads(other));
        ck_assert(!store_job_remove(store, "j1", STORE_SWEEP, &gone, &problem));
        ck_assert_int_eq(problem.code, API_CANCELLED);
        problem = (struct api_problem){0};
        ck_assert(!store_file_remove(store, STORE_MODEL, model, STORE_SWEEP, &problem));
        ck_assert_int_eq(problem.code, API_CANCELLED);
        problem = (struct api_problem){0};
        ck_assert(!store_sweep_blob(store, "sha256:b", &sweep, &aside, &problem));
        ck_assert_int_eq(problem.code, API_CANCELLED);
        problem = (struct api_problem){0};
        ck_assert(!store_still_leads(store, &problem));
        problem = (struct api_problem){0};
        ck_assert(store_lead(store, "first", &problem) && !store_leads(store));
        ck_assert(store_lead(other, "second", &problem) && store_leads(other));
        ck_assert(!sweeps_blob(other, 1000)); /* it gets a mark */
        ck_assert(!sweeps_blob(other, 1999));
        ck_assert(
            store_unmark_blobs(store, (char[1][DIGEST_SIZE]){"sha256:b"}, 1, &problem));
        ck_assert(!sweeps_blob(other, 2000)); /* which begins anew */
        ck_assert(!sweeps_blob(other, 2999));
        ck_assert(sweeps_blob(other, 3000));
        ck_assert_int_eq(n_aside, 1);
    }
    ck_assert(store_file_remove(store, STORE_DATASET, data, STORE_REQUEST, &problem));
    ck_assert(store_job_remove(other, "j1", STORE_SWEEP, &gone, &problem));
    store_job_fini(&gone);
    ck_assert(store_file_remove(other, STORE_MODEL, model, STORE_SWEEP, &problem));
    ck_assert(store_lead_end(other, &problem));
    ck_assert(!is_shared() ||
              (store_lead(store, "first", &problem) && store_leads(store)));
}

UNIT_SUITE("daemon/fences", .setup = set_up_two, .teardown = tear_down_two)
