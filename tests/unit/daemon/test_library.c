/* SPDX-License-Identifier: Apache-2.0 */
/* Rows and blobs agree at all times, also while syncs are slow. */
#include "config.h"
#include "library/library.h"
#include "base/sync.h"
#include "store/unsynced.h"
#include "daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ONE "sha256:6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"
#define ABC "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static atomic_int at_once, most_at_once, waited_for, failing, synced;
static void (*_Atomic meanwhile)(void);

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);

/* A sync lasts until the awaited number of syncs is under way, or for 20 s. */
static bool
begin_sync(void)
{
    const struct timespec a_while = {0, 1000000};
    int now = atomic_fetch_add(&at_once, 1) + 1;
    synced++;
    if (now > most_at_once)
        most_at_once = now;
    for (int i = 0; i < 20000 && most_at_once < waited_for; i++)
        nanosleep(&a_while, NULL);
    return atomic_fetch_sub(&failing, 1) != 1;
}

int
__wrap_fdatasync(int fd)
{
    int result = begin_sync() ? __real_fdatasync(fd) : -1;
    if (result)
        errno = EIO;
    at_once--;
    return result;
}

/* Syncs of the whole disk fail. */
static atomic_bool failing_all;

int __real_syncfs(int fd);
int __wrap_syncfs(int fd);

int
__wrap_syncfs(int fd)
{
    synced++;
    if (!failing_all)
        return __real_syncfs(fd);
    errno = EIO;
    return -1;
}

int
__wrap_fsync(int fd)
{
    int result = begin_sync() ? __real_fsync(fd) : -1;
    void (*call)(void) = atomic_exchange(&meanwhile, NULL);
    if (call)
        call();
    if (result)
        errno = EIO;
    at_once--;
    return result;
}

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
    most_at_once = waited_for = failing = 0;
    meanwhile = NULL;
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
    spool_discard(&spool);
    return ok;
}

/* Returns the observations that are stored under the key; "": none. */
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
    spool_discard(&spool);
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

UNIT_TEST(kept)
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

UNIT_TEST(bounded)
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

/* When the model or the dataset is deleted, its observations are deleted, too. */
UNIT_LOOP(deleted, 2)
{
    ck_assert(keep("a", "first", 100));
    ck_assert(keep("b", "second", 100));
    ck_assert(library_remove(library, _i ? STORE_MODEL : STORE_DATASET,
                             _i ? model : data, STORE_REQUEST, &problem));
    ck_assert_int_eq(blobs(), 0);
    ck_assert_str_eq(get("a"), "");
    ck_assert(keep("a", "first", 100));
    ck_assert_int_eq(blobs(), 0);
    ck_assert_str_eq(get("a"), "");
}

/* A lost blob is no error; the next one replaces it. */
UNIT_TEST(lost)
{
    char id[DIGEST_SIZE];
    struct spool *spool;
    ck_assert(keep("a", "abc", 100));
    blob_remove(library_blobs(library), ABC);
    ck_assert(spool_open(library_blobs(library), &spool, &problem));
    ck_assert(!library_observations_get(library, "a", spool, id, &problem));
    ck_assert_int_eq(problem.code, API_NOT_FOUND);
    spool_discard(&spool);
    ck_assert(keep("a", "second", 100));
    ck_assert_str_eq(get("a"), "second");
}

/* --- waiting for the disk ------------------------------------------------- */

static struct spool *
spool_of(const char *text)
{
    struct spool *spool;
    ck_assert(spool_open(library_blobs(library), &spool, &problem));
    ck_assert(spool_write(spool, text, strlen(text), &problem));
    ck_assert(spool_finish(spool, &problem));
    return spool;
}

static void
start_job(const char *id)
{
    struct store_job job = {.created_at = 1, .model = model}, claimed;
    enum store_added added;
    bool any;
    struct store *store = library_store(library);
    snprintf(job.id, sizeof job.id, "%s", id);
    ck_assert(store_job_add(store, &job, &(struct store_asking){0}, &added, &problem) &&
              store_job_claim(store, 1, true, &claimed, &any, &problem) && any);
    store_job_fini(&claimed);
}

static bool
end_job_with(const char *id, const char *report, struct store_ended *ret)
{
    struct spool *files[] = {spool_of("1"), spool_of(report), spool_of("3")};
    const struct job_result result = {
        .model = &files[0], .report = &files[1], .frozen = &files[2], .summary = "{}"};
    bool ok = library_job_end(library, id, &result, NULL, ret, &problem);
    for (size_t i = 0; i < 3; i++) {
        ck_assert(!ok || !files[i]);
        spool_discard(&files[i]);
    }
    return ok;
}

static bool
end_job(const char *id, struct store_ended *ret)
{
    return end_job_with(id, "2", ret);
}

