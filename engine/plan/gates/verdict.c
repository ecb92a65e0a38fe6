/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/gates/verdict.h"

#include "plan/gates/gates.h"
#include "plan/gates/judged.h"

#include <math.h>
#include <string.h>

static const struct qdqi_verdict_level levels[] = {
    [QDQI_GOOD] = {"good", 25, 0.99, 15, 15, 0.03},
    [QDQI_FAIR] = {"fair", 15, 0.95, 5, 10, 0.2},
    [QDQI_POOR] = {"poor", -INFINITY, -INFINITY, -INFINITY, -INFINITY, INFINITY},
};

const struct qdqi_verdict_level *
qdqi_verdict_level(enum qdqi_verdict verdict)
{
    return &levels[verdict];
}

/* The fewest samples of the verdict `good`: of all, and of those that calibration read. */
enum { LEAST_SAMPLES = 16, LEAST_SEEN_SAMPLES = 64 };

/* Returns whether as many rows agree as the level takes. A single row of few that does not is
   no evidence: one of 16 would make the result poor. Below ten rows, one is. */
static bool
agrees(const struct qdq_output_report *output, const struct qdqi_verdict_level *level)
{
    enum { LEAST_ROWS = 10 };
    double differing = round((1 - output->top1_agreement) * (double)output->rows);
    return output->lacks_classes || !(output->top1_agreement < level->top1_agreement) ||
           (output->rows >= LEAST_ROWS && differing <= 1);
}

/* Judges one output. Values that are not finite make it poor; an output without classes has
   no top-1 agreement, and one of integers or Booleans has nothing else. */
static enum qdqi_verdict
judge(const struct qdq_output_report *output)
{
    enum qdqi_verdict v = QDQI_GOOD;
    while (output->is_choice && v < QDQI_POOR && !agrees(output, &levels[v]))
        v++;
    if (output->is_choice)
        return v;
    if (output->is_logits) {
        while (v < QDQI_POOR && !(output->kl <= levels[v].kl))
            v++;
        return v;
    }
    while (v < QDQI_POOR && (!(output->sqnr_db >= levels[v].sqnr_db) ||
                             output->samples.p5_db < levels[v].p5_db ||
                             qdqi_worst_slice(output) < levels[v].slice_db ||
                             !agrees(output, &levels[v])))
        v++;
    return v;
}

bool
qdqi_has_few_samples(const struct qdq_report *report)
{
    return report->evaluated_samples > 0 && report->evaluated_samples < LEAST_SAMPLES;
}

/* Returns whether the report has a warning of data that cannot be right, with which no verdict is
   better than fair. */
static bool
data_caps_verdict(const struct qdq_report *report)
{
    for (size_t i = 0; i < report->n_warnings; i++)
        if (strcmp(report->warnings[i].code, QDQI_DATA_IMPLAUSIBLE) == 0)
            return true;
    return false;
}

bool
qdqi_caps_verdict(const struct qdq_report *report)
{
    return data_caps_verdict(report) || qdqi_has_few_samples(report) ||
           (report->evaluated_on_calibration &&
            (report->evaluation_is_settled
                 ? report->evaluated_of
                 : report->evaluated_samples) < LEAST_SEEN_SAMPLES);
}

enum qdqi_verdict
qdqi_verdict(const struct qdq_report *report)
{
    size_t n;
    const struct qdq_output_report *outputs = qdqi_deciding_outputs(report, &n);
    enum qdqi_verdict worst = n > 0 ? QDQI_GOOD : QDQI_NO_VERDICT;
    for (size_t i = 0; i < report->n_gates; i++)
        if (!report->gates[i].met)
            return QDQI_POOR;
    if (report->recipe_missed && n > 0)
        return QDQI_POOR;
    if (report->plan && report->plan->n_quantized == 0 && !report->floats)
        return QDQI_NO_VERDICT;
    for (size_t i = 0; i < n; i++) {
        if (!qdqi_output_decides(outputs, n, i))
            continue;
        enum qdqi_verdict verdict = judge(&outputs[i]);
        worst = verdict > worst ? verdict : worst;
    }
    return worst == QDQI_GOOD && qdqi_caps_verdict(report) ? QDQI_FAIR : worst;
}

const char *
qdqi_verdict_name(enum qdqi_verdict verdict)
{
    return verdict < QDQI_NO_VERDICT ? levels[verdict].name : NULL;
}
