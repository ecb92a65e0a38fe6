/* SPDX-License-Identifier: Apache-2.0 */
/* Several reports in one table, and in one picture of accuracy against latency and size. */
#ifndef API_OVERVIEW_H
#define API_OVERVIEW_H

#include <stdbool.h>
#include <stddef.h>

/* A report, the text of api_report_encode(), and what its row is called: `name`, or else the label `name` of
   its job and the begin of that job's id. A result that failed has the slug of a problem and its detail, and no report, or that of a missed bound. */
struct api_overviewed {
    const char *name; /* NULL: there is a job */
    const char *json; /* NULL: there is none */
    size_t len;
    const char *problem, *detail; /* NULL: it did not fail */
    const char *job;              /* the id of its job; NULL: it has none */
    const char *labels;           /* of that job, JSON; NULL: it has none */
};

/*
 * The figures of one report. Those of the runtime that runs the result stand before those of the
 * literal arithmetic, whose `runtime` is "". A figure that the report lacks is NAN.
 */
struct api_overview_row {
    char target[32], verdict[16], runtime[64];
    int layers, quantized_layers, samples;
    double sqnr_db,
        p5_db; /* of the worst output; p5: the 5th percentile of single samples */
    double size_ratio, latency_ratio; /* to the float model */
    /* the runtime and the processor whose latencies the row has, of the result or of its frontier; "" */
    char latency_runtime[64], processor[96];
    char latency_omitted[256]; /* why the result has no latency; "" */
};

/* Reads the figures. Returns false where the text is no report. */
bool api_overview_read(const struct api_overviewed *report,
                       struct api_overview_row *ret);

/* A sentence about latencies that several runtimes or processors took. */
extern const char api_overview_differ[];
/* Returns whether both rows have latencies, by different runtimes or processors. */
bool api_overview_differs(const struct api_overview_row *a,
                          const struct api_overview_row *b);

/* Returns a page of HTML with the table and the pictures, under the policy of api_html_policy(). The
   caller frees it; NULL when out of memory or when a text is no report. */
char *api_overview_html(const struct api_overviewed *reports, size_t n);
/* Returns the tables alone: {"results": [a row for each report], "failed": [name, code, detail]}. The
   same holds. */
char *api_overview_encode(const struct api_overviewed *reports, size_t n);

#endif
