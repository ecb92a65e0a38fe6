/* SPDX-License-Identifier: Apache-2.0 */
/* An arena for each test: UNIT_SUITE("title", ARENA). */
#ifndef TESTS_UNIT_ARENA_H
#define TESTS_UNIT_ARENA_H

#include "ground/base/arena.h"
#include "unit.h"

static struct qdqi_arena *arena;

static void
arena_set_up(void)
{
    arena = qdqi_arena_new();
    ck_assert_ptr_nonnull(arena);
}

static void
arena_tear_down(void)
{
    qdqi_arena_free(&arena);
}

#define ARENA .setup = arena_set_up, .teardown = arena_tear_down

#endif
