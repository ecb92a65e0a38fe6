/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs what-ifs: the model with some layers quantized and others in float, or with
 * other ranges. The model has a FakeQuant at each place that the plan quantizes, whose
 * switches and scales change from run to run, so its sessions are opened once. The
 * outputs are compared with those of the model with everything switched off.
 */
#ifndef QDQI_STAGES_WHATIF_WHATIF_H
#define QDQI_STAGES_WHATIF_WHATIF_H

#include "stages/report/report.h"
#include "stages/whatif/greedy.h"

struct qdqi_whatif;
struct qdqi_replay;

/*
 * Opens the what-ifs of an attempt that has scales, unless they are open, with every layer
 * switched off. They stay open until qdqi_whatif_close(), also after a failure, which adds the
 * number of their runs to the report. The plan and the scales are borrowed. RUNTIME_MISSING,
 * RUN_FAILED.
 */
enum qdq_code qdqi_whatif_get(struct qdqi_whatif **whatif,
                              const struct qdqi_attempt *attempt,
                              struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_whatif_close(struct qdqi_whatif **whatif, struct qdqi_result *result);
/* Bounds the bytes of the outputs of parts that are kept from run to run. */
void qdqi_whatif_keep_at_most(struct qdqi_whatif *w, size_t bytes);
/*
 * Decides whether a stage of what-ifs that ended with `code` can be repeated, and
 * closes the what-ifs. Returns QDQ_OK, with err cleared, when the stage can start again
 * from its beginning with half the batch; otherwise it returns `code`.
 */
enum qdq_code qdqi_whatif_halve(struct qdqi_whatif **whatif,
                                struct qdqi_attempt *attempt,
                                struct qdqi_result *result, enum qdq_code code,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* Return the number of layers that the plan quantizes, and layer i of these. */
size_t qdqi_whatif_layers(const struct qdqi_whatif *w);
const struct qdq_layer *qdqi_whatif_layer(const struct qdqi_whatif *w, size_t i);

/* Switches everything off, so that the model computes in float. */
void qdqi_whatif_switch_off(struct qdqi_whatif *w);
/*
 * Switches the pairs of a choice on, and all others off: those of the model that would be
 * written with these layers in float. NULL: every layer is quantized.
 */
enum qdq_code qdqi_whatif_choose(struct qdqi_whatif *w, const bool *is_float,
                                 struct qdq_error *err) QDQ_MUST_CHECK;
/* Switches an activation of the plan at every place where it is quantized. The
   weights of the layers that read it keep their switches. */
void qdqi_whatif_switch_tensor(struct qdqi_whatif *w, size_t activation, bool on);
/* Sets the scale and the zero point of an activation of the plan, at every place
   where it is quantized. */
void qdqi_whatif_scale(struct qdqi_whatif *w, size_t activation, float scale,
                       int32_t zero_point);

/* Sets the stage whose progress the next runs report, and the number of samples that
   they are expected to run; 0: that is told later. QDQ_N_STAGES: the caller reports it. */
void qdqi_whatif_begin(struct qdqi_whatif *w, enum qdq_stage stage, uint64_t samples);
/* Tells or corrects the number of samples that are still expected to run. */
void qdqi_whatif_expect(struct qdqi_whatif *w, uint64_t samples);

/*
 * Runs the samples with every layer switched off and keeps the outputs; the layers stay
 * off. If the outputs of all samples would take more than 256 MiB, it keeps those of
 * fewer samples and adds a warning. INVALID_SPEC at `pointer`, the member of the spec
 * that asks for the what-ifs, when no output is float32.
 */
enum qdq_code qdqi_replay_open(struct qdqi_whatif *w,
                               const struct qdqi_feed_options *options,
                               const char *pointer, struct qdqi_replay **ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_replay_close(struct qdqi_replay **replay);
int64_t qdqi_replay_samples(const struct qdqi_replay *replay);
/* Returns which samples of the data they are. */
struct qdqi_feed_options qdqi_replay_options(const struct qdqi_replay *replay);
/* Sets *ret to the samples that sensitivity and search share: those of the
   evaluation, but at most as many as the two ask for. The what-ifs own and close them. */
enum qdq_code qdqi_replay_get(struct qdqi_whatif *w, const char *pointer,
                              struct qdqi_replay **ret,
                              struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * Runs at least the first `samples` samples, rounded up to whole batches, with the
 * present switches and scales. `settled` says that the next runs will differ little
 * from this one.
 */
enum qdq_code qdqi_whatif_run(struct qdqi_whatif *w, struct qdqi_replay *replay,
                              int64_t samples, bool settled, struct qdqi_score *ret,
                              struct qdq_error *err) QDQ_MUST_CHECK;

/* --- the stages, each of which opens the what-ifs if it needs them --- */

/* Adjusts the ranges that calibration found by their effect on the outputs, and the
   scales that follow from them. Does nothing unless the range method asks for it. */
enum qdq_code qdqi_refine(struct qdqi_attempt *attempt, struct qdqi_whatif **whatif,
                          struct qdqi_result *result,
                          struct qdq_error *err) QDQ_MUST_CHECK;

/* Fills the report's `sensitivity`, where the spec asks for it. */
enum qdq_code qdqi_sensitivity(const struct qdqi_attempt *attempt,
                               struct qdqi_whatif **whatif, struct qdqi_result *result,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/* Leaves layers in float where the spec asks for a search. The attempt then has a new
   plan with the same ranges, and the scales of that plan. */
enum qdq_code qdqi_search(struct qdqi_attempt *attempt, struct qdqi_whatif **whatif,
                          struct qdqi_result *result,
                          struct qdq_error *err) QDQ_MUST_CHECK;

#endif
