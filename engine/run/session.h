/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running a model with ONNX Runtime. The only door to it: its library is loaded with
 * dlopen(), so the engine works (and plans, and inserts given ranges) without it.
 */
#ifndef QDQI_RUN_SESSION_H
#define QDQI_RUN_SESSION_H

#include "data/feed.h"
#include "model/write.h"
#include "number/fake.h"
#include "range/observer.h"
#include "run/compare.h"

struct qdqi_place;
struct qdqi_runtime;
struct qdqi_session;

/* Its sessions share `threads` threads (>= 1), those that call included.
   RUNTIME_MISSING when the library cannot be loaded or is too old. */
enum qdq_code qdqi_runtime_open(const char *library, int threads,
                                struct qdqi_runtime **ret,
                                struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_runtime_close(struct qdqi_runtime **runtime);
const char *qdqi_runtime_version(const struct qdqi_runtime *runtime);
/* Whether models can be run on a CUDA device; NO_DEVICE says why not. */
enum qdq_code qdqi_runtime_try_device(const struct qdqi_runtime *runtime, int device,
                                      struct qdq_error *err) QDQ_MUST_CHECK;

struct qdqi_session_options {
    const struct qdqi_place *place;       /* the device; NULL: the host */
    struct qdqi_observers *observers;     /* what Observe nodes feed; NULL: none */
    struct qdqi_fakes *fakes;             /* what FakeQuant nodes do; NULL: none */
    struct qdqi_comparisons *comparisons; /* of a twin's Compare nodes; NULL: none */
    /* Activations become floats of 8 bits: ONNX Runtime 1.31 drops a Relu in front of such
       a QuantizeLinear unless it is kept from all but basic optimizations. */
    bool float_pairs;
    bool one_of_many; /* of sessions that are open side by side: shares their memory,
                              which stays with the runtime when they are closed */
    const char *optimized; /* path that the model is written to as the runtime would run
                              it, pairs fused into integer kernels; NULL: it is not */
};

/*
 * Loads `proto`, an edited copy of source->proto (or that itself). Weights are read
 * from the source's mapping, which must outlive the session. Q/DQ pairs are computed as
 * the operators say, in floating point, never fused into integer kernels: what is
 * measured then is the quantization, not a backend. RUN_FAILED with the runtime's
 * message.
 */
enum qdq_code qdqi_session_open(struct qdqi_runtime *runtime,
                                const struct qdq_model *source,
                                const Onnx__ModelProto *proto,
                                const struct qdqi_session_options *options,
                                struct qdqi_session **ret,
                                struct qdq_error *err) QDQ_MUST_CHECK;
/* The same of a model whose weights lie in the mappings of several, all of which must
   outlive the session. */
enum qdq_code qdqi_session_load(struct qdqi_runtime *runtime,
                                const struct qdqi_runnable *model,
                                const struct qdqi_session_options *options,
                                struct qdqi_session **ret,
                                struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_session_close(struct qdqi_session **session);

/* A result of the last run. dtype is QDQI_UNKNOWN for what is no tensor; float16 is
   handed out as float32. */
struct qdqi_output {
    enum qdqi_dtype dtype;
    size_t rank;
    const int64_t *shape;
    size_t n; /* elements */
    const void *data;
};

/*
 * Inputs of runs to come, sent ahead to the session's device: each is taken once, in the
 * order in which they were sent, and then run. One may be on its way while another one is
 * run. Of qdqi_session_send() the inputs may change afterwards, not their names.
 * DEVICE_MEMORY, DEVICE_LOST.
 */
enum qdq_code qdqi_session_send(struct qdqi_session *session,
                                const struct qdqi_input *inputs, size_t n_inputs,
                                struct qdq_error *err) QDQ_MUST_CHECK;
enum qdq_code qdqi_session_take(struct qdqi_session *session,
                                const struct qdqi_input **ret,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * What is known of output i before the first run: dtype, QDQI_UNKNOWN for what is no
 * tensor; rank and shape, -1 for a size that is not known; rank 0 may also be one that
 * is not known. In the arena.
 */
enum qdq_code qdqi_session_declared(const struct qdqi_session *session, size_t i,
                                    struct qdqi_arena *arena, struct qdqi_output *ret,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * Runs the model once. *ret: results in the order of the graph's outputs, valid until
 * the next run or the closing. RUN_FAILED; or what an observer met. On a device: also
 * DEVICE_LOST and DEVICE_MEMORY, and the observers then know extremes and averages, but
 * not yet the histograms.
 */
enum qdq_code qdqi_session_run(struct qdqi_session *session,
                               const struct qdqi_input *inputs, size_t n_inputs,
                               const struct qdqi_output **ret, size_t *ret_n,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/* Brings what a device has accumulated to the session's observers and comparisons. */
enum qdq_code qdqi_session_collect(struct qdqi_session *session,
                                   struct qdq_error *err) QDQ_MUST_CHECK;
/* After the observers were made to hold something else: a device goes on from that. */
enum qdq_code qdqi_session_restore(struct qdqi_session *session,
                                   struct qdq_error *err) QDQ_MUST_CHECK;

#endif
