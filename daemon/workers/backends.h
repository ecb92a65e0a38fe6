/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What models can run with: ONNX Runtime, CUDA and the GPUs of gpu.devices. Worker
 * processes are asked once, at the start, because the daemon loads none of these; a device
 * that is lost later on is a matter of the job that finds it so. Any thread may call.
 */
#ifndef QDQD_WORKERS_BACKENDS_H
#define QDQD_WORKERS_BACKENDS_H

#include "workers/message.h"

struct backends;
struct settings;

/* NULL: no memory. */
struct backends *backends_new(void);
void backends_free(struct backends **backends);

/* Has a worker process that has this GPU (GPUS_NONE: none) answer; *ret is the caller's to
   free. */
typedef bool (*backends_ask_fn)(void *arg, int gpu, const struct message *request,
                                char **ret, struct api_problem *p);
/* Finds it all out, which takes its time. */
void backends_learn(struct backends *backends, const struct settings *settings,
                    backends_ask_fn ask, void *arg);
/* The body of GET /version, as far as it is known by now, which the caller frees; NULL: no
   memory. */
char *backends_version(struct backends *backends);

#endif
