/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spec.recipe with data: leaves in float the layers that integers would wreck, as few as
 * make the outputs good, judged as deployed on samples that calibration keeps aside. The
 * recipe `best` first changes members that the spec leaves open, where the change costs
 * nothing when the model runs.
 */
#ifndef QDQI_STAGES_RECIPE_RECIPE_H
#define QDQI_STAGES_RECIPE_RECIPE_H

#include "stages/report/report.h"

/* Returns whether the recipe tries candidates, where there are layers to choose. */
bool qdqi_recipe_chooses(const struct qdqi_attempt *attempt);

/* Prepares an attempt with a recipe, before it is calibrated: keeps samples aside by setting
   calibration.max_samples of `spec`, which is the attempt's, where it leaves that open, and for
   `best` opens a file for observations where the caller has none. The caller closes it. */
enum qdq_code qdqi_recipe_begin(struct qdqi_attempt *attempt, struct qdq_spec *spec,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* Decides before the plan is made whether placements will be measured: where the plan of the rules
   has activations that the plan with all layers in integers has not, the rules alone decide. `spec`
   is the attempt's. Errors are those of qdq_plan_make(). */
enum qdq_code qdqi_recipe_plan(struct qdqi_attempt *attempt, struct qdq_spec *spec,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/* Carries out the recipe, within twice the inferences of calibration and evaluation, or
   four times as many for `best`, and fills in the report's `recipe`. With a goal for the
   task each candidate that reaches the other goals is judged by that, too, by all of its samples, which do not
   count there. *attempt is then the best one; another one that it was is freed. */
enum qdq_code qdqi_recipe(struct qdqi_attempt **attempt, struct qdqi_result *result,
                          struct qdq_error *err) QDQ_MUST_CHECK;

#endif
