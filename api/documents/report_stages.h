/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a report that says what the stages took. */
#ifndef API_DOCUMENTS_REPORT_STAGES_H
#define API_DOCUMENTS_REPORT_STAGES_H

#include <jansson.h>

#include "qdq/report.h"

/* Encode the members `timings` and `stages`; NULL when out of memory. */
json_t *api_encode_timings(const struct qdq_report *report);
json_t *api_encode_stages(const struct qdq_report *report);

#endif
