/* SPDX-License-Identifier: Apache-2.0 */
/* The table of targets, which is made from the list TARGETS in engine/local.mk, and the spec
   that says nothing, whose target is its first. */
#include "config.h"
#include "plan/targets/targets.h"

#include <math.h>
#include <string.h>

static const struct qdq_target *const targets[] = {
#define TARGET(name) &qdqi_target_##name,
#include "targets.inc"
#undef TARGET
};

enum { N_TARGETS = sizeof targets / sizeof *targets };

const struct qdq_target *
qdq_target_row(size_t i)
{
    return i < N_TARGETS ? targets[i] : NULL;
}

const struct qdq_target *
qdq_target_find(const char *name)
{
    for (size_t i = 0; i < N_TARGETS; i++)
        if (strcmp(targets[i]->name, name) == 0)
            return targets[i];
    return NULL;
}

const struct qdq_rule *
qdq_rule(size_t i)
{
    for (size_t k = 0; k < N_TARGETS; i -= targets[k++]->n_rules)
        if (i < targets[k]->n_rules)
            return &targets[k]->rules[i];
    return NULL;
}

/* --- the spec that says nothing ------------------------------------------- */

void
qdq_spec_init(struct qdq_spec *spec)
{
    *spec = (struct qdq_spec){
        .mode = QDQ_MODE_FULL,
        .target = targets[0],
        .device = QDQ_DEVICE_AUTO,
        .host = QDQ_HOST_AUTO,
        .version = QDQ_VERSION_UNSTATED,
        .recipe = QDQ_RECIPE_DEFAULT,
        .recipe_sqnr_db = NAN,
        .recipe_top1_agreement = NAN,
        .recipe_task_drop = NAN,
        .recipe_size_ratio = NAN,
        .recipe_latency_ratio = NAN,
        .recipe_bytes = NAN,
        .open = QDQ_CHOICES | QDQ_CHOICE_GRANULARITY,
        .weights.format = QDQ_FORMAT_DEFAULT,
        .weights.granularity = QDQ_PER_CHANNEL,
        .weights.storage = QDQ_STORE_DEFAULT,
        .weights.method = QDQ_WEIGHT_DEFAULT,
        .weights.rounding = QDQ_ROUND_DEFAULT,
        .weights.range = QDQ_RANGE_DEFAULT,
        .bias_correction = QDQ_BIASES_DEFAULT,
        .activations.format = QDQ_FORMAT_DEFAULT,
        .activations.symmetric = QDQ_DEFAULT,
        .calibration = {.method = "mse",
                        .percentile = 99.99,
                        .max_samples = 0,
                        .batch = 1},
        .evaluate = QDQ_DEFAULT,
        .evaluate_samples = QDQ_EVALUATE_SAMPLES,
        .accept = {.all = {NAN, NAN, NAN, NAN, NAN, NAN},
                   .max_size_ratio = NAN,
                   .max_latency_ratio = NAN,
                   .max_task_drop = NAN},
        .search = {NAN, NAN, NAN, QDQ_NO_LIMIT, 0, 0},
        .kv_percentile = 99.99,
        .unmatched_is_error = true,
    };
}
