/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics that a report gives. */
#include "config.h"
#include "remote/remote.h"
#include "unit.h"

#include <string.h>

#define SUMMARY "\"summary\": {\"size_before\": 400, \"size_after\": 100}"
#define OUTPUT(name, sqnr) \
    "{\"name\": \"" name "\", \"sqnr_db\": " sqnr ", \"cosine\": 0.5, \"x\": 1}"

static const struct {
    const char *report, *metrics;
} rows[] = {
    {"{" SUMMARY "}", "size_ratio 0.25"},
    {"{" SUMMARY ", \"evaluation\": {\"outputs\": [" OUTPUT("y", "30") "]}}",
     "sqnr_db 30, cosine 0.5, size_ratio 0.25"},
    {"{\"evaluation\": {\"outputs\": [" OUTPUT("y", "null") "]}}", "cosine 0.5"},
    {"{\"evaluation\": {\"outputs\": [" OUTPUT("a:b", "1") ", " OUTPUT("y", "2") "]}}",
     "sqnr_db_a_b 1, cosine_a_b 0.5, sqnr_db_y 2, cosine_y 0.5"},
    {"{\"evaluation\": {\"deployed\": null, \"outputs\": [" OUTPUT("y", "1") "]}}",
     "sqnr_db 1, cosine 0.5"},
    {"{\"evaluation\": {\"deployed\": {\"outputs\": [{\"top1_agreement\": 1}]},"
     " \"outputs\": [" OUTPUT("y", "1") "]}}",
     "top1_agreement 1"},
    {"{\"summary\": {\"size_before\": 0, \"size_after\": 0}}", ""},
    {"{}", ""},
    {"[1]", ""},
    {"no JSON", ""},
    {"", ""},
};

UNIT_ROWS(metrics, rows)
{
    struct qdqr_metric *list = NULL;
    struct api_problem problem = {0};
    char text[1024] = "";
    size_t n = 0, at = 0;
    ck_assert(qdqr_metrics_of_report(rows[_i].report, strlen(rows[_i].report), &list,
                                     &n, &problem));
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s %g", i ? ", " : "",
                               list[i].name, list[i].value);
    ck_assert_str_eq(text, rows[_i].metrics);
    qdqr_metrics_free(list, n);
}

UNIT_SUITE("metrics")
