/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "graph/weights/gptq.h"

#include "ground/base/arena.h"
#include "ground/base/tasks.h"
#include "graph/weights/panel.h"

#include <stdlib.h>
#include <string.h>

/* Elements that are rounded before the sums are updated. */
enum { STEP = QDQI_AT_ONCE };

void
qdqi_round_nearest(const struct qdqi_gptq *r)
{
    for (size_t n = 0; n < r->outputs; n++)
        for (size_t i = 0; i < r->moment->k; i++) {
            size_t at = qdqi_element(r, n, i);
            r->integers[at] = qdqi_nearest_at(r, at, (double)r->weight[at]);
        }
}

/* --- panels --------------------------------------------------------------- */

void
qdqi_load_local(struct qdqi_panel *p, size_t i, size_t end)
{
    for (size_t line = 0; line < p->n; line++)
        memcpy(p->local[line], p->sums + line * p->b->ld + i,
               (end - i) * sizeof *p->sums);
}

void
qdqi_add_to_local(struct qdqi_panel *p, size_t line, const double *row, size_t k,
                  size_t n)
{
    for (size_t j = k + 1; j < n; j++)
        p->local[line][j] += row[j] * p->by[line][k];
}

struct qdqi_update
qdqi_update_by(const struct qdqi_moment_block *b, const double *matrix, size_t i,
               size_t end)
{
    struct qdqi_update u = {.n = end - i, .end = b->n};
    for (size_t k = 0; k < u.n; k++)
        u.rows[k] = matrix + (i + k) * b->ld;
    return u;
}

/* Rounds the panel's outputs one element after the other: each goes to the integer that is
   nearest to itself and what the errors before it ask for. */
static void
round_panel(struct qdqi_panel *p)
{
    const struct qdqi_moment_block *b = p->b;
    const struct qdqi_gptq *r = b->r;
    memset(p->sums, 0, QDQI_PANEL * b->ld * sizeof *p->sums);
    for (size_t i = 0, end; i < b->n; i = end) {
        end = b->n - i < STEP ? b->n : i + STEP;
        qdqi_load_local(p, i, end);
        for (size_t k = i; k < end; k++)
            for (size_t line = 0; line < p->n; line++) {
                size_t at = qdqi_at_place(p, line, k);
                double w = (double)r->weight[at];
                r->integers[at] = qdqi_nearest_at(r, at, w + p->local[line][k - i]);
                p->by[line][k - i] = w - qdqi_value_at(r, at);
                qdqi_add_to_local(p, line, b->factor + k * b->ld + i, k - i, end - i);
            }
        struct qdqi_update u = qdqi_update_by(b, b->factor, i, end);
        u.first = end;
        qdqi_update_panel(&u, p->by, p->n, p->sums, b->ld);
    }
}

/* Returns zeros at the beginning of a cache line; NULL when out of memory. */
static double *
new_rows(size_t n, size_t ld)
{
    void *rows = NULL;
    if (n > SIZE_MAX / sizeof(double) / ld ||
        posix_memalign(&rows, 64, n * ld * sizeof(double)))
        return NULL;
    return memset(rows, 0, n * ld * sizeof(double));
}

/* Rounds the outputs of a panel, with memory of its own. */
static enum qdq_code
do_panel(void *arg, size_t panel, struct qdq_error *err)
{
    const struct qdqi_moment_block *b = arg;
    struct qdqi_panel *p = calloc(1, sizeof *p);
    enum qdq_code code = QDQ_OK;
    if (p) {
        size_t left = b->r->outputs - panel * QDQI_PANEL;
        p->b = b;
        p->first = panel * QDQI_PANEL;
        p->n = left < QDQI_PANEL ? left : QDQI_PANEL;
        p->sums = new_rows(QDQI_PANEL, b->ld);
        p->products = new_rows(QDQI_PANEL, b->ld);
    }
    if (p && p->sums && p->products) {
        round_panel(p);
        if (b->r->refine)
            code = qdqi_refine_panel(p, err);
    } else
        code = qdqi_no_memory(err);
    if (p) {
        free(p->sums);
        free(p->products);
    }
    free(p);
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

/* Writes block `which` of the moment to b->c, in the order of descending diagonal. */
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
                                    .places = b->places,
                                    .ld = b->ld,
                                    .to = b->c};
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
    b->c = new_rows(n, ld_of(n));
    b->factor = b->r->refine ? new_rows(n, ld_of(n)) : b->c;
    b->scratch = new_rows(QDQI_AT_ONCE, ld_of(n));
    t->diagonal = calloc(k, sizeof *t->diagonal);
    t->ranks = calloc(n, sizeof *t->ranks);
    return find_shared(b->r, &b->shared) && b->order && b->places && b->c &&
           b->factor && b->scratch && t->diagonal && t->ranks;
}

static void
release(struct rounding *t)
{
    struct qdqi_moment_block *b = &t->block;
    double *own_factor = b->factor == b->c ? NULL : b->factor;
    void *all[] = {b->shared.begin, b->shared.members, b->order,    b->places, b->c,
                   own_factor,      b->scratch,        t->diagonal, t->ranks};
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
