/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "api/eta.h"

#include <math.h>

enum { SETTLED = 500 }; /* milliseconds of samples after which their speed is trusted */

/* The runs of an evaluated sample: one of the float model, one of the quantized one. */
static const double RUNS_TO_EVALUATE = 2;

void
api_eta_start(struct api_eta *eta, const struct api_speed *earlier)
{
    *eta = (struct api_eta){.stage = QDQ_N_STAGES, .left = -1};
    if (earlier)
        eta->speed = *earlier;
}

/* Notes the time and the samples at which the counting of a stage began. */
static void
follow_stage(struct api_eta *eta, const struct qdq_progress *progress, int64_t now)
{
    if (progress->stage != eta->stage)
        eta->counts = false;
    eta->stage = progress->stage;
    if (eta->counts || progress->total == 0)
        return;
    eta->counts = true;
    eta->first = progress->done;
    eta->began = now;
}

static void
learn_pace(struct api_eta *eta, const struct qdq_progress *progress, int64_t now)
{
    double *speed = progress->stage == QDQ_STAGE_CALIBRATE  ? &eta->speed.calibrate
                    : progress->stage == QDQ_STAGE_EVALUATE ? &eta->speed.evaluate
                                                            : NULL;
    if (speed && eta->counts && progress->done > eta->first &&
        now - eta->began >= SETTLED)
        *speed =
            (double)(now - eta->began) / 1000 / (double)(progress->done - eta->first);
}

/* Returns the seconds that the samples take at a speed; negative: not known. */
static double
seconds(uint64_t samples, double speed)
{
    return samples == 0 ? 0 : speed > 0 ? (double)samples * speed : -1;
}

void
api_eta_update(struct api_eta *eta, const struct qdq_progress *progress, int64_t now)
{
    follow_stage(eta, progress, now);
    learn_pace(eta, progress, now);
    eta->updated = now;
    eta->left = -1;
    bool evaluates = progress->stage == QDQ_STAGE_EVALUATE;
    /* The amount of work is known from the stage `calibrate` on. */
    if (progress->stage < QDQ_STAGE_CALIBRATE ||
        (!eta->counts && (evaluates || progress->stage == QDQ_STAGE_CALIBRATE)))
        return;
    double evaluate = eta->speed.evaluate > 0 ? eta->speed.evaluate
                                              : RUNS_TO_EVALUATE * eta->speed.calibrate;
    uint64_t samples =
        progress->total > progress->done ? progress->total - progress->done : 0;
    double here = seconds(samples, evaluates ? evaluate : eta->speed.calibrate);
    double later = seconds(progress->later, evaluate);
    if (here >= 0 && later >= 0 && here + later > 0)
        eta->left = here + later;
}

int64_t
api_eta_left(const struct api_eta *eta, int64_t now)
{
    if (eta->left < 0)
        return -1;
    double left = eta->left - (double)(now - eta->updated) / 1000;
    return left <= 0 ? 0 : left >= 1e12 ? -1 : (int64_t)ceil(left - 1e-6);
}
