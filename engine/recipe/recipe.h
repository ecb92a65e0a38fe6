/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spec.recipe with data: leaves in float the layers that integers would wreck, as few as
 * make the outputs good, judged as deployed on samples that calibration keeps aside.
 */
#ifndef QDQI_RECIPE_RECIPE_H
#define QDQI_RECIPE_RECIPE_H

#include "job/job.h"

/* Carries out the recipe, within twice the inferences of calibration and evaluation, and
   fills in the report's `recipe`. */
enum qdq_code qdqi_recipe(struct qdqi_job *job, struct qdqi_scales *scales,
                          struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns whether the job has data by which a recipe can judge its result. */
bool qdqi_recipe_has_data(const struct qdqi_job *job);

#endif
