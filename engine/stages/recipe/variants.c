/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/recipe/variants.h"

#include "files/data/file.h"
#include "stages/evaluate/deployed.h"
#include "plan/targets/shared/saturation.h"
#include "qdq/targets.h"
#include "stages/recipe/groups.h"
#include "stages/remake/remake.h"

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
struct kept {
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
use_minmax(const struct qdqi_job *job, struct qdq_spec *spec)
{
    (void)job;
    return use_method(spec, "minmax");
}

static bool
use_percentile(const struct qdqi_job *job, struct qdq_spec *spec)
{
    (void)job;
    return use_method(spec, "percentile");
}

static bool
use_entropy(const struct qdqi_job *job, struct qdq_spec *spec)
{
    (void)job;
    return use_method(spec, "entropy");
}

/* Switches off the rule by which weights have wider scales, so that sums in 16 bits do not
   saturate; only the kernels of this processor can tell whether they would. */
static bool
use_whole_range(const struct qdqi_job *job, struct qdq_spec *spec)
{
    return qdqi_saturation_switch_off(spec) && qdqi_deployed_runs(job);
}

static bool
correct_biases(const struct qdqi_job *job, struct qdq_spec *spec)
{
    if (job->dev || spec->bias_correction != QDQ_BIASES_NONE)
        return false;
    spec->bias_correction = QDQ_BIASES_EXISTING; /* the model is prepared already */
    return true;
}

static bool
compensate(const struct qdqi_job *job, struct qdq_spec *spec)
{
    if (job->dev || spec->weight_rounding != QDQ_ROUND_NEAREST)
        return false;
    spec->weight_rounding = QDQ_ROUND_GPTQ;
    return true;
}

static bool
equalize(const struct qdqi_job *job, struct qdq_spec *spec)
{
    (void)job;
    if (spec->equalize)
        return false;
    return spec->equalize = true;
}

static bool
smooth(const struct qdqi_job *job, struct qdq_spec *spec)
{
    if (job->dev || spec->smooth > 0)
        return false;
    spec->smooth = SMOOTH_ALPHA;
    return true;
}

/* Uses 16 bits for activations, of the same kind. */
static bool
widen(const struct qdqi_job *job, struct qdq_spec *spec)
{
    (void)job;
    if (spec->activation_format != QDQ_FORMAT_INT8 &&
        spec->activation_format != QDQ_FORMAT_UINT8)
        return false;
    spec->activation_format = spec->activation_format == QDQ_FORMAT_INT8
                                  ? QDQ_FORMAT_INT16
                                  : QDQ_FORMAT_UINT16;
    return true;
}

/* The changes, the cheapest first. */
static const struct change {
    const char *step;
    enum qdq_choice choice;
    int passes; /* over the calibration's samples, at most */
    bool (*make)(const struct qdqi_job *job, struct qdq_spec *spec);
} changes[] = {
    {"method", QDQ_CHOICE_METHOD, 0, use_minmax},
    {"method", QDQ_CHOICE_METHOD, 0, use_percentile},
    {"method", QDQ_CHOICE_METHOD, 0, use_entropy},
    {"C7", QDQ_CHOICE_C7, 0, use_whole_range},
    {"bias_correction", QDQ_CHOICE_BIASES, 1, correct_biases},
    {"rounding", QDQ_CHOICE_ROUNDING, 1, compensate},
    {"equalize", QDQ_CHOICE_EQUALIZE, 1, equalize},
    {"smooth", QDQ_CHOICE_SMOOTH, 2, smooth},
};

enum {
    N_CHANGES = sizeof changes / sizeof *changes,
    ROUNDS = 2,
    N_STEPS = ROUNDS * N_CHANGES + 2
};

static const struct change wider = {"activations", QDQ_CHOICE_ACTIVATIONS, 1, widen};

/* --- a trial ----------------------------------------------------------------- */

/* Chooses the file for the observations of the model that a spec makes: those of the job
   for its own model, or a temporary one. */
static enum qdq_code
choose_file(const struct qdqi_variants *v, struct kept *kept,
            const struct qdq_spec *spec, int *ret, struct qdq_error *err)
{
    const struct qdqi_job *job = v->candidates->job;
    const struct qdq_spec *own = job->asked;
    const size_t i = (spec->equalize ? 2U : 0U) + (spec->smooth > 0 ? 1U : 0U);
    *ret = job->observations;
    if (spec->equalize == own->equalize && (spec->smooth > 0) == (own->smooth > 0))
        return QDQ_OK;
    if (kept->fds[i] < 0)
        kept->fds[i] = qdqi_file_open_temporary();
    *ret = kept->fds[i];
    return kept->fds[i] >= 0
               ? QDQ_OK
               : qdq_error_set(err, QDQ_IO, QDQ_AT_NOTHING, NULL,
                               "opening a temporary file: %s", strerror(errno));
}

static void
close_files(struct kept *kept)
{
    for (size_t i = 0; i < N_MODELS; i++)
        if (kept->fds[i] >= 0)
            close(kept->fds[i]);
}

/* Judges the job as another spec would make it. The job is as before when this returns. */
static enum qdq_code
try_spec(struct qdqi_variants *v, const struct qdq_spec *spec, int observations,
         struct qdqi_grade *ret, struct qdq_error *err)
{
    struct qdqi_candidates *c = v->candidates;
    struct qdqi_job *job = c->job;
    const struct qdqi_job before = *job;
    const struct qdqi_report report = *job->report;
    struct qdqi_scales scales = {0};
    struct qdq_error why = {0};
    job->arena = job->scratch = qdqi_arena_new();
    job->warnings = (struct qdqi_warnings){0};
    job->tries = true;
    job->observations = observations;
    if (!job->arena) {
        *job = before;
        return qdqi_no_memory(err);
    }
    enum qdq_code code = qdqi_remake(job, spec, &scales, &why);
    const int64_t calibrated = job->inferences > 0 ? job->calibrated_samples : 0;
    const int64_t smoothed = spec->smooth > 0 ? job->calibrated_samples : 0;
    job->tries = false;
    if (!code)
        code = qdqi_candidates_judge(c, &scales, ret, &why);
    qdqi_remade_free(job);
    qdqi_arena_free(&job->scratch);
    *job = before;
    *job->report = report;
    if (qdqi_is_of_candidate(code)) {
        *ret = qdqi_no_grade(c);
        code = QDQ_OK;
    }
    ret->samples += calibrated + smoothed;
    return code ? qdq_error_set(err, code, why.kind, why.where, "%s", why.text)
                : QDQ_OK;
}

static void
add_step(struct qdqi_variants *v, const struct qdqi_variant_step *step)
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
    return qdqi_group_is_better(&less, best);
}

