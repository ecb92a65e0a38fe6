/* SPDX-License-Identifier: Apache-2.0 */
/* Observations as rows and blobs that agree. */
#include "config.h"
#include "library.h"
#include "daemon.h"

static struct library *library;
static struct api_problem problem;
static char model[] = "sha256:m", data[] = "sha256:d";

static void
reopen(void)
{
    library_close(&library);
    ck_assert_msg(library_open(scratch_path("state"), &library, &problem), "%s",
                  problem.detail);
}

static void
set_up(void)
{
    struct store_file file = {.id = "sha256:m"}, other = {.id = "sha256:d"};
    bool is_new;
    scratch_make();
    problem = (struct api_problem){0};
    reopen();
    struct store *store = library_store(library);
    ck_assert(store_file_add(store, STORE_MODEL, &file, &is_new, &problem));
    ck_assert(store_file_add(store, STORE_DATASET, &other, &is_new, &problem));
}

static void
tear_down(void)
{
    library_close(&library);
    scratch_remove();
}

static bool
keep(const char *key, const char *text, int64_t bytes)
{
    struct store_observations row = {.model = model, .calibration = data};
    struct spool *spool;
    snprintf(row.key, sizeof row.key, "%s", key);
    ck_assert(spool_open(library_blobs(library), &spool, &problem));
    ck_assert_int_eq(write(spool_fd(spool), text, strlen(text)), (ssize_t)strlen(text));
    ck_assert(spool_finish_file(spool, &problem));
    bool ok = library_observations_keep(library, &row, &spool, bytes, &problem);
    spool_drop(&spool);
    return ok;
}

/* What is kept under the key, "": nothing. */
static const char *
get(const char *key)
{
    static char text[64];
    char id[DIGEST_SIZE];
    struct spool *spool;
    memset(text, 0, sizeof text);
    ck_assert(spool_open(library_blobs(library), &spool, &problem));
    ck_assert_msg(library_observations_get(library, key, spool, id, &problem), "%s",
                  problem.detail);
    ck_assert_int_ge(pread(spool_fd(spool), text, sizeof text - 1, 0), 0);
    ck_assert_int_eq(*id != '\0', *text != '\0');
    spool_drop(&spool);
    return text;
}

static void
count_one(void *arg, const char *id)
{
    (void)id;
    ++*(int *)arg;
}

static int
blobs(void)
{
    int n = 0;
    ck_assert(blobs_each(library_blobs(library), count_one, &n, &problem));
    return n;
}

START_TEST(kept)
{
    ck_assert_str_eq(get("a"), "");
    ck_assert(keep("a", "first", 100));
    ck_assert(keep("b", "first", 100));
    ck_assert_int_eq(blobs(), 1);
    ck_assert(keep("a", "second", 100));
    ck_assert_int_eq(blobs(), 2);
    reopen();
    ck_assert_str_eq(get("a"), "second");
    ck_assert_str_eq(get("b"), "first");
    ck_assert(keep("b", "second", 100));
    ck_assert_int_eq(blobs(), 1);
    ck_assert_int_eq(scratch_count("state/tmp"), 0);
}
END_TEST

START_TEST(bounded)
{
    ck_assert(keep("a", "0123456789", 25));
    ck_assert(keep("b", "9876543210", 25));
    ck_assert_str_eq(get("a"), "0123456789");
    usleep(5000); /* the clock counts milliseconds */
    ck_assert_str_eq(get("b"), "9876543210");
    usleep(5000);
    ck_assert(keep("c", "abcdefghij", 25));
    ck_assert_str_eq(get("a"), "");
    ck_assert_str_eq(get("b"), "9876543210");
    ck_assert_str_eq(get("c"), "abcdefghij");
    ck_assert(keep("d", "more than there is room for at all", 25));
    ck_assert_int_eq(blobs(), 0);
    ck_assert(keep("a", "0123456789", 25));
    ck_assert(library_observations_trim(library, 0, &problem));
    ck_assert_int_eq(blobs(), 0);
    ck_assert_str_eq(get("a"), "");
}
END_TEST

/* With the model, or with the dataset; afterwards nothing is kept. */
START_TEST(deleted)
{
    ck_assert(keep("a", "first", 100));
    ck_assert(keep("b", "second", 100));
    ck_assert(library_remove(library, _i ? STORE_MODEL : STORE_DATASET,
                             _i ? model : data, &problem));
    ck_assert_int_eq(blobs(), 0);
    ck_assert_str_eq(get("a"), "");
    ck_assert(keep("a", "first", 100));
    ck_assert_int_eq(blobs(), 0);
    ck_assert_str_eq(get("a"), "");
}
END_TEST

/* A blob that is gone is nobody's fault; the next one takes its place. */
START_TEST(lost)
{
    char id[DIGEST_SIZE];
    struct spool *spool;
    ck_assert(keep("a", "abc", 100));
    blob_remove(library_blobs(library),
                "sha256:ba7816bf8f01cfea414140de5dae2223b00361a3"
                "96177a9cb410ff61f20015ad");
    ck_assert(spool_open(library_blobs(library), &spool, &problem));
    ck_assert(!library_observations_get(library, "a", spool, id, &problem));
    ck_assert_int_eq(problem.code, API_NOT_FOUND);
    spool_drop(&spool);
    ck_assert(keep("a", "second", 100));
    ck_assert_str_eq(get("a"), "second");
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("daemon/library");
    TCase *t = tcase_create("observations");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, kept);
    tcase_add_test(t, bounded);
    tcase_add_loop_test(t, deleted, 0, 2);
    tcase_add_test(t, lost);
    suite_add_tcase(s, t);
    return s;
}

UNIT_MAIN(suite)
