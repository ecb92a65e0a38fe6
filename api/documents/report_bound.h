/* SPDX-License-Identifier: Apache-2.0 */
/* The bound on the size of a report, whatever the model is. */
#ifndef API_DOCUMENTS_REPORT_BOUND_H
#define API_DOCUMENTS_REPORT_BOUND_H

#include <jansson.h>
#include <stdint.h>

/* The bytes of a report that no model passes, and those for each byte of a larger model. */
#define API_MOST_REPORT (30u << 20)
#define API_REPORT_PER_BYTE 15

/*
 * Empties the lists of a report's details, beginning with those that readers miss least, until its
 * text has at most API_MOST_REPORT bytes, or API_REPORT_PER_BYTE times the model's. The member
 * `omitted` lists their pointers; a report that was small enough lacks it. Takes `report`, which may
 * be NULL; returns NULL when out of memory.
 */
json_t *api_bound_report(json_t *report, uint64_t model_bytes);

#endif
