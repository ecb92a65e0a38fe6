/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/recipe/allocate.h"

#include "graph/weights/walk.h"
#include "graph/weights/scales.h"
#include "numbers/arithmetic/format.h"
#include "stages/recipe/format_noise.h"
#include "stages/recipe/frontier.h"
#include "stages/recipe/goals.h"
#include "stages/recipe/loadable.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* UNCHANGED follows the formats: the weight stays as it is. So do the formats with a scale for each
   channel in the place of the spec's blocks. */
enum {
    MOST_TRIALS = 14,
    MOST_SIZE_TRIALS = 5,
    MOST_WEIGHED = 8, /* weights */
    UNCHANGED = QDQI_N_FORMATS,
    BY_CHANNEL,
    N_CHOICES = BY_CHANNEL + QDQI_N_FORMATS
};

struct weight {
    const char
        *layer; /* the first one that uses it; a copy, since models of attempts go */
    size_t row; /* in the plan */
    double elements;
    /* on the hull, the cheapest first; a choice is an enum qdqi_format, UNCHANGED, or BY_CHANNEL +
       enum qdqi_format */
    struct qdqi_format_point points[N_CHOICES];
    size_t n;
};

/* The step of one weight to its next format. */
struct upgrade {
    size_t weight, point; /* the format that it leads to */
    double gain;          /* noise that goes, for a byte */
};

struct allocation {
    struct qdqi_variants *v;
    const struct qdq_spec *base; /* that entries are added to */
    struct weight *weights;
    struct upgrade *upgrades; /* the best use of a byte first */
    size_t n_weights, n_upgrades;
    double before,
        other;        /* bytes: of the given model; of the result without the weights */
    double max_bytes; /* NaN: no bound */
    struct qdqi_arena *arena;
    unsigned formats; /* that were asked for, as qdq_spec.recipe_formats */
    /* by choice and weight of the plan: why it cannot be; NULL: it can. A choice that nobody asks for has
       no row */
    const char **why[N_CHOICES];
    /* the best so far: */
    struct qdqi_attempt *trial;
    struct qdqi_grade grade;
    size_t step;
    bool is_settled; /* what is judged from now on takes no one's place */
};

/* --- the choices of a weight ----------------------------------------------------- */

/* Returns those of the asked formats that the runtime loads for a weight; `first` is the choice of the
   first format. */
static unsigned
loadable(const struct allocation *x, size_t weight, int first)
{
    const unsigned asked = x->formats & ~(1U << QDQ_BIT_FLOAT32);
    unsigned ret = 0;
    for (int f = 0; f < QDQI_N_FORMATS; f++)
        if (asked & (1U << f) && x->why[first + f] && !x->why[first + f][weight])
            ret |= 1U << f;
    return ret;
}

/* Returns the formats that may have a scale for each channel in the place of the weight's blocks: those of
   8 bits or more, for which the scales of blocks are often a poor use of bytes, and those of which the
   runtime loads no blocks. The forms of decoders need blocks. */
static unsigned
formats_by_channel(const struct allocation *x, const struct qdq_plan *plan, size_t i)
{
    const unsigned in_blocks = loadable(x, i, 0);
    unsigned ret = 0;
    for (int f = 0; f < QDQI_N_FORMATS; f++)
        if (qdqi_format_row(f)->bits >= 8 || !(in_blocks & (1U << f)))
            ret |= 1U << f;
    return plan->weights[i].block > 0 && plan->decoder == QDQ_DECODER_AS_IS
               ? ret & loadable(x, i, BY_CHANNEL)
               : 0;
}

/* Measures a weight by all formats that it may have; where the runtime loads none, it stays as it is.
   Returns false when it cannot be read or memory is short. */
