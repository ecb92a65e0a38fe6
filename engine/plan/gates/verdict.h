/* SPDX-License-Identifier: Apache-2.0 */
/* One word for the accuracy of a result. */
#ifndef QDQI_PLAN_GATES_VERDICT_H
#define QDQI_PLAN_GATES_VERDICT_H

#include "qdq/report.h"

/*
 * Returns "good", "fair" or "poor" by the worst of the judged outputs and by the report's
 * gates, which must be filled in. Returns NULL when nothing was compared and no bound was
 * missed.
 */
const char *qdqi_verdict(const struct qdq_report *report);

#endif
