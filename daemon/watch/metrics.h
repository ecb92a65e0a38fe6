/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics and their text for Prometheus (docs/extend/adding-a-metric.md). A metric is defined
 * by one row in the file that counts it; the linker collects the rows of all files.
 *
 * Any thread may count; that takes one atomic addition or a few. Nothing is counted
 * where the metrics are NULL. No metric has a label for a tenant, a model or a client:
 * all are sums over all tenants.
 */
#ifndef QDQD_WATCH_METRICS_H
#define QDQD_WATCH_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };
/* Seconds are counted in microseconds. */
enum metric_unit { METRIC_ONE, METRIC_BYTES, METRIC_SECONDS };

/* The label of a metric. Each of its values has a cell of its own. */
struct metric_labels {
    size_t n;
    void (*write)(FILE *out,
                  /* writes label="value"; NULL: the value is one of `words` */
                  size_t cell);
    const char *label;
    const char *const *words; /* the label's value for each cell */
    bool is_sparse;           /* only cells that are not 0 are written */
};

/* A label whose values are words: METRIC_WORDS(directions, "direction", "in", "out") */
#define METRIC_WORDS(labels, name, ...)                                    \
    static const struct metric_labels labels = {                           \
        sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *), \
        NULL,                                                              \
        name,                                                              \
        (const char *const[]){__VA_ARGS__},                                \
        false,                                                             \
    }

extern const struct metric_labels metric_unlabelled; /* one cell */
extern const struct metric_labels metric_states; /* one for each enum api_job_state */
extern const struct metric_labels metric_codes;  /* one for each enum api_code */
extern const struct metric_labels metric_stages; /* one for each enum qdq_stage */

struct metric_row {
    const char *name, *help;
    enum metric_type type;
    const struct metric_labels *labels;
    enum metric_unit unit;
};
/* A pointer to a row. The linker makes an array of the pointers of all files. */
struct metric {
    const struct metric_row *row;
};

/*
 * Defines the metric metric_ID for this file:
 * METRIC(id, COUNTER | GAUGE | HISTOGRAM, "qdqd_…", &labels, ONE | BYTES | SECONDS, "help");
 */
#define METRIC(id, type, name, labels, unit, help)                               \
    static const struct metric_row metric_row_##id = {name, help, METRIC_##type, \
                                                      labels, METRIC_##unit};    \
    static const struct metric metric_##id                                       \
        __attribute__((section("qdqd_metrics"), used)) = {&metric_row_##id}

struct metrics;

/* Returns NULL when out of memory. */
struct metrics *metrics_new(void);
void metrics_free(struct metrics **metrics);

void metrics_add(struct metrics *metrics, const struct metric *metric, size_t cell,
                 int64_t n);
void metrics_set(struct metrics *metrics, const struct metric *metric, size_t cell,
                 int64_t n);
void metrics_observe(struct metrics *metrics, const struct metric *metric, size_t cell,
                     int64_t us);

/* Prints the metrics, sorted by name. The caller frees the text. Returns NULL when
   out of memory. */
char *metrics_encode(const struct metrics *metrics);

#endif
