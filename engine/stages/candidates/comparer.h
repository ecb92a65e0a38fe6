/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges candidates as they would be deployed: each is written, opened by a plain session
 * of the target's runtime and compared with the float model on the same few samples.
 * Where the target's kernels do not run here, it is the literal arithmetic that judges.
 */
#ifndef QDQI_STAGES_CANDIDATES_COMPARER_H
#define QDQI_STAGES_CANDIDATES_COMPARER_H

#include "stages/attempt/attempt.h"

struct qdqi_comparer;

/* Runs the float model with these samples and keeps its outputs, or those of fewer
   samples if they would take more than 256 MiB. RUNTIME_MISSING, RUN_FAILED. */
enum qdq_code qdqi_comparer_open(const struct qdqi_attempt *attempt,
                                 const struct qdqi_feed_options *options,
                                 enum qdq_stage stage, struct qdqi_comparer **ret,
                                 struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_comparer_close(struct qdqi_comparer **comparer);
int64_t qdqi_comparer_samples(const struct qdqi_comparer *comparer);
/* Sets the number of samples that are expected to run, or of measurements, for reports of progress. */
void qdqi_comparer_expect(struct qdqi_comparer *comparer, uint64_t samples);
/* Adds samples that something else ran in the comparer's stage, or measurements, to the progress.
   CANCELLED. */
enum qdq_code qdqi_comparer_advance(struct qdqi_comparer *comparer, int64_t samples,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

/* Judges an attempt that has scales: *ret_db is the SQNR of the worst float32 output. An output
   whose number of elements differs from that of the float model is left out from then on.
   *ret_db is -INFINITY for a candidate that the runtime cannot run, and for one that has no
   other output. A candidate of the same bytes as an earlier one is not run again. A process that judges and has ended is replaced once in a job; without another
   one the literal arithmetic judges from then on. CANNOT_LOAD if the runtime cannot load the
   model that was given either. */
enum qdq_code qdqi_comparer_run(struct qdqi_comparer *comparer,
                                const struct qdqi_attempt *attempt, double *ret_db,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* The costs of a candidate. */
struct qdqi_candidate_cost {
    uint64_t bytes;       /* of the file as it was written; 0: it was not */
    double latency_ratio; /* of its time to the float model's; NAN: not measured */
    int64_t samples;      /* that were run to judge it */
};

/* Keeps the times that were measured, and warns where the literal arithmetic took over from a runtime
   that was lost. */
enum qdq_code qdqi_comparer_conclude(const struct qdqi_comparer *comparer,
                                     const struct qdqi_attempt *attempt,
                                     struct qdq_error *err) QDQ_MUST_CHECK;

/* Asks for latencies of all candidates from now on. RUNTIME_MISSING, RUN_FAILED, JUDGE_GONE. */
enum qdq_code qdqi_comparer_measure_latency(struct qdqi_comparer *comparer,
                                            const struct qdqi_attempt *attempt,
                                            struct qdq_error *err) QDQ_MUST_CHECK;

/* Says that qdqi_comparer_profile() follows. */
void qdqi_comparer_expect_profile(struct qdqi_comparer *comparer);

/* Has candidates judged from now on by all samples for which there are outputs of the float model: those of the
   evaluation, or 32 where the comparer has fewer; or by its own samples again. Returns whether these
   are more than its own. */
bool qdqi_comparer_widen(struct qdqi_comparer *comparer, bool is_wide);

/* How candidates are judged. */
struct qdqi_judging {
    /* those that are far slower are measured by a single turn; NAN: none is */
    double least_latency;
    /* those with as much may be judged by fewer of the samples that qdqi_comparer_widen() adds;
       INFINITY: by all of them */
    double clear_db;
    /* those with less may be judged by the first four samples; -INFINITY: by all of them */
    double hopeless_db;
    bool is_literal; /* by the literal arithmetic, which is fast */
    bool is_resting; /* latencies are not measured for a while */
};

/* Returns whether latencies are asked for and the runtime that measures them was not lost. */
bool qdqi_comparer_measures(const struct qdqi_comparer *comparer);

/* Returns what the caller may change between candidates. */
struct qdqi_judging *qdqi_comparer_judging(struct qdqi_comparer *comparer);

/* Measures the latency of an attempt, which may have been judged, once more. A process that judges and has ended is replaced
   once. RUN_FAILED, RUNNER_FAILED, JUDGE_GONE. */
enum qdq_code qdqi_comparer_time_again(struct qdqi_comparer *comparer,
                                       const struct qdqi_attempt *attempt, double *ret,
                                       struct qdq_error *err) QDQ_MUST_CHECK;

/* Writes an attempt, which *ret reads until the next candidate is written, and sets the traces to
   the times of the nodes of the float model and of that one, in the arena. Latencies must be asked
   for. The caller frees *ret also after a failure. RUN_FAILED, JUDGE_GONE. */
enum qdq_code qdqi_comparer_profile(struct qdqi_comparer *comparer,
                                    const struct qdqi_attempt *attempt,
                                    struct qdqi_arena *arena, struct qdq_model **ret,
                                    struct qdqi_trace *ret_floats,
                                    struct qdqi_trace *ret_trace,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

/* Opens the candidate that was judged last again. The caller frees *ret, before the next one is
   judged. */
enum qdq_code qdqi_comparer_open_last(const struct qdqi_comparer *comparer,
                                      struct qdq_model **ret,
                                      struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns whether times were measured; false: all of them were known, or none was needed. */
bool qdqi_comparer_has_measured(const struct qdqi_comparer *comparer);

/* From now on the worst figure of a candidate is that of the 5th percentile of samples, too. */
void qdqi_comparer_judge_samples(struct qdqi_comparer *comparer);

/* Returns the cost of the candidate that was judged last. */
struct qdqi_candidate_cost qdqi_comparer_cost(const struct qdqi_comparer *comparer);

/* Returns the top-1 agreement of the worst output that may list classes, as last judged;
   NAN: there is none. */
double qdqi_comparer_top1(const struct qdqi_comparer *comparer);

/* Returns the top-1 agreement of the worst output, whatever it lists, as last judged; NAN:
   no output has rows of two or more. */
double qdqi_comparer_agreement(const struct qdqi_comparer *comparer);

#endif
