/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that a caller lends the engine, which makes none of its own. */
#ifndef QDQ_EXECUTOR_H
#define QDQ_EXECUTOR_H

#include "qdq/error.h"

#include <stddef.h>

typedef void (*qdq_piece_fn)(void *arg, size_t i);

/*
 * Calls piece(piece_arg, i) once for each i < n, each on any thread and at most `threads`
 * at once (>= 1), and returns when all calls have returned. Lower numbers begin first. An
 * executor that cannot start a thread does with fewer; in the end the calling thread does
 * it all. It is called by one thread at a time, the one that called qdq_quantize(). The
 * pieces do not call the executor.
 */
typedef void (*qdq_run_pieces_fn)(void *arg, int threads, size_t n, qdq_piece_fn piece,
                                  void *piece_arg);

struct qdq_executor {
    qdq_run_pieces_fn run;
    void *arg;
};

#endif
