/* SPDX-License-Identifier: Apache-2.0 */
/* The float and the quantized model as they are timed side by side. */
#ifndef QDQI_STAGES_PROFILE_SIDES_H
#define QDQI_STAGES_PROFILE_SIDES_H

#include "stages/report/report.h"

/* The float model with the precision that the runtime chooses by itself. */
enum { QDQI_SIDE_DEFAULT = QDQ_N_SIDES, QDQI_MOST_SIDES };

struct qdqi_sides {
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

/* Opens both models in the runtime of the target, or in ONNX Runtime where that is not
   there, with the threads that the spec's profile asks for. `data` must outlive the sides.
   Close them also after a failure. */
enum qdq_code qdqi_sides_open(struct qdqi_sides *sides, struct qdq_dataset *data,
                              struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_sides_close(struct qdqi_sides *sides);

/* Runs one model once; *ret_ms is the wall time. */
enum qdq_code qdqi_sides_run(struct qdqi_sides *sides, int side, double *ret_ms,
                             struct qdq_error *err) QDQ_MUST_CHECK;

/* Runs both models again with the runtime's profiler and adds its figures. Where the
   profiler cannot write its file, a warning says so. */
enum qdq_code qdqi_sides_trace(struct qdqi_sides *sides, struct qdq_profile *ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;

#endif
