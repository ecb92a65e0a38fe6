/* SPDX-License-Identifier: Apache-2.0 */
/* The spec that says nothing. Its target is the first of the list. */
#include "config.h"
#include "qdq/targets.h"

#include <math.h>

void
qdq_spec_init(struct qdq_spec *spec)
{
    *spec = (struct qdq_spec){
        .mode = QDQ_MODE_FULL,
        .target = qdq_target_row(0),
        .device = QDQ_DEVICE_AUTO,
        .host = QDQ_HOST_AUTO,
        .recipe = QDQ_RECIPE_DEFAULT,
        .recipe_sqnr_db = NAN,
        .recipe_top1_agreement = NAN,
        .recipe_size_ratio = NAN,
        .recipe_latency_ratio = NAN,
        .open = QDQ_CHOICES,
        .weight_format = QDQ_FORMAT_DEFAULT,
        .weight_granularity = QDQ_PER_CHANNEL,
        .weight_storage = QDQ_STORE_DEFAULT,
        .bias_correction = QDQ_BIASES_DEFAULT,
        .activation_format = QDQ_FORMAT_DEFAULT,
        .activation_symmetric = QDQ_DEFAULT,
        .calibration = {.method = "mse",
                        .percentile = 99.99,
                        .max_samples = 0,
                        .batch = 1},
        .evaluate = QDQ_DEFAULT,
        .evaluate_samples = 128,
        .accept = {.all = {NAN, NAN, NAN, NAN},
                   .max_size_ratio = NAN,
                   .max_latency_ratio = NAN},
        .search = {NAN, NAN, QDQ_NO_LIMIT, 0, 0},
        .unmatched_is_error = true,
    };
}
