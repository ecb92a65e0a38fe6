/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An estimate of the time that a job still takes. It is based on measured costs alone: on
 * the speed of the job's own samples, and on the times that an earlier run with the same model
 * and spec took for each stage. As long as there is a stage whose work is neither counted nor
 * known from such a run, there is no estimate. The functions are pure: times come from
 * the caller, in milliseconds of a monotonic clock.
 *
 * Stages that the spec does not ask for take no time, and neither do the short ones
 * between those that run the model.
 */
#ifndef API_ETA_H
#define API_ETA_H

#include "qdq/quantize.h"

/* The speed of a run. */
struct api_speed {
    double calibrate, evaluate;  /* seconds for a sample; 0 where that is not known */
    bool whole;                  /* the run has ended, and these are its stages: */
    double stages[QDQ_N_STAGES]; /* seconds */
};

struct api_eta {
    /* the speed of this run, or of an earlier one until this one is known */
    struct api_speed speed;
    struct api_speed earlier; /* of the same spec, if it is whole */
    double
        load; /* how much longer a sample takes in this run than in the earlier one */
    enum qdq_stage stage; /* QDQ_N_STAGES before the first stage */
    bool is_unknown;      /* the work of the stage is */
    uint64_t unknown;     /* later stages: see qdq_progress */
    bool counts;          /* the stage has reported its number of samples */
    uint64_t first;       /* samples that were done at that first report */
    int64_t began;        /* time of that first report */
    int64_t entered;      /* time at which the stage began */
    int64_t updated;
    double left; /* seconds left at the last report; negative: not known */
};

/* Begins a run. `earlier` is NULL when no earlier run is known; it is whole only where it had the
   same spec. */
void api_eta_start(struct api_eta *eta, const struct api_speed *earlier);
void api_eta_update(struct api_eta *eta, const struct qdq_progress *progress,
                    int64_t now);
/* Notes that the run has ended and was not cut short: its speed is whole. */
void api_eta_end(struct api_eta *eta, int64_t now);
/* Returns the seconds left, rounded up, or -1 while they are not known. */
int64_t api_eta_left(const struct api_eta *eta, int64_t now);

#endif
