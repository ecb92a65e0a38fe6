/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/placement/formats.h"
#include "plan/placement/rules.h"
#include "plan/placement/target.h"
#include "qdq/targets.h"

#include "ground/base/host.h"
#include "numbers/arithmetic/format.h"

#include <math.h>
#include <string.h>

/* Returns whether the format has a sign. Such formats are symmetric by default, the
   others are not. */
static bool
has_negatives(enum qdq_format format)
{
    const struct qdqi_format_row *row = qdqi_format_row((int)format);
    return row && row->lowest < 0;
}

static enum qdq_tristate
default_symmetry(enum qdq_format format)
{
    return has_negatives(format) ? QDQ_YES : QDQ_NO;
}

static bool
is_float(enum qdq_format format)
{
    const struct qdqi_format_row *row = qdqi_format_row((int)format);
    return row && row->fraction_bits > 0;
}

bool
qdq_spec_is_timed(const struct qdq_spec *spec)
{
    return spec->calibration.max_seconds > 0 || spec->search.max_seconds > 0 ||
           spec->sensitivity_seconds > 0 || spec->recipe_seconds > 0 ||
           spec->evaluate_seconds > 0 || !isnan(spec->recipe_latency_ratio);
}

static enum qdq_weight_range
default_range(const struct qdq_spec *spec, enum qdq_weight_scales scales)
{
    return scales == QDQ_SCALES_MOMENTS && spec->target->signed_scales
               ? QDQ_RANGE_FULL
               : QDQ_RANGE_NARROW;
}

/* Returns the elements of the blocks that are a part of a format, or 0. */
static int
block_of(enum qdq_format format)
{
    const struct qdqi_format_row *row = qdqi_format_row((int)format);
    return row ? row->block : 0;
}

/* Returns whether QuantizeLinear does not make such weights, so that they are stored as they are. */
static bool
is_stored_alone(enum qdq_format format)
{
    return block_of(format) > 0 ||
           (format >= 0 &&
            qdqi_format_of_pairs((enum qdqi_format)format) != (enum qdqi_format)format);
}

/* Gives weights of a format of blocks the blocks, and those of another one scale for each
   channel where the format before them had blocks of its own. */
static void
take_blocks(struct qdq_weights *w, enum qdq_format before)
{
    if (block_of(w->format) > 0) {
        w->granularity = QDQ_PER_BLOCK;
        w->block = block_of(w->format);
    } else if (block_of(before) > 0) {
        w->granularity = QDQ_PER_CHANNEL;
        w->block = 0;
    }
}

struct qdq_layer_format
qdqi_entry_format(const struct qdq_spec *spec, const struct qdq_layer_entry *entry)
{
    struct qdq_layer_format f = {spec->weights, spec->activations};
    const struct qdq_weights *w = entry ? entry->weights : NULL;
    const struct qdq_activations *a = entry ? entry->activations : NULL;
    if (w && w->format != QDQ_FORMAT_DEFAULT) {
        f.weights.format = w->format;
        take_blocks(&f.weights, spec->weights.format);
    }
    if (w && block_of(f.weights.format) == 0 &&
        w->granularity != QDQ_GRANULARITY_DEFAULT) {
        f.weights.granularity = w->granularity;
        f.weights.block = w->block;
    }
    if (w && w->storage != QDQ_STORE_DEFAULT)
        f.weights.storage = w->storage;
    else if (w && w->format != QDQ_FORMAT_DEFAULT && is_stored_alone(w->format))
        f.weights.storage = QDQ_STORE_DQ;
    if (w && w->method != QDQ_WEIGHT_DEFAULT)
        f.weights.method = w->method;
    if (w && w->scales != QDQ_SCALES_DEFAULT && w->scales != f.weights.scales) {
        f.weights.scales = w->scales;
        f.weights.range = default_range(spec, w->scales);
        if (w->scales == QDQ_SCALES_MOMENTS && f.weights.rounding == QDQ_ROUND_NEAREST)
            f.weights.rounding = QDQ_ROUND_GPTQ;
    }
    if (w && w->rounding != QDQ_ROUND_DEFAULT)
        f.weights.rounding = w->rounding;
    if (f.weights.rounding == QDQ_ROUND_RECONSTRUCT &&
        f.weights.scales != QDQ_SCALES_MOMENTS) {
        f.weights.scales = QDQ_SCALES_MOMENTS;
        f.weights.range = default_range(spec, QDQ_SCALES_MOMENTS);
    }
    if (w && w->range != QDQ_RANGE_DEFAULT)
        f.weights.range = w->range;
    if (a && a->format != QDQ_FORMAT_DEFAULT)
        f.activations =
            (struct qdq_activations){a->format, default_symmetry(a->format)};
    if (a && a->symmetric != QDQ_DEFAULT)
        f.activations.symmetric = a->symmetric;
    return f;
}

