/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "watch/metrics.h"
#include "api/problem.h"
#include "qdq/quantize.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum type { COUNTER, GAUGE, HISTOGRAM };
enum unit { ONE, BYTES, SECONDS };

#define LEAST_STATUS 100
#define N_STATUSES 500

/* Upper bounds of the cells of a histogram, in microseconds; one more takes the rest. */
static const int64_t bounds[] = {5000,     10000,    25000,    50000,     100000,
                                 250000,   500000,   1000000,  2500000,   5000000,
                                 10000000, 30000000, 60000000, 300000000, 1800000000};

#define N_BOUNDS (sizeof bounds / sizeof *bounds)
#define HISTOGRAM_CELLS (N_BOUNDS + 2) /* and the rest, and the sum */

/* --- labels --------------------------------------------------------------- */

static void
write_none(FILE *out, size_t cell)
{
    (void)out;
    (void)cell;
}

static void
write_build(FILE *out, size_t cell)
{
    (void)cell;
    fprintf(out, "version=\"%s\",engine=\"%s\"", PACKAGE_VERSION, qdq_version());
}

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

static void
write_state(FILE *out, size_t cell)
{
    fprintf(out, "state=\"%s\"", api_job_state_name((enum api_job_state)cell));
}

static void
write_code(FILE *out, size_t cell)
{
    fprintf(out, "code=\"%s\"", api_problem_slug((enum api_code)cell));
}

static void
write_how(FILE *out, size_t cell)
{
    static const char *const words[METRIC_N_HOW] = {"queued", "answered", "joined"};
    fprintf(out, "how=\"%s\"", words[cell]);
}

static void
write_found(FILE *out, size_t cell)
{
    static const char *const words[METRIC_N_FOUND] = {"miss", "hit"};
    fprintf(out, "result=\"%s\"", words[cell]);
}

static void
write_stage(FILE *out, size_t cell)
{
    fprintf(out, "stage=\"%s\"", qdq_stage_name((enum qdq_stage)cell));
}

static void
write_stored(FILE *out, size_t cell)
{
    static const char *const words[METRIC_N_STORED] = {"model", "dataset", "blob",
                                                       "result", "observations"};
    fprintf(out, "kind=\"%s\"", words[cell]);
}

enum labels {
    NONE,
    BUILD,
    ROUTE_STATUS,
    ROUTE_ALONE,
    STATE,
    CODE,
    HOW,
    FOUND,
    STAGE,
    STORED
};

/* Of a sparse set only the cells that are not 0 are written: most never will be. */
static const struct {
    size_t n;
    bool sparse;
    void (*write)(FILE *out, size_t cell);
} label_sets[] = {
    [NONE] = {1, false, write_none},
    [BUILD] = {1, false, write_build},
    [ROUTE_STATUS] = {(API_N_ROUTES + 1) * N_STATUSES, true, write_route_status},
    [ROUTE_ALONE] = {API_N_ROUTES + 1, true, write_route},
    [STATE] = {API_N_JOB_STATES, false, write_state},
    [CODE] = {API_N_CODES, true, write_code},
    [HOW] = {METRIC_N_HOW, false, write_how},
    [FOUND] = {METRIC_N_FOUND, false, write_found},
    [STAGE] = {QDQ_N_STAGES, false, write_stage},
    [STORED] = {METRIC_N_STORED, false, write_stored},
};

/* --- counting ------------------------------------------------------------- */

static const struct {
    const char *name, *help;
    enum type type;
    enum labels labels;
    enum unit unit;
} rows[N_METRICS] = {
#define METRIC(name, type, text, labels, unit, help) {text, help, type, labels, unit},
#include "watch/metrics_table.h"
#undef METRIC
};

struct metrics {
    atomic_int_fast64_t *cells[N_METRICS];
};

static size_t
width_of(enum metric metric)
{
    return rows[metric].type == HISTOGRAM ? HISTOGRAM_CELLS : 1;
}

struct metrics *
metrics_new(void)
{
    struct metrics *metrics = calloc(1, sizeof *metrics);
    for (int m = 0; metrics && m < N_METRICS; m++) {
        enum metric metric = (enum metric)m;
        metrics->cells[m] = calloc(label_sets[rows[m].labels].n * width_of(metric),
                                   sizeof *metrics->cells[m]);
        if (!metrics->cells[m])
            metrics_free(&metrics);
    }
    return metrics;
}