/* The bytes of the three files and their names are synced at the same time. */
UNIT_TEST(job_end_waits_together)
{
    struct store_ended ended;
    start_job("j");
    waited_for = 6;
    ck_assert_msg(end_job("j", &ended), "%s", problem.detail);
    ck_assert(ended.was);
    ck_assert_int_eq(most_at_once, 6);
    ck_assert_int_eq(blobs(), 3);
}

/* Ends another job with the same files, and returns the number of its syncs. */
static int
syncs_of_same_files(void)
{
    struct store_ended ended;
    start_job("k");
    synced = 0;
    ck_assert_msg(end_job("k", &ended) && ended.was, "%s", problem.detail);
    ck_assert_int_eq(blobs(), 3);
    return synced;
}

/* A file that an earlier job stored is not synced again. */
UNIT_TEST(same_files_are_not_synced)
{
    struct store_ended ended;
    start_job("j");
    ck_assert(end_job("j", &ended) && ended.was);
    ck_assert_int_eq(syncs_of_same_files(), 0);
}

/* One that was lost meanwhile is synced and named again. */
UNIT_TEST(lost_files_are_synced)
{
    struct store_ended ended;
    start_job("j");
    ck_assert(end_job("j", &ended) && ended.was);
    blob_remove(library_blobs(library), ONE);
    ck_assert_int_eq(syncs_of_same_files(), 2);
}

/* --- files that are synced later ------------------------------------------- */

static char path_of_abc[4096];

/* Ends two jobs of one model; the second one has the new report "abc". */
static void
end_two_jobs(void)
{
    struct store_ended ended;
    start_job("j");
    ck_assert(end_job("j", &ended) && ended.was);
    start_job("k");
    synced = 0;
    ck_assert_msg(end_job_with("k", "abc", &ended) && ended.was, "%s", problem.detail);
    snprintf(path_of_abc, sizeof path_of_abc, "%s/ba/%s", scratch_path("state/blobs"),
             strchr(ABC, ':') + 1);
}

static int64_t
newest_unsynced(void)
{
    int64_t newest;
    ck_assert(store_unsynced_newest(library_store(library), &newest, &problem));
    return newest;
}

/* Returns the bytes of the file "abc", "" when it is empty, and "none" when it is gone. */
static const char *
read_abc(void)
{
    static char text[16];
    int fd = open(path_of_abc, O_RDONLY | O_CLOEXEC);
    memset(text, 0, sizeof text);
    if (fd < 0)
        return "none";
    ck_assert_int_ge(read(fd, text, sizeof text - 1), 0);
    close(fd);
    return text;
}

/* A new report of a model that is stored already is not synced: the record has its bytes. */
UNIT_TEST(report_is_in_the_record)
{
    end_two_jobs();
    ck_assert_int_eq(synced, 0);
    ck_assert_int_eq(newest_unsynced(), 1);
    ck_assert_str_eq(read_abc(), "abc");
    reopen();
    ck_assert_str_eq(read_abc(), "abc");
    ck_assert_int_eq(newest_unsynced(), 1);
}

/* A loss of power may take the file's bytes or its name. The next start writes it again, and
   syncs it. */
