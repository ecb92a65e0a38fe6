/* SPDX-License-Identifier: Apache-2.0 */
/* Two reports side by side. Every call returns text that the caller frees, or NULL when out
   of memory or when a report is not JSON. */
#ifndef API_COMPARE_H
#define API_COMPARE_H

#include <stddef.h>

/* A job and its report, the text of api_report_encode(). */
struct api_compared {
    const char *id;
    char *json;
    size_t len;
};

/* Encodes the differences: each compared member is an array of the first job's value and the
   second's, with null for a value that a report lacks. */
char *api_compare_encode(const struct api_compared *first,
                         const struct api_compared *second);
/* Returns the same as a page of HTML, under the policy of api_html_policy(). */
char *api_compare_html(const struct api_compared *first,
                       const struct api_compared *second);

#endif
