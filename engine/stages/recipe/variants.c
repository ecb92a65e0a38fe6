/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/recipe/variants.h"

#include "files/data/file.h"
#include "files/data/inputs.h"
#include "graph/layers/caches.h"
#include "stages/calibrate/calibrate.h"
#include "stages/evaluate/deployed.h"
#include "plan/targets/shared/saturation.h"
#include "qdq/targets.h"
#include "stages/recipe/groups.h"
#include "stages/attempt/observations_file.h"
#include "stages/scale/scale.h"
#include "stages/smooth/smooth.h"
#include "transform/prepare/prepare.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

/* The least gain for which a change of the spec is kept, in dB beyond the worth of a layer in
   float. Below noisy_db small gains are chance, so a change must gain more there. */
static const double least_gain_db = 0.15, least_gain_in_noise_db = 3, noisy_db = 10;

/* After a change that gains as much, those that brought nothing before it are tried again. */
static const double much_db = 3;

#define SMOOTH_ALPHA 0.5 /* as the member `smooth` has by default */

enum { N_MODELS = 4 }; /* equalized or not, smoothed or not */

/* Observations that are kept during the trials, by model. */
struct observation_files {
    int fds[N_MODELS];
};

/* --- the changes ------------------------------------------------------------ */

/* Each changes the spec and returns true; false: the change does not apply. */

static bool
use_method(struct qdq_spec *spec, const char *name)
{
    if (strcmp(spec->calibration.method, name) == 0)
        return false;
    spec->calibration.method = name;
    return true;
}

static bool
use_minmax(const struct qdqi_attempt *a, struct qdq_spec *spec)
{
    (void)a;
    return use_method(spec, "minmax");
}

static bool
use_percentile(const struct qdqi_attempt *a, struct qdq_spec *spec)
{
    (void)a;
    return use_method(spec, "percentile");
}

static bool
use_entropy(const struct qdqi_attempt *a, struct qdq_spec *spec)
{
    (void)a;
    return use_method(spec, "entropy");
}

/* Switches off the rule by which weights have wider scales, so that sums in 16 bits do not
   saturate; only the kernels of this processor can tell whether they would. */
static bool
use_whole_range(const struct qdqi_attempt *a, struct qdq_spec *spec)
{
    return qdqi_saturation_switch_off(spec) && qdqi_deployed_runs(a->context);
}

static bool
correct_biases(const struct qdqi_attempt *a, struct qdq_spec *spec)
{
    if (a->context->dev || spec->bias_correction != QDQ_BIASES_NONE)
        return false;
    spec->bias_correction = QDQ_BIASES_EXISTING; /* the model is prepared already */
    return true;
}

static bool
compensate(const struct qdqi_attempt *a, struct qdq_spec *spec)
{
    if (a->context->dev || spec->weights.rounding != QDQ_ROUND_NEAREST)
        return false;
    spec->weights.rounding = QDQ_ROUND_GPTQ;
    return true;
}

static bool
equalize(const struct qdqi_attempt *a, struct qdq_spec *spec)
{
    (void)a;
    if (spec->equalize)
        return false;
    return spec->equalize = true;
}

static bool
smooth(const struct qdqi_attempt *a, struct qdq_spec *spec)
{
    if (a->context->dev || spec->smooth > 0)
        return false;
    spec->smooth = SMOOTH_ALPHA;
    return true;
}

/* Uses 16 bits for activations, of the same kind. */
static bool
widen(const struct qdqi_attempt *a, struct qdq_spec *spec)
{
    (void)a;
    if (spec->activations.format != QDQ_FORMAT_INT8 &&
        spec->activations.format != QDQ_FORMAT_UINT8)
        return false;
    spec->activations.format = spec->activations.format == QDQ_FORMAT_INT8
                                   ? QDQ_FORMAT_INT16
                                   : QDQ_FORMAT_UINT16;
    return true;
}

static const struct change {
    const char *step;
    enum qdq_choice choice;
    int passes; /* over the calibration's samples, at most */
    bool (*make)(const struct qdqi_attempt *a, struct qdq_spec *spec);
} changes[] = {
    /* the cheapest first */
    {"method", QDQ_CHOICE_METHOD, 0, use_minmax},
    {"method", QDQ_CHOICE_METHOD, 0, use_percentile},
    {"method", QDQ_CHOICE_METHOD, 0, use_entropy},
    {"C7", QDQ_CHOICE_C7, 0, use_whole_range},
    {"bias_correction", QDQ_CHOICE_BIASES, 1, correct_biases},
    {"rounding", QDQ_CHOICE_ROUNDING, 1, compensate},
    {"equalize", QDQ_CHOICE_EQUALIZE, 1, equalize},
    {"smooth", QDQ_CHOICE_SMOOTH, 2, smooth},
};

