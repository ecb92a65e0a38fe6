/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a session's operators work: on the host, which is no place (NULL), or on a device,
 * by the functions of the CUDA module. There a tensor lies in the device's memory, and what
 * is asked for is queued on the runtime's stream, behind what made the tensor.
 *
 * What goes wrong on a device has its error code, which a runtime's status has no room
 * for: operators leave it in the session's fault.
 */
#ifndef QDQI_RUN_PLACE_H
#define QDQI_RUN_PLACE_H

#include "cuda/device.h"
#include "run/op.h"

struct qdqi_place {
    const struct qdqi_cuda *cuda;
    int device;
    /* The runtime runs models there, too; not so where the module's device is the host. */
    bool runs_models;
};

/* Makes the device the calling thread's. NO_DEVICE, DEVICE_LOST, DEVICE_MEMORY. */
enum qdq_code qdqi_place_enter(const struct qdqi_place *place,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/* A status of the module as an error. */
enum qdq_code qdqi_place_check(const struct qdqi_place *place, int status,
                               struct qdq_error *err) QDQ_MUST_CHECK;
enum qdq_code qdqi_place_alloc(const struct qdqi_place *place, size_t bytes, void **ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;
/* NULL: nothing. */
void qdqi_place_release(const struct qdqi_place *place, void *memory);

/* Both wait until it is done. */
enum qdq_code qdqi_place_download(const struct qdqi_place *place, void *host,
                                  const void *device, size_t bytes,
                                  struct qdq_error *err) QDQ_MUST_CHECK;
enum qdq_code qdqi_place_upload(const struct qdqi_place *place, void *device,
                                const void *host, size_t bytes,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* What the runtime said when it failed, as what it may be: DEVICE_LOST, DEVICE_MEMORY, or
   RUN_FAILED as it stands in *err. */
enum qdq_code qdqi_place_explain(const struct qdqi_place *place, struct qdq_error *err);

/* --- for operators -------------------------------------------------------- */

/* Whose nodes they are; NULL: the CPU's. */
const char *qdqi_place_provider(const struct qdqi_place *place);
/* The stream on which a node is to queue its work. */
OrtStatusPtr qdqi_place_stream(const struct qdqi_place *place,
                               const struct qdqi_kernel *kernel,
                               const OrtKernelContext *context, void **ret);
/* An error as the runtime takes it; QDQ_OK: NULL. */
OrtStatusPtr qdqi_place_status(const struct qdqi_kernel *kernel,
                               const struct qdq_error *fault);

#endif
