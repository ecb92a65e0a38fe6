/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/task/labelled.h"

#include <string.h>

bool
qdqi_labelled_has(const struct qdq_dataset *dataset, const char *name)
{
    const struct qdq_dataset_info *info = qdq_dataset_info(dataset);
    for (size_t i = 0; i < info->n_arrays; i++)
        if (strcmp(info->arrays[i].name, name) == 0)
            return true;
    return false;
}

enum qdq_code
qdqi_labelled_open(const struct qdqi_attempt *a, const char *const *labels, size_t n,
                   struct qdqi_arena *arena, struct qdqi_feed **ret,
                   struct qdq_error *err)
{
    const struct qdqi_feed_options options = {.batch = 1};
    const size_t own = a->fixed.n_inputs;
    struct qdq_model_info info = a->fixed;
    struct qdq_value *inputs = qdqi_arena_array(arena, own + n, sizeof *inputs);
    if (!inputs)
        return qdqi_no_memory(err);
    memcpy(inputs, a->fixed.inputs, own * sizeof *inputs);
    for (size_t i = 0; i < n; i++) {
        if (!qdqi_labelled_has(a->context->evaluation, labels[i]))
            return qdq_error_set(err, QDQ_CALIBRATION_MISMATCH, QDQ_AT_POINTER, "/task",
                                 "the data to judge by has no array '%.128s'",
                                 labels[i]);
        inputs[own + i] = (struct qdq_value){.name = labels[i], .dtype = ""};
    }
    info.inputs = inputs;
    info.n_inputs = own + n;
    return qdqi_feed_open(&info, a->context->evaluation, &options, ret, err);
}
