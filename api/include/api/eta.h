/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a job still takes: from the pace of its own samples, and before that is known
 * from what an earlier run of the same model has shown. Pure: times come from the caller,
 * in milliseconds of a clock that never goes back.
 *
 * Only the stages that run the model count; what lies between them is short.
 */
#ifndef API_ETA_H
#define API_ETA_H

#include "qdq/quantize.h"

/* Seconds that a sample takes in a stage; 0 where that is not known. */
struct api_pace {
    double calibrate, evaluate;
};

struct api_eta {
    struct api_pace pace; /* this run's, or an earlier one's until it is known */
    enum qdq_stage stage; /* QDQ_N_STAGES before the first */
    bool counts;          /* the stage has told how many samples there are */
    uint64_t first;       /* samples that were done when it first did */
    int64_t began;        /* and when that was */
    int64_t told;
    double left; /* seconds when it last told; negative: not known */
};

/* Begins a run; `earlier` is NULL when nothing is known of one. */
void api_eta_start(struct api_eta *eta, const struct api_pace *earlier);
void api_eta_tell(struct api_eta *eta, const struct qdq_progress *progress,
                  int64_t now);
/* Seconds left, rounded up; -1 as long as nothing is known. */
int64_t api_eta_left(const struct api_eta *eta, int64_t now);

#endif
