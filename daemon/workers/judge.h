/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The judging process: `qdqd --judge PARENT DEVICE RUNTIME`, which process.c starts as it starts
 * a worker. It loads the runtime, enters a cage that lets memory become machine code, and serves
 * over the socket of each SERVE, one after the other. It never sees a client's data but
 * the models and samples that a worker hands it.
 */
#ifndef QDQD_WORKERS_JUDGE_H
#define QDQD_WORKERS_JUDGE_H

/* Runs the process; `argv` begins behind --judge. Returns the exit status. */
int judge_main(int argc, char **argv);

#endif
