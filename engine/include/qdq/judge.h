/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that judges results by a runtime. A runtime may crash, or make machine code while it
 * runs, so a process that must do neither hands models to one that may: it calls
 * qdq_judge_serve(), and the other one gets the socket by qdq_engine_set_judge().
 */
#ifndef QDQ_JUDGE_H
#define QDQ_JUDGE_H

#include "qdq/quantize.h"
#include "qdq/runtime.h"

#include <stdbool.h>

struct qdq_judge;

/*
 * Loads the runtime of that row (qdq/runtime.h) from a library, with everything that it opens by
 * path, and starts no thread, so that the process can give up its rights between this call and
 * qdq_judge_serve(). RUNTIME_MISSING, NO_MEMORY.
 */
QDQ_API enum qdq_code qdq_judge_open_runtime(const char *runtime, const char *library,
                                             struct qdq_judge **ret,
                                             struct qdq_error *err) QDQ_MUST_CHECK;
/* Does so for the first row that is to have a process of its own. */
QDQ_API enum qdq_code qdq_judge_open(const char *library, struct qdq_judge **ret,
                                     struct qdq_error *err) QDQ_MUST_CHECK;
/*
 * Makes a judge of the caller's functions. The calls are borrowed until it is closed. `arg` belongs
 * to the judge, also on failure: calls->end() frees it. NO_MEMORY.
 */
QDQ_API enum qdq_code qdq_judge_new(const struct qdq_runtime_calls *calls, void *arg,
                                    struct qdq_judge **ret,
                                    struct qdq_error *err) QDQ_MUST_CHECK;
QDQ_API void qdq_judge_close(struct qdq_judge **judge);
/* Return the runtime's name and its version; borrowed. */
QDQ_API const char *qdq_judge_runtime(const struct qdq_judge *judge);
QDQ_API const char *qdq_judge_version(const struct qdq_judge *judge);

/* Called before the runtime opens or runs models, with how often it does so until it has answered,
   and with 0 then. A model may have it crash or run for ever, so the process is to end itself
   when that takes too long. */
typedef void (*qdq_judge_watch_fn)(unsigned times);
/* Serves one engine over a connected socket until that closes its end, or the runtime is lost. The
   caller owns the socket, and ignores SIGPIPE. `watch` may be NULL. */
QDQ_API void qdq_judge_serve(struct qdq_judge *judge, int socket,
                             qdq_judge_watch_fn watch);

/*
 * Returns a socket to a process that serves, which the engine closes after the work; -1: there
 * is none, and `text` says why. With `again` the process that was given to this work before has
 * ended; where it crashed, `text` says how ("was killed by signal 11"). Called on the thread that
 * works.
 */
typedef int (*qdq_connect_judge_fn)(void *arg, bool again, char *text, size_t size);
/* Has an engine judge by another process in the place of the libraries of all runtimes whose rows
   ask for a process of their own. The caller ignores SIGPIPE. */
QDQ_API void qdq_engine_set_judge(struct qdq_engine *engine, qdq_connect_judge_fn fn,
                                  void *arg);

/* A runtime that another process serves. */
struct qdq_served_runtime {
    const char *name;  /* that of a row, in whose place it stands, or another one */
    const char *title; /* as people call it; NULL: that of the row, or the name */
    qdq_connect_judge_fn connect; /* NULL: no process serves it any more */
    void *arg;                    /* of `connect`; outlives the engine */
};
/* Has an engine judge results for targets with a runtime of that name by another process. Both texts
   are copied. A second call for the same name replaces the first. The caller ignores SIGPIPE, and has
   no work in progress. NO_MEMORY. */
QDQ_API enum qdq_code qdq_engine_serve(struct qdq_engine *engine,
                                       const struct qdq_served_runtime *served,
                                       struct qdq_error *err) QDQ_MUST_CHECK;

#endif
