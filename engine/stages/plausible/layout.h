/* SPDX-License-Identifier: Apache-2.0 */
/* Images whose channels are the last axis, for a model whose convolutions want them to be axis 1,
   where the model declares no sizes that would tell. */
#ifndef QDQI_STAGES_PLAUSIBLE_LAYOUT_H
#define QDQI_STAGES_PLAUSIBLE_LAYOUT_H

#include "stages/attempt/attempt.h"

/* Checks the calibration data before the model runs. CALIBRATION_MISMATCH names the input, the layout
   and how to change it. */
enum qdq_code qdqi_check_layout(const struct qdqi_attempt *attempt,
                                struct qdq_error *err) QDQ_MUST_CHECK;

#endif
