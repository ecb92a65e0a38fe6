/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that judges results for OpenVINO. OpenVINO makes machine code while it runs,
 * so a process that must not do so hands models to one that may: it calls
 * qdq_judge_serve(), and the other one gets the socket by qdq_engine_set_judge().
 */
#ifndef QDQ_JUDGE_H
#define QDQ_JUDGE_H

#include "qdq/quantize.h"

#include <stdbool.h>

struct qdq_judge;

/*
 * Loads libopenvino_c.so.* with everything that it opens by path, and starts no thread, so
 * that the process can give up its rights between this call and qdq_judge_serve().
 * RUNTIME_MISSING, NO_MEMORY.
 */
QDQ_API enum qdq_code qdq_judge_open(const char *library, struct qdq_judge **ret,
                                     struct qdq_error *err) QDQ_MUST_CHECK;
QDQ_API void qdq_judge_close(struct qdq_judge **judge);
/* Returns OpenVINO's version; borrowed. */
QDQ_API const char *qdq_judge_version(const struct qdq_judge *judge);

/* Called before OpenVINO opens or runs models, with how often it does so until it has answered,
   and with 0 then. A model may have it crash or run for ever, so the process is to end itself
   when that takes too long. */
typedef void (*qdq_judge_watch_fn)(unsigned times);
/* Serves one engine over a connected socket until that closes its end. The caller owns the
   socket, and ignores SIGPIPE. `watch` may be NULL. */
QDQ_API void qdq_judge_serve(struct qdq_judge *judge, int socket,
                             qdq_judge_watch_fn watch);

/*
 * Returns a socket to a process that serves, which the engine closes after the work; -1: there
 * is none, and `text` says why. With `again` the process that was given to this work before has
 * ended; where it crashed, `text` says how ("was killed by signal 11"). Called on the thread that
 * works.
 */
typedef int (*qdq_connect_judge_fn)(void *arg, bool again, char *text, size_t size);
/* Has an engine judge by another process in the place of OpenVINO's library. The caller
   ignores SIGPIPE. */
QDQ_API void qdq_engine_set_judge(struct qdq_engine *engine, qdq_connect_judge_fn fn,
                                  void *arg);

#endif
