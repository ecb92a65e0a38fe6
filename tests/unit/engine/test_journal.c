/* SPDX-License-Identifier: Apache-2.0 */
/* Journals that are cut off at any byte, damaged, or another job's. */
#include "config.h"

#include "stages/attempt/journal.h"
#include "unit.h"

#include <string.h>
#include <unistd.h>

static const char *const entries[] = {"ratio 0123456789abcdef 0.5\n",
                                      "numbers 0123456789abcdef 2\n1\nnan\n",
                                      "ratio 0123456789abcdef 0\n"};

enum { N_ENTRIES = 3, IDENTITY = 4711 };

static struct qdqi_arena *arena;
static FILE *file;

static void
setup(void)
{
    arena = qdqi_arena_new();
    file = tmpfile();
    ck_assert(arena && file);
}

static void
teardown(void)
{
    fclose(file);
    qdqi_arena_free(&arena);
}

/* Opens the file, and returns what it has. */
static const char *
reopen(struct qdqi_journal *j, uint64_t identity)
{
    struct qdq_error err = {0};
    char *text = NULL;
    ck_assert_int_eq(qdqi_journal_open(fileno(file), identity, arena, j, &text, &err),
                     QDQ_OK);
    return text;
}

static void
append(struct qdqi_journal *j, size_t i)
{
    ck_assert(qdqi_journal_append(j, entries[i], strlen(entries[i])));
}

/* Writes all entries; ends[i] is the size of the file with i of them. */
static void
write_all(off_t ends[N_ENTRIES + 1])
{
    struct qdqi_journal j;
    ck_assert_str_eq(reopen(&j, IDENTITY), "");
    ends[0] = j.end;
    for (size_t i = 0; i < N_ENTRIES; i++) {
        append(&j, i);
        ends[i + 1] = j.end;
    }
    ck_assert_int_eq(lseek(fileno(file), 0, SEEK_END), j.end);
}

/* Checks that the file has the first n entries. */
static void
check_first(size_t n, struct qdqi_journal *j)
{
    const char *text = reopen(j, IDENTITY);
    for (size_t i = 0; i < n; i++) {
        ck_assert(strncmp(text, entries[i], strlen(entries[i])) == 0);
        text += strlen(entries[i]);
    }
    ck_assert_str_eq(text, "");
}

UNIT_TEST(test_cut_off_anywhere)
{
    off_t ends[N_ENTRIES + 1];
    struct qdqi_journal j;
    write_all(ends);
    for (off_t size = ends[N_ENTRIES]; size >= 0; size--) {
        size_t n = 0;
        ck_assert_int_eq(ftruncate(fileno(file), size), 0);
        while (n < N_ENTRIES && ends[n + 1] <= size)
            n++;
        check_first(n, &j);
        for (size_t i = n; i < N_ENTRIES; i++)
            append(&j, i);
        check_first(N_ENTRIES, &j);
    }
}

UNIT_TEST(test_damaged_anywhere)
{
    off_t ends[N_ENTRIES + 1];
    struct qdqi_journal j;
    write_all(ends);
    for (off_t at = 0; at < ends[N_ENTRIES]; at++) {
        char byte;
        size_t n = 0;
        while (ends[n] <= at)
            n++;
        ck_assert_int_eq(pread(fileno(file), &byte, 1, at), 1);
        byte ^= 1;
        ck_assert_int_eq(pwrite(fileno(file), &byte, 1, at), 1);
        n = n == 0 ? 0 : n - 1; /* without the head there is none */
        check_first(n, &j);
        for (size_t i = n; i < N_ENTRIES; i++)
            append(&j, i);
    }
}

UNIT_TEST(test_of_another_job)
{
    off_t ends[N_ENTRIES + 1];
    struct qdqi_journal j;
    write_all(ends);
    ck_assert_str_eq(reopen(&j, IDENTITY + 1), "");
    append(&j, 0);
    ck_assert_str_eq(reopen(&j, IDENTITY + 1), entries[0]);
    ck_assert_str_eq(reopen(&j, IDENTITY), "");
}

UNIT_TEST(test_without_a_file)
{
    struct qdqi_journal j;
    struct qdq_error err = {0};
    char *text = NULL;
    ck_assert_int_eq(qdqi_journal_open(-1, IDENTITY, arena, &j, &text, &err), QDQ_OK);
    ck_assert_str_eq(text, "");
    ck_assert(!qdqi_journal_append(&j, entries[0], strlen(entries[0])));
}

UNIT_SUITE("journal", .setup = setup, .teardown = teardown)
