/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "watch/metrics.h"
#include "api/job.h"
#include "api/problem.h"
#include "qdq/quantize.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The linker defines the ends of a section; a program without any metric has none. */
extern const struct metric __start_qdqd_metrics[] __attribute__((weak));
extern const struct metric __stop_qdqd_metrics[] __attribute__((weak));

/* Upper bounds of the cells of a histogram, in microseconds. One further cell counts
   the larger values. */
static const int64_t bounds[] = {5000,     10000,    25000,    50000,     100000,
                                 250000,   500000,   1000000,  2500000,   5000000,
                                 10000000, 30000000, 60000000, 300000000, 1800000000};

#define N_BOUNDS (sizeof bounds / sizeof *bounds)
/* the cells, that of larger values, and the sum */
#define HISTOGRAM_CELLS (N_BOUNDS + 2)

/* --- labels --------------------------------------------------------------- */

static void
write_nothing(FILE *out, size_t cell)
{
    (void)out;
    (void)cell;
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
write_stage(FILE *out, size_t cell)
{
    fprintf(out, "stage=\"%s\"", qdq_stage_name((enum qdq_stage)cell));
}

const struct metric_labels metric_unlabelled = {.n = 1, .write = write_nothing};
const struct metric_labels metric_states = {.n = API_N_JOB_STATES,
                                            .write = write_state};
const struct metric_labels metric_codes = {
    .n = API_N_CODES, .write = write_code, .is_sparse = true};
const struct metric_labels metric_stages = {.n = QDQ_N_STAGES, .write = write_stage};

static void
write_labels(FILE *out, const struct metric_labels *labels, size_t cell)
{
    if (labels->write)
        labels->write(out, cell);
    else
        fprintf(out, "%s=\"%s\"", labels->label, labels->words[cell]);
}

/* --- counting ------------------------------------------------------------- */

/* A histogram has HISTOGRAM_CELLS cells for each cell of its labels. */
struct count {
    const struct metric_row *row;
    atomic_int_fast64_t *cells;
};

struct metrics {
    size_t n;
    struct count *counts;        /* in the order of the linker's section */
    const struct count **sorted; /* sorted by the metrics' names */
};

static size_t
width_of(const struct metric_row *row)
{
    return row->type == METRIC_HISTOGRAM ? HISTOGRAM_CELLS : 1;
}

static int
compare_names(const void *a, const void *b)
{
    const struct count *const *left = a, *const *right = b;
    return strcmp((*left)->row->name, (*right)->row->name);
}

struct metrics *
metrics_new(void)
{
    struct metrics *metrics = calloc(1, sizeof *metrics);
    if (!metrics)
        return NULL;
    metrics->n = (size_t)(__stop_qdqd_metrics - __start_qdqd_metrics);
    metrics->counts = calloc(metrics->n + 1, sizeof *metrics->counts);
    metrics->sorted = calloc(metrics->n + 1, sizeof *metrics->sorted);
    bool ok = metrics->counts && metrics->sorted;
    for (size_t i = 0; ok && i < metrics->n; i++) {
        const struct metric_row *row = __start_qdqd_metrics[i].row;
        struct count *count = &metrics->counts[i];
        *count = (struct count){
            row, calloc(row->labels->n * width_of(row), sizeof *count->cells)};
        metrics->sorted[i] = count;
        ok = count->cells;
    }
    if (ok)
        qsort(metrics->sorted, metrics->n, sizeof *metrics->sorted, compare_names);
    else
        metrics_free(&metrics);
    return metrics;
}

void
metrics_free(struct metrics **metrics)
{
    if (!*metrics)
        return;
    for (size_t i = 0; (*metrics)->counts && i < (*metrics)->n; i++)
        free((*metrics)->counts[i].cells);
    free((*metrics)->counts);
    free((*metrics)->sorted);
    free(*metrics);
    *metrics = NULL;
}

static atomic_int_fast64_t *
cell_of(struct metrics *metrics, const struct metric *metric, size_t cell)
{
    return &metrics->counts[metric - __start_qdqd_metrics].cells[cell];
}

void
metrics_add(struct metrics *metrics, const struct metric *metric, size_t cell,
            int64_t n)
{
    if (metrics)
        atomic_fetch_add_explicit(cell_of(metrics, metric, cell), n,
                                  memory_order_relaxed);
}

void
metrics_set(struct metrics *metrics, const struct metric *metric, size_t cell,
            int64_t n)
{
    if (metrics)
        atomic_store_explicit(cell_of(metrics, metric, cell), n, memory_order_relaxed);
}

void
metrics_observe(struct metrics *metrics, const struct metric *metric, size_t cell,
                int64_t us)
{
    size_t at = 0;
    while (at < N_BOUNDS && us > bounds[at])
        at++;
    metrics_add(metrics, metric, cell * HISTOGRAM_CELLS + at, 1);
    metrics_add(metrics, metric, cell * HISTOGRAM_CELLS + N_BOUNDS + 1, us);
}

/* --- writing -------------------------------------------------------------- */

/* Prints microseconds as seconds, whatever the locale. */
static void
write_value(FILE *out, enum metric_unit unit, int64_t n)
{
    if (unit == METRIC_SECONDS)
        fprintf(out, "%lld.%06lld\n", (long long)(n / 1000000),
                (long long)(n % 1000000));
    else
        fprintf(out, "%lld\n", (long long)n);
}

static void
write_series(FILE *out, const struct metric_row *row, const char *suffix, size_t cell,
             int bound)
{
    bool is_labelled = row->labels != &metric_unlabelled;
    fprintf(out, "%s%s", row->name, suffix);
    if (is_labelled || bound >= 0)
        fputc('{', out);
    write_labels(out, row->labels, cell);
    if (bound >= 0 && is_labelled)
        fputc(',', out);
    if (bound == (int)N_BOUNDS)
        fputs("le=\"+Inf\"", out);
    else if (bound >= 0)
        fprintf(out, "le=\"%g\"", (double)bounds[bound] / 1e6);
    fputs(is_labelled || bound >= 0 ? "} " : " ", out);
}

/* The count is the sum of the cells that were read, so both agree whatever is
   counted meanwhile. */
static void
write_histogram(FILE *out, const struct metric_row *row, size_t cell,
                const atomic_int_fast64_t *cells)
{
    int64_t count = 0;
    for (int i = 0; i <= (int)N_BOUNDS; i++) {
        count += cells[i];
        write_series(out, row, "_bucket", cell, i);
        write_value(out, METRIC_ONE, count);
    }
    write_series(out, row, "_sum", cell, -1);
    write_value(out, row->unit, cells[N_BOUNDS + 1]);
    write_series(out, row, "_count", cell, -1);
    write_value(out, METRIC_ONE, count);
}

static bool
is_zero(const atomic_int_fast64_t *cells, size_t n)
{
    while (n > 0 && cells[n - 1] == 0)
        n--;
    return n == 0;
}

static void
write_metric(FILE *out, const struct count *count)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};
    const struct metric_row *row = count->row;
    size_t width = width_of(row);
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", row->name, row->help, row->name,
            types[row->type]);
    for (size_t i = 0; i < row->labels->n; i++) {
        const atomic_int_fast64_t *cells = &count->cells[i * width];
        if (row->labels->is_sparse && is_zero(cells, width))
            continue;
        if (row->type == METRIC_HISTOGRAM) {
            write_histogram(out, row, i, cells);
        } else {
            write_series(out, row, "", i, -1);
            write_value(out, row->unit, *cells);
        }
    }
}

char *
metrics_encode(const struct metrics *metrics)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    for (size_t i = 0; i < metrics->n; i++)
        write_metric(out, metrics->sorted[i]);
    if (!fclose(out))
        return text;
    free(text);
    return NULL;
}
