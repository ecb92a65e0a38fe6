/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/standard_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void
standard_files_hold(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/* Where an earlier write failed, because the buffer was full, errno is no longer its error. */
bool
standard_output_flush(void)
{
    const char *why = fflush(stdout) != 0 ? strerror(errno)
                      : ferror(stdout)    ? "it could not be written in full"
                                          : NULL;
    if (why)
        fprintf(stderr, "qdqd: standard output: %s\n", why);
    clearerr(stdout);
    return !why;
}
