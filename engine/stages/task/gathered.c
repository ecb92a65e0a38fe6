/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/task/gathered.h"

#include "ground/base/arena.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_BYTES = 256 << 20, /* that a metric is called with at once */
    MOST_COPIED = 64 << 20, /* of calls without a group */
    PART_OF_TIME =
        2 * QDQI_TASK_FIGURES /* a call takes at most its share of half the time */
};

enum qdq_code
qdqi_gathered_init(struct qdqi_gathered *all, struct qdqi_arena *arena,
                   size_t n_sources, struct qdq_error *err)
{
    all->arena = arena;
    all->n_sources = n_sources;
    all->values = qdqi_arena_array(arena, n_sources, sizeof *all->values);
    all->buffers = qdqi_arena_array(arena, n_sources, sizeof *all->buffers);
    return all->values && all->buffers ? QDQ_OK : qdqi_no_memory(err);
}

void
qdqi_gathered_forget(struct qdqi_gathered *all)
{
    for (size_t i = 0; all->buffers && i < all->n_sources; i++) {
        free(all->buffers[i].data);
        free(all->buffers[i].ends);
        all->buffers[i] = (struct qdqi_gathered_value){0};
    }
    all->bytes = 0;
}

/* --- values --------------------------------------------------------------------- */

static bool
has_other_rows(const struct qdqi_input *a, const struct qdqi_input *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank)
        return true;
    for (size_t i = 1; i < a->rank; i++)
        if (a->shape[i] != b->shape[i])
            return true;
    return false;
}

/* Notes where the samples of a run end. Those of a value that has no equal parts for them end nowhere. */
static bool
add_ends(struct qdqi_gathered_value *to, const struct qdqi_input *value, size_t samples)
{
    if (to->n + samples > to->room_of_ends) {
        const size_t room = 2 * (to->n + samples);
        size_t *ends = realloc(to->ends, room * sizeof *ends);
        if (!ends)
            return false;
        to->ends = ends;
        to->room_of_ends = room;
    }
    for (size_t i = 1; value->shape[0] % (int64_t)samples == 0 && i <= samples; i++)
        to->ends[to->n++] = to->size + i * (value->size / samples);
    return true;
}

/* Begins with the first value of a source, whose names and axes do not outlive its run. */
static bool
begin(const struct qdqi_gathered *all, struct qdqi_gathered_value *to,
      struct qdqi_input *one, const struct qdqi_input *value)
{
    const char *name =
        one->name ? one->name : qdqi_arena_strdup(all->arena, value->name);
    to->shape =
        qdqi_arena_copy(all->arena, value->shape, value->rank, sizeof *to->shape);
    if (!name || !to->shape)
        return false;
    to->shape[0] = 0;
    *one = (struct qdqi_input){
        .name = name, .dtype = value->dtype, .rank = value->rank, .shape = to->shape};
    return true;
}

/* Makes room for the value. */
static bool
make_room(struct qdqi_gathered_value *to, const struct qdqi_input *value)
{
    if (to->size + value->size > to->room) {
        const size_t room = 2 * (to->size + value->size);
        unsigned char *data = realloc(to->data, room);
        if (!data)
            return false;
        to->data = data;
        to->room = room;
    }
    return true;
}

enum qdq_code
qdqi_gathered_add(struct qdqi_gathered *all, size_t source,
                  const struct qdqi_input *value, size_t samples, struct qdq_error *err)
{
    struct qdqi_gathered_value *to = &all->buffers[source];
    struct qdqi_input *one = &all->values[source];
    if (to->shape && has_other_rows(one, value))
        return qdq_error_set(
            err, QDQ_CALIBRATION_MISMATCH, QDQ_AT_POINTER, "/task",
            "values of the samples differ in their shapes, so that a metric "
            "cannot be called once for all of them");
    if (value->rank == 0 || (all->bytes += value->size) > MOST_BYTES)
        return qdq_error_set(
            err, QDQ_LIMIT_EXCEEDED, QDQ_AT_POINTER, "/task/once",
            "the values of all samples have no axis 0, or take more than "
            "256 MiB: let the metric be called for each sample");
    if ((!to->shape && !begin(all, to, one, value)) || !make_room(to, value) ||
        !add_ends(to, value, samples))
        return qdqi_no_memory(err);
    if (value->size > 0)
        memcpy(to->data + to->size, value->data, value->size);
    to->size += value->size;
    to->shape[0] += value->shape[0];
    one->data = to->data;
    one->size = to->size;
    return QDQ_OK;
}