static bool
measure(const struct allocation *x, const struct qdqi_attempt *a, size_t i,
        struct weight *ret)
{
    const struct qdqi_planned_weight *w = &a->plan->weights[i];
    struct qdqi_params channels = {.axis = w->channel_axis};
    struct qdqi_constant c;
    if (qdqi_constant_read(a->model, w->tensor, &c, NULL) || c.dtype != QDQI_FLOAT32 ||
        c.strides || c.n == 0 || w->is_table || w->is_gates || w->is_moved ||
        w->next_axis != QDQI_NONE ||
        !qdqi_count_scales(&c, channels.axis, 0, &channels.n))
        return false;
    const unsigned formats = loadable(x, i, 0),
                   by_channel = formats_by_channel(x, a->plan, i);
    *ret = (struct weight){.layer = qdqi_arena_strdup(x->arena, w->layer),
                           .elements = (double)c.n};
    if (!ret->layer)
        return false;
    if ((formats && !qdqi_measure_formats(a->plan, &c, &a->scales.weights[i], formats,
                                          0, ret->points, &ret->n)) ||
        (by_channel && !qdqi_measure_formats(a->plan, &c, &channels, by_channel,
                                             BY_CHANNEL, ret->points, &ret->n)))
        return false;
    if (formats || by_channel ? x->formats & (1U << QDQ_BIT_FLOAT32) && ret->n > 0
                              : true)
        ret->points[ret->n++] =
            (struct qdqi_format_point){UNCHANGED, 4 * (double)c.n, 0};
    return ret->n > 0;
}

/* --- the hull of a weight ---------------------------------------------------------- */

static int
compare_points(const void *a, const void *b)
{
    const struct qdqi_format_point *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return (x->noise > y->noise) - (x->noise < y->noise);
}

/* Returns what goes of the noise for a byte from one point to another. */
static double
gain(const struct qdqi_format_point *from, const struct qdqi_format_point *to)
{
    return (from->noise - to->noise) / (to->bytes - from->bytes);
}

/* Keeps the points of the lower convex hull: each gains less for a byte than the one before. */
static void
keep_hull(struct weight *w)
{
    size_t n = 0;
    qsort(w->points, w->n, sizeof *w->points, compare_points);
    for (size_t i = 0; i < w->n; i++) {
        const struct qdqi_format_point next = w->points[i];
        if (n > 0 && next.noise >= w->points[n - 1].noise)
            continue;
        while (n > 1 && gain(&w->points[n - 1], &next) >=
                            gain(&w->points[n - 2], &w->points[n - 1]))
            n--;
        w->points[n++] = next;
    }
    w->n = n;
}

/* --- the row of allocations ---------------------------------------------------------- */

static int
compare_upgrades(const void *a, const void *b)
{
    const struct upgrade *x = a, *y = b;
    if (x->gain != y->gain)
        return x->gain > y->gain ? -1 : 1;
    if (x->weight != y->weight)
        return x->weight < y->weight ? -1 : 1;
    return (x->point > y->point) - (x->point < y->point);
}

/* Lists the upgrades of all weights, the best use of a byte first. */
static void
sort_upgrades(struct allocation *x)
{
    x->n_upgrades = 0;
    for (size_t i = 0; i < x->n_weights; i++)
        for (size_t k = 1; k < x->weights[i].n; k++) {
            const struct qdqi_format_point *to = &x->weights[i].points[k];
            x->upgrades[x->n_upgrades++] = (struct upgrade){i, k, gain(to - 1, to)};
        }
    qsort(x->upgrades, x->n_upgrades, sizeof *x->upgrades, compare_upgrades);
}

static bool
is_free(const struct qdqi_attempt *a, const char *name)
{
    const struct qdq_plan_view *plan = &a->plan->view;
    for (size_t i = 0; i < plan->n_layers; i++)
        if (strcmp(plan->layers[i].name, name) == 0)
            return plan->layers[i].reason_kind == QDQ_REASON_DEFAULT;
    return false;
}

/* Returns the rounding of a format where the spec leaves it open and another one serves it: floats
   have the nearest numbers. */
static enum qdq_rounding
rounding_of(const struct qdq_spec *spec, enum qdq_format format)
{
    const bool is_float = qdqi_format_row((int)format)->fraction_bits > 0;
    const bool was_float =
        qdqi_format_row((int)spec->weights.format)->fraction_bits > 0;
    if (is_float == was_float)
        return QDQ_ROUND_DEFAULT;
    return is_float ? QDQ_ROUND_NEAREST : QDQ_ROUND_GPTQ;
}

