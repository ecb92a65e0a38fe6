/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spec.recipe with data: leaves in float the layers that integers would wreck, as few as
 * make the outputs good, judged as deployed on samples that calibration keeps aside. The
 * recipe `best` first changes members that the spec leaves open, where the change costs
 * nothing when the model runs.
 */
#ifndef QDQI_STAGES_RECIPE_RECIPE_H
#define QDQI_STAGES_RECIPE_RECIPE_H

#include "stages/job/job.h"

/* Prepares a job with a recipe, before it is calibrated: keeps samples aside by setting
   calibration.max_samples of `spec`, which is the job's, where it leaves that open, and for
   `best` opens a file for observations where the caller has none. */
enum qdq_code qdqi_recipe_begin(struct qdqi_job *job, struct qdq_spec *spec,
                                struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_recipe_end(struct qdqi_job *job);

/* Carries out the recipe, within twice the inferences of calibration and evaluation, or
   four times as many for `best`, and fills in the report's `recipe`. */
enum qdq_code qdqi_recipe(struct qdqi_job *job, struct qdqi_scales *scales,
                          struct qdq_error *err) QDQ_MUST_CHECK;

#endif
