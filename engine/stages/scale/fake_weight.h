/* SPDX-License-Identifier: Apache-2.0 */
/* The FakeQuant of a weight that has scales, for runs of a model that is not written. */
#ifndef QDQI_STAGES_SCALE_FAKE_WEIGHT_H
#define QDQI_STAGES_SCALE_FAKE_WEIGHT_H

#include "numbers/arithmetic/fake.h"
#include "stages/attempt/attempt.h"

/* Makes that of weight i of the plan, switched off, in the attempt's scratch. NO_MEMORY. */
enum qdq_code qdqi_fake_weight(const struct qdqi_attempt *attempt, size_t i,
                               struct qdqi_fake *ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;

#endif
