/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "library/blob.h"
#include "daemon.h"

#define ABC "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define NOTHING \
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static int dir;
static struct blobs *blobs;
static struct api_problem problem;

static void
set_up(void)
{
    scratch_make();
    problem = (struct api_problem){0};
    dir = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_msg(blobs_open(dir, &blobs, &problem), "%s", problem.detail);
}

static void
tear_down(void)
{
    blobs_close(&blobs);
    close(dir);
    scratch_remove();
}

static struct spool *
spool_of(const char *text)
{
    struct spool *spool;
    ck_assert(spool_open(blobs, &spool, &problem));
    for (; *text; text++) /* in pieces, as from a socket */
        ck_assert(spool_write(spool, text, 1, &problem));
    ck_assert(spool_finish(spool, &problem));
    return spool;
}

static const struct {
    const char *text, *id;
} digests[] = {{"", NOTHING}, {"abc", ABC}};

UNIT_ROWS(commits, digests)
{
    char text[16] = "";
    int fd;
    struct spool *spool = spool_of(digests[_i].text);
    ck_assert_str_eq(spool_id(spool), digests[_i].id);
    ck_assert_uint_eq(spool_size(spool), strlen(digests[_i].text));
    ck_assert_int_eq(scratch_count("tmp"), 1);
    ck_assert(!blob_read(blobs, digests[_i].id, &fd, &problem));
    ck_assert_int_eq(problem.code, API_NOT_FOUND);
    ck_assert(spool_commit(&spool, NULL));
    ck_assert_ptr_null(spool);
    ck_assert_int_eq(scratch_count("tmp"), 0);
    ck_assert(blob_read(blobs, digests[_i].id, &fd, NULL));
    ck_assert_int_eq(read(fd, text, sizeof text), (ssize_t)strlen(digests[_i].text));
    ck_assert_str_eq(text, digests[_i].text);
    ck_assert_int_lt(write(fd, "x", 1), 0);
    close(fd);
}

/* The same bytes stored twice are one blob; removing it twice is no error. */
UNIT_TEST(same_bytes)
{
    int fd;
    for (int i = 0; i < 2; i++) {
        struct spool *spool = spool_of("abc");
        ck_assert(spool_commit(&spool, &problem));
    }
    ck_assert_int_eq(scratch_count("blobs/ba"), 1);
    blob_remove(blobs, ABC);
    blob_remove(blobs, ABC);
    ck_assert(!blob_read(blobs, ABC, &fd, &problem));
}

/* A worker's file with the bytes of a blob is not copied. If the blob is gone when the file
   is committed, it is made again, unless the worker has changed the file meanwhile. */
UNIT_LOOP(file_of_a_worker_that_is_stored, 3)
{
    enum { STAYS, IS_LOST, IS_LOST_AND_CHANGED } fate = (unsigned)_i;
    struct spool *spool = spool_of("abc");
    int fd, lent = -1;
    ck_assert(spool_commit(&spool, &problem));
    ck_assert(lent_file_open(blobs, &lent, &problem));
    ck_assert(spool_open_lent(blobs, lent, &spool, &problem));
    ck_assert_int_eq(write(spool_fd(spool), "abc", 3), 3);
    fd = dup(spool_fd(spool));
    ck_assert(spool_finish_file(spool, &problem));
    ck_assert_str_eq(spool_id(spool), ABC);
    ck_assert_uint_eq(spool_size(spool), 3);
    ck_assert_int_eq(scratch_count("tmp"), 0);
    if (fate != STAYS)
        blob_remove(blobs, ABC);
    if (fate == IS_LOST_AND_CHANGED)
        ck_assert_int_eq(pwrite(fd, "x", 1, 0), 1);
    close(fd);
    ck_assert(spool_commit(&spool, &problem) == (fate != IS_LOST_AND_CHANGED));
    ck_assert_int_eq(scratch_count("blobs/ba"), fate != IS_LOST_AND_CHANGED);
    ck_assert(!problem.set || problem.code == API_IO);
    spool_discard(&spool);
    lent_file_close(&lent);
    ck_assert_int_eq(scratch_count("tmp"), 0);
}

/* The same file is lent again, empty, unless it has become large. Its earlier spools keep what
   they copied. */
