/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker's side: `qdqd --worker PARENT SCRATCH DEVICE`, started by process.c with the
 * socket at WORKER_SOCKET and its settings in the environment. It gets open descriptors
 * and never a path of the state folder but that of SCRATCH, answers one request after the
 * other and ends at the end of file.
 */
#ifndef QDQD_WORKERS_WORKER_H
#define QDQD_WORKERS_WORKER_H

#define WORKER_SOCKET 3

/* `argv` from behind --worker. Returns the exit status. */
int worker_main(int argc, char **argv);

#endif