/* --- calls without a group ------------------------------------------------------ */

/* The values without one group of samples. */
struct rest {
    struct qdqi_input *values;
    struct qdqi_gathered_value *buffers;
    unsigned char *groups; /* of each sample */
    size_t n_sources, samples;
};

static void
free_rest(struct rest *rest)
{
    for (size_t i = 0; rest->buffers && i < rest->n_sources; i++) {
        free(rest->buffers[i].data);
        free(rest->buffers[i].shape);
    }
    free(rest->buffers);
    free(rest->values);
    free(rest->groups);
}

/* Returns the samples, of which every source has its part; 0 where that is not known. */
static size_t
count_samples(const struct qdqi_gathered *all)
{
    const size_t n = all->n_sources > 0 ? all->buffers[0].n : 0;
    for (size_t i = 0; n > 0 && i < all->n_sources; i++)
        if (all->buffers[i].n != n || all->buffers[i].size == 0 ||
            all->buffers[i].ends[n - 1] != all->buffers[i].size)
            return 0;
    return n;
}

/* Makes the room. Returns false where there is none. */
static bool
init_rest(const struct qdqi_gathered *all, size_t samples, struct rest *rest)
{
    rest->n_sources = all->n_sources;
    rest->samples = samples;
    rest->values = calloc(all->n_sources, sizeof *rest->values);
    rest->buffers = calloc(all->n_sources, sizeof *rest->buffers);
    rest->groups = malloc(samples);
    bool ok = rest->values && rest->buffers && rest->groups;
    for (size_t i = 0; ok && i < all->n_sources; i++) {
        struct qdqi_gathered_value *to = &rest->buffers[i];
        to->data = malloc(all->buffers[i].size);
        to->shape = calloc(all->values[i].rank, sizeof *to->shape);
        ok = to->data && to->shape;
    }
    if (ok)
        qdqi_draw_groups(rest->groups, samples, QDQI_TASK_GROUPS);
    return ok;
}

/* Copies the samples that are not of the group. */
static void
leave_out(const struct qdqi_gathered *all, struct rest *rest, size_t group)
{
    for (size_t i = 0; i < all->n_sources; i++) {
        const struct qdqi_gathered_value *from = &all->buffers[i];
        struct qdqi_gathered_value *to = &rest->buffers[i];
        to->size = 0;
        for (size_t k = 0; k < rest->samples; k++) {
            const size_t begin = k > 0 ? from->ends[k - 1] : 0;
            if (rest->groups[k] == group)
                continue;
            memcpy(to->data + to->size, from->data + begin, from->ends[k] - begin);
            to->size += from->ends[k] - begin;
        }
        rest->values[i] = all->values[i];
        memcpy(to->shape, from->shape, all->values[i].rank * sizeof *to->shape);
        to->shape[0] = (int64_t)(to->size / (from->size / (size_t)from->shape[0]));
        rest->values[i].shape = to->shape;
        rest->values[i].data = to->data;
        rest->values[i].size = to->size;
    }
}

/* Calls the metric without each group, as long as it answers. */
static void
judge_groups(const struct qdqi_gathered *all, struct qdqi_metric *metric,
             struct qdqi_fraction ret[QDQI_TASK_GROUPS])
{
    struct rest rest = {0};
    struct qdq_error unused = {0};
    const size_t samples = count_samples(all);
    if (samples >= QDQI_TASK_GROUPS && all->bytes <= MOST_COPIED &&
        init_rest(all, samples, &rest))
        for (size_t g = 0; g < QDQI_TASK_GROUPS; g++) {
            leave_out(all, &rest, g);
            if (qdqi_metric_call(metric, rest.values, &ret[g], &unused)) {
                ret[g] = (struct qdqi_fraction){NAN, NAN};
                break;
            }
        }
    free_rest(&rest);
}

enum qdq_code
qdqi_gathered_judge(const struct qdqi_gathered *all, struct qdqi_metric *metric,
                    bool groups, struct qdqi_fraction ret[QDQI_TASK_FIGURES],
                    struct qdq_error *err)
{
    for (size_t i = 1; groups && i < QDQI_TASK_FIGURES; i++)
        ret[i] = (struct qdqi_fraction){NAN, NAN};
    enum qdq_code code = qdqi_metric_call(metric, all->values, &ret[0], err);
    if (!code && groups && qdqi_metric_used(metric) * PART_OF_TIME <= 1)
        judge_groups(all, metric, ret + 1);
    return code;
}