UNIT_TEST(file_is_lent_again)
{
    struct spool *first, *second;
    struct stat st;
    int fd = -1;
    ck_assert(lent_file_open(blobs, &fd, &problem));
    int before = fd;
    ck_assert(spool_open_lent(blobs, fd, &first, &problem));
    ck_assert_int_eq(write(fd, "abc", 3), 3);
    ck_assert(spool_finish_file(first, &problem));
    lent_file_trim(&fd);
    ck_assert(lent_file_open(blobs, &fd, &problem));
    ck_assert_int_eq(fd, before);
    ck_assert(fstat(fd, &st) == 0 && st.st_size == 0);
    ck_assert_int_eq(lseek(fd, 0, SEEK_CUR), 0);
    ck_assert(spool_open_lent(blobs, fd, &second, &problem));
    ck_assert_int_eq(write(fd, "another", 7), 7);
    ck_assert(spool_commit(&first, &problem));
    ck_assert_int_eq(scratch_count("blobs/ba"), 1);
    spool_discard(&second);
    ck_assert(fstat(fd, &st) == 0 && st.st_size == 7);
    ck_assert_int_eq(ftruncate(fd, (1 << 20) + 1), 0);
    lent_file_trim(&fd);
    ck_assert_int_eq(fd, -1);
    ck_assert_int_eq(scratch_count("tmp"), 0);
}

/* Bytes that a worker writes through the descriptor are hashed from the file. Bytes
   that it writes later, through a duplicate that it kept, do not change the spool. */
UNIT_LOOP(file_of_a_worker, 2)
{
    struct spool *spool;
    char text[8] = "";
    int fd, kept, lent = -1;
    ck_assert(_i ? lent_file_open(blobs, &lent, &problem) &&
                       spool_open_lent(blobs, lent, &spool, &problem)
                 : spool_open(blobs, &spool, &problem));
    ck_assert_int_eq(write(spool_fd(spool), "abcd", 4), 4);
    ck_assert_int_eq(ftruncate(spool_fd(spool), 3), 0);
    kept = dup(spool_fd(spool));
    ck_assert(spool_finish_file(spool, &problem));
    ck_assert_str_eq(spool_id(spool), ABC);
    ck_assert_uint_eq(spool_size(spool), 3);
    ck_assert_int_eq(pwrite(kept, "xyz and more", 12, 0), 12);
    ck_assert_int_eq(pread(spool_fd(spool), text, sizeof text, 0), 3);
    ck_assert_str_eq(text, "abc");
    close(kept);
    ck_assert(spool_read(spool, &fd, &problem));
    ck_assert_int_lt(write(fd, "x", 1), 0);
    close(fd);
    spool_discard(&spool);
    lent_file_close(&lent);
    ck_assert_int_eq(scratch_count("tmp"), 0);
}

/* The next daemon removes the temporary files of one that was killed. */
UNIT_TEST(sweep)
{
    struct spool *spool = spool_of("left behind");
    struct blobs *next;
    ck_assert_int_eq(scratch_count("tmp"), 1);
    ck_assert(blobs_open(dir, &next, &problem));
    ck_assert_int_eq(scratch_count("tmp"), 0);
    blobs_close(&next);
    spool_discard(&spool);
}

static void
collect(void *arg, const char *id)
{
    int *n = arg;
    ck_assert(!strcmp(id, ABC) || !strcmp(id, NOTHING));
    ++*n;
}

UNIT_TEST(each)
{
    int n = 0;
    for (int i = 0; i < 2; i++) {
        struct spool *spool = spool_of(digests[i].text);
        ck_assert(spool_commit(&spool, &problem));
    }
    scratch_write("blobs/00/not-a-blob", "");
    ck_assert(blobs_each(blobs, collect, &n, &problem));
    ck_assert_int_eq(n, 2);
}

static const struct {
    const char *text;
    bool is_id;
} ids[] = {
    {ABC, true},
    {"", false},
    {"sha256:", false},
    {"sha256:abc", false},
    {"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", false},
    {ABC "0", false},
    {"sha256:BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD", false},
    {"sha256:../../../../../../../../../../../../../../../../../../etc/passwd", false},
};

/* Only a well-formed id becomes part of a path. */
UNIT_ROWS(id_form, ids)
{
    int fd;
    ck_assert_int_eq(digest_is_id(ids[_i].text), ids[_i].is_id);
    ck_assert(!blob_read(blobs, ids[_i].text, &fd, &problem));
    ck_assert_int_eq(problem.code, API_NOT_FOUND);
}

/* A worker changes a spool that was filled with a blob's content: the id is that of
   the final content. */
