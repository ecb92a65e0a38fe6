/* SPDX-License-Identifier: Apache-2.0 */
/* The report that the caller gets, and what the stages behind the quantization find out about
   the attempt that was chosen. */
#ifndef QDQI_STAGES_REPORT_REPORT_H
#define QDQI_STAGES_REPORT_REPORT_H

#include "files/model/write.h"
#include "stages/attempt/attempt.h"

/* The report, and the objects that it points into. */
struct qdqi_report {
    struct qdq_report view; /* must be first: the caller has a pointer to it */
    struct qdqi_arena *arena;
    struct qdq_model *model;      /* that was given */
    struct qdqi_attempt *attempt; /* that was chosen */
};

struct qdqi_task;

struct qdqi_result {
    struct qdq_report *report;  /* gets the figures */
    struct qdqi_arena *arena;   /* the report's */
    struct qdqi_arena *scratch; /* freed with the job */
    struct qdqi_task *task; /* by which candidates may be judged; NULL: there is none */
    /* whether the runtime could not load the result, which has a format that it may
       lack */
    bool lacks_format;
    /* by output: the evaluation found that it is not floating point; NULL when there was
       no evaluation */
    const bool *not_float;
    /* file with the result as the session that judges it runs it; -1: there is none */
    int optimized;
    /* the nodes of the result as the session that judges it ran them; nodes is NULL: there are
       none, for the reason of no_nodes, if it is not NULL */
    struct qdqi_trace nodes;
    const char *no_nodes;
};

/* Returns an empty report, or NULL when out of memory. */
struct qdqi_report *qdqi_report_new(void);

/* Adds to the report the frozen spec, which contains the ranges that were found. *ret_source is
   the id of the data that they come from, or NULL. NO_MEMORY. */
enum qdq_code qdqi_report_freeze(const struct qdqi_attempt *attempt,
                                 const struct qdqi_result *result,
                                 const char **ret_source,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns the spec by which another job with the same data leaves the same layers in float, in the
   report's arena; NULL when out of memory. */
const struct qdq_spec *qdqi_report_leaving(const struct qdqi_result *result,
                                           const struct qdq_spec *spec,
                                           const char *const *layers, size_t n);

/* Warns of the layers whose weight the result has as integers, and in floating point for other nodes.
   NO_MEMORY. */
enum qdq_code qdqi_report_stored_twice(struct qdqi_attempt *attempt,
                                       struct qdq_error *err) QDQ_MUST_CHECK;

/* Adds everything that the attempt made. */
enum qdq_code qdqi_report_fill(const struct qdqi_attempt *attempt,
                               const struct qdqi_result *result,
                               struct qdq_error *err) QDQ_MUST_CHECK;

#endif
