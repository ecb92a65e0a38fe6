/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the objects that stand before the first try of a recipe: the equalized and the
 * smoothed model, the plan, the ranges and the scales. A recipe makes them again by other
 * specs.
 */
#ifndef QDQI_STAGES_REMAKE_REMAKE_H
#define QDQI_STAGES_REMAKE_REMAKE_H

#include "stages/job/job.h"

/* Equalizes the model if the spec asks for it. All later stages see the equalized
   model, which is the one that is quantized. */
enum qdq_code qdqi_make_equalized(struct qdqi_job *job,
                                  struct qdq_error *err) QDQ_MUST_CHECK;

/* Makes the job's plan, and takes its warnings. */
enum qdq_code qdqi_make_plan(struct qdqi_job *job,
                             struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * Makes everything from the prepared model to the scales again, by another spec, which must
 * live as long as job->arena. The old objects are not freed: the caller keeps a copy of the
 * job and of its report. The report's members plan, prepared, equalized and smoothed are new,
 * or NULL, also after a failure.
 */
enum qdq_code qdqi_remake(struct qdqi_job *job, const struct qdq_spec *spec,
                          struct qdqi_scales *ret,
                          struct qdq_error *err) QDQ_MUST_CHECK;

/* Frees what qdqi_remake() made, before the copies are put back. */
void qdqi_remade_free(struct qdqi_job *job);

#endif
