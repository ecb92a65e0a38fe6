/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An estimate of the time that a job still takes. It is based on the speed of the job's
 * own samples and, before that is known, on the speed of an earlier run of the same
 * model. The functions are pure: times come from the caller, in milliseconds of a
 * monotonic clock.
 *
 * Only the stages that run the model count, because the stages between them are short.
 */
#ifndef API_ETA_H
#define API_ETA_H

#include "qdq/quantize.h"

/* The seconds that one sample takes in a stage; 0 where that is not known. */
struct api_speed {
    double calibrate, evaluate;
};

struct api_eta {
    /* the speed of this run, or of an earlier one until this one is known */
    struct api_speed speed;
    enum qdq_stage stage; /* QDQ_N_STAGES before the first stage */
    bool counts;          /* the stage has reported its number of samples */
    uint64_t first;       /* samples that were done at that first report */
    int64_t began;        /* time of that first report */
    int64_t updated;
    double left; /* seconds left at the last report; negative: not known */
};

/* Begins a run. `earlier` is NULL when no earlier run is known. */
void api_eta_start(struct api_eta *eta, const struct api_speed *earlier);
void api_eta_update(struct api_eta *eta, const struct qdq_progress *progress,
                    int64_t now);
/* Returns the seconds left, rounded up, or -1 while they are not known. */
int64_t api_eta_left(const struct api_eta *eta, int64_t now);

#endif
