/* SPDX-License-Identifier: Apache-2.0 */
/* One word for the accuracy of a result. */
#ifndef QDQI_PLAN_GATES_VERDICT_H
#define QDQI_PLAN_GATES_VERDICT_H

#include "qdq/report.h"

/* Verdicts, the best first. There is NONE when no bound is missed and nothing was compared, or
   nothing was quantized: equal outputs are no merit of a result that is the model. */
enum qdqi_verdict { QDQI_GOOD, QDQI_FAIR, QDQI_POOR, QDQI_NO_VERDICT };

/*
 * Judges by the worst of the compared outputs and by the report's gates, which must be
 * filled in: by an output's pooled SQNR, its slices, the 5th percentile of its samples and its top-1
 * agreement.
 */
enum qdqi_verdict qdqi_verdict(const struct qdq_report *report);

/* The least figures that a verdict takes. */
struct qdqi_verdict_level {
    const char *name;
    double sqnr_db, top1_agreement;
    /* of the 5th percentile of samples, and of slices that carry information: these figures
       leave out what is large and easy, and lie up to 10 dB below the pooled one of all */
    double p5_db, slice_db;
    double kl; /* the most, in the place of all others, of a language model's logits */
};

/* Returns the least figures of GOOD, FAIR or POOR. */
const struct qdqi_verdict_level *qdqi_verdict_level(enum qdqi_verdict verdict);

/* The code of warnings that the data cannot be right. */
#define QDQI_DATA_IMPLAUSIBLE "data_implausible"

/* Returns the word that a report has for the verdict, or NULL for none. */
const char *qdqi_verdict_name(enum qdqi_verdict verdict);

/* Returns whether there are too few samples for the verdict `good`. */
bool qdqi_has_few_samples(const struct qdq_report *report);
/* Returns whether the verdict is at most `fair`: by too few samples, or by too few that
   calibration read as well. */
bool qdqi_caps_verdict(const struct qdq_report *report);

#endif
