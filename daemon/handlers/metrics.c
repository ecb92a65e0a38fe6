/* SPDX-License-Identifier: Apache-2.0 */
/* GET /metrics. Counters are kept all the time; gauges of the stores are read when a
   client asks. */
#include "config.h"
#include "base/clock.h"
#include "handlers/handlers.h"
#include "library/bucket/bucket.h"
#include "library/bucket/cache.h"
#include "settings/settings.h"
#include "tenants/node.h"
#include "tenants/tenants.h"
#include "watch/metrics.h"

#include <stdlib.h>
#include <sys/statvfs.h>

METRIC(ready, GAUGE, "qdqd_ready", &metric_unlabelled, ONE,
       "1 while the daemon accepts jobs, else 0.");
METRIC(queue_jobs, GAUGE, "qdqd_queue_jobs", &metric_unlabelled, ONE,
       "Jobs that wait for a lane, without those that joined another.");
METRIC(queue_age, GAUGE, "qdqd_queue_oldest_seconds", &metric_unlabelled, SECONDS,
       "Age of the oldest job that waits for a lane; 0 when none does.");
METRIC(jobs, GAUGE, "qdqd_jobs", &metric_states, ONE, "Jobs on record.");
METRIC_WORDS(kind_labels, "kind", "model", "dataset", "blob", "result", "observations",
             "record");
METRIC(disk, GAUGE, "qdqd_disk_bytes", &kind_labels, BYTES,
       "Stored bytes by kind; bytes that two kinds share count for both.");
METRIC(disk_used, GAUGE, "qdqd_disk_used_bytes", &metric_unlabelled, BYTES,
       "All stored bytes, each file once for each tenant, and those of jobs on "
       "record.");
METRIC(disk_budget, GAUGE, "qdqd_disk_budget_bytes", &metric_unlabelled, BYTES,
       "The setting storage.max_bytes; 0: there is no budget.");
METRIC(disk_free, GAUGE, "qdqd_disk_free_bytes", &metric_unlabelled, BYTES,
       "Free bytes of the disk of state.dir.");

METRIC(damaged, COUNTER, "qdqd_blobs_damaged_total", &metric_unlabelled, ONE,
       "Stored files whose bytes were not those of their name, and that were set "
       "aside.");
METRIC(scrubbed, COUNTER, "qdqd_scrubbed_bytes_total", &metric_unlabelled, BYTES,
       "Bytes of stored files that were read to check them, beside those that were "
       "read for a job or a client.");

METRIC(nodes, GAUGE, "qdqd_nodes", &metric_unlabelled, ONE,
       "Daemons that share the record; 1 where none can.");
METRIC(
    running, GAUGE, "qdqd_node_running_jobs", &metric_unlabelled, ONE,
    "Jobs that this daemon runs, or whose inputs it fetches. qdqd_jobs counts those of "
    "all daemons that share the record.");
METRIC_WORDS(op_labels,
             "op", [BUCKET_PUT] = "put", [BUCKET_GET] = "get", [BUCKET_FIND] = "find",
             [BUCKET_REMOVE] = "remove", [BUCKET_LIST] = "list");
METRIC(bucket_requests, COUNTER, "qdqd_bucket_requests_total", &op_labels, ONE,
       "Requests of this daemon to the bucket of stored files; one that was repeated "
       "counts once.");
METRIC(bucket_failures, COUNTER, "qdqd_bucket_failures_total", &op_labels, ONE,
       "Requests that the bucket did not answer, or refused.");
METRIC(bucket_time, COUNTER, "qdqd_bucket_seconds_total", &op_labels, SECONDS,
       "Time of all requests to the bucket, with their wait for a process.");
METRIC(bucket_sent, COUNTER, "qdqd_bucket_sent_bytes_total", &metric_unlabelled, BYTES,
       "Bytes of objects that were stored in the bucket.");
METRIC(bucket_received, COUNTER, "qdqd_bucket_received_bytes_total", &metric_unlabelled,
       BYTES, "Bytes of objects that were fetched from the bucket.");
METRIC(cache_bytes, GAUGE, "qdqd_cache_bytes", &metric_unlabelled, BYTES,
       "Bytes of this daemon's cache of the bucket.");
METRIC(cache_budget, GAUGE, "qdqd_cache_budget_bytes", &metric_unlabelled, BYTES,
       "The setting blobs.cache; 0 where there is no bucket.");
METRIC_WORDS(open_labels, "result", "hit", "miss");
METRIC(
    cache_opens, COUNTER, "qdqd_cache_opens_total", &open_labels, ONE,
    "Stored files that were opened: from the cache (hit), or that had to be fetched.");
METRIC(cache_evicted, COUNTER, "qdqd_cache_evicted_bytes_total", &metric_unlabelled,
       BYTES, "Bytes that left the cache for others.");

