/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Observe on a device: accumulators lie there, beside the tensors. After each run the
 * host gets what it has to look at then, 8 bytes a tensor (and a sample, where averages
 * are wanted); histograms stay until they are collected. Only for engine/run/.
 */
#ifndef QDQI_RUN_OBSERVE_THERE_H
#define QDQI_RUN_OBSERVE_THERE_H

#include "range/observer.h"
#include "run/place.h"

struct qdqi_visit; /* of a node */

/* The accumulators of one session. */
struct qdqi_observing {
    struct qdqi_observers *host;
    const struct qdqi_place *place;
    /* On the device, by slot: */
    struct qdqi_extremes *extremes;
    struct qdqi_cuda_histogram *histograms; /* NULL: not needed */
    /* Likewise, of each sample that was seen since they were taken last. NULL: not
       needed. */
    struct qdqi_extremes *samples;
    struct qdqi_extremes *taken; /* on the host, as many as the larger of both */
    struct qdqi_visit *visits;   /* whose samples these are, in their order */
    size_t room, used, n_visits;
    struct qdq_error fault; /* what an operator met */
};

/* All empty. Both are borrowed. DEVICE_MEMORY, DEVICE_LOST. */
enum qdq_code qdqi_observing_open(struct qdqi_observers *observers,
                                  const struct qdqi_place *place,
                                  struct qdqi_observing **ret,
                                  struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_observing_close(struct qdqi_observing **observing);

/* After a run: the observers' extremes and averages. */
enum qdq_code qdqi_observing_take(struct qdqi_observing *observing,
                                  struct qdq_error *err) QDQ_MUST_CHECK;
/* The observers' histograms, too. */
enum qdq_code qdqi_observing_collect(struct qdqi_observing *observing,
                                     struct qdq_error *err) QDQ_MUST_CHECK;
/* The device forgets what the observers do not hold. */
enum qdq_code qdqi_observing_restore(struct qdqi_observing *observing,
                                     struct qdq_error *err) QDQ_MUST_CHECK;

void qdqi_observe_there_init(struct qdqi_op *op, const OrtApi *api,
                             struct qdqi_observing *observing);

#endif
