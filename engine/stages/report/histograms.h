/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_STAGES_REPORT_HISTOGRAMS_H
#define QDQI_STAGES_REPORT_HISTOGRAMS_H

#include "stages/report/report.h"

/* Reports the histograms of the observed activations, if the caller wants them. Adds nothing
   for ranges that were given, and where the method needs no histogram and none was kept. */
enum qdq_code qdqi_report_histograms(const struct qdqi_attempt *a,
                                     const struct qdqi_result *result,
                                     struct qdq_error *err) QDQ_MUST_CHECK;

#endif
