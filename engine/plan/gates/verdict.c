/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/gates/verdict.h"

#include "plan/gates/gates.h"

#include <math.h>

/* The verdicts, the best first, with the least figures that each of them takes. */
static const struct level {
    const char *name;
    double sqnr_db, top1_agreement;
} levels[] = {
    {"good", 25, 0.99},
    {"fair", 15, 0.95},
    {"poor", -INFINITY, -INFINITY},
};

enum { WORST = sizeof levels / sizeof *levels - 1 };

/* Returns whether as many rows agree as the level takes. A single row of few that does not is
   no evidence: one of 16 would make the result poor. Below ten rows, one is. */
static bool
agrees(const struct qdq_output_report *output, const struct level *level)
{
    enum { FEWEST = 10 };
    double differing = round((1 - output->top1_agreement) * (double)output->rows);
    return output->lacks_classes || !(output->top1_agreement < level->top1_agreement) ||
           (output->rows >= FEWEST && differing <= 1);
}

/* Returns the index of the output's level. Values that are not finite make it the worst; an
   output without classes has no top-1 agreement. */
static size_t
level_of(const struct qdq_output_report *output)
{
    size_t i = 0;
    while (i < WORST &&
           (!(output->sqnr_db >= levels[i].sqnr_db) || !agrees(output, &levels[i])))
        i++;
    return i;
}

const char *
qdqi_verdict(const struct qdq_report *report)
{
    size_t n, worst = 0;
    const struct qdq_output_report *outputs = qdqi_deciding_outputs(report, &n);
    for (size_t i = 0; i < report->n_gates; i++)
        if (!report->gates[i].met)
            return levels[WORST].name;
    if (report->recipe_missed && n > 0)
        return levels[WORST].name;
    for (size_t i = 0; i < n; i++) {
        size_t level = level_of(&outputs[i]);
        worst = level > worst ? level : worst;
    }
    return n > 0 ? levels[worst].name : NULL;
}
