/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/rules.h"

#include <math.h>

void
qdq_spec_init(struct qdq_spec *spec)
{
    *spec = (struct qdq_spec){
        .mode = QDQ_MODE_FULL,
        .target = QDQ_TARGET_TENSORRT,
        .device = QDQ_DEVICE_AUTO,
        .rules = qdqi_rules_default(),
        .weight_granularity = QDQ_PER_CHANNEL,
        .calibration = {.method = "mse",
                        .percentile = 99.99,
                        .max_samples = 0,
                        .batch = 1},
        .evaluate = QDQ_DEFAULT,
        .evaluate_samples = 128,
        .accept.all = {NAN, NAN, NAN, NAN},
        .search = {NAN, NAN, QDQ_NO_LIMIT, 0},
        .unmatched_is_error = true,
    };
}