/* For advice: those that mend what single large channels break come first. A rule that only this
   processor could judge is none of them. */
static const struct change advised[] = {
    {"equalize", QDQ_CHOICE_EQUALIZE, 1, equalize},
    {"smooth", QDQ_CHOICE_SMOOTH, 2, smooth},
    {"method", QDQ_CHOICE_METHOD, 1, use_minmax},
    {"method", QDQ_CHOICE_METHOD, 0, use_percentile},
    {"method", QDQ_CHOICE_METHOD, 0, use_entropy},
    {"bias_correction", QDQ_CHOICE_BIASES, 1, correct_biases},
    {"rounding", QDQ_CHOICE_ROUNDING, 1, compensate},
};

enum {
    N_CHANGES = sizeof changes / sizeof *changes,
    N_ADVISED = sizeof advised / sizeof *advised,
    ROUNDS = 2,
    N_STEPS = ROUNDS * N_CHANGES + 2
};

static const struct change wider = {"activations", QDQ_CHOICE_ACTIVATIONS, 1, widen};

/* --- a trial ----------------------------------------------------------------- */

/* Chooses the file for the observations of the model that a spec makes: those of the job
   for its own model, or a temporary one. */
static enum qdq_code
choose_file(const struct qdqi_variants *v, struct observation_files *files,
            const struct qdq_spec *spec, int *ret, struct qdq_error *err)
{
    const struct qdqi_attempt *a = v->candidates->attempt;
    const struct qdq_spec *own = a->context->asked;
    const size_t i = (spec->equalize ? 2U : 0U) + (spec->smooth > 0 ? 1U : 0U);
    *ret = a->observations;
    if (spec->equalize == own->equalize && (spec->smooth > 0) == (own->smooth > 0) &&
        (*ret >= 0 || qdqi_keeps_observations(a->context->work)))
        return QDQ_OK;
    if (files->fds[i] < 0)
        files->fds[i] = qdqi_file_open_temporary();
    *ret = files->fds[i];
    return files->fds[i] >= 0
               ? QDQ_OK
               : qdq_error_set(err, QDQ_IO, QDQ_AT_NOTHING, NULL,
                               "opening a temporary file: %s", strerror(errno));
}

static void
close_files(struct observation_files *files)
{
    for (size_t i = 0; i < N_MODELS; i++)
        if (files->fds[i] >= 0)
            close(files->fds[i]);
}

/* Makes everything that stands before the first try of a recipe. */
static enum qdq_code
make_attempt(struct qdqi_attempt *a, struct qdq_error *err)
{
    enum qdq_code code =
        qdq_model_prepare(a->context->original, a->spec, &a->prepared, err);
    if (a->prepared)
        a->model = a->prepared;
    if (code || (code = qdqi_attempt_equalize(a, err)) ||
        (code = qdqi_inputs_fix(&a->model->info, a->spec, a->arena, &a->fixed, err)))
        return code;
    qdqi_caches_fix(a->model, &a->fixed);
    if ((code = qdqi_smooth(a, err)) || (code = qdqi_attempt_plan(a, err)) ||
        (code = qdqi_calibrate(a, err)))
        return code;
    return qdqi_choose_scales(a, err);
}

/* Makes a trial by another spec beside the attempt, also where it fails, and judges it. */
static enum qdq_code
try_spec(struct qdqi_variants *v, const struct qdq_spec *spec, int observations,
         struct qdqi_attempt **ret_trial, struct qdqi_grade *ret, struct qdq_error *err)
{
    struct qdqi_candidates *c = v->candidates;
    struct qdq_error why = {0};
    struct qdqi_attempt *trial = NULL;
    enum qdq_code code =
        qdqi_attempt_beside(c->attempt, spec, observations, &trial, err);
    if (code)
        return code;
    *ret_trial = trial;
    code = make_attempt(trial, &why);
    if (!code)
        code = qdqi_candidates_grade(c, trial, ret, &why);
    code = qdqi_candidates_outcome(c, code, &why, ret, err);
    const int passes = (trial->calibrated.inferences > 0) + (spec->smooth > 0);
    ret->samples += passes * trial->calibrated.samples;
    return code;
}

/* Puts a trial in the place of the attempt. The observations that it has kept count as those of
   an earlier calibration. */
enum qdq_code
qdqi_variants_adopt(struct qdqi_variants *v, struct qdqi_attempt **trial,
                    struct qdq_error *err)
{
    struct qdqi_calibrated *c = &(*trial)->calibrated;
    c->reused += c->observed;
    c->observed = 0;
    c->inferences = 0;
    return qdqi_attempt_adopt(&v->candidates->attempt, trial, err);
}

void
qdqi_variants_add_step(struct qdqi_variants *v, const struct qdqi_variant_step *step)
{
    v->steps[v->n_steps++] = *step;
    v->bound -= step->score.samples;
    if (!step->kept)
        return;
    v->best = step->score;
    v->changed = step->changed;
    v->spec = step->spec;
}

