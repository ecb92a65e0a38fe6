/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/reconstruct/row_pairs.h"

#include "numbers/arithmetic/products.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Floats from the start of a strip of pending rows to the start of the next. */
enum { STRIDE = QDQI_MOMENT_ROWS * QDQI_PRODUCTS_STEP };

static const struct qdqi_moment *
first_moment(const struct qdqi_row_pairs *p)
{
    return p->patches.moments;
}

/* Returns the tiles of a group's row of x. */
static size_t
count_tiles(const struct qdqi_row_pairs *p)
{
    const struct qdqi_moment *m = first_moment(p);
    return (m->k + m->tile - 1) / m->tile;
}

static float *
differences_at(const struct qdqi_row_pairs *p, size_t group, size_t tile)
{
    return p->differences +
           (group * p->tiles + tile) * first_moment(p)->tile * QDQI_MOMENT_ROWS;
}

static float *
products_at(const struct qdqi_row_pairs *p, size_t group, size_t i, size_t j)
{
    const size_t tile = first_moment(p)->tile;
    return p->products + ((group * count_tiles(p) + i) * p->tiles + j) * tile * tile;
}

/* --- memory ----------------------------------------------------------------- */

static bool
make_moments(struct qdqi_row_pairs *p, size_t groups, size_t k)
{
    p->patches.moments = calloc(groups, sizeof *p->patches.moments);
    if (!p->patches.moments)
        return false;
    for (; p->patches.groups < groups; p->patches.groups++) {
        struct qdqi_moment *m = &p->patches.moments[p->patches.groups];
        if (!qdqi_moment_init(m, k))
            return false;
        if (!qdqi_moment_begin(m)) {
            qdqi_moment_fini(m);
            return false;
        }
    }
    return true;
}

bool
qdqi_row_pairs_init(struct qdqi_row_pairs *p, const struct qdqi_window *window,
                    size_t groups, size_t k, size_t outputs)
{
    *p = (struct qdqi_row_pairs){.patches.window = *window, .outputs = outputs};
    if (!make_moments(p, groups, k))
        return false;
    const size_t tile = first_moment(p)->tile;
    p->tiles = (outputs + tile - 1) / tile;
    p->differences = calloc(groups * p->tiles, tile * QDQI_MOMENT_ROWS * sizeof(float));
    p->products =
        calloc(groups * count_tiles(p), p->tiles * tile * tile * sizeof(float));
    p->sums = calloc(groups * outputs, sizeof *p->sums);
    p->row = calloc(k, sizeof *p->row);
    return p->differences && p->products && p->sums && p->row;
}

void
qdqi_row_pairs_fini(struct qdqi_row_pairs *p)
{
    for (size_t g = 0; g < p->patches.groups; g++)
        qdqi_moment_fini(&p->patches.moments[g]);
    free(p->patches.moments);
    free(p->differences);
    free(p->products);
    free(p->sums);
    free(p->row);
    *p = (struct qdqi_row_pairs){0};
}

/* --- pending rows ------------------------------------------------------------ */

static enum qdq_code
add_moments(void *arg, size_t piece, struct qdq_error *err)
{
    const struct qdqi_row_pairs *p = arg;
    const size_t parts = qdqi_moment_parts(first_moment(p));
    (void)err;
    qdqi_moment_add_part(&p->patches.moments[piece / parts], piece % parts);
    return QDQ_OK;
}

/* Adds the products of one tile of x with all differences of its group. */
static enum qdq_code
add_products(void *arg, size_t piece, struct qdq_error *err)
{
    const struct qdqi_row_pairs *p = arg;
    const size_t group = piece / count_tiles(p), i = piece % count_tiles(p);
    const struct qdqi_moment *m = &p->patches.moments[group];
    const struct qdqi_runs all = {1, m->n_pending, m->n_pending};
    const float *x = qdqi_moment_element(m, i * m->tile, 0);
    (void)err;
    for (size_t j = 0; j < p->tiles; j++)
        qdqi_products_add(x, differences_at(p, group, j), STRIDE, all, m->tile,
                          products_at(p, group, i, j));
    return QDQ_OK;
}

enum qdq_code
qdqi_row_pairs_flush(struct qdqi_row_pairs *p, const struct qdqi_tasks *tasks,
                     struct qdq_error *err)
{
    const size_t groups = p->patches.groups;
    if (first_moment(p)->n_pending == 0)
        return QDQ_OK;
    enum qdq_code code = qdqi_tasks_run(
        tasks, groups * qdqi_moment_parts(first_moment(p)), add_moments, p, err);
    if (!code)
        code = qdqi_tasks_run(tasks, groups * count_tiles(p), add_products, p, err);
    for (size_t g = 0; g < groups; g++)
        qdqi_moment_added(&p->patches.moments[g]);
    return code;
}

/* --- a run --------------------------------------------------------------------- */

struct taking {
    struct qdqi_row_pairs *pairs;
    const struct qdqi_paired_tensors *tensors;
    const struct qdqi_tasks *tasks;
    size_t sample;
    enum qdq_code code;
    struct qdq_error *err;
    bool is_checking, fits; /* nothing is read yet; the differences fit what was seen */
    size_t rows;            /* seen while checking */
};

/* Returns how the element of an output at a position is found: that of output 0, and the elements from
   one output to the next. */
