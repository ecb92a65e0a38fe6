/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "data/file.h"

#include <errno.h>
#include <sys/types.h>
#include <unistd.h>

int
qdqi_file_read(int fd, uint64_t offset, void *to, size_t size, size_t *ret_got)
{
    size_t got = 0;
    while (got < size && offset <= INT64_MAX - got) {
        ssize_t n = pread(fd, (char *)to + got, size - got, (off_t)(offset + got));
        if (n == 0)
            break;
        if (n < 0 && errno != EINTR)
            return errno;
        if (n > 0)
            got += (size_t)n;
    }
    *ret_got = got;
    return 0;
}
