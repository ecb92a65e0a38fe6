/* SPDX-License-Identifier: Apache-2.0 */
/* The goals of a recipe, and the comparison of the result with them. */
#ifndef QDQI_STAGES_RECIPE_GOALS_H
#define QDQI_STAGES_RECIPE_GOALS_H

#include "stages/candidates/candidates.h"

/* Returns whether the spec has a goal for the outputs. */
bool qdqi_goals_ask_for_accuracy(const struct qdq_spec *spec);
/* Returns whether the spec has an upper bound for the size or the latency. */
bool qdqi_goals_have_bounds(const struct qdq_spec *spec);
/* Returns the SQNR that the recipe wants. */
double qdqi_goals_sqnr_db(const struct qdq_spec *spec);

/*
 * Compares the result with the goals and bounds of the recipe, when it was evaluated, its
 * size is known and its latency was measured. Each goal or bound that the result misses is a
 * warning and a member of the report.
 */
enum qdq_code qdqi_goals_conclude(const struct qdqi_attempt *attempt,
                                  struct qdqi_result *result,
                                  struct qdq_error *err) QDQ_MUST_CHECK;

/* Warns when the best that a recipe found does not reach the goal for the outputs, and when no choice
   could be compared with the float model. The comparer is open. */
enum qdq_code qdqi_warn_goal_missed(const struct qdqi_candidates *candidates,
                                    const struct qdqi_grade *best,
                                    struct qdq_error *err) QDQ_MUST_CHECK;
enum qdq_code qdqi_warn_not_judged(const struct qdqi_candidates *candidates,
                                   const struct qdqi_grade *best,
                                   struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns INVALID_SPEC if the goal is about a figure that no output has. The comparer is open. */
enum qdq_code qdqi_goals_check(const struct qdqi_candidates *candidates,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns whether a recipe tried integers that reach the goal for the outputs, and take as long as the
   float model, or longer. */
bool qdqi_goals_cost_time(const struct qdq_spec *asked,
                          const struct qdq_recipe_report *recipe);

/* Returns the upper bound of the result's size, as a part of the given model's; NaN: none. */
double qdqi_goals_max_size(const struct qdqi_context *context);

#endif
