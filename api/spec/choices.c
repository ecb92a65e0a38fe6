/* SPDX-License-Identifier: Apache-2.0 */
/* The members that a spec leaves to a recipe: those that it does not name. The recipe `auto`
   only chooses how many samples to calibrate with, and for some targets how wide activations are. The effective spec leaves these members out and
   states the others, because naming one makes another job. */
#include "config.h"
#include "spec/members.h"
#include "qdq/targets.h"
#include "spec/values.h"

#include <string.h>

static const struct choice {
    enum qdq_choice bit;
    const char *object, *member; /* object NULL: the spec itself */
} choices[] = {
    {QDQ_CHOICE_METHOD, "calibration", "method"},
    {QDQ_CHOICE_METHOD, "calibration", "percentile"},
    {QDQ_CHOICE_SAMPLES, "calibration", "max_samples"},
    {QDQ_CHOICE_EQUALIZE, NULL, "equalize"},
    {QDQ_CHOICE_SMOOTH, NULL, "smooth"},
    {QDQ_CHOICE_BIASES, NULL, "bias_correction"},
    {QDQ_CHOICE_ROUNDING, "weights", "rounding"},
    {QDQ_CHOICE_GRANULARITY, "weights", "granularity"},
    {QDQ_CHOICE_C7, "rules", "C7"},
    {QDQ_CHOICE_ACTIVATIONS, "activations", "dtype"},
    {QDQ_CHOICE_ACTIVATIONS, "activations", "symmetric"},
};

enum { N_CHOICES = sizeof choices / sizeof *choices };

static json_t *
object_of(json_t *root, const struct choice *c)
{
    return c->object ? json_object_get(root, c->object) : root;
}

void
api_settle_choices(struct decoder *d)
{
    json_t *root = d->to->root;
    for (size_t i = 0; i < N_CHOICES; i++) {
        const struct choice *c = &choices[i];
        const json_t *value = json_object_get(object_of(root, c), c->member);
        /* A rule that is "auto" is left open. */
        if (value && !(c->bit == QDQ_CHOICE_C7 && json_is_string(value)))
            d->to->spec.open &= ~(unsigned)c->bit;
    }
}

/* Sets a member unless it is there. Returns false when out of memory. */
static bool
state(json_t *object, const char *member, json_t *value)
{
    bool there = json_object_get(object, member);
    bool ok = value && (there || json_object_set(object, member, value) == 0);
    json_decref(value);
    return ok;
}

/* States the rounding "nearest", which encoders leave out, where the spec names it. */
static bool
state_rounding(const struct qdq_spec *spec, json_t *root)
{
    return spec->open & QDQ_CHOICE_ROUNDING ||
           state(json_object_get(root, "weights"), "rounding", json_string("nearest"));
}

/* States what encoders leave out that the spec names. */
static bool
state_named(const struct qdq_spec *spec, json_t *root)
{
    bool ok = state_rounding(spec, root);
    if (!(spec->open & QDQ_CHOICE_SMOOTH))
        ok = state(root, "smooth", json_false()) && ok;
    if (!(spec->open & QDQ_CHOICE_BIASES))
        ok = state(root, "bias_correction",
                   api_encode_bias_correction(spec->bias_correction)) &&
             ok;
    return ok;
}

/* Returns what a spec leaves to its recipe. */
static unsigned
open_choices(const struct qdq_spec *spec)
{
    const bool is_best = spec->recipe == QDQ_RECIPE_BEST;
    const bool is_auto = spec->recipe == QDQ_RECIPE_AUTO;
    const unsigned of_auto =
        QDQ_CHOICE_SAMPLES | (spec->target->widens ? QDQ_CHOICE_ACTIVATIONS : 0U);
    return spec->open & (is_best ? (unsigned)QDQ_CHOICES : is_auto ? of_auto : 0U);
}

/* States the same where the target rounds otherwise by default. A target that rounds to nearest has it by
   default, and its specs stay as they were before there was a choice. */
static bool
state_against_target(const struct qdq_spec *spec, json_t *root)
{
    return spec->target->rounding == QDQ_ROUND_NEAREST || state_rounding(spec, root);
}

json_t *
api_leave_open(const struct qdq_spec *spec, json_t *root)
{
    if (!root)
        return root;
    if (!state_against_target(spec, root)) {
        json_decref(root);
        return NULL;
    }
    if (spec->recipe < QDQ_RECIPE_AUTO)
        return root;
    for (size_t i = 0; i < N_CHOICES; i++) {
        json_t *object = object_of(root, &choices[i]);
        if (open_choices(spec) & (unsigned)choices[i].bit)
            json_object_del(object, choices[i].member);
        if (choices[i].object && json_is_object(object) &&
            json_object_size(object) == 0)
            json_object_del(root, choices[i].object);
    }
    if (spec->recipe == QDQ_RECIPE_AUTO || state_named(spec, root))
        return root;
    json_decref(root);
    return NULL;
}