UNIT_LOOP(lost_report_is_restored, 5)
{
    static const char *const left[] = {"", "a", "abcd", "xyz"};
    end_two_jobs();
    library_close(&library);
    ck_assert_int_eq(unlink(path_of_abc), 0);
    if (_i < 4) {
        int fd = open(path_of_abc, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        ck_assert_int_eq(write(fd, left[_i], strlen(left[_i])), (int)strlen(left[_i]));
        close(fd);
    }
    synced = 0;
    reopen();
    ck_assert_str_eq(read_abc(), "abc");
    ck_assert_int_ge(synced, 2);
    ck_assert_int_eq(scratch_count("state/tmp"), 0);
}

/* The report of a job that was removed does not come back. */
UNIT_TEST(removed_report_stays_away)
{
    end_two_jobs();
    ck_assert(library_job_remove(library, "k", STORE_REQUEST, &problem));
    ck_assert_str_eq(read_abc(), "none");
    ck_assert_int_eq(newest_unsynced(), 1);
    reopen();
    ck_assert_str_eq(read_abc(), "none");
}

/* Ends many jobs, each with a report of its own. */
static void
end_many_jobs(void)
{
    struct store_ended ended;
    char id[16];
    for (int i = 0; i < 300; i++) {
        snprintf(id, sizeof id, "n%d", i);
        start_job(id);
        ck_assert(end_job_with(id, id, &ended) && ended.was);
    }
}

/* When there are many, all are synced at once. Their rows go only when that succeeds. */
UNIT_TEST(many_reports_are_synced_together)
{
    end_two_jobs();
    library_sync_many(library);
    ck_assert_int_eq(newest_unsynced(), 1);
    end_many_jobs();
    failing_all = true;
    library_sync_many(library);
    ck_assert_int_eq(newest_unsynced(), 301);
    failing_all = false;
    synced = 0;
    library_sync_many(library);
    ck_assert_int_eq(newest_unsynced(), 0);
    ck_assert_int_eq(synced, 1);
}

/* A few are synced when that is asked for, as each sweep does. */
UNIT_TEST(few_reports_are_synced_by_a_sweep)
{
    end_two_jobs();
    synced = 0;
    library_sync_deferred(library);
    ck_assert_int_eq(newest_unsynced(), 0);
    ck_assert_int_eq(synced, 1);
    library_sync_deferred(library);
    ck_assert_int_eq(synced, 1);
}

/* A large report is synced at once. */
UNIT_TEST(large_report_is_synced)
{
    struct store_ended ended;
    char text[20001] = "";
    start_job("j");
    ck_assert(end_job("j", &ended) && ended.was);
    start_job("k");
    memset(text, 'x', sizeof text - 1);
    synced = 0;
    ck_assert(end_job_with("k", text, &ended) && ended.was);
    ck_assert_int_eq(synced, 2);
    ck_assert_int_eq(newest_unsynced(), 0);
}

/* Whichever sync fails, no blob is left and the job has not ended. */
UNIT_LOOP(job_end_fails, 6)
{
    struct store_ended ended;
    start_job("j");
    failing = _i + 1;
    ck_assert(!end_job("j", &ended));
    ck_assert_int_eq(problem.code, API_IO);
    ck_assert_int_eq(blobs(), 0);
    problem = (struct api_problem){0};
    ck_assert(end_job("j", &ended) && ended.was);
    ck_assert_int_eq(blobs(), 3);
}

/* When the call succeeds, the model's bytes, name and record are on the disk. Each
   of these syncs can make it fail. */
UNIT_LOOP(model_is_durable, 3)
{
    struct store_file file = {0};
    char path[] = "model.onnx";
    bool is_new;
    struct spool *spool = spool_of("abc");
    struct library_part part = {
        .spool = &spool, .digest = ABC, .path = path, .size = 3};
    failing = _i + 1;
    ck_assert(!library_add_model(library, ABC, &part, 1, &file, &is_new, &problem));
    ck_assert_int_eq(problem.code, API_IO);
    ck_assert_int_le(failing, 0);
    spool_discard(&spool);
    problem = (struct api_problem){0};
    spool = spool_of("abc");
    ck_assert(library_add_model(library, ABC, &part, 1, &file, &is_new, &problem));
    store_file_fini(&file);
    ck_assert_int_eq(blobs(), 1);
}

static void
forget_all(void)
{
    struct api_problem p = {0};
    ck_assert(library_observations_trim(library, 0, &p));
}

/* No thread waits for another's sync, and none removes a blob whose row is about to
   be added. */
UNIT_TEST(other_threads_continue)
{
    struct store_ended ended;
    char large[20001] = "";
    memset(large, 'x', sizeof large - 1);
    ck_assert(keep("a", "1", 100));
    start_job("j");
    meanwhile = forget_all;
    ck_assert(end_job_with("j", large, &ended) && ended.was);
    ck_assert_ptr_null(meanwhile);
    ck_assert_str_eq(get("a"), "");
    ck_assert(blob_exists(library_blobs(library), ONE));
}

/* A job has more files than are synced at the same time. */
UNIT_TEST(many_files)
{
    enum { N = 2 * SYNC_MOST + 3 };
    struct spool *spools[N], **each[N];
    char text[16];
    for (int i = 0; i < N; i++) {
        snprintf(text, sizeof text, "%d", i);
        spools[i] = spool_of(text);
        each[i] = &spools[i];
    }
    waited_for = SYNC_MOST;
    ck_assert(spools_commit(each, N, &problem));
    ck_assert_int_eq(most_at_once, SYNC_MOST);
    ck_assert_int_eq(blobs(), N);
}

/* The daemon waits for a lock that a killed daemon's child still holds for a moment,
   and not for one that another daemon holds. */
UNIT_TEST(a_lock_of_a_killed_daemon)
{
    const struct timespec a_while = {0, 100 * 1000000};
    struct library *second = NULL;
    struct api_problem why = {0};
    library_close(&library);
    pid_t child = fork();
    if (child == 0) {
        int file = open(scratch_path("state"), O_RDONLY | O_DIRECTORY);
        int rc = flock(file, LOCK_EX | LOCK_NB);
        close(open(scratch_path("held"), O_CREAT | O_WRONLY, 0600));
        nanosleep(&a_while, NULL);
        _exit(rc);
    }
    while (access(scratch_path("held"), F_OK))
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    reopen();
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert(!library_open(scratch_path("state"), &second, &why));
    ck_assert_ptr_nonnull(strstr(why.detail, "another daemon"));
    ck_assert_ptr_null(second);
}

UNIT_SUITE("daemon/library", .setup = set_up, .teardown = tear_down)
