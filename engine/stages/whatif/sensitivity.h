/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_STAGES_WHATIF_SENSITIVITY_H
#define QDQI_STAGES_WHATIF_SENSITIVITY_H

#include "stages/report/report.h"

struct qdqi_whatif;

/* Fills the report's `sensitivity`, where the spec asks for it. */
enum qdq_code qdqi_sensitivity(const struct qdqi_attempt *attempt,
                               struct qdqi_whatif **whatif, struct qdqi_result *result,
                               struct qdq_error *err) QDQ_MUST_CHECK;

#endif