void
metrics_free(struct metrics **metrics)
{
    for (int m = 0; *metrics && m < N_METRICS; m++)
        free((*metrics)->cells[m]);
    free(*metrics);
    *metrics = NULL;
}

void
metrics_add(struct metrics *metrics, enum metric metric, size_t cell, int64_t n)
{
    if (metrics)
        atomic_fetch_add_explicit(&metrics->cells[metric][cell], n,
                                  memory_order_relaxed);
}

void
metrics_set(struct metrics *metrics, enum metric metric, size_t cell, int64_t n)
{
    if (metrics)
        atomic_store_explicit(&metrics->cells[metric][cell], n, memory_order_relaxed);
}

void
metrics_observe(struct metrics *metrics, enum metric metric, size_t cell, int64_t us)
{
    size_t at = 0;
    while (at < N_BOUNDS && us > bounds[at])
        at++;
    metrics_add(metrics, metric, cell * HISTOGRAM_CELLS + at, 1);
    metrics_add(metrics, metric, cell * HISTOGRAM_CELLS + N_BOUNDS + 1, us);
}

void
metrics_request(struct metrics *metrics, int route, int status, int64_t us)
{
    if (status >= LEAST_STATUS && status < LEAST_STATUS + N_STATUSES)
        metrics_add(metrics, METRIC_REQUESTS,
                    (size_t)(route * N_STATUSES + status - LEAST_STATUS), 1);
    metrics_observe(metrics, METRIC_REQUEST_SECONDS, (size_t)route, us);
}

/* --- writing -------------------------------------------------------------- */

/* Microseconds as seconds, whatever the locale. */
static void
write_value(FILE *out, enum unit unit, int64_t n)
{
    if (unit == SECONDS)
        fprintf(out, "%lld.%06lld\n", (long long)(n / 1000000),
                (long long)(n % 1000000));
    else
        fprintf(out, "%lld\n", (long long)n);
}

static void
write_series(FILE *out, enum metric metric, const char *suffix, size_t cell, int bound)
{
    fprintf(out, "%s%s", rows[metric].name, suffix);
    if (rows[metric].labels != NONE || bound >= 0)
        fputc('{', out);
    label_sets[rows[metric].labels].write(out, cell);
    if (bound >= 0 && rows[metric].labels != NONE)
        fputc(',', out);
    if (bound == (int)N_BOUNDS)
        fputs("le=\"+Inf\"", out);
    else if (bound >= 0)
        fprintf(out, "le=\"%g\"", (double)bounds[bound] / 1e6);
    fputs(rows[metric].labels != NONE || bound >= 0 ? "} " : " ", out);
}

/* The count is the sum of what was read, so both agree whatever is counted meanwhile. */
static void
write_histogram(FILE *out, enum metric metric, size_t cell,
                const atomic_int_fast64_t *cells)
{
    int64_t count = 0;
    for (int i = 0; i <= (int)N_BOUNDS; i++) {
        count += cells[i];
        write_series(out, metric, "_bucket", cell, i);
        write_value(out, ONE, count);
    }
    write_series(out, metric, "_sum", cell, -1);
    write_value(out, rows[metric].unit, cells[N_BOUNDS + 1]);
    write_series(out, metric, "_count", cell, -1);
    write_value(out, ONE, count);
}

static bool
is_zero(const atomic_int_fast64_t *cells, size_t n)
{
    while (n > 0 && cells[n - 1] == 0)
        n--;
    return n == 0;
}

static void
write_metric(FILE *out, const struct metrics *metrics, enum metric metric)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};
    size_t width = width_of(metric);
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", rows[metric].name, rows[metric].help,
            rows[metric].name, types[rows[metric].type]);
    for (size_t i = 0; i < label_sets[rows[metric].labels].n; i++) {
        const atomic_int_fast64_t *cells = &metrics->cells[metric][i * width];
        if (label_sets[rows[metric].labels].sparse && is_zero(cells, width))
            continue;
        if (rows[metric].type == HISTOGRAM) {
            write_histogram(out, metric, i, cells);
        } else {
            write_series(out, metric, "", i, -1);
            write_value(out, rows[metric].unit, *cells);
        }
    }
}

char *
metrics_encode(struct metrics *metrics)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    for (int m = 0; m < N_METRICS; m++)
        write_metric(out, metrics, (enum metric)m);
    if (!fclose(out))
        return text;
    free(text);
    return NULL;
}