/* The number of kinds in struct store_counts. */
enum { N_STORED = sizeof((struct store_counts *)0)->bytes / sizeof(int64_t) };

/* Sums over all tenants. */
struct sums {
    int64_t jobs[API_N_JOB_STATES], waiting, oldest, bytes[N_STORED], used, running;
    struct blobs_health health;
    struct api_problem problem;
};

static void
add_tenant(void *arg, const struct service *service)
{
    struct sums *sums = arg;
    struct store_counts counts;
    struct blobs_health health;
    if (!store_count(library_store(service->library), &counts, &sums->problem))
        return;
    for (int i = 0; i < API_N_JOB_STATES; i++)
        sums->jobs[i] += counts.jobs[i];
    for (int i = 0; i < N_STORED; i++)
        sums->bytes[i] += counts.bytes[i];
    sums->waiting += counts.waiting;
    sums->running += jobs_count_running(service->jobs);
    if (counts.oldest && (!sums->oldest || counts.oldest < sums->oldest))
        sums->oldest = counts.oldest;
    sums->used += (int64_t)(blobs_used(library_blobs(service->library)) +
                            store_record_bytes(library_store(service->library)));
    blobs_health(library_blobs(service->library), &health);
    sums->health.damaged += health.damaged;
    sums->health.scrubbed += health.scrubbed;
}

static void
set_sums(struct metrics *metrics, const struct sums *sums)
{
    int64_t age = sums->oldest ? clock_wall_ms() - sums->oldest : 0;
    for (size_t i = 0; i < API_N_JOB_STATES; i++)
        metrics_set(metrics, &metric_jobs, i, sums->jobs[i]);
    for (size_t i = 0; i < N_STORED; i++)
        metrics_set(metrics, &metric_disk, i, sums->bytes[i]);
    metrics_set(metrics, &metric_queue_jobs, 0, sums->waiting);
    metrics_set(metrics, &metric_running, 0, sums->running);
    metrics_set(metrics, &metric_queue_age, 0, age > 0 ? age * 1000 : 0);
    metrics_set(metrics, &metric_disk_used, 0, sums->used);
    metrics_set(metrics, &metric_damaged, 0, (int64_t)sums->health.damaged);
    metrics_set(metrics, &metric_scrubbed, 0, (int64_t)sums->health.scrubbed);
}

static void
set_bucket(struct metrics *metrics, const struct bucket *bucket)
{
    struct cache_figures cache;
    const struct bucket_figures *figures = bucket->figures;
    for (size_t i = 0; i < BUCKET_N_OPS; i++) {
        metrics_set(metrics, &metric_bucket_requests, i, figures->requests[i]);
        metrics_set(metrics, &metric_bucket_failures, i, figures->failed[i]);
        metrics_set(metrics, &metric_bucket_time, i, figures->us[i]);
    }
    metrics_set(metrics, &metric_bucket_sent, 0, figures->sent);
    metrics_set(metrics, &metric_bucket_received, 0, figures->received);
    cache_figures(bucket->cache, &cache);
    metrics_set(metrics, &metric_cache_bytes, 0, cache.used);
    metrics_set(metrics, &metric_cache_budget, 0, cache.most);
    metrics_set(metrics, &metric_cache_opens, 0, cache.hits);
    metrics_set(metrics, &metric_cache_opens, 1, cache.misses);
    metrics_set(metrics, &metric_cache_evicted, 0, cache.evicted);
}

static bool
set_nodes(struct metrics *metrics, struct tenants *tenants, struct api_problem *p)
{
    struct api_node *nodes = NULL;
    size_t n = 0;
    bool ok = node_list(tenants, &nodes, &n, p);
    metrics_set(metrics, &metric_nodes, 0, (int64_t)n);
    free(nodes);
    return ok;
}

void
handle_metrics(struct request *request)
{
    const struct service *service = request->service;
    struct metrics *metrics = service->metrics;
    struct sums sums = {0};
    struct statvfs disk;
    tenants_each(service->tenants, add_tenant, &sums);
    request->problem = sums.problem;
    if (sums.problem.set || !set_nodes(metrics, service->tenants, &request->problem))
        return;
    set_sums(metrics, &sums);
    metrics_set(metrics, &metric_ready, 0,
                !jobs_is_draining(service->jobs) && !pool_is_failing(service->pool) &&
                    tenants_have_blobs(service->tenants));
    if (tenants_bucket(service->tenants))
        set_bucket(metrics, tenants_bucket(service->tenants));
    metrics_set(metrics, &metric_disk_budget, 0, tenants_budget(service->tenants));
    if (statvfs(service->settings->state_dir, &disk) == 0)
        metrics_set(metrics, &metric_disk_free, 0,
                    (int64_t)(disk.f_bavail * disk.f_frsize));
    reply_text(request, 200, "text/plain; version=0.0.4; charset=utf-8",
               metrics_encode(metrics));
}
