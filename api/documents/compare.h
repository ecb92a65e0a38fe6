/* SPDX-License-Identifier: Apache-2.0 */
/* The comparison of two jobs as a value, which its encoder and its page share. */
#ifndef API_DOCUMENTS_COMPARE_H
#define API_DOCUMENTS_COMPARE_H

#include <jansson.h>

#include "api/compare.h"

/* Returns the value that api_compare_encode() prints. NULL when out of memory, or when a report
   is not JSON. */
json_t *api_compare_load(const struct api_compared *first,
                         const struct api_compared *second);

#endif
