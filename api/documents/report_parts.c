/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of a stored report. The histograms are its first member and are cut off as text: a report
 * may be large, and most readers do not want them.
 */
#include "config.h"
#include "api/report.h"

#include <stdlib.h>
#include <string.h>

/* The beginning of a report with histograms, and the name of the member behind them. In a
   text of JSON quotes are escaped, and histograms have no member of that name. */
static const char first[] = "{\"" API_REPORT_HISTOGRAMS "\":";
static const char second[] = "\"schema\":";

bool
api_report_has_histograms(const char *json, size_t len)
{
    return len >= sizeof first - 1 && memcmp(json, first, sizeof first - 1) == 0;
}

/* Returns two texts as one. */
static char *
join(const char *begin, const char *end, size_t len)
{
    size_t n = strlen(begin);
    char *text = malloc(n + len + 1);
    if (!text)
        return NULL;
    memcpy(text, begin, n);
    memcpy(text + n, end, len);
    text[n + len] = '\0';
    return text;
}

const char *
api_report_body(const char *json, size_t len)
{
    const char *body = api_report_has_histograms(json, len)
                           ? memmem(json, len, second, sizeof second - 1)
                           : NULL;
    return body ? body : json + (len > 0);
}

char *
api_report_without_histograms(const char *json, size_t len)
{
    const char *body = api_report_body(json, len);
    return join(len ? "{" : "", body, len - (size_t)(body - json));
}

char *
api_report_null_histograms(const char *json, size_t len)
{
    return len > 1 ? join(API_REPORT_NULL_HISTOGRAMS, json + 1, len - 1)
                   : join("", json, len);
}
