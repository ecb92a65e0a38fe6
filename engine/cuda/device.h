/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only door to CUDA: the module is loaded with dlopen() when a device is asked for,
 * so the engine is built and works without it. Nothing here waits for a device except
 * what is queued on it by the module's functions.
 */
#ifndef QDQI_CUDA_DEVICE_H
#define QDQI_CUDA_DEVICE_H

#include "cuda/api.h"
#include "qdq/error.h"

struct qdqi_cuda; /* the loaded module and the devices that it found */

/*
 * `module` is its path. NO_DRIVER, OLD_DRIVER, and NO_DEVICE when there is no module or
 * another version's, no device, or none that can be used: the text says which. Read-only
 * afterwards.
 */
enum qdq_code qdqi_cuda_open(const char *module, struct qdqi_cuda **ret,
                             struct qdq_error *err) QDQ_MUST_CHECK;
/* Frees what was found; the module stays loaded, for the driver keeps threads. */
void qdqi_cuda_close(struct qdqi_cuda **cuda);

/* The module's functions; their statuses are for qdqi_cuda_check(). */
const struct qdqi_cuda_api *qdqi_cuda_functions(const struct qdqi_cuda *cuda);

/* All devices, as CUDA counts them, also those that are too old. */
int qdqi_cuda_count(const struct qdqi_cuda *cuda);
const struct qdqi_cuda_device *qdqi_cuda_device(const struct qdqi_cuda *cuda, int i);
bool qdqi_cuda_usable(const struct qdqi_cuda *cuda, int i);

/* Makes device i the calling thread's. NO_DEVICE, DEVICE_LOST, DEVICE_MEMORY. */
enum qdq_code qdqi_cuda_use(const struct qdqi_cuda *cuda, int i,
                            struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * Turns a status of the module into an error, beginning with `what`: NO_DEVICE,
 * DEVICE_LOST (no later call of this process can succeed), DEVICE_MEMORY, INTERNAL.
 */
enum qdq_code qdqi_cuda_check(const struct qdqi_cuda *cuda, int status,
                              const char *what, struct qdq_error *err) QDQ_MUST_CHECK;

#endif
