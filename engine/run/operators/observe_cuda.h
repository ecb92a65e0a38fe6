/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Observe operator on a CUDA device. The accumulators are in device memory, like
 * the tensors. After each run the host downloads only the extremes: 8 bytes for each
 * tensor, and 8 for each sample where averages are needed. Histograms stay on the
 * device until they are collected. This header is only for engine/run/.
 */
#ifndef QDQI_RUN_OPERATORS_OBSERVE_CUDA_H
#define QDQI_RUN_OPERATORS_OBSERVE_CUDA_H

#include "numbers/range/observer.h"
#include "run/operators/device_memory.h"

struct qdqi_visit; /* one computation of a node */

/* The accumulators of one session. */
struct qdqi_cuda_observers {
    struct qdqi_observers *host;
    const struct qdqi_device *dev;
    /* In device memory, by slot: */
    struct qdqi_extremes *extremes;         /* not used where there are histograms */
    struct qdqi_cuda_histogram *histograms; /* NULL when no histograms are needed */
    /* In device memory: the extremes of each sample since the last download, and empty ones
       behind them. NULL when no averages are needed. */
    struct qdqi_extremes *samples;
    /* pinned memory for downloads, large enough for `samples` and for `extremes` */
    struct qdqi_extremes *downloaded;
    struct qdqi_visit *visits; /* the tensors that `samples` belong to, in order */
    size_t room, used, n_visits;
    struct qdq_error fault; /* the error of the last operator that failed */
};

/* Allocates empty accumulators. Borrows the observers and the device. DEVICE_MEMORY,
   DEVICE_LOST. */
enum qdq_code qdqi_cuda_observers_open(struct qdqi_observers *observers,
                                       const struct qdqi_device *dev,
                                       struct qdqi_cuda_observers **ret,
                                       struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_cuda_observers_close(struct qdqi_cuda_observers **cuda_observers);

/* Updates the observers' extremes and averages after a run. */
enum qdq_code
qdqi_cuda_observers_read_extremes(struct qdqi_cuda_observers *cuda_observers,
                                  struct qdq_error *err) QDQ_MUST_CHECK;
/* Updates the observers' extremes and averages and copies their histograms from the
   device. */
enum qdq_code qdqi_cuda_observers_collect(struct qdqi_cuda_observers *cuda_observers,
                                          struct qdq_error *err) QDQ_MUST_CHECK;
/* Sets the accumulators to the extremes and histograms that the observers now have. */
enum qdq_code qdqi_cuda_observers_restore(struct qdqi_cuda_observers *cuda_observers,
                                          struct qdq_error *err) QDQ_MUST_CHECK;

void qdqi_observe_cuda_init(struct qdqi_op *op, const OrtApi *api,
                            struct qdqi_cuda_observers *cuda_observers);

#endif
