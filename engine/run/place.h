/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The place where the operators of a session work: the host (a NULL pointer) or a CUDA
 * device, which the functions of the CUDA module drive. On a device, tensors are in
 * device memory. An operator queues its work on the runtime's stream, behind the work
 * that produces its input.
 *
 * An error on a device has an error code, but a status of the runtime cannot carry one.
 * Operators therefore store the error in `fault` of their state, where the session
 * finds it.
 */
#ifndef QDQI_RUN_PLACE_H
#define QDQI_RUN_PLACE_H

#include "cuda/device.h"
#include "run/op.h"

struct qdqi_place {
    const struct qdqi_cuda *cuda;
    int device;
    /* True if the runtime runs models on the device, too. False where the module's
       device is the host. */
    bool runs_models;
};

/* Makes the device current for the calling thread. NO_DEVICE, DEVICE_LOST,
   DEVICE_MEMORY. */
enum qdq_code qdqi_place_enter(const struct qdqi_place *place,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/* Converts a status of the module to an error. */
enum qdq_code qdqi_place_check(const struct qdqi_place *place, int status,
                               struct qdq_error *err) QDQ_MUST_CHECK;
enum qdq_code qdqi_place_alloc(const struct qdqi_place *place, size_t bytes, void **ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;
/* Frees device memory. NULL is allowed. */
void qdqi_place_release(const struct qdqi_place *place, void *memory);

/* Both functions copy and wait until the copy is done. */
enum qdq_code qdqi_place_download(const struct qdqi_place *place, void *host,
                                  const void *device, size_t bytes,
                                  struct qdq_error *err) QDQ_MUST_CHECK;
enum qdq_code qdqi_place_upload(const struct qdqi_place *place, void *device,
                                const void *host, size_t bytes,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * Classifies an error of the runtime: DEVICE_LOST, DEVICE_MEMORY, or RUN_FAILED with
 * *err unchanged.
 */
enum qdq_code qdqi_place_explain(const struct qdqi_place *place, struct qdq_error *err);

/* --- for operators -------------------------------------------------------- */

/* Returns the execution provider that runs the nodes; NULL for the CPU's. */
const char *qdqi_place_provider(const struct qdqi_place *place);
/* Returns the stream on which a node queues its work. */
OrtStatusPtr qdqi_place_stream(const struct qdqi_place *place,
                               const struct qdqi_kernel *kernel,
                               const OrtKernelContext *context, void **ret);
/* Converts an error to a status of the runtime; NULL for QDQ_OK. */
OrtStatusPtr qdqi_place_status(const struct qdqi_kernel *kernel,
                               const struct qdq_error *fault);

#endif