static bool
is_worth_it(const struct qdqi_grade *score, const struct qdqi_grade *best)
{
    struct qdqi_grade less = *score;
    less.sqnr_db -= best->sqnr_db < noisy_db ? least_gain_in_noise_db : least_gain_db;
    return qdqi_grade_is_better(&less, best);
}

/* Tries one change on top of those that were kept. */
static enum qdq_code
try_change(struct qdqi_variants *v, struct observation_files *files,
           const struct change *change, struct qdq_error *err)
{
    const struct qdqi_attempt *a = v->candidates->attempt;
    const int64_t samples = qdqi_comparer_samples(v->candidates->comparer) +
                            change->passes * a->calibrated.samples;
    struct qdq_spec *spec =
        qdqi_arena_alloc(v->candidates->result->arena, sizeof *spec);
    struct qdqi_variant_step step = {
        .step = change->step, .changed = v->changed | change->choice, .spec = spec};
    struct qdqi_attempt *trial = NULL;
    int fd;
    if (!spec)
        return qdqi_no_memory(err);
    *spec = *v->spec;
    if ((!v->only_tries && !(spec->open & change->choice)) || samples > v->bound ||
        v->is_time_up(v->arg) || !change->make(a, spec))
        return QDQ_OK;
    enum qdq_code code = choose_file(v, files, spec, &fd, err);
    if (!code)
        code = try_spec(v, spec, fd, &trial, &step.score, err);
    step.kept = !code && is_worth_it(&step.score, &v->best);
    if (step.kept && !v->only_tries)
        code = qdqi_variants_adopt(v, &trial, err);
    qdqi_attempt_free(&trial);
    if (!code)
        qdqi_variants_add_step(v, &step);
    return code;
}

/* --- the choice --------------------------------------------------------------- */

static enum qdq_code
try_round(struct qdqi_variants *v, struct observation_files *files,
          const struct change *rows, size_t n, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < n && !code; i++)
        if (!qdqi_grade_fits(&v->best) || !(v->best.sqnr_db >= v->candidates->goal_db))
            code = try_change(v, files, &rows[i], err);
    return code;
}

static enum qdq_code
run(struct qdqi_variants *v, const struct change *rows, size_t n, struct qdq_error *err)
{
    const double start_db = v->best.sqnr_db;
    struct observation_files files;
    for (size_t i = 0; i < N_MODELS; i++)
        files.fds[i] = -1;
    enum qdq_code code = try_round(v, &files, rows, n, err);
    if (!code && v->best.sqnr_db >= start_db + much_db)
        code = try_round(v, &files, rows, n, err);
    close_files(&files);
    return code;
}

enum qdq_code
qdqi_variants_start(struct qdqi_variants *v, struct qdq_error *err)
{
    const struct qdqi_attempt *a = v->candidates->attempt;
    struct qdqi_variant_step start = {.step = "start", .spec = a->spec, .kept = true};
    v->steps =
        qdqi_arena_array(v->candidates->result->arena, N_STEPS, sizeof *v->steps);
    if (!v->steps)
        return qdqi_no_memory(err);
    enum qdq_code code = qdqi_candidates_grade(v->candidates, a, &start.score, err);
    if (!code)
        qdqi_variants_add_step(v, &start);
    return code;
}

enum qdq_code
qdqi_variants_try(struct qdqi_variants *v, struct qdq_error *err)
{
    const struct qdqi_attempt *a = v->candidates->attempt;
    enum qdq_code code = qdqi_variants_start(v, err);
    if (code)
        return code;
    /* These ranges were adjusted by their effect on the outputs, which takes long. */
    if (strcmp(a->spec->calibration.method, "output_mse") == 0)
        return QDQ_OK;
    return v->only_tries ? run(v, advised, N_ADVISED, err)
                         : run(v, changes, N_CHANGES, err);
}

enum qdq_code
qdqi_variants_trial(struct qdqi_variants *v, const struct qdq_spec *spec,
                    struct qdqi_attempt **ret_trial, struct qdqi_grade *ret,
                    struct qdq_error *err)
{
    *ret_trial = NULL;
    return try_spec(v, spec, v->candidates->attempt->observations, ret_trial, ret, err);
}

enum qdq_code
qdqi_variants_judge(struct qdqi_variants *v, const struct qdq_spec *spec,
                    struct qdqi_grade *ret, struct qdq_error *err)
{
    struct qdqi_attempt *trial = NULL;
    enum qdq_code code = try_spec(v, spec, -1, &trial, ret, err);
    qdqi_attempt_free(&trial);
    return code;
}

enum qdq_code
qdqi_variants_widen(struct qdqi_variants *v, struct qdq_error *err)
{
    return run(v, &wider, 1, err);
}
