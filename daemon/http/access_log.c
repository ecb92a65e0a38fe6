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

void
watch_begin(struct request *request, uint32_t start, uint64_t n)
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

/* The job that it is about: the one that it made, or that its path names. */
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

void
watch_end(const struct request *request)
{
    struct metrics *metrics = request->service->metrics;
    int64_t us = clock_steady_us() - request->began;
    metrics_add(metrics, METRIC_RECEIVED, 0, (int64_t)request->received);
    metrics_add(metrics, METRIC_SENT, 0, (int64_t)request->sent);
    if (request->reply.status)
        metrics_request(metrics,
                        request->found ? (int)request->match.route : METRIC_NO_ROUTE,
                        request->reply.status, us);
    if (is_logged(request))
        log_request(request, us);
}
