/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every metric, one row each: METRIC(NAME, TYPE, "name", LABELS, UNIT, "help").
 *
 * LABELS is a set of label values (metrics.c), one cell for each. UNIT: ONE counts, BYTES
 * and SECONDS say so; seconds are counted in microseconds. None has a label for a tenant, a
 * model or a client, and all are sums over all tenants.
 */
METRIC(BUILD_INFO, GAUGE, "qdqd_build_info", BUILD, ONE, "Versions; always 1.")
METRIC(START_TIME, GAUGE, "qdqd_start_time_seconds", NONE, SECONDS,
       "When the daemon started, since 1970.")
METRIC(READY, GAUGE, "qdqd_ready", NONE, ONE, "1 while jobs are taken, else 0.")
METRIC(REQUESTS, COUNTER, "qdqd_http_requests_total", ROUTE_STATUS, ONE,
       "Requests that were answered.")
METRIC(REQUEST_SECONDS, HISTOGRAM, "qdqd_http_request_seconds", ROUTE_ALONE, SECONDS,
       "From the head of a request to the end of its answer, with what the client "
       "asked to "
       "wait for.")
METRIC(RECEIVED, COUNTER, "qdqd_http_received_bytes_total", NONE, BYTES,
       "Bytes of the bodies of requests.")
METRIC(SENT, COUNTER, "qdqd_http_sent_bytes_total", NONE, BYTES,
       "Bytes of the bodies of answers, without those of event streams.")
METRIC(CONNECTIONS, GAUGE, "qdqd_http_connections", NONE, ONE, "Open connections.")
METRIC(QUEUE_JOBS, GAUGE, "qdqd_queue_jobs", NONE, ONE,
       "Jobs that wait for a lane, without those that joined another.")
METRIC(QUEUE_AGE, GAUGE, "qdqd_queue_oldest_seconds", NONE, SECONDS,
       "Age of the oldest of these; 0 without any.")
METRIC(JOBS, GAUGE, "qdqd_jobs", STATE, ONE, "Jobs on record.")
METRIC(
    SUBMITTED, COUNTER, "qdqd_jobs_submitted_total", HOW, ONE,
    "Jobs that were taken: put in the queue, answered by the result of an earlier one, "
    "or joined to one on its way.")
METRIC(ENDED, COUNTER, "qdqd_jobs_ended_total", STATE, ONE,
       "Jobs that ended, without those that were answered or had joined.")
METRIC(FAILED, COUNTER, "qdqd_job_errors_total", CODE, ONE,
       "Those of them that failed.")
METRIC(REQUEUED, COUNTER, "qdqd_jobs_requeued_total", NONE, ONE,
       "Jobs that went back to the queue because their worker ended.")
METRIC(OBSERVATIONS, COUNTER, "qdqd_observations_total", FOUND, ONE,
       "Looks for what an earlier calibration of the same model and data observed.")
METRIC(RUN_SECONDS, HISTOGRAM, "qdqd_job_run_seconds", NONE, SECONDS,
       "Time that a worker had a job.")
METRIC(STAGE_SECONDS, HISTOGRAM, "qdqd_stage_seconds", STAGE, SECONDS,
       "Time of a stage in a job.")
METRIC(WORKERS_STARTED, COUNTER, "qdqd_workers_started_total", NONE, ONE,
       "Worker processes that were started.")
METRIC(WORKERS_DIED, COUNTER, "qdqd_workers_died_total", NONE, ONE,
       "Worker processes that ended in the midst of work, or could not be started.")
METRIC(DISK, GAUGE, "qdqd_disk_bytes", STORED, BYTES,
       "What is stored, by what it is; what two kinds share counts for both.")
METRIC(DISK_USED, GAUGE, "qdqd_disk_used_bytes", NONE, BYTES,
       "What is stored in all, each file once for each tenant.")
METRIC(DISK_BUDGET, GAUGE, "qdqd_disk_budget_bytes", NONE, BYTES,
       "storage.max_bytes; 0: none.")
METRIC(DISK_FREE, GAUGE, "qdqd_disk_free_bytes", NONE, BYTES,
       "What is free of the disk of state.dir.")