/* Makes the entry of a choice. */
static struct qdq_layer_entry
entry_of(const struct qdq_spec *spec, int choice, const char *const *names, size_t n,
         struct qdq_weights *weights)
{
    const bool by_channel = choice >= BY_CHANNEL;
    *weights = QDQ_WEIGHTS_UNSTATED;
    weights->format = (enum qdq_format)(by_channel ? choice - BY_CHANNEL : choice);
    if (choice != UNCHANGED && (spec->open & QDQ_CHOICE_ROUNDING))
        weights->rounding = rounding_of(spec, weights->format);
    if (by_channel)
        weights->granularity = QDQ_PER_CHANNEL;
    return (struct qdq_layer_entry){.by = QDQ_BY_NAME,
                                    .names = names,
                                    .n_names = n,
                                    .is_list = true,
                                    .quantize_input = choice != UNCHANGED,
                                    .quantize_weight = choice != UNCHANGED,
                                    .weights = choice == UNCHANGED ? NULL : weights};
}

/* Finds out which weights of the free layers the runtime loads in a choice. */
static enum qdq_code
ask_choice(struct allocation *x, int choice, const char *const *names, size_t n,
           struct qdq_error *err)
{
    const struct qdqi_attempt *a = x->v->candidates->attempt;
    struct qdq_weights weights;
    const struct qdq_layer_entry entry = entry_of(x->base, choice, names, n, &weights);
    x->why[choice] =
        qdqi_arena_array(x->arena, a->plan->view.n_weights + 1, sizeof *x->why[choice]);
    return x->why[choice] ? qdqi_find_refusals(a, &entry, x->arena, x->why[choice], err)
                          : qdqi_no_memory(err);
}

/* Finds out what the runtime loads of the formats. */
static enum qdq_code
ask(struct allocation *x, struct qdq_error *err)
{
    const struct qdqi_attempt *a = x->v->candidates->attempt;
    const size_t n_weights = a->plan->view.n_weights;
    const char **names = qdqi_arena_array(x->arena, n_weights + 1, sizeof *names);
    enum qdq_code code = names ? QDQ_OK : qdqi_no_memory(err);
    bool has_blocks = false;
    size_t n = 0;
    for (size_t i = 0; i < n_weights && !code; i++) {
        const struct qdqi_planned_weight *w = &a->plan->weights[i];
        if (is_free(a, w->layer)) {
            names[n++] = w->layer;
            has_blocks |= w->block > 0;
        }
    }
    for (int f = 0; f < QDQI_N_FORMATS && n > 0 && !code; f++) {
        if (!(x->formats & (1U << f)))
            continue;
        code = ask_choice(x, f, names, n, err);
        if (!code && has_blocks)
            code = ask_choice(x, BY_CHANNEL + f, names, n, err);
    }
    return code;
}

/* Fails because there is nothing to choose from. */
static enum qdq_code
refuse(const struct allocation *x, struct qdq_error *err)
{
    const char *target = x->base->target->title;
    for (int f = 0; f < QDQI_N_FORMATS; f++)
        for (size_t i = 0; x->why[f] && i < x->n_weights; i++)
            if (x->why[f][x->weights[i].row])
                return qdq_error_set(
                    err, QDQ_UNSUPPORTED, QDQ_AT_POINTER, "/recipe/formats",
                    "%s loads none of the formats for any layer; %s: %s", target,
                    qdqi_format_row(f)->name, x->why[f][x->weights[i].row]);
    return QDQ_OK;
}

