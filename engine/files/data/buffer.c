/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/data/buffer.h"
#include "ground/base/arena.h"
#include "files/data/file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Allocates all of the file's space now, so that a full disk is found here and not
   at a later write. */
static bool
map_file(size_t size, struct qdqi_buffer *ret)
{
    int fd = qdqi_file_open_temporary();
    void *data = MAP_FAILED;
    if (fd >= 0 && fallocate(fd, 0, 0, (off_t)size) == 0)
        data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (data != MAP_FAILED) {
        *ret = (struct qdqi_buffer){data, size, fd};
        return true;
    }
    if (fd >= 0)
        close(fd);
    return false;
}

enum qdq_code
qdqi_buffer_new(size_t size, size_t large, struct qdqi_buffer *ret,
                struct qdq_error *err)
{
    if (size >= large && map_file(size, ret))
        return QDQ_OK;
    unsigned char *data = malloc(size > 0 ? size : 1);
    if (!data)
        return qdqi_no_memory(err);
    *ret = (struct qdqi_buffer){data, size, -1};
    return QDQ_OK;
}

enum qdq_code
qdqi_buffer_write(const struct qdqi_buffer *buffer, size_t at, const void *from,
                  size_t size, struct qdq_error *err)
{
    if (buffer->fd < 0) {
        memcpy(buffer->data + at, from, size);
        return QDQ_OK;
    }
    int number = qdqi_file_write(buffer->fd, at, from, size);
    if (number != 0)
        return qdq_error_set(err, QDQ_IO, QDQ_AT_NOTHING, NULL,
                             "writing a sample to a temporary file failed: %s",
                             strerror(number));
    return QDQ_OK;
}

void
qdqi_buffer_free(struct qdqi_buffer *buffer)
{
    if (!buffer->data)
        return;
    if (buffer->fd < 0) {
        free(buffer->data);
    } else {
        munmap(buffer->data, buffer->size);
        close(buffer->fd);
    }
    *buffer = (struct qdqi_buffer){0};
}
