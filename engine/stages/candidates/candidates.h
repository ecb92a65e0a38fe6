/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The candidates of a recipe: the present plan with some of its layers in float. A
 * candidate is planned as its frozen spec would be, and judged.
 */
#ifndef QDQI_STAGES_CANDIDATES_CANDIDATES_H
#define QDQI_STAGES_CANDIDATES_CANDIDATES_H

#include "stages/candidates/comparer.h"
#include "stages/candidates/grade.h"
#include "stages/report/report.h"
#include "stages/task/task.h"

/* The number of candidates for which a bound on the inferences should be enough. */
enum { QDQI_CANDIDATES = 48 };

struct qdqi_candidates {
    struct qdqi_attempt *attempt; /* that the candidates differ from, with scales */
    struct qdqi_result *result;
    struct qdqi_comparer *comparer;
    const char *reason; /* of the layers that stay in float; a literal */
    bool selected; /* layers that an entry or a case selects may stay in float, too */
    double goal_db;
    /* A candidate with a lower top-1 agreement is not as good as goal_db; NAN: none. */
    double min_top1;
    /* A candidate whose figure of the task falls by more than max_drop is not as good as goal_db;
       NULL: the task is no goal. */
    struct qdqi_task *task;
    double max_drop;
    double max_size,
        max_latency; /* bounds of the ratios to the float model; NAN: none */
    /* Filled in by qdqi_candidates_find(): */
    const char **names; /* by layer that may stay in float */
    double *costs;      /* likewise: an estimate of its multiplications */
    /* likewise: the noise of its quantized tensors as a part of their signal, by the
       histograms of the calibration; 0 where there are none */
    double *noise;
    bool *
        only_stored; /* likewise: integers are stored, and nothing computes with them */
    size_t n;
};

/* Finds the layers that may stay in float. */
enum qdq_code qdqi_candidates_find(struct qdqi_candidates *candidates,
                                   struct qdq_error *err) QDQ_MUST_CHECK;

/* Lists the names of the layers that a choice leaves in float. */
enum qdq_code qdqi_candidates_list(const struct qdqi_candidates *candidates,
                                   const bool *is_float, struct qdqi_arena *arena,
                                   const char *const **ret, size_t *ret_n,
                                   struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns the score of a candidate that cannot be made. */
struct qdqi_grade qdqi_no_grade(const struct qdqi_candidates *candidates);

/* Decides what a trial that ended with `code` and `why` means: an error that says only that
   this candidate cannot be made is a score, every other one ends the job. */
enum qdq_code qdqi_candidates_outcome(const struct qdqi_candidates *candidates,
                                      enum qdq_code code, const struct qdq_error *why,
                                      struct qdqi_grade *ret,
                                      struct qdq_error *err) QDQ_MUST_CHECK;

/* Judges an attempt that has scales. */
enum qdq_code qdqi_candidates_grade(struct qdqi_candidates *candidates,
                                    const struct qdqi_attempt *attempt,
                                    struct qdqi_grade *ret,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

/* Judges a choice, for qdqi_group_search(). `arg` is the struct qdqi_candidates. */
enum qdq_code qdqi_candidates_score(void *arg, const bool *is_float,
                                    struct qdqi_grade *ret,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

/* Measures the time of a choice alone; *ret is NAN where it cannot be made, or measured. CANCELLED, IO. */
enum qdq_code qdqi_candidates_time(const struct qdqi_candidates *candidates,
                                   const bool *is_float, double *ret,
                                   struct qdq_error *err) QDQ_MUST_CHECK;

/* Gives a grade a time, NAN: none, and what follows from it. */
void qdqi_candidates_set_time(const struct qdqi_candidates *candidates,
                              double latency_ratio, struct qdqi_grade *grade);

/*
 * Chooses the samples that candidates are judged by: those that calibration did not read;
 * where these are too few to judge by, its last ones, too. *ret_bound is twice the inferences of calibration and evaluation,
 * `times` over; a bound that is counted in inferences does not depend on the time.
 */
enum qdq_code qdqi_candidates_samples(const struct qdqi_attempt *a, int64_t times,
                                      struct qdqi_feed_options *options,
                                      int64_t *ret_bound,
                                      struct qdq_error *err) QDQ_MUST_CHECK;

#endif
