/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Range methods: from what was observed of a tensor to the range that is quantized.
 * One file each; a new method is one file and one row of the table in method.c.
 */
#ifndef QDQI_METHOD_H
#define QDQI_METHOD_H

#include "range/observer.h"

struct qdqi_range {
    double min, max; /* finite, min <= max */
};

struct qdqi_method {
    const char *name; /* as in spec and report */
    /* Pure. The observer was reached at least once and saw finite values only. */
    struct qdqi_range (*range)(const struct qdqi_observer *observer);
};

/* NULL when there is no such method. */
const struct qdqi_method *qdqi_method_find(const char *name);

extern const struct qdqi_method qdqi_method_minmax;

#endif
