/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of all samples of a model, for a metric that is called once. How sure a difference between two such
 * figures is follows from calls without a twentieth of the samples each (qdqi_jackknife()). No sample is there
 * twice in a call, which would spoil metrics that rank samples or look for pairs among them.
 */
#ifndef QDQI_STAGES_TASK_GATHERED_H
#define QDQI_STAGES_TASK_GATHERED_H

#include "stages/task/metric.h"

/* Figures of a model that is judged once: of all samples, and of those without each group. */
enum { QDQI_TASK_FIGURES = 1 + QDQI_TASK_GROUPS };

struct qdqi_gathered {
    struct qdqi_arena *arena; /* borrowed */
    size_t n_sources;
    struct qdqi_input *values;
    struct qdqi_gathered_value {
        unsigned char *data;
        size_t size, room;
        int64_t *shape;
        size_t *ends; /* of the samples, in bytes */
        size_t n, room_of_ends;
    } * buffers;
    size_t bytes;
};

enum qdq_code qdqi_gathered_init(struct qdqi_gathered *all, struct qdqi_arena *arena,
                                 size_t n_sources,
                                 struct qdq_error *err) QDQ_MUST_CHECK;
/* Frees the values, and is ready for those of another model. */
void qdqi_gathered_forget(struct qdqi_gathered *all);

/* Appends what `samples` samples have of a source, along axis 0. CALIBRATION_MISMATCH for another
   shape, LIMIT_EXCEEDED, NO_MEMORY. */
enum qdq_code qdqi_gathered_add(struct qdqi_gathered *all, size_t source,
                                const struct qdqi_input *value, size_t samples,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * Calls the metric with all samples, for ret[0]. With `groups` it is called for the QDQI_TASK_FIGURES - 1 others,
 * too, in each of which another group is left out; they are NaN where there are fewer samples than groups, more than
 * 64 MiB, or a metric that does not take that many calls, or not those samples. The errors are those of
 * qdqi_metric_call() with all samples.
 */
enum qdq_code qdqi_gathered_judge(const struct qdqi_gathered *all,
                                  struct qdqi_metric *metric, bool groups,
                                  struct qdqi_fraction ret[QDQI_TASK_FIGURES],
                                  struct qdq_error *err) QDQ_MUST_CHECK;

#endif
