/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What-ifs: runs the model with some layers quantized and others in float, or with
 * other ranges. The model has a FakeQuant at each place that the plan quantizes, whose
 * switches and scales change from run to run, so its sessions are opened once. The
 * outputs are compared with those of the model with everything switched off.
 */
#ifndef QDQI_WHATIF_WHATIF_H
#define QDQI_WHATIF_WHATIF_H

#include "job/job.h"
#include "whatif/hunt.h"

struct qdqi_whatif;
struct qdqi_trials;

/*
 * The job's, opened when it is first asked for, with these scales, which are borrowed.
 * All is off. It lives until qdqi_whatif_close(), which tells the report how many runs of
 * the model it took. RUNTIME_MISSING, RUN_FAILED.
 */
enum qdq_code qdqi_whatif_get(struct qdqi_job *job, const struct qdqi_scales *scales,
                              struct qdqi_whatif **ret,
                              struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_whatif_close(struct qdqi_job *job);
/*
 * After a stage of what-ifs ended with `code`: QDQ_OK when it may be done again from its
 * beginning with half the batch, for which err is cleared and all is closed; else the
 * code.
 */
enum qdq_code qdqi_whatif_halve(struct qdqi_job *job, enum qdq_code code,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* Layers that the plan quantizes, and the one that is number i of them. */
size_t qdqi_whatif_layers(const struct qdqi_whatif *w);
const struct qdq_layer *qdqi_whatif_layer(const struct qdqi_whatif *w, size_t i);

/* On: quantized. */
void qdqi_whatif_switch(struct qdqi_whatif *w, size_t layer, bool on);
void qdqi_whatif_switch_all(struct qdqi_whatif *w, bool on);
/* An activation of the plan at all its places, the weights beside it as they are. */
void qdqi_whatif_switch_tensor(struct qdqi_whatif *w, size_t activation, bool on);
/* Scale and zero point of an activation of the plan, at all its places. */
void qdqi_whatif_scale(struct qdqi_whatif *w, size_t activation, float scale,
                       int32_t zero_point);

/* The stage whose progress the runs to come are, and how many samples they will take,
   as far as that is known. */
void qdqi_whatif_begin(struct qdqi_whatif *w, enum qdq_stage stage, uint64_t samples);
/* That so many are still to come. */
void qdqi_whatif_expect(struct qdqi_whatif *w, uint64_t samples);

/*
 * Runs the samples with all switched off and keeps what comes out; all stays off.
 * Outputs that would take more than 256 MiB are those of fewer samples, with a warning.
 * INVALID_SPEC at `pointer`, the member of the spec that asks for it, when no output is
 * float32.
 */
enum qdq_code qdqi_trials_open(struct qdqi_whatif *w,
                               const struct qdqi_feed_options *options,
                               const char *pointer, struct qdqi_trials **ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_trials_close(struct qdqi_trials **trials);
int64_t qdqi_trials_samples(const struct qdqi_trials *trials);
/* The samples that the evaluation will take, or as many of them as the spec's
   sensitivity and search ask for; the job's, which closes them. */
enum qdq_code qdqi_trials_get(struct qdqi_whatif *w, const char *pointer,
                              struct qdqi_trials **ret,
                              struct qdq_error *err) QDQ_MUST_CHECK;

/* Runs the first `samples` of them, a whole batch more where they do not fill one, as
   the switches and scales are now. `settled`: the next runs differ from this in little. */
enum qdq_code qdqi_whatif_run(struct qdqi_whatif *w, struct qdqi_trials *trials,
                              int64_t samples, bool settled, struct qdqi_score *ret,
                              struct qdq_error *err) QDQ_MUST_CHECK;

#endif
