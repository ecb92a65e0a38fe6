/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/model/mapped.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static enum qdq_code
failed(const char *call, const char *what, struct qdq_error *err)
{
    return qdq_error_set(err, QDQ_IO, QDQ_AT_NOTHING, NULL, "%s of %s: %s", call, what,
                         strerror(errno));
}

static enum qdq_code
map_whole(struct qdqi_mapped *file, const char *what, struct qdq_error *err)
{
    if (file->size == 0)
        return QDQ_OK;
    void *map = mmap(NULL, file->size, PROT_READ, MAP_PRIVATE, file->fd, 0);
    if (map == MAP_FAILED)
        return failed("mmap", what, err);
    file->map = map;
    return QDQ_OK;
}

enum qdq_code
qdqi_map_file(int fd, const char *what, struct qdqi_mapped *ret, struct qdq_error *err)
{
    struct stat st;
    struct qdqi_mapped file = {.fd = -1};
    if (fstat(fd, &st) < 0)
        return failed("fstat", what, err);
    if (!S_ISREG(st.st_mode))
        return qdq_error_set(err, QDQ_INVALID_MODEL, QDQ_AT_NOTHING, NULL,
                             "%s is not a regular file", what);
    file.size = (size_t)st.st_size;
    file.fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (file.fd < 0)
        return failed("dup", what, err);
    enum qdq_code code = map_whole(&file, what, err);
    if (code)
        qdqi_unmap(&file);
    else
        *ret = file;
    return code;
}

void
qdqi_unmap(struct qdqi_mapped *file)
{
    if (file->map)
        munmap((void *)(uintptr_t)file->map, file->size);
    if (file->fd >= 0)
        close(file->fd);
    *file = (struct qdqi_mapped){.fd = -1};
}

void
qdqi_mapped_forget(const struct qdqi_mapped *file, const uint8_t *piece, size_t size)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t map = (uintptr_t)file->map, at = (uintptr_t)piece;
    if (!file->map || at < map || at - map > file->size ||
        size > file->size - (at - map))
        return;
    const uintptr_t first = (at + page - 1) / page * page;
    const uintptr_t end = (at + size) / page * page;
    if (first < end)
        (void)madvise((void *)first, end - first, MADV_DONTNEED);
}