UNIT_TEST(filled)
{
    int fd;
    struct spool *spool = spool_of("first"), *copy;
    char first[DIGEST_SIZE], id[DIGEST_SIZE], text[8] = "";
    memcpy(first, spool_id(spool), sizeof first);
    ck_assert(spool_commit(&spool, NULL));
    ck_assert(blob_read(blobs, first, &fd, &problem));
    ck_assert(spool_open(blobs, &copy, &problem) && spool_fill(copy, fd, id, &problem));
    ck_assert_int_eq(pread(spool_fd(copy), text, sizeof text, 0), 5);
    ck_assert_str_eq(text, "first");
    ck_assert_str_eq(id, first);
    ck_assert_int_eq(pwrite(spool_fd(copy), "abc", 3, 0), 3);
    ck_assert_int_eq(ftruncate(spool_fd(copy), 3), 0);
    ck_assert(spool_finish_file(copy, &problem));
    ck_assert_str_eq(spool_id(copy), ABC);
    ck_assert_uint_eq(spool_size(copy), 3);
    spool_discard(&copy);
    close(fd);
}

UNIT_TEST(room)
{
    ck_assert(blobs_check_room(blobs, 0, &problem));
    ck_assert(!blobs_check_room(blobs, UINT64_MAX, &problem));
    ck_assert_int_eq(problem.code, API_DISK_FULL);
    problem = (struct api_problem){0};
    ck_assert(!blobs_check_room(blobs, UINT64_C(1) << 60, &problem));
    ck_assert_int_eq(problem.code, API_DISK_FULL);
}

/* --- limits --------------------------------------------------------------- */

static void
commit(const char *text)
{
    struct spool *spool = spool_of(text);
    ck_assert_msg(spool_commit(&spool, &problem), "%s", problem.detail);
}

/* The bytes in use follow blobs as they are added, removed and found at the next
   start; equal bytes count once. */
UNIT_TEST(counted)
{
    struct blobs *next;
    ck_assert_uint_eq(blobs_used(blobs), 0);
    commit("abc");
    commit("abc");
    commit("defgh");
    ck_assert_uint_eq(blobs_used(blobs), 8);
    ck_assert(blobs_open(dir, &next, &problem));
    ck_assert_uint_eq(blobs_used(next), 8);
    blobs_close(&next);
    blob_remove(blobs, ABC);
    blob_remove(blobs, ABC);
    ck_assert_uint_eq(blobs_used(blobs), 5);
}

static int evictions;

/* Finds nothing to remove at its first call, removes ABC at the second and gives up
   at the third. */
static bool
evict_abc(void *arg, bool computed)
{
    ck_assert(!computed);
    evictions++;
    if (evictions == 2)
        blob_remove(arg, ABC);
    return evictions < 3;
}

static void
limit(uint64_t max_bytes, bool (*evict)(void *, bool))
{
    evictions = 0;
    blobs_set_limits(blobs, &(struct blobs_limits){.max_bytes = max_bytes,
                                                   .min_free = 1,
                                                   .evict = evict,
                                                   .arg = blobs});
}

/* Three bytes are stored, and the limit is ten. */
static const struct {
    uint64_t size;
    bool evicts, fits;
    int evictions;
} rooms[] = {
    {7, false, true, 0}, {8, false, false, 0}, {7, true, true, 0},
    {8, true, true, 2},  {10, true, true, 2},  {11, true, false, 0},
};

UNIT_ROWS(budget, rooms)
{
    commit("abc");
    limit(10, rooms[_i].evicts ? evict_abc : NULL);
    ck_assert_int_eq(blobs_check_room(blobs, rooms[_i].size, &problem), rooms[_i].fits);
    ck_assert_int_eq(evictions, rooms[_i].evictions);
    ck_assert(rooms[_i].fits || problem.code == API_DISK_FULL);
}

/* Spools count towards the limit, and writing fails at the limit. */
UNIT_TEST(budget_of_spools)
{
    struct spool *first = spool_of("0123456"), *second;
    limit(10, NULL);
    ck_assert(spool_open(blobs, &second, &problem));
    ck_assert(spool_write(second, "abc", 3, &problem));
    ck_assert(!spool_write(second, "d", 1, &problem));
    ck_assert_int_eq(problem.code, API_DISK_FULL);
    problem = (struct api_problem){0};
    spool_discard(&second);
    ck_assert(blobs_has_room(blobs, 3, &problem));
    ck_assert(spool_commit(&first, &problem));
    ck_assert(blobs_has_room(blobs, 3, &problem));
    ck_assert(!blobs_has_room(blobs, 4, &problem));
}

