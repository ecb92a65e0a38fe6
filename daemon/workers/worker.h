/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker's side: `qdqd --worker PARENT DEVICE`, which process.c starts with
 * the socket at WORKER_SOCKET and the settings in the environment. The worker gets open
 * descriptors and no path of the state folder. It answers one
 * request after the other and ends at the end of file.
 */
#ifndef QDQD_WORKERS_WORKER_H
#define QDQD_WORKERS_WORKER_H

#define WORKER_SOCKET 3

/* Runs the worker; `argv` begins behind --worker. Returns the exit status. */
int worker_main(int argc, char **argv);

#endif
