/* SPDX-License-Identifier: Apache-2.0 */
/* The float and the quantized model as sessions that are timed side by side. */
#ifndef QDQI_PROFILE_SIDES_H
#define QDQI_PROFILE_SIDES_H

#include "job/job.h"

struct qdqi_sides {
    struct qdqi_job *job;
    struct qdqi_runtime *runtime;
    struct qdq_model *quantized; /* the result as it was written */
    struct qdqi_session *sessions[QDQ_N_SIDES];
    struct qdqi_feed *feed;
    const struct qdqi_input *inputs; /* of the first run; the feed owns them */
    int64_t batch;                   /* samples in it */
};

/* Opens both models with the threads that the spec's profile asks for. `data` must outlive
   the sides. Close them also after a failure. */
enum qdq_code qdqi_sides_open(struct qdqi_sides *sides, struct qdq_dataset *data,
                              struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_sides_close(struct qdqi_sides *sides);

/* Runs one model once; *ret_ms is the wall time. */
enum qdq_code qdqi_sides_run(struct qdqi_sides *sides, int side, double *ret_ms,
                             struct qdq_error *err) QDQ_MUST_CHECK;

/* Runs both models again with ONNX Runtime's profiler and adds its figures. Where the
   profiler cannot write its file, a warning says so. */
enum qdq_code qdqi_sides_trace(struct qdqi_sides *sides, struct qdq_profile *ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;

#endif
