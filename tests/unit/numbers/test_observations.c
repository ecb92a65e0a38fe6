/* SPDX-License-Identifier: Apache-2.0 */
/* A file of observations gives back what was stored in it, or nothing. */
#include "config.h"

#include "failing.h"
#include "qdq/quantize.h"
#include "numbers/range/observations.h"
#include "arena.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- files of observations ------------------------------------------------ */

static const char *const named[] = {"input", "never reached", "zero", "t\303\244"};
enum { N_NAMED = 4 };
static const struct qdqi_observed run = {.samples = 7, .skipped = 2, .which = "3, 5"};

static void
fill(struct qdqi_observers *to)
{
    static float data[5000];
    ck_assert(qdqi_observers_init(to, named, N_NAMED, QDQI_NEEDS_ALL, 1, arena));
    for (size_t i = 0; i < N_NAMED; i++) {
        for (int k = 0; k < 5000; k++)
            data[k] =
                i == 2 ? 0 : (float)((k * 7919 % 5000) - 1234) * (float)(i + 1) / 7;
        struct qdqi_reached r =
            qdqi_reached(to, i, QDQI_FLOAT32, data, i == 1 ? 0 : 5000, 1);
        qdqi_reached_part(&r, 0);
        qdqi_reached_end(&r);
    }
}

static bool
same(const struct qdqi_observer *a, const struct qdqi_observer *b)
{
    return a->all.extremes.min == b->all.extremes.min &&
           a->all.extremes.max == b->all.extremes.max &&
           memcmp(a->all.histogram, b->all.histogram, sizeof *a->all.histogram) == 0;
}