bool
qdqi_spec_has(const struct qdq_spec *spec, bool (*is)(const struct qdq_layer_format *))
{
    struct qdq_layer_format f = qdqi_entry_format(spec, NULL);
    bool has = is(&f);
    for (size_t i = 0; !has && i < spec->n_layers; i++) {
        f = qdqi_entry_format(spec, &spec->layers[i]);
        has = (spec->layers[i].weights || spec->layers[i].activations) && is(&f);
    }
    return has;
}

static bool
is_rounded(const struct qdq_layer_format *f)
{
    return f->weights.rounding != QDQ_ROUND_NEAREST ||
           f->weights.scales == QDQ_SCALES_MOMENTS;
}

bool
qdq_spec_rounds(const struct qdq_spec *spec)
{
    return qdqi_spec_has(spec, is_rounded);
}

static bool
has_goals(const struct qdq_spec *spec)
{
    return !isnan(spec->recipe_sqnr_db) || !isnan(spec->recipe_top1_agreement) ||
           !isnan(spec->recipe_task_drop) || !isnan(spec->recipe_size_ratio) ||
           !isnan(spec->recipe_bytes) || !isnan(spec->recipe_latency_ratio);
}

bool
qdq_spec_searches(const struct qdq_spec *spec)
{
    return !isnan(spec->search.min_sqnr_db) ||
           !isnan(spec->search.min_top1_agreement) ||
           !isnan(spec->search.max_task_drop);
}

bool
qdq_spec_measures(const struct qdq_spec *spec)
{
    const struct qdqi_hooks *hooks = spec->target->hooks;
    struct qdq_spec complete = *spec;
    qdq_spec_complete(&complete);
    const bool asked = spec->frontier_points > 0 || !isnan(spec->recipe_latency_ratio);
    return ((complete.recipe == QDQ_RECIPE_AUTO &&
             (asked || !spec->target->measures_if_asked)) ||
            (asked && complete.recipe == QDQ_RECIPE_BEST && has_goals(spec))) &&
           !spec->recipe_formats &&
           (spec->target->searches_patterns ||
            (hooks->set_weighing && hooks->weighs(&complete))) &&
           !complete.dynamic && !complete.weight_only &&
           complete.float_type == QDQ_FLOAT_KEEP &&
           qdqi_is_8_bit_integer(complete.activations.format);
}

bool
qdq_spec_keeps_journal(const struct qdq_spec *spec)
{
    return spec->target->searches_patterns && qdq_spec_measures(spec);
}

/* Returns the recipe of a spec that names none. A search decides itself what stays in
   float, a spec with the source of its ranges is a frozen one, and no attempt of a recipe has
   factors of AWQ. */
static enum qdq_recipe
default_recipe(const struct qdq_spec *spec)
{
    if (qdq_spec_searches(spec) || spec->calibration.source || spec->smooth_awq)
        return QDQ_RECIPE_NONE;
    return spec->target->searches_patterns && spec->frontier_points > 0
               ? QDQ_RECIPE_AUTO
               : spec->target->recipe;
}

