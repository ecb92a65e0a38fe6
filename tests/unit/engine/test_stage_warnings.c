/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings by stage: a stage that is repeated replaces its own, and an attempt that takes the
   place of another one goes on with that one's. */
#include "config.h"
#include "arena.h"

#include "stages/attempt/warnings.h"

static void
add(struct qdqi_stage_warnings *w, enum qdq_stage stage, const char *code)
{
    const struct qdq_warning warning = {
        .code = code, .detail = "detail", .node = "node", .rule = "rule"};
    w->stage = stage;
    ck_assert_int_eq(qdqi_stage_warnings_add(w, &warning, NULL), QDQ_OK);
}

/* Checks the codes, each of one letter. */
static void
check(const struct qdqi_stage_warnings *w, const char *codes)
{
    char text[64] = "";
    ck_assert_uint_lt(w->list.n, sizeof text);
    for (size_t i = 0; i < w->list.n; i++) {
        text[i] = *w->list.rows[i].code;
        ck_assert_str_eq(w->list.rows[i].detail, "detail");
        ck_assert_str_eq(w->list.rows[i].node, "node");
        ck_assert_str_eq(w->list.rows[i].rule, "rule");
    }
    ck_assert_str_eq(text, codes);
}

UNIT_TEST(a_repeated_stage_replaces_its_own)
{
    struct qdqi_stage_warnings w = {.arena = arena};
    add(&w, QDQ_STAGE_PLAN, "a");
    add(&w, QDQ_STAGE_QUANTIZE, "b");
    add(&w, QDQ_STAGE_QUANTIZE, "c");
    add(&w, QDQ_STAGE_SEARCH, "d");
    qdqi_stage_warnings_remove(&w, QDQ_STAGE_QUANTIZE);
    check(&w, "ad");
    add(&w, QDQ_STAGE_QUANTIZE, "e");
    add(&w, QDQ_STAGE_SEARCH, "f");
    qdqi_stage_warnings_remove(&w, QDQ_STAGE_QUANTIZE);
    check(&w, "adf");
}

/* Names of any length and characters, in a warning and in a list of names. */
UNIT_LOOP(texts_are_cut_at_characters, 12)
{
    static const char *const characters[] = {"\xc3\xa9", "\xed\x95\x9c",
                                             "\xf0\x9f\x98\x80"};
    const char *c = characters[_i % 3];
    const size_t n = strlen(c), shift = (size_t)_i / 3;
    char name[700] = "xxxx", wanted[80];
    struct qdqi_warnings w = {0};
    struct qdqi_names names = {0};
    for (size_t i = 0; i + n < sizeof name - shift; i++)
        name[shift + i] = c[i % n];
    name[shift + 600 / n * n] = '\0';
    qdqi_names_add(&names, name);
    ck_assert_int_eq(qdqi_warn(&w, arena, NULL, "a", NULL, "'%.64s' %s of %s", name,
                               names.text, name),
                     QDQ_OK);
    snprintf(wanted, sizeof wanted, "'%.*s' ", (int)(shift + (64 - shift) / n * n),
             name);
    ck_assert_msg(strncmp(w.rows[0].detail, wanted, strlen(wanted)) == 0, "%s",
                  w.rows[0].detail);
    /* Only whole characters stand there. */
    size_t bytes = 0;
    for (const char *s = w.rows[0].detail; *s; s++)
        bytes += (unsigned char)*s >= 0x80;
    ck_assert_uint_eq(bytes % n, 0);
    ck_assert_str_eq(w.rows[0].detail + strlen(w.rows[0].detail) - 3, "...");
}

UNIT_TEST(an_adopted_attempt_has_all)
{
    struct qdqi_stage_warnings old = {.arena = arena}, w = {.arena = arena};
    add(&old, QDQ_STAGE_LOAD, "a");
    add(&old, QDQ_STAGE_CALIBRATE, "b");
    add(&old, QDQ_STAGE_SEARCH, "c");
    add(&old, QDQ_STAGE_QUANTIZE, "d"); /* the scales were chosen again */
    add(&old, QDQ_STAGE_RECIPE, "e");
    add(&w, QDQ_STAGE_EQUALIZE, "x");
    add(&w, QDQ_STAGE_QUANTIZE, "y");
    ck_assert_int_eq(qdqi_stage_warnings_complete(&w, &old, NULL), QDQ_OK);
    check(&w, "axyce");
    ck_assert_int_eq(w.stage, QDQ_STAGE_RECIPE);
    qdqi_stage_warnings_remove(&w, QDQ_STAGE_QUANTIZE);
    check(&w, "axce");
}

UNIT_TEST(there_is_room_for_many)
{
    struct qdqi_stage_warnings w = {.arena = arena};
    for (int i = 0; i < 40; i++)
        add(&w, i % 2 ? QDQ_STAGE_PLAN : QDQ_STAGE_RECIPE, i % 2 ? "p" : "r");
    qdqi_stage_warnings_remove(&w, QDQ_STAGE_PLAN);
    check(&w, "rrrrrrrrrrrrrrrrrrrr");
}

UNIT_SUITE("stage_warnings", ARENA)
