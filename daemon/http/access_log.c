/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "http/access_log.h"
#include "base/clock.h"
#include "base/log.h"
#include "settings/settings.h"
#include "watch/metrics.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define LEAST_STATUS 100
#define N_STATUSES 500

/* Writes the labels of a cell: the index of a route, or API_N_ROUTES for requests
   that no route matches. */
static void
write_route(FILE *out, size_t cell)
{
    bool found = cell < API_N_ROUTES;
    fprintf(out, "method=\"%s\",route=\"%s\"", found ? api_routes[cell].method : "",
            found ? api_routes[cell].pattern : "none");
}

static void
write_route_status(FILE *out, size_t cell)
{
    write_route(out, cell / N_STATUSES);
    fprintf(out, ",status=\"%zu\"", cell % N_STATUSES + LEAST_STATUS);
}

static const struct metric_labels route_labels = {
    .n = API_N_ROUTES + 1, .write = write_route, .is_sparse = true};
static const struct metric_labels status_labels = {.n = (API_N_ROUTES + 1) * N_STATUSES,
                                                   .write = write_route_status,
                                                   .is_sparse = true};

METRIC(requests, COUNTER, "qdqd_http_requests_total", &status_labels, ONE,
       "Requests that were answered.");
METRIC(request_seconds, HISTOGRAM, "qdqd_http_request_seconds", &route_labels, SECONDS,
       "Time from the head of a request to the end of its answer, with the time that "
       "the client asked to wait.");
METRIC(received, COUNTER, "qdqd_http_received_bytes_total", &metric_unlabelled, BYTES,
       "Bytes of the bodies of requests.");
METRIC(sent, COUNTER, "qdqd_http_sent_bytes_total", &metric_unlabelled, BYTES,
       "Bytes of the bodies of answers, without those of event streams.");

void
access_log_begin(struct request *request, uint32_t start, uint64_t n)
{
    request->began = clock_steady_us();
    trace_begin(&request->trace, request_header(request, "X-Request-Id"),
                request_header(request, "traceparent"), start, n);
}

static bool
is_logged(const struct request *request)
{
    const char *which = request->service->settings->log_requests;
    if (request->found && !api_routes[request->match.route].is_logged)
        return false;
    return which[0] == 'a' || (which[0] == 'e' && request->reply.status >= 400);
}

static const char *
pattern_of(const struct request *request)
{
    return request->found ? api_routes[request->match.route].pattern : "none";
}

/* Returns the id of the job that the request made or that its path names, or "". */
static const char *
job_of(const struct request *request)
{
    const char *id = request->match.id;
    size_t len = strlen(id);
    if (*request->job)
        return request->job;
    if (strncmp(pattern_of(request), "/v1/jobs/", 9) != 0 || len >= JOB_ID_SIZE)
        return "";
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)id[i]))
            return "";
    return id;
}

static void
log_request(const struct request *request, int64_t us)
{
    const char *job = job_of(request), *parent = request->trace.parent;
    char about[sizeof request->match.id + 8] = "", trace[96] = "";
    if (*job)
        snprintf(about, sizeof about, " job=%s", job);
    if (*parent)
        snprintf(trace, sizeof trace, " trace=%.32s span=%.16s", parent + 3,
                 parent + 36);
    log_info("request",
             "request=%s tenant=%s method=%s route=%s status=%d seconds=%lld.%06lld "
             "received=%llu sent=%llu%s%s",
             request->trace.id,
             *request->service->tenant ? request->service->tenant : "-",
             request->found ? request->method : "-", pattern_of(request),
             request->reply.status, (long long)(us / 1000000),
             (long long)(us % 1000000), (unsigned long long)request->received,
             (unsigned long long)request->sent, about, trace);
}

static void
count_request(const struct request *request, int64_t us)
{
    struct metrics *metrics = request->service->metrics;
    size_t route = request->found ? request->match.route : API_N_ROUTES;
    int status = request->reply.status;
    metrics_add(metrics, &metric_received, 0, (int64_t)request->received);
    metrics_add(metrics, &metric_sent, 0, (int64_t)request->sent);
    if (status >= LEAST_STATUS && status < LEAST_STATUS + N_STATUSES)
        metrics_add(metrics, &metric_requests,
                    route * N_STATUSES + (size_t)(status - LEAST_STATUS), 1);
    if (status)
        metrics_observe(metrics, &metric_request_seconds, route, us);
}

void
access_log_end(const struct request *request)
{
    int64_t us = clock_steady_us() - request->began;
    count_request(request, us);
    if (is_logged(request))
        log_request(request, us);
}
