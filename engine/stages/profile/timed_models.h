/* SPDX-License-Identifier: Apache-2.0 */
/* The float and the quantized model as they are timed side by side. */
#ifndef QDQI_STAGES_PROFILE_TIMED_MODELS_H
#define QDQI_STAGES_PROFILE_TIMED_MODELS_H

#include "stages/report/report.h"

/* The float model with the precision that the runtime chooses by itself. */
enum { QDQI_SIDE_DEFAULT = QDQ_N_SIDES, QDQI_MOST_SIDES };

struct qdqi_timed_models {
    const struct qdqi_attempt *attempt;
    struct qdqi_result *result;
    struct qdqi_deploy deploy;
    struct qdq_model *quantized; /* the result as it was written */
    struct qdqi_deployed_model models[QDQI_MOST_SIDES];
    int n; /* QDQI_MOST_SIDES where that precision is not float32, else one fewer */
    struct qdqi_feed *feed;
    const struct qdqi_input *inputs; /* of the first run; the feed owns them */
    int64_t batch;                   /* samples in it */
};

/* Opens the runtime that the target is for; no other one is timed. RUNTIME_MISSING says why it
   does not run here. */
enum qdq_code qdqi_timing_runtime(const struct qdqi_context *context,
                                  struct qdqi_deploy *ret,
                                  struct qdq_error *err) QDQ_MUST_CHECK;

/* Checks that a bound of the spec for the latency can be measured: in the runtime of the target. UNSUPPORTED
   where that is missing, and the errors of qdqi_timing_runtime(). */
enum qdq_code qdqi_timing_check_gate(const struct qdqi_context *context,
                                     struct qdq_error *err) QDQ_MUST_CHECK;

/* Opens both models in the runtime of the target, with the threads that the spec's profile asks for. `data` must outlive the models.
   Close them also after a failure. */
enum qdq_code qdqi_timed_models_open(struct qdqi_timed_models *models,
                                     struct qdq_dataset *data,
                                     struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_timed_models_close(struct qdqi_timed_models *models);

/* Runs one model once; *ret_ms is the wall time. */
enum qdq_code qdqi_timed_models_run(struct qdqi_timed_models *models, int side,
                                    double *ret_ms,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

/* Runs both models again with the runtime's profiler and adds its figures. Where the
   profiler cannot write its file, a warning says so. */
enum qdq_code qdqi_timed_models_trace(struct qdqi_timed_models *models,
                                      struct qdq_profile *ret,
                                      struct qdq_error *err) QDQ_MUST_CHECK;

#endif
