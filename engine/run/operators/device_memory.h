/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device on which the operators of a session work: the host (a NULL pointer) or a CUDA
 * device, which the functions of the CUDA module drive. On a device, tensors are in
 * device memory. An operator queues its work on the runtime's stream, behind the work
 * that produces its input.
 *
 * An error on a device has an error code, but a status of the runtime cannot carry one.
 * Operators therefore store the error in `fault` of their state, where the session
 * finds it.
 */
#ifndef QDQI_RUN_OPERATORS_DEVICE_MEMORY_H
#define QDQI_RUN_OPERATORS_DEVICE_MEMORY_H

#include "numbers/cuda/device.h"
#include "run/operators/op.h"

struct qdqi_device {
    const struct qdqi_cuda *cuda;
    int device;
    /* True if the runtime runs models on the device, too. False where the module's
       device is the host. */
    bool runs_models;
};

/* Makes the device current for the calling thread. NO_DEVICE, DEVICE_LOST,
   DEVICE_MEMORY. */
enum qdq_code qdqi_device_enter(const struct qdqi_device *dev,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* Converts a status of the module to an error. */
enum qdq_code qdqi_device_check(const struct qdqi_device *dev, int status,
                                struct qdq_error *err) QDQ_MUST_CHECK;
/* Does the same when the work that was queued on the default stream has ended. */
enum qdq_code qdqi_device_settle(const struct qdqi_device *dev, int status,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

enum qdq_code qdqi_device_alloc(const struct qdqi_device *dev, size_t bytes, void **ret,
                                struct qdq_error *err) QDQ_MUST_CHECK;
/* Frees device memory. NULL is allowed. */
void qdqi_device_release(const struct qdqi_device *dev, void *memory);

/* Both functions copy and wait until the copy is done. */
enum qdq_code qdqi_device_download(const struct qdqi_device *dev, void *host,
                                   const void *device, size_t bytes,
                                   struct qdq_error *err) QDQ_MUST_CHECK;
enum qdq_code qdqi_device_upload(const struct qdqi_device *dev, void *device,
                                 const void *host, size_t bytes,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * Classifies an error of the runtime: DEVICE_LOST, DEVICE_MEMORY, or RUN_FAILED with
 * *err unchanged.
 */
enum qdq_code qdqi_device_classify_error(const struct qdqi_device *dev,
                                         struct qdq_error *err);

/* --- for operators -------------------------------------------------------- */

/* Returns the execution provider that runs the nodes; NULL for the CPU's. */
const char *qdqi_device_provider(const struct qdqi_device *dev);
/* Returns the stream on which a node queues its work. */
OrtStatusPtr qdqi_device_stream(const struct qdqi_device *dev,
                                const struct qdqi_kernel *kernel,
                                const OrtKernelContext *context, void **ret);
/* Converts an error to a status of the runtime; NULL for QDQ_OK. */
OrtStatusPtr qdqi_device_status(const struct qdqi_kernel *kernel,
                                const struct qdq_error *fault);

#endif
