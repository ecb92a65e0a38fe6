/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_STAGES_WHATIF_REFINE_H
#define QDQI_STAGES_WHATIF_REFINE_H

#include "stages/report/report.h"

struct qdqi_whatif;

/* Adjusts the ranges that calibration found by their effect on the outputs, and the
   scales that follow from them. Does nothing unless the range method asks for it. */
enum qdq_code qdqi_refine(struct qdqi_attempt *attempt, struct qdqi_whatif **whatif,
                          struct qdqi_result *result,
                          struct qdq_error *err) QDQ_MUST_CHECK;

#endif
