/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "threads/executor.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

enum { MOST_THREADS = 1024 };

/* Signals that a thread's own instructions cause, which ends the process if they are blocked.
   A cage answers SIGSYS. */
static const int synchronous[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTRAP};

struct work {
    size_t n;
    atomic_size_t next;
    qdq_piece_fn piece;
    void *arg;
};

static void *
do_pieces(void *arg)
{
    struct work *work = arg;
    for (size_t i; (i = atomic_fetch_add(&work->next, 1)) < work->n;)
        work->piece(work->arg, i);
    return NULL;
}

static void
run(void *arg, int threads, size_t n, qdq_piece_fn piece, void *piece_arg)
{
    struct work work = {.n = n, .piece = piece, .arg = piece_arg};
    pthread_t others[MOST_THREADS];
    size_t started = 0, wanted = threads > 1 ? (size_t)threads - 1 : 0;
    sigset_t all, before;
    (void)arg;
    wanted = wanted < MOST_THREADS ? wanted : MOST_THREADS;
    wanted = wanted < n ? wanted : n > 0 ? n - 1 : 0;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof synchronous / sizeof *synchronous; i++)
        sigdelset(&all, synchronous[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (started < wanted &&
           pthread_create(&others[started], NULL, do_pieces, &work) == 0)
        started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    do_pieces(&work);
    while (started > 0)
        pthread_join(others[--started], NULL);
}

const struct qdq_executor threads_executor = {run, NULL};
