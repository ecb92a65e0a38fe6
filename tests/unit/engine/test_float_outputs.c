/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs of the float model that a job keeps, by their samples. */
#include "config.h"
#include "unit.h"

#include "stages/attempt/float_outputs.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 3, CLASSES = 5 };

/* A run of one output of floats, and one of int64. */
struct made {
    float scores[ROWS * CLASSES];
    int64_t labels[ROWS];
    int64_t shapes[3];
    struct qdqi_output outputs[2];
};

static void
make(struct made *m, int64_t first)
{
    memcpy(m->shapes, (const int64_t[]){ROWS, CLASSES, ROWS}, sizeof m->shapes);
    for (size_t i = 0; i < ROWS * CLASSES; i++)
        m->scores[i] = (float)first + (float)i / 16;
    for (size_t i = 0; i < ROWS; i++)
        m->labels[i] = first * 10 + (int64_t)i;
    m->outputs[0] =
        (struct qdqi_output){QDQI_FLOAT32, 2, m->shapes, ROWS * CLASSES, m->scores};
    m->outputs[1] = (struct qdqi_output){QDQI_INT64, 1, m->shapes + 2, ROWS, m->labels};
}

static void
put(struct qdqi_float_outputs *kept, int64_t first, int64_t samples)
{
    struct made m;
    make(&m, first);
    struct qdqi_float_run run =
        qdqi_float_run_copy(first, samples, m.outputs, 2, kept->most);
    memset(&m, 0xff, sizeof m); /* it is a copy */
    qdqi_float_outputs_put(kept, &run);
    ck_assert_ptr_null(run.outputs);
}

static void
expect(const struct qdqi_float_outputs *kept, int64_t first, int64_t samples)
{
    struct made m;
    const struct qdqi_output *o = qdqi_float_outputs_of(kept, first, samples);
    make(&m, first);
    ck_assert_ptr_nonnull(o);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(o[i].dtype, m.outputs[i].dtype);
        ck_assert_uint_eq(o[i].n, m.outputs[i].n);
        ck_assert_uint_eq(o[i].rank, m.outputs[i].rank);
        ck_assert_mem_eq(o[i].shape, m.outputs[i].shape, o[i].rank * sizeof(int64_t));
    }
    ck_assert_mem_eq(o[0].data, m.scores, sizeof m.scores);
    ck_assert_mem_eq(o[1].data, m.labels, sizeof m.labels);
}

UNIT_TEST(runs_are_found_by_their_samples)
{
    struct qdqi_float_outputs kept;
    qdqi_float_outputs_begin(&kept, 2);
    for (int64_t i = 0; i < 200; i += 2)
        put(&kept, i, 2);
    for (int64_t i = 0; i < 200; i += 2)
        expect(&kept, i, 2);
    ck_assert_ptr_null(qdqi_float_outputs_of(&kept, 1, 2));
    ck_assert_ptr_null(qdqi_float_outputs_of(&kept, 2, 1));
    ck_assert_ptr_null(qdqi_float_outputs_of(&kept, 200, 2));
    ck_assert_ptr_null(qdqi_float_outputs_of(&kept, -2, 2));
    qdqi_float_outputs_end(&kept);
    ck_assert_ptr_null(qdqi_float_outputs_of(&kept, 0, 2));
}

/* Calibration may begin again, and then makes runs that are kept already. */
UNIT_TEST(runs_that_were_made_again_are_left_out)
{
    struct qdqi_float_outputs kept;
    qdqi_float_outputs_begin(&kept, 2);
    put(&kept, 0, 1);
    put(&kept, 1, 1);
    const size_t bytes = kept.bytes;
    put(&kept, 0, 1);
    put(&kept, 1, 1);
    ck_assert_uint_eq(kept.bytes, bytes);
    put(&kept, 2, 1);
    for (int64_t i = 0; i < 3; i++)
        expect(&kept, i, 1);
    qdqi_float_outputs_end(&kept);
}

UNIT_TEST(the_oldest_make_room)
{
    enum { FIT = 7, RUNS = 500 };
    struct qdqi_float_outputs kept;
    qdqi_float_outputs_begin(&kept, 2);
    put(&kept, 0, 1);
    kept.most = FIT * kept.bytes;
    for (int64_t i = 1; i < RUNS; i++) {
        put(&kept, i, 1);
        ck_assert_uint_le(kept.bytes, kept.most);
    }
    for (int64_t i = 0; i < RUNS - FIT; i++)
        ck_assert_ptr_null(qdqi_float_outputs_of(&kept, i, 1));
    for (int64_t i = RUNS - FIT; i < RUNS; i++)
        expect(&kept, i, 1);
    ck_assert_uint_lt(kept.capacity, RUNS);
    qdqi_float_outputs_end(&kept);
}

UNIT_TEST(what_cannot_be_kept_is_left_out)
{
    struct qdqi_float_outputs kept;
    struct made m;
    make(&m, 0);
    qdqi_float_outputs_begin(&kept, 2);
    struct qdqi_float_run run = qdqi_float_run_copy(0, 1, m.outputs, 1, kept.most);
    ck_assert_ptr_nonnull(run.outputs);
    qdqi_float_outputs_put(&kept, &run); /* another number of outputs */
    run = qdqi_float_run_copy(0, 1, m.outputs, 2, sizeof m.scores);
    ck_assert_ptr_null(run.outputs);
    m.outputs[1].dtype = QDQI_STRING;
    run = qdqi_float_run_copy(0, 1, m.outputs, 2, kept.most);
    ck_assert_ptr_null(run.outputs);
    qdqi_float_outputs_put(&kept, &run);
    ck_assert_ptr_null(qdqi_float_outputs_of(&kept, 0, 1));
    ck_assert_uint_eq(kept.bytes, 0);
    qdqi_float_outputs_end(&kept);
    put(&kept, 0, 1); /* it has not begun */
    ck_assert_ptr_null(qdqi_float_outputs_of(&kept, 0, 1));
    qdqi_float_outputs_end(&kept);
}

UNIT_SUITE("engine_float_outputs")
