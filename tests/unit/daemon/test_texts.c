/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of strangers: characters of all planes, controls and bytes that are not UTF-8, cut at each
   byte. The record keeps the same text in SQLite and in PostgreSQL, and refuses no row. */
#include "config.h"

#include "stored_jobs.h"
#include "api/utf8.h"
#include "qdq/error.h"

enum { MOST = 600 };

/* The bytes that a text repeats: each plane's characters, and what is none. */
static const char *const pieces[] = {
    "\x01", "\x1f", "\t", "\n", "\x7f", "\"", "'", "\\", "%s", "\xc2\x80", "\xc2\x9f",
    "\xc3\xa9", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x95\x9c", "\xed\x9f\xbf",
    "\xee\x80\x80", "\xef\xbb\xbf", "\xef\xbf\xbd", "\xef\xbf\xbf", "\xf0\x90\x80\x80",
    "\xf0\x9f\x98\x80", "\xf0\xa0\x80\x80", "\xf0\xb0\x80\x80", "\xf1\x80\x80\x80",
    "\xf1\x90\x80\x80", "\xf1\xa0\x80\x80", "\xf1\xb0\x80\x80", "\xf2\x80\x80\x80",
    "\xf2\x90\x80\x80", "\xf2\xa0\x80\x80", "\xf2\xb0\x80\x80", "\xf3\x80\x80\x80",
    "\xf3\x90\x80\x80", "\xf3\xa0\x80\x80", "\xf3\xb0\x80\x80", "\xf4\x8f\xbf\xbf",
    /* not UTF-8: a continuation, overlong forms, a surrogate, behind the last plane */
    "\x80", "\xbf", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
    "\xf5", "\xfe", "\xff"};

enum { N_PIECES = sizeof pieces / sizeof *pieces };

/* Writes `len` bytes: `shift` letters and then the piece, over and over. */
static const char *
text_of(size_t piece, size_t shift, size_t len, char to[MOST])
{
    size_t n = strlen(pieces[piece]);
    ck_assert_uint_lt(len, MOST);
    for (size_t i = 0; i < len; i++)
        to[i] = i < shift ? 'x' : pieces[piece][(i - shift) % n];
    to[len] = '\0';
    return to;
}

static void
check_cut(const char *text)
{
    ck_assert_msg(api_utf8_is_valid(text), "%s", text);
    for (const char *c = text; *c; c++)
        ck_assert_int_ge((unsigned char)*c, ' ');
}

/* Errors are cut between two characters, wherever the limit is and whatever precision names have. */
UNIT_LOOP(errors_are_cut_at_characters, N_PIECES)
{
    char text[MOST];
    if (!api_utf8_is_valid(pieces[_i]))
        return;
    for (size_t shift = 0; shift < 5; shift++) {
        size_t n = strlen(pieces[_i]), whole = 590 / n * n;
        struct qdq_error err = {0}, named = {0};
        struct api_problem long_one = {0}, short_one = {0};
        text_of((size_t)_i, shift, shift + whole, text);
        (void)qdq_error_set(&err, QDQ_IO, QDQ_AT_NODE, text, "%s", text);
        ck_assert(api_utf8_is_valid(err.where) && strstr(err.where, "..."));
        check_cut(err.text);
        ck_assert_str_eq(err.text + strlen(err.text) - 3, "...");
        ck_assert_uint_ge(strlen(err.text), sizeof err.text - 4);
        (void)qdq_error_set(&named, QDQ_IO, QDQ_AT_NOTHING, NULL,
                            "'%.64s', '%.128s' end", text, text);
        check_cut(named.text);
        ck_assert_str_eq(named.text + strlen(named.text) - 5, "' end");
        api_fail_at(&long_one, API_IO, text, "%s", text);
        ck_assert(api_utf8_is_valid(long_one.where));
        check_cut(long_one.detail);
        api_fail(&short_one, API_IO, "'%.64s' end", text);
        check_cut(short_one.detail);
    }
}

static void
check_kept(const char *kept, const char *text)
{
    char *wanted = api_utf8_repair(text);
    ck_assert(api_utf8_is_valid(kept));
    ck_assert_str_eq(kept, wanted);
    free(wanted);
}

/* A job fails with any error, and the record keeps its texts, its labels and its source. */
UNIT_LOOP(the_record_keeps_any_text, N_PIECES)
{
    char text[MOST], id[JOB_ID_SIZE], labels[MOST + 16];
    for (size_t shift = 0; shift < 4; shift++)
        for (size_t len = 8; len < 13; len++) {
            struct store_job job;
            struct store_ended ended;
            struct api_problem error = {.set = true, .code = API_NOT_OBSERVED};
            const struct store_end how = {.state = API_JOB_FAILED, .error = &error};
            text_of((size_t)_i, shift, len, text);
            memcpy(error.where, text, len + 1);
            memcpy(error.detail, text, len + 1);
            error.kind = QDQ_AT_NODE;
            snprintf(labels, sizeof labels, "{\"%s\":1}", text);
            snprintf(id, sizeof id, "j%zu-%zu", shift, len);
            add(id, 0, labels);
            claim(id);
            ck_assert_msg(
                store_job_end(store, id, API_JOB_RUNNING, &how, 3000, &ended, &problem),
                "%s", problem.detail);
            ck_assert(ended.was);
            ck_assert(store_job_get(store, id, &job, &problem));
            check_kept(job.error.where, text);
            check_kept(job.error.detail, text);
            check_kept(job.labels, labels);
            store_job_fini(&job);
        }
}

/* Repaired texts that have grown beyond their field are cut at a character when they are read. */
UNIT_TEST(a_repaired_text_that_is_too_long)
{
    struct store_job job;
    struct store_ended ended;
    struct api_problem error = {.set = true, .code = API_IO};
    const struct store_end how = {.state = API_JOB_FAILED, .error = &error};
    memset(error.detail, '\xff', sizeof error.detail - 1);
    add("a", 0, NULL);
    claim("a");
    ck_assert(store_job_end(store, "a", API_JOB_RUNNING, &how, 3000, &ended, &problem));
    ck_assert(store_job_get(store, "a", &job, &problem));
    check_cut(job.error.detail);
    ck_assert_uint_gt(strlen(job.error.detail), 500);
    store_job_fini(&job);
}

UNIT_SUITE("daemon/texts", .setup = set_up, .teardown = tear_down)
