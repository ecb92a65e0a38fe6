/* SPDX-License-Identifier: Apache-2.0 */
/* The order of numbers, for qsort(). */
#ifndef QDQI_GROUND_BASE_ORDER_H
#define QDQI_GROUND_BASE_ORDER_H

static inline int
qdqi_compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline int
qdqi_compare_ints(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

#endif
