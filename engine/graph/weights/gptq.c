/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "graph/weights/gptq.h"

#include "ground/base/arena.h"
#include "ground/base/tasks.h"
#include "graph/weights/panel.h"
#include "graph/weights/subtract.h"
#include "numbers/arithmetic/simd.h"

#include <stdlib.h>
#include <string.h>

/* Elements that are rounded before the sums are updated. */
enum { STEP = 32 };

void
qdqi_round_nearest(const struct qdqi_gptq *r)
{
    for (size_t n = 0; n < r->outputs; n++)
        for (size_t i = 0; i < r->moment->k; i++) {
            size_t at = qdqi_element(r, n, i);
            r->integers[at] = qdqi_nearest((double)r->weight[at], qdqi_scale_at(r, at),
                                           qdqi_zero_at(r, at), r->lowest, r->highest);
        }
}

/* --- panels --------------------------------------------------------------- */

/* A place of all outputs that is rounded. */
struct rounded {
    const float *weight, *moved, *scales;
    const int32_t *zeros;
    double lowest, highest;
    int16_t *integers;
    float *errors;
};

QDQI_LOOP void
round_place_loop(const struct rounded *r)
{
    const double lowest = r->lowest, highest = r->highest;
    for (size_t line = 0; line < QDQI_PANEL; line++) {
        double w = (double)r->weight[line], scale = (double)r->scales[line];
        double zero = r->zeros[line];
        double q = __builtin_rint((w + (double)r->moved[line]) / scale) + zero;
        q = q < lowest ? lowest : q > highest ? highest : q;
        r->integers[line] = (int16_t)q;
        r->errors[line] = (float)(w - (q - zero) * scale);
    }
}

QDQI_VARIANTS(void, round_place, (const struct rounded *r), (r))

/* Rounds the panel's outputs one element after the other: each goes to the integer that is
   nearest to itself and what the errors before it ask for. */
static void
round_panel(struct qdqi_panel *p)
{
    const struct qdqi_moment_block *b = p->b;
    for (size_t i = 0, end; i < b->n; i = end) {
        end = b->n - i < STEP ? b->n : i + STEP;
        qdqi_load_local(p, i, end);
        for (size_t k = i; k < end; k++) {
            const size_t group = qdqi_panel_group(p, k);
            const struct rounded place = {
                p->weight[k], p->local[k - i], p->scales[group], p->zeros[group],
                b->r->lowest, b->r->highest,   p->integers[k],   p->by[k - i]};
            round_place(&place);
            qdqi_add_place(b->factor + k * b->ld + k + 1, end - k - 1, p->by[k - i],
                           p->local + k - i + 1);
        }
        struct qdqi_update u = qdqi_update_by(b, b->factor, i, end);
        u.first = end;
        qdqi_update_panel(&u, p->by, p->n, p->sums);
    }
}

/* Returns zeros at the beginning of a cache line; NULL when out of memory. */
static void *
new_rows(size_t n, size_t ld, size_t size)
{
    void *rows = NULL;
    if (n > SIZE_MAX / size / ld || posix_memalign(&rows, 64, n * ld * size))
        return NULL;
    return memset(rows, 0, n * ld * size);
}

static void
free_panel(struct qdqi_panel *p)
{
    void *all[] = {p->weight, p->integers, p->scales,  p->zeros,
                   p->sums,   p->products, p->scale_of};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    free(p);
}

static bool
allocate_panel(struct qdqi_panel *p)
{
    const size_t n = p->b->ld, scales = p->b->shared.n;
    p->weight = new_rows(n, QDQI_PANEL, sizeof(float));
    p->integers = new_rows(n, QDQI_PANEL, sizeof(int16_t));
    p->scales = new_rows(scales, QDQI_PANEL, sizeof(float));
    p->zeros = new_rows(scales, QDQI_PANEL, sizeof(int32_t));
    p->sums = new_rows(n, QDQI_PANEL, sizeof(float));
    p->products = new_rows(n, QDQI_PANEL, sizeof(float));
    p->scale_of = p->b->r->joint ? new_rows(n, QDQI_PANEL, sizeof(uint32_t)) : NULL;
    return p->weight && p->integers && p->scales && p->zeros && p->sums &&
           p->products && (p->scale_of || !p->b->r->joint);
}