static enum qdq_host
default_host(const struct qdq_target *target)
{
    for (size_t i = 0; target->host && i < QDQ_N_HOSTS; i++)
        if (strcmp(qdq_host_name(i), target->host) == 0)
            return (enum qdq_host)i;
    return qdqi_host_here();
}

/* Returns the rounding of a spec that names none. In an allocation of formats, few bits stand beside
   many, and the rounding that goes by the outputs serves all of them. */
static enum qdq_rounding
default_rounding(const struct qdq_spec *spec)
{
    const bool is_allocated = spec->recipe_formats && !is_float(spec->weights.format);
    return is_allocated || spec->weights.scales == QDQ_SCALES_MOMENTS
               ? QDQ_ROUND_GPTQ
               : spec->target->rounding;
}

/* Fills in the defaults. A bound for the latency implies a profile. When the activations
   are 8-bit floats, the weights have the same format by default. */
void
qdq_spec_complete(struct qdq_spec *spec)
{
    const struct qdq_target *target = spec->target;
    if (spec->profile.runs == 0 &&
        (!isnan(spec->accept.max_latency_ratio) || !isnan(spec->recipe_latency_ratio)))
        spec->profile = (struct qdq_profile_spec){QDQ_PROFILE_RUNS, QDQ_PROFILE_THREADS,
                                                  QDQ_PROFILE_BATCH};
    if (spec->activations.format == QDQ_FORMAT_DEFAULT)
        spec->activations.format = target->activations;
    if (spec->weights.format == QDQ_FORMAT_DEFAULT)
        spec->weights.format = is_float(spec->activations.format) && !spec->weight_only
                                   ? spec->activations.format
                                   : target->weights;
    if (spec->activations.symmetric == QDQ_DEFAULT)
        spec->activations.symmetric = default_symmetry(spec->activations.format);
    take_blocks(&spec->weights, QDQ_FORMAT_DEFAULT);
    if (spec->weights.storage == QDQ_STORE_DEFAULT)
        spec->weights.storage = spec->weight_only ||
                                        is_stored_alone(spec->weights.format) ||
                                        spec->recipe_formats
                                    ? QDQ_STORE_DQ
                                    : target->storage;
    if (spec->weights.method == QDQ_WEIGHT_DEFAULT)
        spec->weights.method = qdqi_is_8_bit_integer(spec->activations.format)
                                   ? target->weight_method
                                   : QDQ_WEIGHT_MAX;
    if (spec->weights.rounding == QDQ_ROUND_DEFAULT)
        spec->weights.rounding = default_rounding(spec);
    if (spec->weights.rounding == QDQ_ROUND_RECONSTRUCT)
        spec->weights.scales = QDQ_SCALES_MOMENTS;
    if (spec->weights.range == QDQ_RANGE_DEFAULT)
        spec->weights.range = default_range(spec, spec->weights.scales);
    if (spec->bias_correction == QDQ_BIASES_DEFAULT)
        spec->bias_correction =
            qdq_spec_rounds(spec) ? QDQ_BIASES_ALL : QDQ_BIASES_NONE;
    if (spec->recipe == QDQ_RECIPE_DEFAULT)
        spec->recipe = default_recipe(spec);
    if (spec->host == QDQ_HOST_AUTO)
        spec->host = default_host(target);
    if (target->hooks->apply_version && spec->version != QDQ_VERSION_UNSTATED)
        target->hooks->apply_version(spec);
    qdqi_rules_decide(spec);
}

void
qdqi_spec_round_plainly(struct qdq_spec *spec)
{
    if ((spec->target->rounding == QDQ_ROUND_NEAREST && !spec->recipe_formats) ||
        !(spec->open & QDQ_CHOICE_ROUNDING))
        return;
    spec->weights.rounding = QDQ_ROUND_NEAREST;
    if (spec->open & QDQ_CHOICE_BIASES)
        spec->bias_correction = QDQ_BIASES_NONE;
}
