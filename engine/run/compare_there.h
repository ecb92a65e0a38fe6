/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compare and Pass on a device: what is compared stays there, and its sums until they are
 * collected. Only for engine/run/.
 */
#ifndef QDQI_RUN_COMPARE_THERE_H
#define QDQI_RUN_COMPARE_THERE_H

#include "run/compare.h"
#include "run/place.h"

/* The sums of one session. */
struct qdqi_comparing {
    struct qdqi_comparisons *host;
    const struct qdqi_place *place;
    /* On the device: */
    struct qdqi_error_sums *sums; /* by slot, since they were collected last */
    void *workspace;
    struct qdqi_error_sums *taken; /* on the host, likewise */
    struct qdq_error fault;        /* what an operator met */
};

/* All are zero. Both are borrowed. DEVICE_MEMORY, DEVICE_LOST. */
enum qdq_code qdqi_comparing_open(struct qdqi_comparisons *comparisons,
                                  const struct qdqi_place *place,
                                  struct qdqi_comparing **ret,
                                  struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_comparing_close(struct qdqi_comparing **comparing);

/* Adds the device's sums to those of the comparisons. */
enum qdq_code qdqi_comparing_collect(struct qdqi_comparing *comparing,
                                     struct qdq_error *err) QDQ_MUST_CHECK;

void qdqi_compare_there_init(struct qdqi_op *op, const OrtApi *api,
                             struct qdqi_comparing *comparing);
void qdqi_pass_there_init(struct qdqi_op *op, const OrtApi *api,
                          struct qdqi_comparing *comparing);

#endif
