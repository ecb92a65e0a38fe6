/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cage of a worker process: it limits what a hostile model, script or sample can do
 * if it takes over the process. The process keeps only its open descriptors, memory,
 * time and its own threads.
 *
 *   Landlock   no path of the file system can be opened, made, renamed or removed, except
 *              for files without a name in one empty folder; no TCP port can be used; no
 *              signal reaches a process outside, no abstract socket can be reached
 *   seccomp    only the system calls that a quantization needs are allowed: no socket, no
 *              program, no process, no tracing, no mount; no memory becomes code
 *
 * Everything that must be loaded or read by path is loaded before. Nothing lifts the
 * cage.
 */
#ifndef QDQD_WORKERS_CAGE_H
#define QDQD_WORKERS_CAGE_H

#include <stdbool.h>

/*
 * CPU: all of the above. GPU: CUDA opens its devices and libraries late and maps code,
 * so the process may read the system's folders, use /dev, and make memory executable.
 * Sockets, programs, processes, and writing anywhere else stay forbidden.
 */
enum cage_profile { CAGE_CPU, CAGE_GPU };

enum { CAGE_TEXT = 160 };

/*
 * Puts the calling process into the cage. `scratch` (NULL: none) is a folder in which
 * it may open files without a name (O_TMPFILE), for data that need not fit in memory.
 * The process must have one thread, and PR_SET_NO_NEW_PRIVS must be set. Returns true
 * when the process is caged with everything that this kernel offers; `lacking` then
 * names what it does not offer ("" when the cage is complete). Returns false when the
 * process is not caged, or only in part, and `lacking` says why.
 */
bool cage_enter(enum cage_profile profile, const char *scratch,
                char lacking[CAGE_TEXT]);

#endif
