/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/evaluate/scatter.h"

#include <math.h>

/*
 * Element i has the place i times the golden ratio, of which the part behind the point is taken. These
 * places lie evenly for any run of elements and for any step between them, so that those below a bound
 * are of all samples and of all channels. The bound is halved where the room is used up.
 */
static const uint64_t golden = 0x9e3779b97f4a7c15U;

enum qdq_code
qdqi_scatter_init(struct qdqi_scatter *s, struct qdqi_arena *arena,
                  struct qdq_error *err)
{
    *s = (struct qdqi_scatter){
        .points = qdqi_arena_array(arena, QDQI_MOST_POINTS, sizeof *s->points),
        .places = qdqi_arena_array(arena, QDQI_MOST_POINTS, sizeof *s->places),
        .bound = UINT64_MAX};
    return s->points && s->places ? QDQ_OK : qdqi_no_memory(err);
}

static void
halve(struct qdqi_scatter *s)
{
    size_t kept = 0;
    s->bound /= 2;
    for (size_t i = 0; i < s->n; i++)
        if (s->places[i] < s->bound) {
            s->points[kept] = s->points[i];
            s->places[kept++] = s->places[i];
        }
    s->n = kept;
}

void
qdqi_scatter_add(struct qdqi_scatter *s, const float *f, const float *q, size_t n)
{
    uint64_t place = s->seen * golden;
    for (size_t i = 0; s->points && i < n; i++, place += golden) {
        if (place >= s->bound || !isfinite(f[i]) || !isfinite(q[i]))
            continue;
        if (s->n == QDQI_MOST_POINTS)
            halve(s);
        if (place >= s->bound || s->n == QDQI_MOST_POINTS)
            continue;
        s->points[s->n] = (struct qdq_point){f[i], q[i]};
        s->places[s->n++] = place;
    }
    s->seen += n;
}
