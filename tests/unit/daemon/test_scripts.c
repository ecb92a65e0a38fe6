/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/scripts.h"
#include "daemon.h"

static struct api_problem problem;

static void
set_up(void)
{
    scratch_make();
    problem = (struct api_problem){0};
}

static void
digest(char ret[DIGEST_SIZE])
{
    ck_assert_msg(scripts_digest(scratch, ret, &problem), "%s", problem.detail);
}

UNIT_TEST(nothing)
{
    char id[DIGEST_SIZE] = "x";
    digest(id);
    ck_assert_str_eq(id, "");
    scratch_write("readme.txt", "x");
    scratch_write("a.lua.example", "x");
    digest(id);
    ck_assert_str_eq(id, "");
    ck_assert(scripts_digest("", id, &problem));
    ck_assert(scripts_digest(scratch_path("none"), id, &problem));
    ck_assert_str_eq(id, "");
}

/* Each of these folders has another digest than the one before it. */
UNIT_TEST(differ)
{
    char before[DIGEST_SIZE], id[DIGEST_SIZE];
    static const struct {
        const char *name, *text;
    } writes[] = {
        {"a.lua", "bc"}, {"a.lua", "b"},  {"b.lua", ""},
        {"c.lua", ""},   {"c.lua", "cc"}, {"c.lua", "cd"},
    };
    digest(before);
    for (size_t i = 0; i < sizeof writes / sizeof *writes; i++) {
        scratch_write(writes[i].name, writes[i].text);
        digest(id);
        ck_assert(digest_is_id(id));
        ck_assert_str_ne(id, before);
        memcpy(before, id, sizeof before);
        digest(id);
        ck_assert_str_eq(id, before);
    }
    ck_assert_int_eq(unlink(scratch_path("b.lua")), 0);
    digest(id);
    ck_assert_str_ne(id, before);
}

UNIT_TEST(unreadable)
{
    char id[DIGEST_SIZE];
    ck_assert_int_eq(symlink("nowhere", scratch_path("a.lua")), 0);
    ck_assert(!scripts_digest(scratch, id, &problem));
    ck_assert_int_eq(problem.code, API_IO);
    problem = (struct api_problem){0};
    scratch_write("file", "");
    ck_assert(!scripts_digest(scratch_path("file"), id, &problem));
    ck_assert_int_eq(problem.code, API_IO);
}

UNIT_SUITE("daemon/scripts", .setup = set_up, .teardown = scratch_remove)
