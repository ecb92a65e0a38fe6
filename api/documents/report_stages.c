/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "documents/report_stages.h"

#include "base/json.h"

json_t *
api_encode_timings(const struct qdq_report *report)
{
    json_t *timings = json_object();
    double total = 0;
    int failed = 0;
    for (size_t i = 0; i < report->n_timings; i++) {
        const struct qdq_timing *timing = &report->timings[i];
        total += timing->seconds;
        failed |= json_object_set_new(timings, timing->stage,
                                      api_json_seconds(timing->seconds));
    }
    failed |= json_object_set_new(timings, "total", api_json_seconds(total));
    if (failed) {
        json_decref(timings);
        return NULL;
    }
    return timings;
}

static json_t *
encode_stage(const void *items, size_t i)
{
    const struct qdq_stage_use *stage = (const struct qdq_stage_use *)items + i;
    return json_pack("{s:o, s:o, s:i, s:o, s:o}", "name", api_json_text(stage->name),
                     "seconds", api_json_seconds(stage->seconds), "threads",
                     stage->threads, "bytes", json_integer((json_int_t)stage->bytes),
                     "peak_bytes", json_integer((json_int_t)stage->peak_bytes));
}

json_t *
api_encode_stages(const struct qdq_report *report)
{
    return api_json_list(report->stages, report->stages ? report->n_timings : 0,
                         encode_stage);
}