static enum qdq_code
begin(struct allocation *x, struct qdq_error *err)
{
    const struct qdqi_attempt *a = x->v->candidates->attempt;
    const size_t n = a->plan->view.n_weights;
    bool has_choice = false;
    x->formats = a->context->asked->recipe_formats;
    x->weights = qdqi_arena_array(x->arena, n, sizeof *x->weights);
    x->upgrades = qdqi_arena_array(x->arena, n * N_CHOICES, sizeof *x->upgrades);
    if (!x->weights || !x->upgrades)
        return qdqi_no_memory(err);
    enum qdq_code code = ask(x, err);
    for (size_t i = 0; i < n && !code; i++) {
        struct weight *w = &x->weights[x->n_weights];
        if (!is_free(a, a->plan->weights[i].layer) || !measure(x, a, i, w))
            continue;
        has_choice |= w->n > 1 || w->points[0].choice != UNCHANGED;
        w->row = i;
        keep_hull(w);
        x->other -= 4 * w->elements;
        x->n_weights++;
    }
    if (!code && !has_choice && !(x->formats & (1U << QDQ_BIT_FLOAT32)))
        code = refuse(x, err);
    sort_upgrades(x);
    return code;
}

/* Warns of the formats that weights cannot have, with a scale for each channel neither. */
static enum qdq_code
warn_left_out(const struct allocation *x, struct qdq_error *err)
{
    const struct qdqi_attempt *a = x->v->candidates->attempt;
    const char **why = qdqi_arena_array(x->arena, x->n_weights + 1, sizeof *why);
    const char **layers = qdqi_arena_array(x->arena, x->n_weights + 1, sizeof *layers);
    enum qdq_code code = why && layers ? QDQ_OK : qdqi_no_memory(err);
    for (int f = 0; f < QDQI_N_FORMATS && !code; f++) {
        const char **const in_blocks = x->why[f],
                           **const apart = x->why[BY_CHANNEL + f];
        for (size_t i = 0; in_blocks && i < x->n_weights; i++) {
            const size_t row = x->weights[i].row;
            layers[i] = x->weights[i].layer;
            why[i] = apart && !apart[row] ? NULL : in_blocks[row];
        }
        if (in_blocks)
            code = qdqi_warn_refusals(a, qdqi_format_row(f)->name, layers, why,
                                      x->n_weights, err);
    }
    return code;
}

/* An allocation: the first `first` upgrades, and those behind them that fit into `most` bytes of
   weights, in their order. An upgrade leads on from the one before it of the same weight. */
struct cut {
    size_t first;
    double most;
};

/* Finds the format of each weight. Returns their bytes. */
static double
allocate(const struct allocation *x, const struct cut *cut, size_t *point_of)
{
    double bytes = 0;
    for (size_t i = 0; i < x->n_weights; i++) {
        point_of[i] = 0;
        bytes += x->weights[i].points[0].bytes;
    }
    for (size_t i = 0; i < x->n_upgrades; i++) {
        const struct upgrade *u = &x->upgrades[i];
        const struct qdqi_format_point *to = &x->weights[u->weight].points[u->point];
        const double after = bytes - to[-1].bytes + to->bytes;
        if (point_of[u->weight] != u->point - 1 ||
            (i >= cut->first && !(after <= cut->most)))
            continue;
        point_of[u->weight] = u->point;
        bytes = after;
    }
    return bytes;
}

/* Makes the spec of an allocation: an entry for each choice that is not the spec's. */
static const struct qdq_spec *
spec_of(const struct allocation *x, const size_t *point_of)
{
    const struct qdq_spec *from = x->base;
    struct qdq_spec *to = qdqi_arena_alloc(x->arena, sizeof *to);
    struct qdq_layer_entry *entries =
        qdqi_arena_array(x->arena, from->n_layers + N_CHOICES, sizeof *entries);
    if (!to || !entries)
        return NULL;
    if (from->n_layers)
        memcpy(entries, from->layers, from->n_layers * sizeof *entries);
    *to = *from;
    to->layers = entries;
    for (int choice = 0; choice < N_CHOICES; choice++) {
        const char **names = qdqi_arena_array(x->arena, x->n_weights, sizeof *names);
        struct qdq_weights *weights = qdqi_arena_alloc(x->arena, sizeof *weights);
        size_t n = 0;
        if (!names || !weights)
            return NULL;
        for (size_t i = 0; i < x->n_weights; i++)
            if (x->weights[i].points[point_of[i]].choice == choice)
                names[n++] = x->weights[i].layer;
        if (n > 0 && choice != (int)from->weights.format)
            entries[to->n_layers++] = entry_of(from, choice, names, n, weights);
    }
    return to;
}