static int
new_file(void)
{
    int fd = memfd_create("observations", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    return fd;
}

static void
write_rows(int fd, const struct qdqi_observations *earlier,
           const struct qdqi_observers *from, const bool *which)
{
    const struct qdqi_observed_rows rows = {from, which, NULL, NULL};
    struct qdq_error err = {0};
    ck_assert_msg(!qdqi_observations_write(fd, "me", &run, earlier, &rows, &err), "%s",
                  err.text);
}

static struct qdqi_observations
read_rows(int fd, const char *identity)
{
    struct qdqi_observations o;
    struct qdq_error err = {0};
    ck_assert_msg(!qdqi_observations_read(fd, identity, arena, &o, &err), "%s",
                  err.text);
    return o;
}

static void
expect_row(const struct qdqi_observations *o, const struct qdqi_observer *want)
{
    const char *const name[] = {want->tensor};
    struct qdqi_observers got;
    ck_assert(qdqi_observers_init(&got, name, 1, QDQI_NEEDS_ALL, 1, arena));
    ck_assert(qdqi_observations_have(o, want->tensor));
    qdqi_observations_restore(o, &got.rows[0]);
    ck_assert(same(&got.rows[0], want));
    ck_assert(got.rows[0].average.min == want->average.min &&
              got.rows[0].average.max == want->average.max &&
              got.rows[0].average.begun == want->average.begun);
    ck_assert_int_eq(got.rows[0].runs, want->runs);
}

UNIT_TEST(files_give_back_what_was_put_in)
{
    const struct qdqi_observations nothing = {0};
    const bool some[] = {true, true, false, false},
               others[] = {false, false, true, true};
    struct qdqi_observers all;
    int fd = new_file();
    fill(&all);
    struct qdqi_observations o = read_rows(fd, "me");
    ck_assert(!o.bytes && !qdqi_observations_have(&o, "input"));
    write_rows(fd, &nothing, &all, some);
    o = read_rows(fd, "me");
    ck_assert_int_eq(o.all.samples, 7);
    ck_assert_int_eq(o.all.skipped, 2);
    ck_assert_str_eq(o.all.which, "3, 5");
    expect_row(&o, &all.rows[0]);
    expect_row(&o, &all.rows[1]);
    ck_assert(!qdqi_observations_have(&o, "zero"));
    write_rows(fd, &o, &all, others);
    qdqi_observations_fini(&o);
    o = read_rows(fd, "me");
    ck_assert_uint_eq(o.n, N_NAMED);
    for (size_t i = 0; i < N_NAMED; i++)
        expect_row(&o, &all.rows[i]);
    qdqi_observations_fini(&o);
    o = read_rows(fd, "you");
    ck_assert(!o.bytes && !qdqi_observations_have(&o, "input"));
    close(fd);
}

/* Makes each byte wrong in turn, and ends the file at each byte. */
UNIT_TEST(damaged_files_hold_nothing)
{
    const struct qdqi_observations nothing = {0};
    const bool one[] = {true, true, true, false};
    struct qdqi_observers all;
    struct stat st;
    int fd = new_file();
    fill(&all);
    write_rows(fd, &nothing, &all, one);
    ck_assert_int_eq(fstat(fd, &st), 0);
    for (off_t at = 0; at < st.st_size; at++) {
        unsigned char byte, wrong;
        ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
        wrong = (unsigned char)(byte ^ (1 << at % 8));
        ck_assert_int_eq(pwrite(fd, &wrong, 1, at), 1);
        struct qdqi_observations o = read_rows(fd, "me");
        ck_assert_msg(!o.bytes, "byte %lld", (long long)at);
        ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
    }
    struct qdqi_observations good = read_rows(fd, "me");
    ck_assert_ptr_nonnull(good.bytes);
    qdqi_observations_fini(&good);
    ck_assert_int_eq(ftruncate(fd, st.st_size + 1), 0);
    for (off_t size = st.st_size + 1; size >= 0; size--) {
        ck_assert_int_eq(ftruncate(fd, size), 0);
        struct qdqi_observations o = read_rows(fd, "me");
        ck_assert_msg((o.bytes != NULL) == (size == st.st_size), "%lld bytes",
                      (long long)size);
        qdqi_observations_fini(&o);
    }
    close(fd);
}

/* Version 1 has another sum. */
UNIT_TEST(files_of_version_1_are_read)
{
    const bool one[] = {true, false, false, false};
    static unsigned char bytes[1 << 16];
    struct qdqi_observers all;
    uint64_t sum = 0xcbf29ce484222325ULL;
    int fd = new_file();
    fill(&all);
    write_rows(fd, &(const struct qdqi_observations){0}, &all, one);
    ssize_t size = pread(fd, bytes, sizeof bytes, 0);
    ck_assert(size > QDQI_OBSERVATIONS_HEAD && size < (ssize_t)sizeof bytes);
    for (ssize_t i = QDQI_OBSERVATIONS_HEAD; i < size; i++)
        sum = (sum ^ bytes[i]) * 0x100000001b3ULL;
    ck_assert_int_eq(pwrite(fd, "QDQOBS1\n", 8, 0), 8);
    struct qdqi_observations o = read_rows(fd, "me");
    ck_assert_ptr_null(o.bytes); /* with the sum of version 2 */
    ck_assert_int_eq(pwrite(fd, &sum, sizeof sum, 16), sizeof sum);
    o = read_rows(fd, "me");
    expect_row(&o, &all.rows[0]);
    qdqi_observations_fini(&o);
    close(fd);
}

/* Sets a moment to numbers that depend on `from`. */
static void
fill_moment(struct qdqi_moment *m, size_t k, float from)
{
    ck_assert(qdqi_moment_init(m, k));
    m->rows = 7;
    for (size_t i = 0; i < k; i++)
        m->sums[i] = (double)from + (double)i;
    for (size_t i = 0; i < qdqi_moment_products(k); i++)
        m->products[i] = from + (float)i / 2;
}

static void
write_moments(int fd, const struct qdqi_observations *earlier, const char *key,
              size_t groups, const struct qdqi_moment *moments)
{
    const struct qdqi_observers none = {0};
    const struct qdqi_kept_moments kept = {key, groups, moments, NULL};
    const struct qdqi_observed_rows rows = {&none, NULL, &kept, NULL};
    struct qdq_error err = {0};
    ck_assert(!qdqi_observations_write(fd, "me", &run, earlier, &rows, &err));
}

UNIT_TEST(moments_are_kept_beside_rows)
{
    const bool all[] = {true, true, true, true};
    struct qdqi_observers from;
    struct qdqi_moment two[2], other, got[2];
    fill(&from);
    fill_moment(&two[0], 70, 1);
    fill_moment(&two[1], 70, 2);
    fill_moment(&other, 3, 3);
    int fd = new_file(), next = new_file(), last = new_file();
    write_rows(fd, &(const struct qdqi_observations){0}, &from, all);
    struct qdqi_observations o = read_rows(fd, "me"); /* as an older version wrote it */
    ck_assert(!qdqi_observations_restore_moments(&o, "w\na", 2, two));
    write_moments(next, &o, "w\na", 2, two);
    qdqi_observations_fini(&o);
    o = read_rows(next, "me");
    write_moments(last, &o, "v\nb", 1, &other);
    qdqi_observations_fini(&o);
    o = read_rows(last, "me");
    expect_row(&o, &from.rows[0]);
    ck_assert(qdqi_moment_init(&got[0], 70) && qdqi_moment_init(&got[1], 70));
    ck_assert(!qdqi_observations_restore_moments(&o, "w\nb", 2, got));
    ck_assert(!qdqi_observations_restore_moments(&o, "w\na", 1, got));
    ck_assert(!qdqi_observations_restore_moments(&o, "v\nb", 1, got));
    ck_assert(qdqi_observations_restore_moments(&o, "w\na", 2, got));
    for (size_t g = 0; g < 2; g++) {
        ck_assert(got[g].rows == 7 && !memcmp(got[g].sums, two[g].sums, 70 * 8) &&
                  !memcmp(got[g].products, two[g].products,
                          qdqi_moment_products(70) * sizeof(float)));
        qdqi_moment_fini(&got[g]);
        qdqi_moment_fini(&two[g]);
    }
    qdqi_observations_fini(&o);
    qdqi_moment_fini(&other);
    close(fd);
    close(next);
    close(last);
}

static void
write_peaks(int fd, const struct qdqi_observations *earlier,
            const struct qdqi_kept_peaks *peaks)
{
    const struct qdqi_observed_rows rows = {.peaks = peaks};
    struct qdq_error err = {0};
    ck_assert(!qdqi_observations_write(fd, "me", &run, earlier, &rows, &err));
}

UNIT_TEST(magnitudes_are_kept_behind_moments)
{
    const float a[] = {1, 0, 3}, b[] = {5};
    const struct qdqi_kept_peaks last = {"b", 1, b, NULL}, peaks = {"a", 3, a, &last};
    float got[3] = {0};
    struct qdqi_moment moment, same;
    fill_moment(&moment, 70, 1);
    ck_assert(qdqi_moment_init(&same, 70));
    int fd = new_file(), next = new_file();
    write_moments(fd, &(const struct qdqi_observations){0}, "w\na", 1, &moment);
    struct qdqi_observations o = read_rows(fd, "me");
    ck_assert(!qdqi_observations_restore_peaks(&o, "a", 3, got));
    write_peaks(next, &o, &peaks);
    qdqi_observations_fini(&o);
    o = read_rows(next, "me");
    ck_assert(!qdqi_observations_restore_peaks(&o, "c", 3, got));
    ck_assert(!qdqi_observations_restore_peaks(&o, "a", 2, got));
    ck_assert(qdqi_observations_restore_peaks(&o, "a", 3, got));
    ck_assert_mem_eq(got, a, sizeof a);
    ck_assert(qdqi_observations_restore_peaks(&o, "b", 1, got));
    ck_assert_mem_eq(got, b, sizeof b);
    ck_assert(qdqi_observations_restore_moments(&o, "w\na", 1, &same));
    ck_assert(same.rows == 7);
    qdqi_observations_fini(&o);
    qdqi_moment_fini(&moment);
    qdqi_moment_fini(&same);
    close(fd);
    close(next);
}

/* A file with magnitudes that no observer could have written counts as empty. */
UNIT_LOOP(impossible_magnitudes_make_a_file_invalid, 4)
{
    const float wrong[] = {NAN, INFINITY, -1}, right = 1;
    const struct qdqi_kept_peaks good = {"a", 1, &right, NULL};
    const struct qdqi_kept_peaks bad = {"a", 1, &wrong[_i % 3], NULL};
    const struct qdqi_kept_peaks twice = {"a", 1, &right, &good};
    int fd = new_file();
    write_peaks(fd, &(const struct qdqi_observations){0}, _i < 3 ? &bad : &twice);
    struct qdqi_observations o = read_rows(fd, "me");
    ck_assert_ptr_null(o.bytes);
    close(fd);
}

UNIT_LOOP(a_moment_that_is_not_finite_makes_a_file_invalid, 2)
{
    struct qdqi_moment m;
    fill_moment(&m, 3, 1);
    m.products[_i ? 5 : 0] = _i ? NAN : INFINITY;
    int fd = new_file();
    write_moments(fd, &(const struct qdqi_observations){0}, "w\na", 1, &m);
    struct qdqi_observations o = read_rows(fd, "me");
    ck_assert_ptr_null(o.bytes);
    qdqi_moment_fini(&m);
    close(fd);
}

UNIT_TEST(files_that_cannot_be_written)
{
    const struct qdqi_observations nothing = {0};
    const bool one[] = {true, true, true, true};
    struct qdqi_observers all;
    const struct qdqi_observed_rows rows = {&all, one, NULL, NULL};
    struct qdq_error err = {0};
    fill(&all);
    int fd = open("/dev/full", O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(qdqi_observations_write(fd, "me", &run, &nothing, &rows, &err),
                     QDQ_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "observed"));
    close(fd);
}

UNIT_TEST(reading_without_memory)
{
    const struct qdqi_observations nothing = {0};
    const bool one[] = {true, true, true, true};
    struct qdqi_observers all;
    enum qdq_code code = QDQ_NO_MEMORY;
    long n = 0;
    int fd = new_file();
    fill(&all);
    write_rows(fd, &nothing, &all, one);
    while (code && ++n < 1000) {
        struct qdqi_observations o;
        struct qdq_error err = {0};
        struct qdqi_arena *own = qdqi_arena_new();
        fail_at = n;
        code = qdqi_observations_read(fd, "me", own, &o, &err);
        bool reached = fail_at == 0;
        fail_at = 0;
        ck_assert_int_eq(code, reached ? QDQ_NO_MEMORY : QDQ_OK);
        ck_assert_int_eq(o.bytes != NULL, code == QDQ_OK);
        qdqi_observations_fini(&o);
        qdqi_arena_free(&own);
    }
    ck_assert_int_gt(n, 1);
    ck_assert_int_lt(n, 1000);
    close(fd);
}

/* --- specs that have different identities --------------------------------- */

static struct qdq_spec spec;
static const struct qdq_dim_value dims[] = {{"n", 4}};
static const struct qdq_random_input inputs[] = {{"x", 0, 1}, {"x", 0, 2}};

static char *
identity(void)
{
    char *text = qdq_observations_identity(&spec, "sha256:m", "sha256:d");
    ck_assert_ptr_nonnull(text);
    return text;
}

/* Makes change k to the spec; returns false after the last one. The first
   N_DIFFERENT changes must change the identity. */
enum { N_DIFFERENT = 10 };
static bool
change(int k)
{
    struct qdq_calibration_spec *c = &spec.calibration;
    qdq_spec_init(&spec);
    switch (k) {
    case 0:
        spec.equalize = true;
        return true;
    case 1:
        c->max_samples = 4;
        return true;
    case 2:
        c->batch = 4;
        return true;
    case 3:
        c->on_nonfinite = QDQ_NONFINITE_SKIP;
        return true;
    case 4:
        c->dims = dims;
        c->n_dims = 1;
        return true;
    case 5:
    case 6:
        c->random = &inputs[k - 5];
        c->n_random = 1;
        c->random_samples = 4;
        return true;
    case 7:
        c->random_samples = 5;
        return true;
    case 8:
    case 9:
        spec.smooth = 0.25;
        spec.smooth_insert = k == 9;
        return true;
    case 10:
        c->method = "minmax";
        return true;
    case 11:
        c->percentile = 50;
        return true;
    case 12:
        spec.mode = QDQ_MODE_PARTIAL;
        return true;
    case 13:
        spec.weights.storage = QDQ_STORE_DQ;
        return true;
    case 14:
        spec.evaluate = QDQ_NO;
        return true;
    case 15:
        c->source = "sha256:s";
        return true;
    default:
        return false;
    }
}

UNIT_TEST(identities)
{
    qdq_spec_init(&spec);
    char *plain = identity(), *before[N_DIFFERENT] = {0};
    for (int k = 0; change(k); k++) {
        char *text = identity();
        ck_assert_int_eq(strcmp(text, plain) != 0, k < N_DIFFERENT);
        for (int i = 0; i < k && i < N_DIFFERENT && k < N_DIFFERENT; i++)
            ck_assert_str_ne(text, before[i]);
        if (k < N_DIFFERENT)
            before[k] = text;
        else
            free(text);
    }
    qdq_spec_init(&spec);
    char *others[] = {qdq_observations_identity(&spec, "sha256:n", "sha256:d"),
                      qdq_observations_identity(&spec, "sha256:m", "sha256:e"),
                      qdq_observations_identity(&spec, "sha256:m", NULL)};
    for (size_t i = 0; i < 3; i++) {
        ck_assert_str_ne(others[i], plain);
        free(others[i]);
    }
    for (int i = 0; i < N_DIFFERENT; i++)
        free(before[i]);
    free(plain);
}

UNIT_SUITE("observations", ARENA)
