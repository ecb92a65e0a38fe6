/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cage of a worker process: it limits what a hostile model, script or sample can do
 * if it takes over the process. The process keeps only its open descriptors, memory,
 * time and its own threads.
 *
 *   capabilities  none
 *   Landlock      no path of the file system can be opened, made, renamed or removed; no
 *                 TCP port can be used; no signal reaches a process outside, no abstract
 *                 socket can be reached
 *   seccomp       only the system calls that a quantization needs are allowed: no path, no
 *                 socket, no program, no process, no tracing, no mount; no memory becomes
 *                 code, and none escapes the limit of the process's data
 *
 * Landlock alone does not hide whether a path exists, so a call that takes one is not
 * allowed at all: the handler of SIGSYS answers the few forms that the C library and ONNX
 * Runtime use for descriptors that are open already ("trap.h").
 *
 * Landlock binds the calling thread and those that it starts later. So the process enters
 * the cage while it has one thread, and starts ONNX Runtime's threads in there. Everything
 * that must be loaded or read by path is loaded before. Nothing lifts the cage.
 */
#ifndef QDQD_WORKERS_CAGE_H
#define QDQD_WORKERS_CAGE_H

#include <stdbool.h>

/*
 * CPU: all of the above. GPU: CUDA opens its devices and libraries late and maps code,
 * so the process may read the system's folders, use /dev, make memory executable, and find
 * out which paths exist. It names its threads by their files in procfs, and listens at a
 * Unix socket where it can accept nothing. Connections, programs, processes, and writing
 * anywhere else stay forbidden.
 *
 * CARRIER: the process may open connections by IPv4 and IPv6, but cannot accept any, and
 * may read the files by which the C library resolves names. Their modules, certificates
 * and secrets are read before. No other path, no Unix socket, no program, no process.
 *
 * JUDGE: the cage of the CPU, but memory may become code, because runtimes compile
 * models, a thread may choose its processors and the memory node of its own pages, and
 * one folder may be listed (trap_allow_listing()).
 */
enum cage_profile { CAGE_CPU, CAGE_GPU, CAGE_CARRIER, CAGE_JUDGE };

enum { CAGE_TEXT = 160 }; /* WALL_TEXT of judges/walls.h */

/* Returns whether a process in a cage of that profile may read what an absolute path names. */
bool cage_may_read(enum cage_profile profile, const char *path);

/*
 * Puts the calling process into the cage. PR_SET_NO_NEW_PRIVS must be set. Returns true
 * when the process is caged with everything that this kernel offers; `lacking` then
 * names what it does not offer ("" when the cage is complete). Returns false when the
 * process is not caged, or only in part, and `lacking` says why: above all when it has
 * more than one thread.
 */
bool cage_enter(enum cage_profile profile, char lacking[CAGE_TEXT]);

#endif