/* Copies the panel's part of the weight, and its scales. Outputs that are missing have zeros. */
static void
fill_panel(struct qdqi_panel *p)
{
    const struct qdqi_moment_block *b = p->b;
    for (size_t i = 0; i < b->n; i++)
        for (size_t line = 0; line < p->n; line++)
            p->weight[i][line] = b->r->weight[qdqi_element(b->r, p->first + line,
                                                           b->first + b->order[i])];
    for (size_t g = 0; g < b->shared.n; g++)
        for (size_t line = 0; line < QDQI_PANEL; line++) {
            const size_t of = line < p->n ? line : 0;
            const size_t at = qdqi_element(b->r, p->first + of,
                                           b->shared.members[b->shared.begin[g]]);
            p->scales[g][line] = b->r->scales[b->r->scale_of[at]];
            p->zeros[g][line] = qdqi_zero_at(b->r, at);
        }
    for (size_t i = 0; p->scale_of && i < b->n; i++)
        for (size_t line = 0; line < QDQI_PANEL; line++)
            p->scale_of[i][line] =
                (uint32_t)(qdqi_panel_group(p, i) * QDQI_PANEL + line);
    p->r = *b->r;
    p->r.outputs = p->n;
    p->r.row = 1;
    p->r.column = QDQI_PANEL;
    p->r.weight = p->weight[0];
    p->r.scale_of = p->scale_of ? p->scale_of[0] : NULL;
    p->r.scales = p->scales[0];
    p->r.zero_points = b->r->zero_points ? p->zeros[0] : NULL;
    p->r.integers = p->integers[0];
}

/* Gives the weight its integers, and the scales that were chosen for it. */
static void
take_panel(const struct qdqi_panel *p)
{
    const struct qdqi_moment_block *b = p->b;
    for (size_t i = 0; i < b->n; i++)
        for (size_t line = 0; line < p->n; line++)
            b->r->integers[qdqi_element(b->r, p->first + line,
                                        b->first + b->order[i])] = p->integers[i][line];
    for (size_t g = 0; b->r->refine && b->r->own_scales && g < b->shared.n; g++)
        for (size_t line = 0; line < p->n; line++) {
            const size_t at = qdqi_element(b->r, p->first + line,
                                           b->shared.members[b->shared.begin[g]]);
            b->r->scales[b->r->scale_of[at]] = p->scales[g][line];
            if (b->r->zero_points)
                b->r->zero_points[b->r->scale_of[at]] = p->zeros[g][line];
        }
}

/* Rounds the outputs of a panel, with memory of its own. */
static enum qdq_code
do_panel(void *arg, size_t panel, struct qdq_error *err)
{
    const struct qdqi_moment_block *b = arg;
    struct qdqi_panel *p = calloc(1, sizeof *p);
    if (!p)
        return qdqi_no_memory(err);
    const size_t left = b->r->outputs - panel * QDQI_PANEL;
    enum qdq_code code = QDQ_OK;
    p->b = b;
    p->first = panel * QDQI_PANEL;
    p->n = left < QDQI_PANEL ? left : QDQI_PANEL;
    if (allocate_panel(p)) {
        fill_panel(p);
        round_panel(p);
        code = b->r->refine ? qdqi_refine_panel(p, err) : QDQ_OK;
        take_panel(p);
    } else
        code = qdqi_no_memory(err);
    free_panel(p);
    return code;
}

/* --- scales ---------------------------------------------------------------- */

struct member {
    uint32_t scale;
    size_t element;
};

static int
by_scale(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    if (x->scale != y->scale)
        return x->scale < y->scale ? -1 : 1;
    return x->element < y->element ? -1 : x->element > y->element;
}

/* Lists the elements of a row by their scales. False when out of memory. */
static bool
find_shared(const struct qdqi_gptq *r, struct qdqi_shared *to)
{
    size_t k = r->moment->k;
    struct member *rows = calloc(k, sizeof *rows);
    to->begin = calloc(k + 1, sizeof *to->begin);
    to->members = calloc(k, sizeof *to->members);
    bool ok = rows && to->begin && to->members;
    for (size_t i = 0; ok && i < k; i++)
        rows[i] = (struct member){r->scale_of[qdqi_element(r, 0, i)], i};
    if (ok)
        qsort(rows, k, sizeof *rows, by_scale);
    for (size_t i = 0; ok && i < k; i++) {
        if (i == 0 || rows[i].scale != rows[i - 1].scale)
            to->begin[to->n++] = i;
        to->members[i] = rows[i].element;
    }
    if (ok)
        to->begin[to->n] = k;
    for (size_t i = 0; ok && i < to->n; i++)
        if (to->begin[i + 1] - to->begin[i] > to->most)
            to->most = to->begin[i + 1] - to->begin[i];
    free(rows);
    return ok;
}

/* --- blocks ---------------------------------------------------------------- */

struct rank {
    double diagonal;
    size_t element;
};

static int
by_diagonal(const void *a, const void *b)
{
    const struct rank *x = a, *y = b;
    if (x->diagonal != y->diagonal)
        return x->diagonal < y->diagonal ? 1 : -1;
    return x->element < y->element ? -1 : x->element > y->element;
}

/* Rows are not a power of two apart, which caches store badly. */
static size_t
ld_of(size_t n)
{
    return (n + 7) / 8 * 8 + 8;
}

static enum qdq_code
write_part(void *arg, size_t i, struct qdq_error *err)
{
    (void)err;
    qdqi_moment_write(arg, i);
    return QDQ_OK;
}

