/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backends that models can run with: ONNX Runtime, CUDA and the GPUs of
 * gpu.devices. Worker processes probe them once, at the start, because the daemon loads
 * none of them. A job that finds a device lost later deals with that itself. Any thread
 * may call.
 */
#ifndef QDQD_WORKERS_BACKENDS_H
#define QDQD_WORKERS_BACKENDS_H

#include "judges/judges.h"
#include "workers/message.h"

struct backends;
struct qdq_runtime_row;
struct settings;

/* Returns NULL when out of memory. */
struct backends *backends_new(void);
void backends_free(struct backends **backends);

/* Makes a worker process with this GPU (GPUS_NONE: none) answer a request; the
   caller frees *ret. */
typedef bool (*backends_ask_fn)(void *arg, int gpu, const struct message *request,
                                char **ret, struct api_problem *p);
/* Returns the description of a runtime by a process that judges by it, which the caller frees;
   NULL: there is none, and `why` says so. */
typedef char *(*backends_judge_fn)(void *arg, const struct qdq_runtime_row *row,
                                   char why[JUDGES_WHY]);

/* Probes all backends, which takes time. */
void backends_learn(struct backends *backends, const struct settings *settings,
                    backends_ask_fn ask, backends_judge_fn judge, void *arg);
/* Returns the body of GET /version as far as it is known, which the caller frees;
   NULL when out of memory. */
char *backends_version(struct backends *backends);

#endif