/* --- trials ------------------------------------------------------------------------------ */

/* Returns whether the grade is better than the best so far: within the bounds, then enough, then the
   smaller of two that are enough, else the more accurate one. */
static bool
is_better(const struct allocation *x, const struct qdqi_grade *g)
{
    const struct qdqi_grade *best = &x->grade;
    const double goal =
        qdqi_goals_ask_for_accuracy(x->v->spec) ? x->v->candidates->goal_db : INFINITY;
    if (!x->trial || qdqi_grade_fits(g) != qdqi_grade_fits(best))
        return !x->trial || qdqi_grade_fits(g);
    if (!qdqi_grade_fits(g))
        return g->excess < best->excess;
    if (g->sqnr_db >= goal && best->sqnr_db >= goal)
        return g->size_ratio < best->size_ratio;
    return g->sqnr_db > best->sqnr_db;
}

/* Judges an allocation. The better of it and the best so far stays. */
static enum qdq_code
judge(struct allocation *x, const struct cut *cut, struct qdqi_grade *ret,
      struct qdq_error *err)
{
    struct qdqi_variants *v = x->v;
    size_t *point_of = qdqi_arena_array(x->arena, x->n_weights, sizeof *point_of);
    struct qdqi_variant_step step = {.step = "formats"};
    struct qdqi_attempt *trial = NULL;
    if (!point_of)
        return qdqi_no_memory(err);
    const double bytes = allocate(x, cut, point_of);
    if (!(step.spec = spec_of(x, point_of)))
        return qdqi_no_memory(err);
    enum qdq_code code = qdqi_variants_trial(v, step.spec, &trial, &step.score, err);
    *ret = step.score;
    if (!code && step.score.size_ratio > 0)
        x->other = step.score.size_ratio * x->before - bytes;
    if (!code && !x->is_settled && is_better(x, &step.score)) {
        struct qdqi_attempt *worse = x->trial;
        if (worse)
            v->steps[x->step].kept = false;
        step.kept = true;
        x->trial = trial;
        x->grade = step.score;
        x->step = v->n_steps;
        trial = worse;
    }
    qdqi_attempt_free(&trial);
    if (!code)
        qdqi_variants_add_step(v, &step);
    return code;
}

static bool
may_go_on(const struct allocation *x)
{
    return x->v->n_steps < MOST_TRIALS && !x->v->is_time_up(x->v->arg);
}

/* Finds the allocation of a cut. Returns whether it differs from the last one, which is in point_of. */
static bool
is_new(const struct allocation *x, const struct cut *cut, size_t *point_of,
       bool is_first)
{
    size_t *next = point_of + x->n_weights;
    const size_t size = x->n_weights * sizeof *next;
    allocate(x, cut, next);
    const bool differs = is_first || memcmp(point_of, next, size) != 0;
    memcpy(point_of, next, size);
    return differs;
}

/* Looks for the allocation that fills the bound. Each trial tells how many bytes the rest of the file
   takes; the most that one told counts, so that the search comes to an end. */
static enum qdq_code
fill_budget(struct allocation *x, size_t *point_of, struct qdq_error *err)
{
    struct qdqi_grade grade;
    enum qdq_code code = QDQ_OK;
    for (int i = 0; !code && may_go_on(x); i++) {
        const double other = x->other;
        const struct cut cut = {isnan(x->max_bytes) ? x->n_upgrades : 0,
                                x->max_bytes - other};
        if ((i >= MOST_SIZE_TRIALS && qdqi_grade_fits(&x->grade)) ||
            !is_new(x, &cut, point_of, i == 0))
            break;
        code = judge(x, &cut, &grade, err);
        if (i > 0 && x->other < other)
            x->other = other;
    }
    return code;
}

/* --- what noise does to the outputs -------------------------------------------------------- */

/* A weight by what its formats differ in. */
struct stake {
    double bytes;
    size_t weight;
};

static int
compare_stakes(const void *a, const void *b)
{
    const struct stake *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return (x->weight > y->weight) - (x->weight < y->weight);
}

