/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads any bytes as a file of observations. Every range method must find a range in
 * the rows that are accepted, and these rows must read the same after being written
 * again.
 *
 * Bytes that begin with ROWS are put behind a correct head, because no mutation would
 * pass its checksum otherwise.
 *
 *   clang -DFUZZING -fsanitize=fuzzer,address,undefined -I… fuzz_observations.c engine/…
 */
#include "config.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "qdq/quantize.h"
#include "numbers/range/method.h"
#include "numbers/range/observations.h"

static const char *const tensors[] = {"input", "a", "b", ""};
enum { N_TENSORS = 4, MARK = 4 };

static int
file_of(const uint8_t *data, size_t size)
{
    int fd = memfd_create("observations", MFD_CLOEXEC);
    assert(fd >= 0);
    if (size < MARK || memcmp(data, "ROWS", MARK) != 0) {
        assert(write(fd, data, size) == (ssize_t)size);
        return fd;
    }
    unsigned char head[QDQI_OBSERVATIONS_HEAD];
    uint64_t whole = size - MARK + sizeof head;
    uint64_t sum = qdqi_observations_sum(data + MARK, size - MARK);
    memcpy(head, QDQ_OBSERVATIONS_MAGIC, 8);
    memcpy(head + 8, &whole, sizeof whole);
    memcpy(head + 16, &sum, sizeof sum);
    assert(write(fd, head, sizeof head) == sizeof head);
    assert(write(fd, data + MARK, size - MARK) == (ssize_t)(size - MARK));
    return fd;
}

static struct qdqi_observations
read_from(int fd, struct qdqi_arena *arena)
{
    struct qdqi_observations o;
    struct qdq_error err = {0};
    enum qdq_code code = qdqi_observations_read(fd, "me", arena, &o, &err);
    assert(code == QDQ_OK);
    return o;
}

/* Each input has an eighth of the formats, by its bytes: all of them would take a minute under the
   sanitizers. */
enum { SHARES = 8 };
static int share;

static void
expect_ranges(const struct qdqi_observer *o)
{
    struct qdq_spec spec;
    qdq_spec_init(&spec);
    if (qdqi_extremes_empty(&o->all.extremes))
        return;
    struct qdq_range_method method;
    for (size_t i = 0; qdq_range_method(i, &method); i++)
        for (int f = share; f < 2 * QDQI_N_FORMATS; f += SHARES) {
            const struct qdqi_range_use use = {&spec.calibration,
                                               (enum qdqi_format)(f / 2), f % 2};
            struct qdqi_range r = qdqi_method_find(method.name)->range(o, &use);
            assert(isfinite(r.min) && isfinite(r.max) && r.min <= r.max);
        }
}

/* Reads all rows into `to`; ret[i] says whether tensor i has one. */
static void
take_all(const struct qdqi_observations *o, struct qdqi_observers *to, bool *ret)
{
    for (size_t i = 0; i < N_TENSORS; i++) {
        ret[i] = qdqi_observations_have(o, tensors[i]);
        if (!ret[i])
            continue;
        qdqi_observations_restore(o, &to->rows[i]);
        expect_ranges(&to->rows[i]);
    }
}

static void
expect_same(const struct qdqi_observer *a, const struct qdqi_observer *b)
{
    assert(memcmp(&a->all.extremes, &b->all.extremes, sizeof a->all.extremes) == 0);
    assert(memcmp(a->all.histogram, b->all.histogram, sizeof *a->all.histogram) == 0);
    assert(a->average.min == b->average.min && a->average.max == b->average.max);
    assert(a->average.begun == b->average.begun && a->runs == b->runs);
}

/* Writes the accepted rows into a new file of their own. */
static void
write_again(const struct qdqi_observed *all, const struct qdqi_observers *rows,
            const bool *which, struct qdqi_arena *arena)
{
    const struct qdqi_observations nothing = {0};
    const struct qdqi_observed_rows added = {rows, which, NULL, NULL};
    struct qdqi_observers again;
    struct qdq_error err = {0};
    bool there[N_TENSORS];
    int fd = memfd_create("again", MFD_CLOEXEC);
    assert(fd >= 0);
    enum qdq_code code = qdqi_observations_write(fd, "me", all, &nothing, &added, &err);
    assert(code == QDQ_OK);
    struct qdqi_observations o = read_from(fd, arena);
    assert(o.bytes && o.all.samples == all->samples && o.all.skipped == all->skipped &&
           strcmp(o.all.which, all->which) == 0);
    assert(qdqi_observers_init(&again, tensors, N_TENSORS, QDQI_NEEDS_ALL, 1, arena));
    take_all(&o, &again, there);
    for (size_t i = 0; i < N_TENSORS; i++) {
        assert(there[i] == which[i]);
        if (which[i])
            expect_same(&again.rows[i], &rows->rows[i]);
    }
    qdqi_observations_fini(&o);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct qdqi_arena *arena = qdqi_arena_new();
    struct qdqi_observers rows;
    bool there[N_TENSORS];
    int fd = file_of(data, size);
    share = (int)(qdqi_observations_sum(data, size) % SHARES);
    bool ok = arena &&
              qdqi_observers_init(&rows, tensors, N_TENSORS, QDQI_NEEDS_ALL, 1, arena);
    assert(ok);
    struct qdqi_observations o = read_from(fd, arena);
    take_all(&o, &rows, there);
    if (o.bytes)
        write_again(&o.all, &rows, there, arena);
    qdqi_observations_fini(&o);
    close(fd);
    qdqi_arena_free(&arena);
    return 0;
}

#define CORPUS "tests/fuzz/corpus/observations"
#include "replay.h"
