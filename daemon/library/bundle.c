/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "library/bundle.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK 512u
#define END (2 * BLOCK)            /* two blocks of zeros follow the last file */
#define MOST_OCTAL 077777777777ull /* largest size that a ustar header can state */
#define MOST_NAME 100u  /* longest name that a ustar header can state, in bytes */
#define PAX_SPACE 4096u /* room for the pax records of one file: a path and a size */

/* A member of the archive: its headers, its bytes, then zeros up to the next block. */
struct member {
    char *head;
    size_t head_size;
    int fd;
    uint64_t begin, size; /* offset of the member in the bundle; bytes of the file */
};

struct bundle {
    size_t n;
    uint64_t size;
    struct member members[];
};

/* --- headers -------------------------------------------------------------- */

struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type,
        link[100], magic[6], version[2], user[32], group[32], major[8], minor[8],
        prefix[155], rest[12];
};

_Static_assert(sizeof(struct header) == BLOCK, "a header is one block");

static uint64_t
rounded(uint64_t size)
{
    return (size + BLOCK - 1) / BLOCK * BLOCK;
}

static void
put_octal(char *to, size_t size, uint64_t n)
{
    char text[24];
    snprintf(text, sizeof text, "%0*llo", (int)size - 1, (unsigned long long)n);
    memcpy(to, text, size);
}

static void
make_header(struct header *h, const char *name, char type, uint64_t size)
{
    const unsigned char *bytes = (const unsigned char *)h;
    unsigned sum = 0;
    memset(h, 0, sizeof *h);
    memcpy(h->name, name, strnlen(name, MOST_NAME));
    put_octal(h->mode, sizeof h->mode, 0644);
    put_octal(h->uid, sizeof h->uid, 0);
    put_octal(h->gid, sizeof h->gid, 0);
    put_octal(h->size, sizeof h->size, size > MOST_OCTAL ? 0 : size);
    put_octal(h->mtime, sizeof h->mtime, 0);
    h->type = type;
    memcpy(h->magic, "ustar", sizeof h->magic);
    memcpy(h->version, "00", sizeof h->version);
    memset(h->sum, ' ', sizeof h->sum);
    for (size_t i = 0; i < sizeof *h; i++)
        sum += bytes[i];
    put_octal(h->sum, sizeof h->sum - 1, sum);
}

/* Appends "LEN KEY=VALUE\n", where LEN counts its own digits. */
static size_t
add_record(char *to, size_t space, const char *key, const char *value)
{
    size_t rest = strlen(key) + strlen(value) + 3, len = rest, before = 0;
    char digits[24];
    while (len != before) {
        before = len;
        len = rest + (size_t)snprintf(digits, sizeof digits, "%zu", len);
    }
    snprintf(to, space, "%zu %s=%s\n", len, key, value);
    return len;
}

static bool
is_plain(const char *path)
{
    for (size_t i = 0; path[i]; i++)
        if (i == MOST_NAME - 1 || (unsigned char)path[i] >= 0x80)
            return false;
    return true;
}

/* Writes the pax records for what a ustar header cannot state about a file. Returns
   their size; 0: none are needed. */
static size_t
make_records(const struct bundle_file *file, char to[PAX_SPACE])
{
    size_t len = 0;
    char size[24];
    if (!is_plain(file->path))
        len += add_record(to, PAX_SPACE, "path", file->path);
    snprintf(size, sizeof size, "%llu", (unsigned long long)file->size);
    if (file->size > MOST_OCTAL)
        len += add_record(to + len, PAX_SPACE - len, "size", size);
    return len;
}

static bool
make_head(const struct bundle_file *file, struct member *member)
{
    char records[PAX_SPACE];
    struct header header;
    size_t len = make_records(file, records), at = 0;
    member->head_size = BLOCK + (len ? BLOCK + rounded(len) : 0);
    member->head = calloc(1, member->head_size);
    if (!member->head)
        return false;
    if (len) {
        make_header(&header, "././@PaxHeader", 'x', len);
        memcpy(member->head, &header, sizeof header);
        memcpy(member->head + BLOCK, records, len);
        at = BLOCK + rounded(len);
    }
    make_header(&header, file->path, '0', file->size);
    memcpy(member->head + at, &header, sizeof header);
    return true;
}

/* --- the bundle ---------------------------------------------------------- */

bool
bundle_open(const struct bundle_file *files, size_t n, struct bundle **ret,
            struct api_problem *p)
{
    struct bundle *bundle = calloc(1, sizeof *bundle + n * sizeof(struct member));
    bool ok = bundle != NULL;
    for (size_t i = 0; i < n; i++) {
        if (!bundle) {
            close(files[i].fd);
            continue;
        }
        struct member *member = &bundle->members[bundle->n++];
        *member = (struct member){
            .fd = files[i].fd, .begin = bundle->size, .size = files[i].size};
        ok =
            ok && strlen(files[i].path) < PAX_SPACE / 2 && make_head(&files[i], member);
        bundle->size += member->head_size + rounded(member->size);
    }
    if (!ok) {
        bundle_close(&bundle);
        return api_problem_no_memory(p);
    }
    bundle->size += END;
    *ret = bundle;
    return true;
}

uint64_t
bundle_size(const struct bundle *bundle)
{
    return bundle->size;
}

static ssize_t
read_file(const struct member *member, uint64_t at, char *to, size_t size)
{
    ssize_t n;
    do
        n = pread(member->fd, to, size, (off_t)at);
    while (n < 0 && errno == EINTR);
    return n > 0 ? n : -1; /* a file that ends early is an error, too */
}

static size_t
least(uint64_t left, size_t size)
{
    return left < size ? (size_t)left : size;
}

ssize_t
bundle_read(struct bundle *bundle, uint64_t at, char *to, size_t size)
{
    size_t i = bundle->n;
    if (at >= bundle->size || size == 0)
        return 0;
    while (i > 1 && bundle->members[i - 1].begin > at)
        i--;
    const struct member *member = &bundle->members[i - 1];
    uint64_t place = at - member->begin;
    if (place < member->head_size) {
        size = least(member->head_size - place, size);
        memcpy(to, member->head + place, size);
        return (ssize_t)size;
    }
    place -= member->head_size;
    if (place < member->size)
        return read_file(member, place, to, least(member->size - place, size));
    uint64_t next = i < bundle->n ? bundle->members[i].begin : bundle->size;
    size = least(next - at, size);
    memset(to, 0, size);
    return (ssize_t)size;
}

void
bundle_close(struct bundle **bundle)
{
    if (!*bundle)
        return;
    for (size_t i = 0; i < (*bundle)->n; i++) {
        free((*bundle)->members[i].head);
        close((*bundle)->members[i].fd);
    }
    free(*bundle);
    *bundle = NULL;
}
