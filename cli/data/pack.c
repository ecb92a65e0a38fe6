/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/text.h"
#include "files.h"

/* A header of a tar archive (ustar). */
struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type,
        link[100], magic[8], user[32], group[32], major[8], minor[8], prefix[155],
        rest[12];
};

enum { BLOCK = 512 };

_Static_assert(sizeof(struct header) == BLOCK, "a header is one block");

struct packing {
    const char *root;
    int to;
    size_t n; /* files that were packed */
    struct api_problem *problem;
};

static bool
is_wanted(const char *name)
{
    static const char *const endings[] = {".jpg", ".jpeg", ".png", ".cls"};
    const size_t n = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t m = strlen(endings[i]);
        if (n > m && strcasecmp(name + n - m, endings[i]) == 0)
            return true;
    }
    return false;
}

static bool
put(struct packing *p, const void *from, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t n = write(p->to, (const char *)from + done, size - done);
        if (n < 0 && errno != EINTR)
            return file_fail("packing the folder", p->problem);
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

static bool
pad(struct packing *p, uint64_t size)
{
    static const char zeros[BLOCK];
    return put(p, zeros, (BLOCK - size % BLOCK) % BLOCK);
}

static bool
put_header(struct packing *p, const char *name, char type, uint64_t size)
{
    struct header h = {.mode = "0000644", .uid = "0000000", .gid = "0000000"};
    char octal[32];
    unsigned sum = 0;
    memcpy(h.name, name, strnlen(name, sizeof h.name));
    snprintf(octal, sizeof octal, "%011" PRIo64, size);
    memcpy(h.size, octal, sizeof h.size - 1);
    memcpy(h.mtime, "00000000000", sizeof h.mtime - 1);
    memset(h.sum, ' ', sizeof h.sum);
    h.type = type;
    memcpy(h.magic, "ustar\00000", sizeof h.magic);
    for (size_t i = 0; i < sizeof h; i++)
        sum += ((const unsigned char *)&h)[i];
    snprintf(octal, sizeof octal, "%06o", sum);
    memcpy(h.sum, octal, 7);
    return put(p, &h, sizeof h);
}

/* Names that no header holds come before it, in the way of GNU's tar. */
static bool
put_name(struct packing *p, const char *name, uint64_t size)
{
    const size_t n = strlen(name) + 1;
    if (n > sizeof((struct header *)0)->name &&
        !(put_header(p, "././@LongLink", 'L', n) && put(p, name, n) && pad(p, n)))
        return false;
    return put_header(p, name, '0', size);
}

static bool
copy(struct packing *p, int from, const char *path, uint64_t size)
{
    for (uint64_t left = size; left > 0;) {
        const ssize_t n = sendfile(p->to, from, NULL, left);
        if (n == 0)
            return api_fail(p->problem, API_IO,
                            "%s: it became shorter while it was read", path);
        if (n < 0 && errno != EINTR)
            return file_fail(path, p->problem);
        left -= n > 0 ? (uint64_t)n : 0;
    }
    return pad(p, size);
}

static bool
pack_file(struct packing *p, const char *path)
{
    struct stat st;
    int fd;
    if (!file_open(path, &fd, p->problem))
        return false;
    const bool ok = fstat(fd, &st) == 0 || file_fail(path, p->problem);
    const char *name = path + strlen(p->root) + 1;
    const bool packed = ok && put_name(p, name, (uint64_t)st.st_size) &&
                        copy(p, fd, path, (uint64_t)st.st_size);
    close(fd);
    p->n += packed;
    return packed;
}

static int
by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static bool pack_folder(struct packing *p, const char *path, int depth);

static bool
pack_entry(struct packing *p, const char *folder, const char *name, int depth)
{
    struct stat st;
    char *path;
    if (*name == '.')
        return true;
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        return api_problem_no_memory(p->problem);
    bool ok = true;
    if (stat(path, &st) != 0) /* such as a link to nothing */
        ok = !is_wanted(name) || file_fail(path, p->problem);
    else if (S_ISDIR(st.st_mode) && depth == 0)
        ok = pack_folder(p, path, depth + 1);
    else if (S_ISREG(st.st_mode) && is_wanted(name))
        ok = pack_file(p, path);
    free(path);
    return ok;
}

static bool
pack_folder(struct packing *p, const char *path, int depth)
{
    struct dirent **entries;
    const int n = scandir(path, &entries, NULL, by_bytes);
    bool ok = n >= 0 || file_fail(path, p->problem);
    for (int i = 0; i < n; i++) {
        ok = ok && pack_entry(p, path, entries[i]->d_name, depth);
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    return ok;
}

bool
data_open(const char *path, const char *model, int *ret, struct api_problem *problem)
{
    static const char end[2 * BLOCK];
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return text_is(path) ? text_open(path, model, ret, problem)
                             : file_open(path, ret, problem);
    char *root = strdup(path);
    if (!root)
        return api_problem_no_memory(problem);
    for (size_t n = strlen(root); n > 1 && root[n - 1] == '/'; n--)
        root[n - 1] = '\0';
    struct packing p = {root, file_open_unnamed(), 0, problem};
    bool ok = p.to >= 0 || file_fail("a file to pack the folder into", problem);
    ok = ok && pack_folder(&p, root, 0);
    if (ok && p.n == 0)
        ok = api_fail(
            problem, API_INVALID_DATASET,
            "%s: neither the folder nor its folders hold images (.jpg, .jpeg or "
            ".png); docs/reference/data.md says what data may be",
            path);
    ok = ok && put(&p, end, sizeof end);
    free(root);
    if (ok)
        *ret = p.to;
    else if (p.to >= 0)
        close(p.to);
    return ok;
}
