/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handler of SIGSYS: answers system calls that the cage traps. The kernel never sees
 * their paths, because the handler knows only those that stand for an open descriptor:
 *
 *   newfstatat(fd, "", ..., AT_EMPTY_PATH)     as fstat(fd), by which the C library calls it
 *   newfstatat(..., "/proc/self/fd/N", ...)    as fstat(N)
 *   open("/proc/self/fd/N"), openat()          as a duplicate of N, emptied with O_TRUNC
 *   all with "/proc/self/fd/N_..."             the same; the end has no '/', and is what
 *                                              ONNX Runtime's profiler adds to a path
 *
 *   the folder of trap_allow_listing()         may be opened, and its files described
 *
 * All others fail with EACCES, whether the path exists or not. The handler is a
 * convenience and no wall: whoever replaces it gains nothing, because all that it calls is
 * allowed anyway.
 */
#ifndef QDQD_WORKERS_TRAP_H
#define QDQD_WORKERS_TRAP_H

#include <stdbool.h>

/* Sets the handler. Returns false and sets errno on failure, ENOSYS on a processor whose
   registers it does not know. */
bool trap_install(void);

/*
 * Allows one folder to be opened for reading, and its files to be described as they are now:
 * a runtime may list the folder of its libraries whenever it reads a model. No file in it can
 * be opened. Call this before the cage is entered. Returns false and sets errno on failure.
 */
bool trap_allow_listing(const char *path);

#endif
