/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "documents/report_bound.h"
#include "api/report.h"
#include "base/json.h"

#include <stdio.h>

/* The lists that may go, first those that readers miss least. */
static const struct {
    const char *object, *member; /* object NULL: the report itself */
} lists[] = {
    {NULL, API_REPORT_HISTOGRAMS},
    {"graph", "edges"},
    {"graph", "tensors"},
    {"graph", "nodes"},
    {NULL, "edges"},
    {"profile", "nodes"},
    {NULL, "equalization"},
    {NULL, "smoothing"},
    {"float", "kept"},
    {"evaluation", "not_judged"},
    {"evaluation", "layers"},
    {NULL, "weights"},
    {NULL, "tensors"},
    {NULL, "sensitivity"},
    {"search", "curve"},
    {"search", "float_layers"},
    {NULL, "warnings"},
    {NULL, "layers"},
    {"evaluation", "missed"},
    {NULL, "gates"},
};

enum { N_LISTS = sizeof lists / sizeof *lists };

static size_t
size_of(const json_t *json)
{
    return json_dumpb(json, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY);
}

/* Empties a list, and notes its pointer. Returns the bytes that were saved. */
static size_t
empty(json_t *report, json_t *omitted, size_t i)
{
    char pointer[64];
    const char *object = lists[i].object;
    json_t *list = json_object_get(object ? json_object_get(report, object) : report,
                                   lists[i].member);
    if (json_array_size(list) == 0)
        return 0;
    snprintf(pointer, sizeof pointer, "%s%s/%s", object ? "/" : "",
             object ? object : "", lists[i].member);
    size_t saved = size_of(list) - 2;
    json_array_clear(list);
    json_array_append_new(omitted, json_string(pointer));
    return saved;
}

json_t *
api_bound_report(json_t *report, uint64_t model_bytes)
{
    uint64_t most = model_bytes * API_REPORT_PER_BYTE;
    most = most > API_MOST_REPORT ? most : API_MOST_REPORT;
    size_t size = report ? size_of(report) : 0;
    if (size <= most)
        return report;
    json_t *omitted = json_array();
    for (size_t i = 0; omitted && i < N_LISTS && size > most; i++)
        size -= empty(report, omitted, i);
    return api_json_if(json_object_set_new(report, "omitted", omitted) == 0, report);
}
