/* SPDX-License-Identifier: Apache-2.0 */
/* Runs models with ONNX Runtime. Only this module uses it. The library is loaded
   with dlopen(), so the engine can plan and insert given ranges without it. */
#ifndef QDQI_RUN_SESSION_SESSION_H
#define QDQI_RUN_SESSION_SESSION_H

#include "files/data/feed.h"
#include "files/model/write.h"
#include "numbers/arithmetic/fake.h"
#include "numbers/range/observer.h"
#include "numbers/range/patches.h"
#include "numbers/range/peaks.h"
#include "run/operators/compare.h"

struct qdqi_device;
struct qdqi_provider;
struct qdqi_runtime;
struct qdqi_session;

/* Loads ONNX Runtime. All sessions share `threads` threads (>= 1), which include the
   calling ones. RUNTIME_MISSING when the library cannot be loaded or is too old. */
enum qdq_code qdqi_runtime_open(const char *library, int threads,
                                struct qdqi_runtime **ret,
                                struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_runtime_close(struct qdqi_runtime **runtime);
const char *qdqi_runtime_version(const struct qdqi_runtime *runtime);

/* An account of what sessions did since it was begun. */
struct qdqi_run_use {
    uint64_t
        bytes;   /* of the files of models that were loaded, and of inputs that ran */
    int threads; /* the most that one session could use; 0 when none was used */
};

void qdqi_runtime_begin_use(struct qdqi_runtime *runtime);
struct qdqi_run_use qdqi_runtime_use(const struct qdqi_runtime *runtime);
/* Checks whether models can run on a CUDA device. NO_DEVICE, with the reason. */
enum qdq_code qdqi_runtime_try_device(const struct qdqi_runtime *runtime, int device,
                                      struct qdq_error *err) QDQ_MUST_CHECK;

struct qdqi_session_options {
    const struct qdqi_device *dev; /* the CUDA device; NULL for the host */
    /* runs the nodes of a session without a CUDA device; NULL: the processor's */
    const struct qdqi_provider *provider;
    struct qdqi_observers *observers; /* updated by Observe nodes, or NULL */
    struct qdqi_moments *moments;     /* updated by Moment nodes, or NULL */
    struct qdqi_all_peaks *peaks;     /* updated by Peak nodes, or NULL */
    struct qdqi_fakes *fakes;         /* parameters of FakeQuant nodes, or NULL */
    /* the pairs of activations are single nodes (fused_pairs.h), with the same bits; not on a device,
       and without the two members above */
    bool fuses_pairs;
    /* updated by a twin's Compare nodes, or NULL */
    struct qdqi_comparisons *comparisons;
    /* the weights of products are read where they are, and not copied to the layout of the
       runtime's kernels: a large model takes half the memory */
    bool unpacked;
    /*
     * True for a session as a user of the runtime opens one: with its default
     * optimizations, so that pairs become integer kernels. The other members are then
     * 0, but for `provider` and `optimized`.
     */
    bool plain;
    /*
     * True if only the runtime's basic optimizations are on. Models whose activations
     * become 8-bit floats need that: ONNX Runtime 1.31 wrongly drops a Relu in front of
     * such a QuantizeLinear otherwise.
     */
    bool basic;
    /* True for one of several sessions that are open at the same time. They share
       memory, which the runtime keeps when they are closed. */
    bool one_of_many;
    /* True where only the calling thread runs the nodes, and not the threads that sessions
       share. Results have the same bits. */
    bool one_thread;
    /* True for another session of a model that was counted as loaded (qdqi_run_use). */
    bool is_copy;
    /* Path to which the runtime writes the model as it would run it, with pairs
       fused into integer kernels; NULL when it is not written. */
    const char *optimized;
    /* If not 0, the session is one that any user of the runtime would open: with as many
       threads of its own, and with pairs fused into integer kernels. */
    int threads;
    /* Prefix of the path of the profiler's file, to which the runtime adds the time; NULL
       when there is none. */
    const char *trace;
};

/*
 * Opens a session for `proto`, which is source->proto or an edited copy of it. Weights
 * are read from the source's mapping, which must outlive the session. Q/DQ pairs are
 * computed in floating point as ONNX defines the operators and are never fused into
 * integer kernels, so results show the effect of quantization, not that of a backend;
 * a plain session shows that of the runtime's kernels, too.
 * RUN_FAILED, with the runtime's message; UNSUPPORTED where it would end the process (crashes.h).
 */
enum qdq_code qdqi_session_open(struct qdqi_runtime *runtime,
                                const struct qdq_model *source,
                                const Onnx__ModelProto *proto,
                                const struct qdqi_session_options *options,
                                struct qdqi_session **ret,
                                struct qdq_error *err) QDQ_MUST_CHECK;
/* Does the same for a model whose weights are in the mappings of several models, all
   of which must outlive the session. */
enum qdq_code qdqi_session_load(struct qdqi_runtime *runtime,
                                const struct qdqi_runnable *model,
                                const struct qdqi_session_options *options,
                                struct qdqi_session **ret,
                                struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_session_close(struct qdqi_session **session);
/* Ends the profiler and writes the path of its file to `path`. */
enum qdq_code qdqi_session_end_trace(struct qdqi_session *session, char *path,
                                     size_t size, struct qdq_error *err) QDQ_MUST_CHECK;

/* An output of the last run. dtype is QDQI_UNKNOWN when it is not a tensor. float16
   and float64 outputs are converted to float32 by qdqi_output_to_float32(). */
struct qdqi_output {
    enum qdqi_dtype dtype;
    size_t rank;
    const int64_t *shape;
    size_t n; /* elements */
    const void *data;
};

/* Converts an output of float16, which is exact, or of float64, which rounds, to float32 in the
   arena; leaves any other one as it is. NO_MEMORY. */
enum qdq_code qdqi_output_to_float32(struct qdqi_output *output,
                                     struct qdqi_arena *arena,
                                     struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * qdqi_session_upload() uploads inputs of a future run to the session's device;
 * qdqi_session_next_inputs() returns each set of uploaded inputs once, in the order of the
 * uploads, for qdqi_session_run(). One set can be uploaded while another one is run, also
 * by another thread.
 * After qdqi_session_upload() the caller may change the inputs' data, but not free their
 * names. DEVICE_MEMORY, DEVICE_LOST.
 */
enum qdq_code qdqi_session_upload(struct qdqi_session *session,
                                  const struct qdqi_input *inputs, size_t n_inputs,
                                  struct qdq_error *err) QDQ_MUST_CHECK;
enum qdq_code qdqi_session_next_inputs(struct qdqi_session *session,
                                       const struct qdqi_input **ret,
                                       struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * Describes output i before the first run. dtype is QDQI_UNKNOWN when it is not a
 * tensor. An unknown size in the shape is -1. Rank 0 can also mean an unknown rank. The
 * shape is in the arena.
 */
enum qdq_code qdqi_session_declared(const struct qdqi_session *session, size_t i,
                                    struct qdqi_arena *arena, struct qdqi_output *ret,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * Runs the model once. *ret has the results in the order of the graph's outputs; they
 * are valid until the next run or until the session is closed. RUN_FAILED, or the error
 * of an operator. On a device also DEVICE_LOST and DEVICE_MEMORY; there the observers
 * then have extremes and averages but not yet the histograms.
 */
enum qdq_code qdqi_session_run(struct qdqi_session *session,
                               const struct qdqi_input *inputs, size_t n_inputs,
                               const struct qdqi_output **ret, size_t *ret_n,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/* Copies the values accumulated on a device to the session's observers and
   comparisons. */
enum qdq_code qdqi_session_collect(struct qdqi_session *session,
                                   struct qdq_error *err) QDQ_MUST_CHECK;
/* Copies the observers' state to the device. Call this after the observers were
   changed. */
enum qdq_code qdqi_session_restore(struct qdqi_session *session,
                                   struct qdq_error *err) QDQ_MUST_CHECK;

#endif