/* Measures the noise of the outputs, as a part of their signal. *ret is NaN where the allocation cannot
   be judged. */
static enum qdq_code
measure_outputs(struct allocation *x, const size_t *point_of, double *ret,
                struct qdq_error *err)
{
    const struct qdq_spec *spec = spec_of(x, point_of);
    struct qdqi_attempt *trial = NULL;
    struct qdqi_grade grade;
    if (!spec)
        return qdqi_no_memory(err);
    enum qdq_code code = qdqi_variants_trial(x->v, spec, &trial, &grade, err);
    qdqi_attempt_free(&trial);
    if (!code)
        *ret = isnan(grade.output_db) || grade.output_db == -INFINITY
                   ? (double)NAN
                   : pow(10, -grade.output_db / 10);
    return code;
}

/* Finds by how much a weight in its cheapest format, beside the dearest ones of all others, makes the
   outputs noisier: NaN, it is not known. */
static enum qdq_code
measure_stakes(struct allocation *x, const struct stake *stakes, size_t n,
               size_t *point_of, double *ret, struct qdq_error *err)
{
    const struct cut dearest = {x->n_upgrades, -INFINITY};
    double least = (double)NAN;
    allocate(x, &dearest, point_of);
    enum qdq_code code = measure_outputs(x, point_of, &least, err);
    for (size_t i = 0; i < n; i++) {
        const size_t w = stakes[i].weight, point = point_of[w];
        ret[i] = (double)NAN;
        if (code || isnan(least) || x->v->is_time_up(x->v->arg))
            continue;
        point_of[w] = 0;
        code = measure_outputs(x, point_of, &ret[i], err);
        point_of[w] = point;
        ret[i] -= least;
    }
    return code;
}

/* Multiplies the noise of each weight's formats by what is left of it in the outputs. Weights that
   were not measured have the mean of the others; none has less than a hundredth of it. */
static void
apply_stakes(struct allocation *x, const struct stake *stakes, size_t n,
             const double *noise)
{
    double sum = 0, of = 0;
    for (size_t i = 0; i < n; i++)
        if (noise[i] > 0) {
            sum += noise[i];
            of += x->weights[stakes[i].weight].points[0].noise;
        }
    if (!(sum > 0 && of > 0))
        return;
    for (size_t i = 0; i < x->n_weights; i++) {
        struct weight *w = &x->weights[stakes[i].weight];
        double factor = i < n ? noise[i] / w->points[0].noise / (sum / of) : 1;
        factor = factor > 0.01 ? factor : i < n && !isnan(noise[i]) ? 0.01 : 1;
        for (size_t k = 0; k < w->n; k++)
            w->points[k].noise *= factor;
    }
    sort_upgrades(x);
}

/* Weighs the noise of weights by what it does to the outputs, where the bytes do not do for all
   upgrades: the noise of a weight alone does not tell how much its layer matters. */
static enum qdq_code
weigh(struct allocation *x, size_t *point_of, struct qdq_error *err)
{
    struct stake *stakes = qdqi_arena_array(x->arena, x->n_weights + 1, sizeof *stakes);
    const size_t n = x->n_weights < MOST_WEIGHED ? x->n_weights : MOST_WEIGHED;
    double noise[MOST_WEIGHED];
    if (!stakes)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < x->n_weights; i++) {
        const struct weight *w = &x->weights[i];
        stakes[i] = (struct stake){w->points[w->n - 1].bytes - w->points[0].bytes, i};
    }
    qsort(stakes, x->n_weights, sizeof *stakes, compare_stakes);
    enum qdq_code code = measure_stakes(x, stakes, n, point_of, noise, err);
    if (!code)
        apply_stakes(x, stakes, n, noise);
    return code;
}

/* Returns whether some of the upgrades may be left out, and not all have to be. */
static bool
has_choice(const struct allocation *x, size_t *point_of)
{
    const double most = x->max_bytes - x->other; /* NaN: no bound */
    const struct cut cheapest = {0, -INFINITY}, dearest = {x->n_upgrades, -INFINITY};
    return x->n_upgrades > 1 && !(allocate(x, &cheapest, point_of) > most) &&
           (qdqi_goals_ask_for_accuracy(x->v->spec) ||
            allocate(x, &dearest, point_of) > most);
}

