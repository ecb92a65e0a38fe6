/* SPDX-License-Identifier: Apache-2.0 */
/* The table of files whose bytes were found to be right since the start. */
#include "config.h"
#include "library/inner.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#define SLOTS \
    16384u /* of the table; a file that finds its slot taken is hashed again */

static uint64_t
key_of(const char *id)
{
    char text[17];
    snprintf(text, sizeof text, "%.16s", blob_hex(id));
    return strtoull(text, NULL, 16) | 1;
}

static struct verified
describe(const char *id, const struct stat *st)
{
    return (struct verified){.key = key_of(id),
                             .inode = st->st_ino,
                             .changed = (int64_t)st->st_mtim.tv_sec * 1000000000 +
                                        st->st_mtim.tv_nsec};
}

static struct verified *
slot_of(struct blobs *blobs, const char *id)
{
    lock_assert_held(&blobs->naming);
    return &blobs->verified[(key_of(id) >> 32) % SLOTS];
}

static bool
is_in_table(struct blobs *blobs, const char *id, const struct stat *st)
{
    const struct verified *slot = slot_of(blobs, id), now = describe(id, st);
    return slot->key == now.key && slot->inode == now.inode &&
           slot->changed == now.changed;
}

/* Looks at the file of this name and returns whether it is in the table. */
static bool
is_named_in_table(struct blobs *blobs, const char *id, struct stat *ret)
{
    char name[NAME_SIZE];
    *ret = (struct stat){0};
    blob_name(id, name);
    return fstatat(blobs->dir, name, ret, AT_SYMLINK_NOFOLLOW) == 0 &&
           is_in_table(blobs, id, ret);
}

bool
blobs_is_verified(struct blobs *blobs, const char *id, uint64_t *ret_size)
{
    lock_assert_held(&blobs->naming);
    struct stat st;
    bool known = is_named_in_table(blobs, id, &st);
    *ret_size = (uint64_t)st.st_size;
    return known;
}

bool
blobs_is_verified_file(struct blobs *blobs, const char *id, int fd)
{
    struct stat st;
    lock_acquire(&blobs->naming);
    bool known = fstat(fd, &st) == 0 && is_in_table(blobs, id, &st);
    lock_release(&blobs->naming);
    return known;
}

bool
blob_is_durable(struct blobs *blobs, const char *id)
{
    struct stat st;
    lock_acquire(&blobs->naming);
    bool durable = is_named_in_table(blobs, id, &st) && slot_of(blobs, id)->durable;
    lock_release(&blobs->naming);
    return durable;
}

void
blobs_set_verified(struct blobs *blobs, const char *id, int fd)
{
    lock_assert_held(&blobs->naming);
    struct stat st;
    if (fstat(fd, &st) == 0 && !is_in_table(blobs, id, &st))
        *slot_of(blobs, id) = describe(id, &st);
}

void
blobs_set_durable(struct blobs *blobs, const char *id, int fd)
{
    struct stat st;
    lock_acquire(&blobs->naming);
    if (fstat(fd, &st) == 0 && is_in_table(blobs, id, &st))
        slot_of(blobs, id)->durable = true;
    lock_release(&blobs->naming);
}

bool
blobs_verified_open(struct blobs *blobs)
{
    blobs->verified = calloc(SLOTS, sizeof *blobs->verified);
    return blobs->verified != NULL;
}
