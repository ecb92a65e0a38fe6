/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cage of a worker process: what a hostile model, script or sample could do if it
 * took the process over. Nothing is left but the descriptors that it was handed, memory,
 * time and its own threads.
 *
 *   Landlock   no path of the file system can be opened, made, renamed or removed, but
 *              for files without a name in one folder that is empty; no TCP port can be
 *              used; no signal reaches a process outside, no abstract socket
 *   seccomp    of the kernel's calls those alone that a quantization needs: no socket, no
 *              program, no process, no tracing, no mount; no memory becomes code
 *
 * Whatever has to be loaded or read by path comes before. Nothing leads out again.
 */
#ifndef QDQD_WORKERS_CAGE_H
#define QDQD_WORKERS_CAGE_H

#include <stdbool.h>

/*
 * CPU: all of the above. GPU: CUDA opens its devices and its libraries late and maps
 * code; it may read the system's folders, use /dev, and make code of memory. Sockets,
 * programs, processes, and writing anywhere else stay forbidden.
 */
enum cage_profile { CAGE_CPU, CAGE_GPU };

enum { CAGE_TEXT = 160 };

/*
 * Locks the calling process in. `scratch` (NULL: none) is a folder of its own in which
 * files may be opened that have no name (O_TMPFILE): for data that need not fit the
 * memory. It must have one thread, and PR_SET_NO_NEW_PRIVS. True:
 * it is in, with all that this kernel offers; `lacking` then says what it does not offer
 * ("" where the cage is whole). False: it is not, or not wholly, and `lacking` says why.
 */
bool cage_enter(enum cage_profile profile, const char *scratch,
                char lacking[CAGE_TEXT]);

#endif
