/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/attempt/journal.h"

#include "files/data/file.h"
#include "stages/attempt/kept_times.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Lines that begin and end: "QDQJOURNAL1 " and "end ", 16 digits, a line feed. */
enum { HEAD_LINE = 29, END_LINE = 21, MOST_BYTES = 8 << 20 };

static void
print_head(char *to, uint64_t identity)
{
    snprintf(to, HEAD_LINE + 1, "QDQJOURNAL1 %016" PRIx64 "\n", identity);
}

static void
print_end(char *to, const char *lines, size_t n)
{
    snprintf(to, END_LINE + 1, "end %016" PRIx64 "\n", qdqi_kept_hash(lines, n));
}

/* Returns the length of the entry that a text begins with, without its last line; 0: there is none that is
   whole. */
static size_t
length_of_entry(const char *text, size_t n)
{
    char end[END_LINE + 1];
    for (size_t at = 0; at + END_LINE <= n;) {
        if (strncmp(text + at, "end ", 4) == 0) {
            print_end(end, text, at);
            return memcmp(text + at, end, END_LINE) == 0 ? at : 0;
        }
        const char *feed = memchr(text + at, '\n', n - at);
        if (!feed)
            return 0;
        at = (size_t)(feed - text) + 1;
    }
    return 0;
}

/* Moves the entries to the begin of the text, without the lines that end them. Returns the end of the last one
   that is whole. */
static size_t
gather(char *text, size_t n)
{
    size_t at = HEAD_LINE, to = 0, length;
    while ((length = length_of_entry(text + at, n - at)) > 0) {
        memmove(text + to, text + at, length);
        to += length;
        at += length + END_LINE;
    }
    text[to] = '\0';
    return at;
}

enum qdq_code
qdqi_journal_open(int fd, uint64_t identity, struct qdqi_arena *arena,
                  struct qdqi_journal *ret, char **ret_entries, struct qdq_error *err)
{
    char head[HEAD_LINE + 1];
    struct stat st;
    size_t n = 0;
    *ret = (struct qdqi_journal){.fd = fd};
    const bool fits = fd >= 0 && !fstat(fd, &st) && st.st_size <= MOST_BYTES;
    char *text = qdqi_arena_alloc(arena, fits ? (size_t)st.st_size + 1 : 1);
    if (!text)
        return qdqi_no_memory(err);
    *ret_entries = text;
    *text = '\0';
    print_head(head, identity);
    if (fits && qdqi_file_read(fd, 0, text, (size_t)st.st_size, &n) == 0 &&
        n >= HEAD_LINE && memcmp(text, head, HEAD_LINE) == 0)
        ret->end = (off_t)gather(text, n);
    else
        *text = '\0';
    if (fd >= 0 &&
        (ftruncate(fd, ret->end) ||
         (ret->end == 0 && qdqi_file_write(fd, 0, head, HEAD_LINE)) || fdatasync(fd)))
        ret->fd = -1;
    ret->end = ret->end == 0 ? HEAD_LINE : ret->end;
    return QDQ_OK;
}

bool
qdqi_journal_append(struct qdqi_journal *j, const char *lines, size_t n)
{
    char end[END_LINE + 1];
    print_end(end, lines, n);
    const bool ok = j->fd >= 0 && !qdqi_file_write(j->fd, j->end, lines, n) &&
                    !qdqi_file_write(j->fd, j->end + (off_t)n, end, END_LINE) &&
                    !fdatasync(j->fd);
    j->end += (off_t)n + END_LINE;
    if (!ok)
        j->fd = -1;
    return ok;
}
