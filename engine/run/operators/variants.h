/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's operators as the nodes of one execution provider run them. A session has the
 * variants of its provider: on the processor, where the operators work on the host's objects, or on
 * a device, where accumulators lie beside the tensors. This header is only for engine/run/.
 */
#ifndef QDQI_RUN_OPERATORS_VARIANTS_H
#define QDQI_RUN_OPERATORS_VARIANTS_H

#include "numbers/arithmetic/fake.h"
#include "numbers/range/observer.h"
#include "numbers/range/patches.h"
#include "numbers/range/peaks.h"
#include "run/operators/compare.h"
#include "run/operators/device_memory.h"
#include "run/operators/op.h"

/* The host's objects that operators work on; NULL: the session has no nodes of that operator. */
struct qdqi_op_objects {
    struct qdqi_observers *observers;
    struct qdqi_moments *moments;
    struct qdqi_all_peaks *peaks;
    struct qdqi_fakes *fakes;
    struct qdqi_comparisons *comparisons;
};

enum { QDQI_MOST_OPS = 6 }; /* the most that init() sets */

/* The functions of one kind of variants. `state` is what open() returned; NULL: it has none. */
struct qdqi_op_variants {
    /* Makes the state that operators need where they run. NULL: none. DEVICE_MEMORY, DEVICE_LOST. */
    enum qdq_code (*open)(const struct qdqi_op_objects *objects,
                          const struct qdqi_device *dev, void **ret,
                          struct qdq_error *err);
    void (*close)(void *state);
    /* Sets the operators, and returns their number. */
    size_t (*init)(const struct qdqi_op_objects *objects, void *state,
                   const OrtApi *api, struct qdqi_op ops[QDQI_MOST_OPS]);
    /* The members below are NULL where the host's objects are always up to date. */
    /* Returns the error of the last operator that failed, or NULL. */
    const struct qdq_error *(*fault)(const void *state);
    /* Reads what the caller needs after each run. */
    enum qdq_code (*end_run)(void *state, struct qdq_error *err);
    /* Copies what was accumulated to the host's objects, and the observers' state back. */
    enum qdq_code (*collect)(void *state, struct qdq_error *err);
    enum qdq_code (*restore)(void *state, struct qdq_error *err);
};

extern const struct qdqi_op_variants qdqi_host_variants, qdqi_cuda_variants;

#endif