/* --- searches ------------------------------------------------------------------------------- */

/* Returns how many upgrades, in their order, are within the bound. */
static size_t
largest_within(const struct allocation *x, size_t *point_of)
{
    size_t k = x->n_upgrades;
    for (; k > 0; k--) {
        const struct cut cut = {k, -INFINITY};
        if (!(allocate(x, &cut, point_of) + x->other > x->max_bytes))
            break;
    }
    return k;
}

/* Looks for the fewest upgrades that reach the goal, which is reached within the bound. */
static enum qdq_code
search_goal(struct allocation *x, size_t *point_of, struct qdq_error *err)
{
    const double goal = x->v->candidates->goal_db;
    struct qdqi_grade grade;
    size_t low = 0, high = largest_within(x, point_of);
    enum qdq_code code = QDQ_OK;
    while (!code && low < high && may_go_on(x)) {
        const struct cut middle = {low + (high - low) / 2, -INFINITY};
        code = judge(x, &middle, &grade, err);
        if (grade.sqnr_db >= goal)
            high = middle.first;
        else
            low = middle.first + 1;
    }
    return code;
}

/* Judges allocations for the frontier, from the cheapest to the dearest formats by equal steps of
   bytes. */
static enum qdq_code
add_points(struct allocation *x, size_t *point_of, struct qdq_error *err)
{
    const int64_t n = x->v->candidates->attempt->context->asked->frontier_points;
    const struct cut cheapest = {0, -INFINITY}, dearest = {x->n_upgrades, -INFINITY};
    const double low = allocate(x, &cheapest, point_of);
    const double high = allocate(x, &dearest, point_of);
    enum qdq_code code = QDQ_OK;
    struct qdqi_grade grade;
    x->is_settled = true;
    for (int64_t i = 0; !code && i < n && !x->v->is_time_up(x->v->arg); i++) {
        const double share = n > 1 ? (double)i / (double)(n - 1) : 1;
        const struct cut cut = {0, low + share * (high - low) + 0.5};
        if (is_new(x, &cut, point_of, i == 0))
            code = judge(x, &cut, &grade, err);
    }
    return code ? code : qdqi_frontier_report_sizes(x->v, err);
}

enum qdq_code
qdqi_allocate_formats(struct qdqi_variants *v, struct qdq_error *err)
{
    const struct qdqi_context *context = v->candidates->attempt->context;
    struct allocation x = {
        .v = v, .base = v->spec, .arena = v->candidates->result->arena};
    size_t *point_of = NULL; /* of the last allocation, and room for another */
    x.before = x.other = (double)qdqi_model_bytes(context->original);
    x.max_bytes = qdqi_goals_max_size(context) * x.before;
    v->steps = qdqi_arena_array(x.arena, MOST_TRIALS + QDQ_MOST_FRONTIER_POINTS + 1,
                                sizeof *v->steps);
    enum qdq_code code = v->steps ? begin(&x, err) : qdqi_no_memory(err);
    if (!code &&
        !(point_of = qdqi_arena_array(x.arena, 2 * x.n_weights + 1, sizeof *point_of)))
        code = qdqi_no_memory(err);
    if (!code)
        code = fill_budget(&x, point_of, err);
    if (!code && has_choice(&x, point_of)) {
        code = weigh(&x, point_of, err);
        if (!code)
            code = fill_budget(&x, point_of, err);
    }
    if (!code && qdqi_goals_ask_for_accuracy(v->spec) &&
        x.grade.sqnr_db >= v->candidates->goal_db)
        code = search_goal(&x, point_of, err);
    if (!code && context->asked->frontier_points > 0)
        code = add_points(&x, point_of, err);
    if (!code && x.trial)
        code = qdqi_variants_adopt(v, &x.trial, err);
    if (!code && v->n_steps > 0) {
        v->best = x.grade;
        v->spec = v->steps[x.step].spec;
    }
    qdqi_attempt_free(&x.trial);
    return code ? code : warn_left_out(&x, err);
}