/* Tries one change on top of those that were kept. */
static enum qdq_code
try_change(struct qdqi_variants *v, struct kept *kept, const struct change *change,
           struct qdq_error *err)
{
    const struct qdqi_job *job = v->candidates->job;
    const int64_t samples = qdqi_judge_samples(v->candidates->judge) +
                            change->passes * job->calibrated_samples;
    struct qdq_spec *spec = qdqi_arena_alloc(job->arena, sizeof *spec);
    struct qdqi_variant_step step = {
        .step = change->step, .changed = v->changed | change->choice, .spec = spec};
    int fd;
    if (!spec)
        return qdqi_no_memory(err);
    *spec = *v->spec;
    if (!(spec->open & change->choice) || samples > v->bound || v->is_late(v->arg) ||
        !change->make(job, spec))
        return QDQ_OK;
    enum qdq_code code = choose_file(v, kept, spec, &fd, err);
    if (code || (code = try_spec(v, spec, fd, &step.score, err)))
        return code;
    step.kept = is_worth_it(&step.score, &v->best);
    add_step(v, &step);
    return QDQ_OK;
}

/* --- the choice --------------------------------------------------------------- */

/* Makes the list of warnings without those of the stages that are made again; the later
   ones are put back behind them. */
static enum qdq_code
remake_with_warnings(struct qdqi_job *job, const struct qdq_spec *spec,
                     struct qdqi_scales *scales, struct qdq_error *err)
{
    const struct qdqi_warnings old = job->warnings;
    const size_t first = job->first_made_warning, later = first + job->n_made_warnings;
    enum qdq_code code = QDQ_OK;
    job->warnings = (struct qdqi_warnings){0};
    for (size_t i = 0; i < old.n && !code; i++) {
        if (i == first) {
            if ((code = qdqi_remake(job, spec, scales, err)))
                break;
            job->n_made_warnings = job->warnings.n - first;
            i = later;
            if (i >= old.n)
                break;
        }
        const struct qdq_warning *w = &old.rows[i];
        code = qdqi_warn_text(&job->warnings, job->arena, err, w->code, w->node,
                              w->detail);
        if (!code)
            job->warnings.rows[job->warnings.n - 1].rule = w->rule;
    }
    if (code || first < old.n)
        return code;
    code = qdqi_remake(job, spec, scales, err);
    job->n_made_warnings = job->warnings.n - first;
    return code;
}

