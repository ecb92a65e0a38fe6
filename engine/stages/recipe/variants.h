/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The changes of the spec that a recipe tries before it leaves layers in float: they cost
 * inferences of the job and nothing when the model runs. Only members that the spec leaves
 * open are changed.
 */
#ifndef QDQI_STAGES_RECIPE_VARIANTS_H
#define QDQI_STAGES_RECIPE_VARIANTS_H

#include "stages/candidates/candidates.h"

/* One spec that was judged. */
struct qdqi_variant_step {
    const char *step;
    unsigned changed;            /* bits of enum qdq_choice */
    const struct qdq_spec *spec; /* what it was changed to */
    struct qdqi_grade score;
    bool kept; /* it became the best so far */
};

struct qdqi_variants {
    struct qdqi_candidates *candidates; /* the comparer is open */
    int64_t bound;                      /* samples that may be run */
    /* For advice: no trial takes the place of the attempt, and members that the spec states are
       changed, too. */
    bool only_tries;
    /* Returns whether the trials have to end; never NULL. */
    bool (*is_time_up)(void *arg);
    void *arg;
    /* The result: */
    struct qdqi_grade best;
    unsigned changed;
    const struct qdq_spec *spec;
    size_t n_steps;
    struct qdqi_variant_step *steps;
};

/* Judges the candidates' attempt, which is the first step. */
enum qdq_code qdqi_variants_start(struct qdqi_variants *variants,
                                  struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * Judges the candidates' attempt and then each change on top of those that were kept, the
 * cheapest first, until the goal is reached. The best attempt is then that of the candidates;
 * with `only_tries` those that most often mend a result come first, and the attempt stays.
 */
enum qdq_code qdqi_variants_try(struct qdqi_variants *variants,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* Makes an attempt by a spec beside the candidates' and judges it. The caller frees *ret_trial, also
   where it fails; NULL: there is none. */
enum qdq_code qdqi_variants_trial(struct qdqi_variants *variants,
                                  const struct qdq_spec *spec,
                                  struct qdqi_attempt **ret_trial,
                                  struct qdqi_grade *ret,
                                  struct qdq_error *err) QDQ_MUST_CHECK;
/* Puts a trial in the place of the candidates' attempt, and clears *trial. */
enum qdq_code qdqi_variants_adopt(struct qdqi_variants *variants,
                                  struct qdqi_attempt **trial,
                                  struct qdq_error *err) QDQ_MUST_CHECK;
/* Adds a step, for which there must be room. One that is kept is the best so far. */
void qdqi_variants_add_step(struct qdqi_variants *variants,
                            const struct qdqi_variant_step *step);

/* Judges what the spec makes, beside the attempt; an error that is of this candidate alone is a
   grade. */
enum qdq_code qdqi_variants_judge(struct qdqi_variants *variants,
                                  const struct qdq_spec *spec, struct qdqi_grade *ret,
                                  struct qdq_error *err) QDQ_MUST_CHECK;

/* Tries activations of 16 bits in the place of layers in float. */
enum qdq_code qdqi_variants_widen(struct qdqi_variants *variants,
                                  struct qdq_error *err) QDQ_MUST_CHECK;

#endif
