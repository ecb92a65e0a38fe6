/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon counts, and its text for Prometheus. Any thread may count, at the cost of
 * an atomic addition or some. Where NULL is given for the metrics, nothing is counted.
 */
#ifndef QDQD_WATCH_METRICS_H
#define QDQD_WATCH_METRICS_H

#include "api/job.h"
#include "api/route.h"

enum metric {
#define METRIC(name, type, text, labels, unit, help) METRIC_##name,
#include "watch/metrics_table.h"
#undef METRIC
    N_METRICS
};

/* Cells of the metrics that have labels, beside routes, states, stages and codes. */
enum metric_how { METRIC_QUEUED, METRIC_ANSWERED, METRIC_JOINED, METRIC_N_HOW };
enum metric_found { METRIC_MISS, METRIC_HIT, METRIC_N_FOUND };
enum metric_stored {
    METRIC_STORED_MODEL,
    METRIC_STORED_DATASET,
    METRIC_STORED_BLOB,
    METRIC_STORED_RESULT,
    METRIC_STORED_OBSERVATIONS,
    METRIC_N_STORED
};

#define METRIC_NO_ROUTE API_N_ROUTES

struct metrics;

/* NULL when out of memory. */
struct metrics *metrics_new(void);
void metrics_free(struct metrics **metrics);

void metrics_add(struct metrics *metrics, enum metric metric, size_t cell, int64_t n);
void metrics_set(struct metrics *metrics, enum metric metric, size_t cell, int64_t n);
void metrics_observe(struct metrics *metrics, enum metric metric, size_t cell,
                     int64_t us);
/* One request to a route (METRIC_NO_ROUTE: to none), answered with a status. */
void metrics_request(struct metrics *metrics, int route, int status, int64_t us);

/* The text; the caller frees it. NULL when out of memory. */
char *metrics_encode(struct metrics *metrics);

#endif
