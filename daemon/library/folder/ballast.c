/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "library/inner.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define BALLAST_BYTES (1 << 20) /* enough for the log of some hundred removals */

int
ballast_open(int dir)
{
    int fd = openat(dir, "ballast", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ballast_fill(fd);
    return fd;
}

void
ballast_fill(int ballast)
{
    struct stat st;
    if (ballast >= 0 && fstat(ballast, &st) == 0 && st.st_size < BALLAST_BYTES &&
        posix_fallocate(ballast, 0, BALLAST_BYTES) != 0)
        (void)!ftruncate(ballast, 0);
}

bool
ballast_drop(int ballast)
{
    struct stat st;
    return ballast >= 0 && fstat(ballast, &st) == 0 && st.st_size > 0 &&
           ftruncate(ballast, 0) == 0;
}