/* A file of nothing but a hole is not copied until the disk is full. */
UNIT_TEST(hole_of_a_worker)
{
    struct spool *spool;
    ck_assert(spool_open(blobs, &spool, &problem));
    ck_assert_int_eq(ftruncate(spool_fd(spool), INT64_C(1) << 42), 0);
    ck_assert(!spool_finish_file(spool, &problem));
    ck_assert_int_eq(problem.code, API_DISK_FULL);
    spool_discard(&spool);
    ck_assert_int_eq(scratch_count("tmp"), 0);
}

/* Bytes that a worker wrote count after the spool was finished. */
UNIT_TEST(budget_of_workers)
{
    struct spool *spool;
    limit(10, NULL);
    ck_assert(spool_open(blobs, &spool, &problem));
    ck_assert_int_eq(write(spool_fd(spool), "0123456789a", 11), 11);
    ck_assert(blobs_has_room(blobs, 0, &problem));
    ck_assert(spool_finish_file(spool, &problem));
    ck_assert(!blobs_has_room(blobs, 0, &problem));
    problem = (struct api_problem){0};
    spool_discard(&spool);
    ck_assert(blobs_has_room(blobs, 10, &problem));
}

UNIT_TEST(free_disk)
{
    blobs_set_limits(blobs, &(struct blobs_limits){.min_free = UINT64_C(1) << 60,
                                                   .evict = evict_abc,
                                                   .arg = blobs});
    evictions = 0;
    commit("abc");
    ck_assert(!blobs_check_room(blobs, 0, &problem));
    ck_assert_int_eq(problem.code, API_DISK_FULL);
    ck_assert_int_eq(evictions, 0); /* removing blobs would not help */
}

#define HUGE_BYTES (UINT64_C(1) << 50)

static uint64_t rows_bytes;

static uint64_t
count_rows(void *arg)
{
    (void)arg;
    return rows_bytes;
}

static bool
evict_row(void *arg, bool computed)
{
    (void)arg;
    (void)computed;
    evictions++;
    if (rows_bytes < HUGE_BYTES)
        return false;
    rows_bytes -= HUGE_BYTES;
    return true;
}

/* Files that are evicted stay on the disk for the grace period. Only what the disk lacks is
   evicted meanwhile, however often room is asked for. */
UNIT_TEST(files_that_go_later)
{
    struct blobs_limits limits = {.min_free = 1,
                                  .grace_ms = 3600000,
                                  .evict = evict_row,
                                  .rows = count_rows,
                                  .arg = blobs};
    rows_bytes = 10 * HUGE_BYTES;
    evictions = 0;
    blobs_set_limits(blobs, &limits);
    for (int i = 0; i < 3; i++) {
        problem = (struct api_problem){0};
        ck_assert(!blobs_check_room(blobs, 2 * HUGE_BYTES + HUGE_BYTES / 2, &problem));
        ck_assert_int_eq(problem.code, API_DISK_FULL);
        ck_assert_int_eq(evictions, 3);
    }
    /* When they are gone and the disk is short all the same, others follow. */
    limits.grace_ms = 0;
    blobs_set_limits(blobs, &limits);
    ck_assert(!blobs_check_room(blobs, HUGE_BYTES / 2, &problem));
    ck_assert_int_eq(evictions, 4);
}

/* Where rows count, the limit is theirs. */
UNIT_TEST(limit_of_rows)
{
    commit("abcdefgh"); /* has no row */
    rows_bytes = 10 * HUGE_BYTES;
    evictions = 0;
    blobs_set_limits(blobs, &(struct blobs_limits){.max_bytes = 10 * HUGE_BYTES + 5,
                                                   .min_free = 1,
                                                   .grace_ms = 3600000,
                                                   .evict = evict_row,
                                                   .rows = count_rows,
                                                   .arg = blobs});
    ck_assert(blobs_check_room(blobs, 5, &problem));
    ck_assert_int_eq(evictions, 0);
    ck_assert(blobs_check_room(blobs, 6, &problem));
    ck_assert_int_eq(evictions, 1);
    ck_assert_uint_eq(rows_bytes, 9 * HUGE_BYTES);
}

UNIT_SUITE("daemon/blob", .setup = set_up, .teardown = tear_down)
