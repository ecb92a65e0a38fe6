/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_STAGES_JOB_HISTOGRAMS_H
#define QDQI_STAGES_JOB_HISTOGRAMS_H

#include "stages/job/job.h"

/* Reports the histograms of the observed activations, if the caller wants them. Adds nothing
   for ranges that were given, and where the method needs no histogram and none was kept. */
enum qdq_code qdqi_report_histograms(struct qdqi_job *job,
                                     struct qdq_error *err) QDQ_MUST_CHECK;

#endif
