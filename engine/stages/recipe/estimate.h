/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Estimates of how good a choice of layers is, by what-ifs: the literal arithmetic, whose
 * sessions are opened once. A runtime that takes long to open a model has to open one for each
 * choice that it judges.
 */
#ifndef QDQI_STAGES_RECIPE_ESTIMATE_H
#define QDQI_STAGES_RECIPE_ESTIMATE_H

#include "stages/candidates/candidates.h"

struct qdqi_replay;
struct qdqi_whatif;

struct qdqi_estimate {
    const struct qdqi_candidates *candidates;
    struct qdqi_whatif *whatif;
    struct qdqi_replay *replay;
    size_t *layers; /* by candidate: its layer among those of the what-ifs */
    bool *is_float; /* by layer of the what-ifs */
};

/* Returns whether choices are estimated before they are judged. */
bool qdqi_estimate_helps(const struct qdqi_candidates *candidates);

/* Opens what-ifs for the candidates, by the samples of their comparer. The caller closes
   the estimates after failures, too. Errors are those of qdqi_whatif_get() and
   qdqi_replay_open(). */
enum qdq_code qdqi_estimate_open(struct qdqi_estimate *estimate,
                                 const struct qdqi_candidates *candidates,
                                 const struct qdqi_feed_options *options,
                                 struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_estimate_close(struct qdqi_estimate *estimate);

/* Estimates the grade of a choice of candidates. */
enum qdq_code qdqi_estimate_grade(struct qdqi_estimate *estimate, const bool *is_float,
                                  struct qdqi_grade *ret,
                                  struct qdq_error *err) QDQ_MUST_CHECK;

#endif