static const size_t *
place_of(const struct taking *t, const struct qdqi_patched_sample *s, size_t position,
         size_t ret[2])
{
    const size_t outputs = t->pairs->outputs * t->pairs->patches.groups;
    const size_t before = t->sample * s->positions;
    ret[0] = s->geometry ? before * outputs + position : (before + position) * outputs;
    ret[1] = s->geometry ? s->positions : 1;
    return ret;
}

/* Writes the differences of a group to a pending row. One that is not finite makes all of them 0, as
   does a row of x that is not. */
static void
put_differences(const struct taking *t, size_t group, const size_t *place)
{
    struct qdqi_row_pairs *p = t->pairs;
    const struct qdqi_moment *m = &p->patches.moments[group];
    const size_t step = QDQI_PRODUCTS_STEP, row = m->n_pending;
    bool ok = m->is_taken[row];
    float *to = differences_at(p, group, 0) + row * step;
    for (size_t o = 0; o < p->outputs; o++) {
        const size_t at = place[0] + (group * p->outputs + o) * place[1];
        const float d = t->tensors->target[at] - t->tensors->made[at];
        ok = ok && isfinite(d);
        to[o / step * STRIDE + o % step] = d;
    }
    for (size_t o = 0; o < p->outputs; o++) {
        float *d = &to[o / step * STRIDE + o % step];
        *d = ok ? *d : 0;
        p->sums[group * p->outputs + o] += (double)*d;
    }
}

static void
take_row(struct taking *t, const struct qdqi_patched_sample *s, size_t position)
{
    struct qdqi_row_pairs *p = t->pairs;
    size_t place[2];
    bool is_full = false;
    place_of(t, s, position, place);
    for (size_t g = 0; g < p->patches.groups; g++) {
        struct qdqi_moment *m = &p->patches.moments[g];
        qdqi_patched_row(s, g, position, p->row);
        qdqi_moment_put(m, m->n_pending, p->row);
        put_differences(t, g, place);
        is_full = qdqi_moment_push(m, 1);
    }
    if (is_full)
        t->code = qdqi_row_pairs_flush(p, t->tasks, t->err);
}

static void
take_sample(void *arg, const struct qdqi_patched_sample *s)
{
    struct taking *t = arg;
    t->rows += s->positions;
    for (size_t r = 0; !t->is_checking && r < s->wanted && !t->code; r++)
        take_row(t, s, qdqi_patched_position(s, r));
    t->sample++;
}

/* Returns whether the differences have one number for each output at each position. */
static bool
fits(const struct taking *t)
{
    const struct qdqi_paired_tensors *p = t->tensors;
    const struct qdqi_patches *patches = &t->pairs->patches;
    const size_t outputs = t->pairs->outputs * patches->groups;
    size_t elements = 1;
    for (size_t i = 0; i < p->rank; i++)
        elements *= (size_t)p->dims[i];
    const size_t axis = patches->window.axes > 0 ? 1 : p->rank - 1;
    return p->rank == p->input.rank && (size_t)p->dims[axis] == outputs &&
           p->dims[0] == p->input.dims[0] && elements == t->rows * outputs;
}

enum qdq_code
qdqi_row_pairs_add(struct qdqi_row_pairs *pairs, int64_t samples, size_t per_sample,
                   const struct qdqi_paired_tensors *tensors,
                   const struct qdqi_tasks *tasks, bool *ret_fits,
                   struct qdq_error *err)
{
    struct qdqi_patches *row = &pairs->patches;
    struct qdqi_moments all = {
        .rows = &row, .n = 1, .samples = samples, .per_sample = per_sample};
    const uint64_t taken = row->taken;
    struct taking t = {.pairs = pairs,
                       .tensors = tensors,
                       .tasks = tasks,
                       .err = err,
                       .is_checking = true};
    *ret_fits = tensors->rank > 0 &&
                qdqi_patches_each(&all, 0, &tensors->input, take_sample, &t) &&
                fits(&t);
    row->taken = taken;
    if (!*ret_fits)
        return QDQ_OK;
    t.is_checking = false;
    t.sample = 0;
    *ret_fits = qdqi_patches_each(&all, 0, &tensors->input, take_sample, &t);
    return t.code;
}

/* --- results ------------------------------------------------------------------- */

static double
number_of_rows(const struct qdqi_row_pairs *p, size_t group)
{
    const uint64_t rows = p->patches.moments[group].rows;
    return rows ? (double)rows : 1;
}

double
qdqi_row_pairs_mean(const struct qdqi_row_pairs *p, size_t output)
{
    return p->sums[output] / number_of_rows(p, output / p->outputs);
}

void
qdqi_row_pairs_write(const struct qdqi_row_pairs *p, size_t group, size_t output,
                     bool centred, double *to)
{
    const struct qdqi_moment *m = &p->patches.moments[group];
    const double rows = number_of_rows(p, group);
    const double mean =
        centred ? qdqi_row_pairs_mean(p, group * p->outputs + output) : 0;
    for (size_t i = 0; i < m->k; i++) {
        const float *products = products_at(p, group, i / m->tile, output / m->tile);
        const size_t at = i % m->tile * m->tile + output % m->tile;
        to[i] = (double)products[at] / rows - m->sums[i] / rows * mean;
    }
}
