/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An evaluation that nobody asks for ends when its figures stand for all samples that it would
 * compare (sequential.h): when, for each output that decides,
 *
 *  - the pooled SQNR is known to 0.2 dB, and lies farther than that from the verdict's bounds,
 *  - it is settled on which side of each of the verdict's bounds the 5th percentile of samples lies,
 *  - the worst slice lies 3 dB or more beside these bounds,
 *  - and, of an output that may list classes and of one of integers, the share of rows that differ is
 *    known to half a point, and it is settled on which side of the verdict's bounds it lies.
 *
 * So the verdict is that of all samples but for bad ones that are too rare to be met: at one look at
 * most 6 in 100 draws mislead about a percentile or a share. A single sample that carries most of
 * the noise is met as often as it is drawn. Logits of a language model are compared on all samples.
 */
#ifndef QDQI_STAGES_EVALUATE_STOPPING_H
#define QDQI_STAGES_EVALUATE_STOPPING_H

#include "files/data/feed.h"
#include "stages/evaluate/output_figures.h"

/* The runs of an evaluation. */
struct qdqi_stopping {
    const struct qdqi_attempt *attempt;
    const struct qdqi_feed_options *samples;
    struct qdqi_feed **feed;
    int64_t n, done; /* samples */
    /* by sample: the turn in which it is compared; NULL: all are, in their order */
    int64_t *turn;
    int64_t turns, now, at;         /* the turn, and the next sample of it */
    struct qdqi_watched_rows *rows; /* by output */
    bool is_settled;
};

/* Begins the runs of a feed, which is open, with the options that it was opened with. All arguments
   are borrowed. NO_MEMORY. */
enum qdq_code qdqi_stopping_init(struct qdqi_stopping *stopping,
                                 const struct qdqi_attempt *attempt,
                                 const struct qdqi_feed_options *samples,
                                 struct qdqi_feed **feed,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns the next run like qdqi_feed_next(). *ret_samples is 0 at the end, and where the figures, which
   have those of all runs before, stand for all samples. The feed is opened again for each turn. */
enum qdq_code qdqi_stopping_next(struct qdqi_stopping *stopping,
                                 const struct qdqi_output_figures *figures,
                                 const struct qdqi_input **ret, int64_t *ret_samples,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

#endif
