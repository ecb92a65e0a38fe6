/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_STAGES_SCALE_SCALE_H
#define QDQI_STAGES_SCALE_SCALE_H

#include "stages/attempt/attempt.h"

/* Computes the scales from ranges and weights, and the report's rows about them. Can be called
   again when plan or ranges have changed. */
enum qdq_code qdqi_choose_scales(struct qdqi_attempt *attempt,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

/* Adds to the rows the scales that the writer of the result has made. NO_MEMORY. */
enum qdq_code qdqi_report_blocks(struct qdqi_attempt *attempt,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

#endif
