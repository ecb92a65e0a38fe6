/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "api/eta.h"

#include <math.h>

enum { SETTLED = 500 }; /* milliseconds of samples after which their speed is trusted */

/* The runs of an evaluated sample: one of the float model, one of the quantized one. */
static const double RUNS_TO_EVALUATE = 2;

/* A stage that takes longer than in the earlier run by more has other work. */
static const double SAME_WORK = 1.5;

/* Another load of the machine than in the earlier run counts up to this. */
static const double MOST_LOAD = 8;

void
api_eta_start(struct api_eta *eta, const struct api_speed *earlier)
{
    *eta = (struct api_eta){.stage = QDQ_N_STAGES, .load = 1, .left = -1};
    if (!earlier)
        return;
    eta->earlier = *earlier;
    eta->speed.calibrate = earlier->calibrate;
    eta->speed.evaluate = earlier->evaluate;
}

/* Notes the time and the samples at which the counting of a stage began. */
static void
follow_stage(struct api_eta *eta, const struct qdq_progress *progress, int64_t now)
{
    if (progress->stage != eta->stage) {
        if (eta->stage < QDQ_N_STAGES)
            eta->speed.stages[eta->stage] = (double)(now - eta->entered) / 1000;
        eta->counts = false;
        eta->is_unknown = eta->unknown >> progress->stage & 1;
        eta->entered = now;
    }
    eta->stage = progress->stage;
    eta->unknown = progress->unknown;
    if (eta->counts || progress->total == 0)
        return;
    eta->counts = true;
    eta->first = progress->done;
    eta->began = now;
}

/* Returns the seconds that a sample has taken in this stage; 0: that is not known yet. */
static double
pace(const struct api_eta *eta, const struct qdq_progress *progress, int64_t now)
{
    return eta->counts && progress->done > eta->first && now - eta->began >= SETTLED
               ? (double)(now - eta->began) / 1000 /
                     (double)(progress->done - eta->first)
               : 0;
}

static void
learn_pace(struct api_eta *eta, const struct qdq_progress *progress, int64_t now)
{
    const bool calibrates = progress->stage == QDQ_STAGE_CALIBRATE;
    double *speed = calibrates                              ? &eta->speed.calibrate
                    : progress->stage == QDQ_STAGE_EVALUATE ? &eta->speed.evaluate
                                                            : NULL;
    const double then = calibrates ? eta->earlier.calibrate : eta->earlier.evaluate;
    const double own = pace(eta, progress, now);
    if (!speed || own <= 0)
        return;
    *speed = own;
    if (then > 0)
        eta->load = fmin(fmax(own / then, 1 / MOST_LOAD), MOST_LOAD);
}

/* Returns the seconds that the samples take at a speed; negative: not known. */
static double
seconds(uint64_t samples, double speed)
{
    return samples == 0 ? 0 : speed > 0 ? (double)samples * speed : -1;
}

/* Returns the seconds that the stage took in the earlier run, at the load of this one. */
static double
seconds_then(const struct api_eta *eta, enum qdq_stage stage)
{
    return eta->earlier.stages[stage] * eta->load;
}

/* Returns whether all samples of a stage take about as long, and all that are counted run. What-ifs run
   parts of the model, of which the first ones are many times as long as the last ones, and a search
   ends when it has found what it looks for. */
static bool
is_even(enum qdq_stage stage)
{
    return stage != QDQ_STAGE_REFINE && stage != QDQ_STAGE_SENSITIVITY &&
           stage != QDQ_STAGE_SEARCH && stage != QDQ_STAGE_RECIPE &&
           stage != QDQ_STAGE_ADVISE;
}

/* Returns the seconds that the present stage still takes; negative: not known. */
static double
left_here(const struct api_eta *eta, const struct qdq_progress *progress, int64_t now)
{
    const enum qdq_stage stage = progress->stage;
    const uint64_t samples =
        progress->total > progress->done ? progress->total - progress->done : 0;
    const bool runs = stage == QDQ_STAGE_CALIBRATE || stage == QDQ_STAGE_EVALUATE;
    const double own = is_even(stage) ? pace(eta, progress, now) : 0;
    if (own > 0)
        return (double)samples * own;
    if (runs && eta->counts)
        return seconds(samples, stage == QDQ_STAGE_CALIBRATE ? eta->speed.calibrate
                                : eta->speed.evaluate > 0
                                    ? eta->speed.evaluate
                                    : RUNS_TO_EVALUATE * eta->speed.calibrate);
    const double spent = (double)(now - eta->entered) / 1000;
    const double all = seconds_then(eta, stage);
    /* The later runs of a ranking take no longer than its first ones, so the pace until now is a
       bound. */
    const double most = stage == QDQ_STAGE_SENSITIVITY ? pace(eta, progress, now) : 0;
    if (eta->earlier.whole && spent <= all * SAME_WORK)
        return fmin(fmax(all - spent, 0),
                    most > 0 ? (double)samples * most : (double)INFINITY);
    return eta->is_unknown || runs || stage == QDQ_STAGE_ADVISE ? -1 : 0;
}

/* Returns the seconds that the later stages take; negative: not known. */
static double
left_later(const struct api_eta *eta, const struct qdq_progress *progress)
{
    double sum = 0;
    for (int i = (int)progress->stage + 1; i < QDQ_N_STAGES; i++)
        if (eta->earlier.whole)
            sum += seconds_then(eta, (enum qdq_stage)i);
        else if (progress->unknown >> i & 1)
            return -1;
    if (eta->earlier.whole)
        return sum;
    return seconds(progress->later, eta->speed.evaluate > 0
                                        ? eta->speed.evaluate
                                        : RUNS_TO_EVALUATE * eta->speed.calibrate);
}

void
api_eta_update(struct api_eta *eta, const struct qdq_progress *progress, int64_t now)
{
    follow_stage(eta, progress, now);
    learn_pace(eta, progress, now);
    eta->updated = now;
    eta->left = -1;
    /* The amount of work is known from the stage `calibrate` on. */
    if (progress->stage < QDQ_STAGE_CALIBRATE && !eta->earlier.whole)
        return;
    const double here = left_here(eta, progress, now);
    const double later = left_later(eta, progress);
    if (here >= 0 && later >= 0 && here + later > 0)
        eta->left = here + later;
}

void
api_eta_end(struct api_eta *eta, int64_t now)
{
    if (eta->stage == QDQ_N_STAGES)
        return;
    eta->speed.stages[eta->stage] = (double)(now - eta->entered) / 1000;
    eta->speed.whole = true;
}

int64_t
api_eta_left(const struct api_eta *eta, int64_t now)
{
    if (eta->left < 0)
        return -1;
    double left = eta->left - (double)(now - eta->updated) / 1000;
    return left <= 0 ? 0 : left >= 1e12 ? -1 : (int64_t)ceil(left - 1e-6);
}
