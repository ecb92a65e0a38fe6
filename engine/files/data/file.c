/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/data/file.h"
#include "qdq/quantize.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

enum qdq_code
qdqi_data_failed(int number, struct qdq_error *err)
{
    return qdq_error_set(err, QDQ_IO, QDQ_AT_NOTHING, NULL,
                         "reading the dataset failed: %s", strerror(number));
}

enum qdq_code
qdqi_data_read(int fd, uint64_t offset, void *to, size_t size, size_t *ret_got,
               struct qdq_error *err)
{
    int number = qdqi_file_read(fd, offset, to, size, ret_got);
    return number ? qdqi_data_failed(number, err) : QDQ_OK;
}

int
qdqi_file_write(int fd, uint64_t offset, const void *from, size_t size)
{
    for (size_t done = 0; done < size;) {
        if (offset > INT64_MAX - size)
            return EFBIG;
        ssize_t n =
            pwrite(fd, (const char *)from + done, size - done, (off_t)(offset + done));
        if (n < 0 && errno != EINTR)
            return errno;
        if (n > 0)
            done += (size_t)n;
    }
    return 0;
}

static qdq_open_temporary_fn open_instead;
static void *open_instead_arg;

void
qdq_set_open_temporary(qdq_open_temporary_fn fn, void *arg)
{
    open_instead = fn;
    open_instead_arg = arg;
}

int
qdqi_file_open_buffer(void)
{
    return open_instead ? open_instead(open_instead_arg)
                        : memfd_create("qdq", MFD_CLOEXEC);
}

int
qdqi_file_open_temporary(void)
{
    if (open_instead)
        return open_instead(open_instead_arg);
    const char *dir = secure_getenv("TMPDIR");
    char name[4096];
    if (!dir || !*dir)
        dir = "/var/tmp";
    int fd = open(dir, O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
        return fd;
    if (snprintf(name, sizeof name, "%s/qdq.tmpXXXXXX", dir) >= (int)sizeof name) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkostemp(name, O_CLOEXEC); /* the file system does not support O_TMPFILE */
    if (fd >= 0)
        unlink(name);
    return fd;
}
