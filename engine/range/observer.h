/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is remembered of an activation while a model runs: a fixed-size accumulator,
 * whatever the number of samples and elements.
 *
 * An observer belongs to one session; the runtime runs a session's nodes one after
 * another, so it needs no lock. A session that is run by several threads at once needs
 * a set of observers for each.
 */
#ifndef QDQI_OBSERVER_H
#define QDQI_OBSERVER_H

#include "number/minmax.h"
#include "qdq/error.h"

struct qdqi_observer {
    const char *tensor;
    struct qdqi_extremes extremes;
    int64_t runs; /* how often the tensor was reached */
};

struct qdqi_observers {
    struct qdqi_observer *rows; /* by slot */
    size_t n;
};

void qdqi_observer_init(struct qdqi_observer *observer, const char *tensor);
/* Takes in n float32. */
void qdqi_observer_update(struct qdqi_observer *observer, const void *data, size_t n);

#endif
