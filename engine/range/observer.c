/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "range/observer.h"

void
qdqi_observer_init(struct qdqi_observer *observer, const char *tensor)
{
    *observer = (struct qdqi_observer){.tensor = tensor, .extremes = QDQI_NO_EXTREMES};
}

void
qdqi_observer_update(struct qdqi_observer *observer, const void *data, size_t n)
{
    qdqi_extremes_update(&observer->extremes, data, n);
    observer->runs++;
}