/* Writes block `which` of the moment to b->exact, in the order of descending diagonal. */
static enum qdq_code
load_block(struct qdqi_moment_block *b, size_t which, const double *diagonal,
           struct rank *ranks, struct qdq_error *err)
{
    const struct qdqi_moment *m = b->r->moment;
    b->first = which * m->block;
    b->n = qdqi_moment_block_size(m, which);
    b->ld = ld_of(b->n);
    for (size_t i = 0; i < b->n; i++)
        ranks[i] = (struct rank){diagonal[b->first + i], i};
    qsort(ranks, b->n, sizeof *ranks, by_diagonal);
    for (size_t i = 0; i < b->n; i++)
        b->places[b->order[i] = ranks[i].element] = i;
    struct qdqi_moment_matrix to = {.m = m,
                                    .block = which,
                                    .centred = b->r->centred,
                                    .shrunk = b->r->shrunk,
                                    .places = b->places,
                                    .ld = b->ld,
                                    .to = b->exact};
    return qdqi_tasks_run(b->r->tasks, qdqi_moment_matrix_parts(m), write_part, &to,
                          err);
}

/* --- the layer -------------------------------------------------------------- */

/* Everything that one weight needs. */
struct rounding {
    struct qdqi_moment_block block;
    double *diagonal;
    struct rank *ranks;
};

static bool
allocate(struct rounding *t)
{
    struct qdqi_moment_block *b = &t->block;
    size_t n = b->r->moment->block, k = b->r->moment->k;
    b->order = calloc(n, sizeof *b->order);
    b->places = calloc(n, sizeof *b->places);
    b->exact = new_rows(n, ld_of(n), sizeof *b->exact);
    b->c = b->r->refine ? new_rows(n, ld_of(n), sizeof *b->c) : NULL;
    b->factor = new_rows(n, ld_of(n), sizeof *b->factor);
    b->scratch = new_rows(QDQI_STEP_COLUMNS, ld_of(n), sizeof *b->scratch);
    t->diagonal = calloc(k, sizeof *t->diagonal);
    t->ranks = calloc(n, sizeof *t->ranks);
    b->groups = calloc(k, sizeof *b->groups);
    return find_shared(b->r, &b->shared) && b->groups && b->order && b->places &&
           b->exact && (b->c || !b->r->refine) && b->factor && b->scratch &&
           t->diagonal && t->ranks;
}

static void
release(struct rounding *t)
{
    struct qdqi_moment_block *b = &t->block;
    void *all[] = {
        b->shared.begin, b->shared.members, b->order,   b->places,   b->exact, b->c,
        b->groups,       b->factor,         b->scratch, t->diagonal, t->ranks};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* Sets *ret_why to the reason why a block's moment is not usable. */
static enum qdq_code
round_blocks(struct rounding *t, const char **ret_why, struct qdq_error *err)
{
    struct qdqi_moment_block *b = &t->block;
    const struct qdqi_gptq *r = b->r;
    size_t panels = (r->outputs + QDQI_PANEL - 1) / QDQI_PANEL;
    enum qdq_code code = QDQ_OK;
    qdqi_moment_diagonal(r->moment, r->centred, t->diagonal);
    for (size_t g = 0; g < b->shared.n; g++)
        for (size_t i = b->shared.begin[g]; i < b->shared.begin[g + 1]; i++)
            b->groups[b->shared.members[i]] = (uint32_t)g;
    if (r->refine && r->own_scales)
        code = qdqi_narrow_scales(r, t->diagonal, &b->shared, err);
    for (size_t i = 0; i * r->moment->block < r->moment->k && !code; i++) {
        code = load_block(b, i, t->diagonal, t->ranks, err);
        if (!code)
            code = qdqi_factorize(b, r->tasks, ret_why, err);
        if (code || *ret_why)
            return code;
        code = qdqi_tasks_run(r->tasks, panels, do_panel, b, err);
    }
    return code;
}

enum qdq_code
qdqi_round_scaled(const struct qdqi_gptq *r, struct qdq_error *err)
{
    struct qdqi_shared shared = {0};
    double *diagonal = calloc(r->moment->k, sizeof *diagonal);
    enum qdq_code code =
        diagonal && find_shared(r, &shared) ? QDQ_OK : qdqi_no_memory(err);
    if (!code && r->own_scales) {
        qdqi_moment_diagonal(r->moment, r->centred, diagonal);
        code = qdqi_narrow_scales(r, diagonal, &shared, err);
    }
    if (!code)
        qdqi_round_nearest(r);
    free(shared.begin);
    free(shared.members);
    free(diagonal);
    return code;
}

enum qdq_code
qdqi_round_gptq(const struct qdqi_gptq *r, const char **ret_why, struct qdq_error *err)
{
    struct rounding t = {.block.r = r};
    *ret_why = NULL;
    enum qdq_code code =
        allocate(&t) ? round_blocks(&t, ret_why, err) : qdqi_no_memory(err);
    if (!code && *ret_why)
        qdqi_round_nearest(r);
    release(&t);
    return code;
}