/* Makes the job by the best spec. */
static enum qdq_code
adopt(struct qdqi_variants *v, int observations, struct qdqi_scales *scales,
      struct qdq_error *err)
{
    struct qdqi_job *job = v->candidates->job;
    struct qdqi_job before = *job;
    struct qdqi_report old = *job->report;
    job->tries = true;
    job->observations = observations;
    enum qdq_code code = remake_with_warnings(job, v->spec, scales, err);
    job->tries = false;
    job->observations = before.observations;
    before.report = &old;
    qdqi_remade_free(&before);
    return code;
}

static enum qdq_code
try_round(struct qdqi_variants *v, struct kept *kept, const struct change *rows,
          size_t n, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < n && !code; i++)
        if (!qdqi_group_fits(&v->best) || !(v->best.sqnr_db >= v->candidates->goal_db))
            code = try_change(v, kept, &rows[i], err);
    return code;
}

static enum qdq_code
try_all(struct qdqi_variants *v, struct kept *kept, const struct change *rows, size_t n,
        struct qdqi_scales *scales, struct qdq_error *err)
{
    const double start_db = v->best.sqnr_db;
    const unsigned before = v->changed;
    int fd;
    enum qdq_code code = try_round(v, kept, rows, n, err);
    if (!code && v->best.sqnr_db >= start_db + much_db)
        code = try_round(v, kept, rows, n, err);
    if (code || v->changed == before)
        return code;
    code = choose_file(v, kept, v->spec, &fd, err);
    return code ? code : adopt(v, fd, scales, err);
}

static enum qdq_code
run(struct qdqi_variants *v, const struct change *rows, size_t n,
    struct qdqi_scales *scales, struct qdq_error *err)
{
    struct kept kept;
    for (size_t i = 0; i < N_MODELS; i++)
        kept.fds[i] = -1;
    enum qdq_code code = try_all(v, &kept, rows, n, scales, err);
    close_files(&kept);
    return code;
}

enum qdq_code
qdqi_variants_try(struct qdqi_variants *v, struct qdqi_scales *scales,
                  struct qdq_error *err)
{
    const struct qdqi_job *job = v->candidates->job;
    struct qdqi_variant_step start = {
        .step = "start", .spec = job->work->spec, .kept = true};
    v->steps = qdqi_arena_array(job->arena, N_STEPS, sizeof *v->steps);
    if (!v->steps)
        return qdqi_no_memory(err);
    enum qdq_code code =
        qdqi_candidates_judge(v->candidates, scales, &start.score, err);
    if (code)
        return code;
    add_step(v, &start);
    /* These ranges were adjusted by their effect on the outputs, which takes long. */
    if (strcmp(job->work->spec->calibration.method, "output_mse") == 0)
        return QDQ_OK;
    return run(v, changes, N_CHANGES, scales, err);
}

enum qdq_code
qdqi_variants_widen(struct qdqi_variants *v, struct qdqi_scales *scales,
                    struct qdq_error *err)
{
    return run(v, &wider, 1, scales, err);
}
