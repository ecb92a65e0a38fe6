/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access to CUDA. The module is loaded with dlopen() when a device is asked for, so the
 * engine is built and works without it. No function here waits for a device, except for
 * work that the module's functions have queued.
 */
#ifndef QDQI_NUMBERS_CUDA_DEVICE_H
#define QDQI_NUMBERS_CUDA_DEVICE_H

#include "numbers/cuda/api.h"
#include "qdq/error.h"

struct qdqi_cuda; /* the loaded module and the devices that it found */

/*
 * Loads the module at this path. NO_DRIVER, OLD_DRIVER, and NO_DEVICE when there is no
 * module or one of another version, no device, or no usable one; the text says which.
 * The result is read-only.
 */
enum qdq_code qdqi_cuda_open(const char *module, struct qdqi_cuda **ret,
                             struct qdq_error *err) QDQ_MUST_CHECK;
/* Frees the list of devices. The module stays loaded, because the driver keeps
   threads. */
void qdqi_cuda_close(struct qdqi_cuda **cuda);

/* Returns the module's functions. Pass the statuses that they return to
   qdqi_cuda_check(). */
const struct qdqi_cuda_api *qdqi_cuda_functions(const struct qdqi_cuda *cuda);

/* Return the number of devices, including those that are too old, and a device by
   CUDA's number. */
int qdqi_cuda_count(const struct qdqi_cuda *cuda);
const struct qdqi_cuda_device *qdqi_cuda_device(const struct qdqi_cuda *cuda, int i);

/* Makes device i the calling thread's current one. NO_DEVICE, DEVICE_LOST,
   DEVICE_MEMORY. */
enum qdq_code qdqi_cuda_use(const struct qdqi_cuda *cuda, int i,
                            struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * Turns a status of the module into an error, beginning with `what`: NO_DEVICE,
 * DEVICE_LOST (no later call of this process can succeed), DEVICE_MEMORY, INTERNAL.
 */
enum qdq_code qdqi_cuda_check(const struct qdqi_cuda *cuda, int status,
                              const char *what, struct qdq_error *err) QDQ_MUST_CHECK;

#endif
