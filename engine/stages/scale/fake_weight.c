/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/scale/fake_weight.h"

#include "files/model/constant.h"

/* Returns the FakeQuant of a weight. The runtime passes the weight in C order,
   whatever the order of the axes in its view. */
static struct qdqi_fake
fake_weight(const struct qdqi_planned_weight *weight, const struct qdqi_params *p)
{
    const struct qdqi_view *view = &weight->tensor->view;
    struct qdqi_fake fake = {.format = p->format,
                             .scales = p->scales,
                             .zero_points = p->zero_points,
                             .channels = 1,
                             .inner = 1};
    if (weight->axis < 0)
        return fake;
    fake.block = (size_t)p->block;
    fake.channels = (size_t)view->dims[weight->axis];
    for (size_t i = (size_t)weight->axis + 1; i < view->rank; i++)
        fake.inner *= (size_t)view->dims[i];
    return fake;
}

enum qdq_code
qdqi_fake_weight(const struct qdqi_attempt *a, size_t i, struct qdqi_fake *ret,
                 struct qdq_error *err)
{
    const struct qdqi_params *p = &a->scales.weights[i];
    const struct qdqi_view *view = &a->plan->weights[i].tensor->view;
    size_t n = 0;
    *ret = fake_weight(&a->plan->weights[i], p);
    if (!p->rounded_floats)
        return QDQ_OK;
    float *numbers = qdqi_count_elements(view->dims, view->rank, &n)
                         ? qdqi_arena_array(a->scratch, n, sizeof *numbers)
                         : NULL;
    if (!numbers)
        return qdqi_no_memory(err);
    ret->chosen = numbers;
    return qdqi_made_copy(p->rounded_floats, numbers, err);
}
