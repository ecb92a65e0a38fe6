/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/reconstruct/round_layer.h"

#include "files/model/constant.h"
#include "graph/weights/integers.h"
#include "graph/weights/least_squares.h"
#include "graph/weights/pairs.h"
#include "plan/placement/sampled_moments.h"
#include "stages/scale/matrix.h"
#include "stages/scale/round.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The share of the moment's diagonal that is added to it: with less, the real numbers come nearer to the
   target and are larger, so that more is lost when they are rounded. */
static const double damping = 0.2;

struct rebuilding {
    struct qdqi_attempt *a;
    const struct qdqi_rebuilt *layer;
    struct qdqi_constant constant;
    struct qdqi_matrix m; /* its elements become the targets */
    float *given;         /* the elements as the model has them */
    struct qdqi_params p; /* copies of the weight's, with scales of their own */
    struct qdqi_rounded_key key;
    int16_t *integers;
    struct qdqi_tasks tasks;
};

/* --- targets ------------------------------------------------------------------ */

struct writing {
    const struct rebuilding *r;
    const size_t *places;
    size_t group;
    double *c, *sides;
};

static enum qdq_code
write_moment(void *arg, size_t part, struct qdq_error *err)
{
    const struct writing *w = arg;
    const struct rebuilding *r = w->r;
    const struct qdqi_moment_matrix to = {
        .m = &r->layer->pairs.patches.moments[w->group],
        .centred = r->key.is_centred,
        .places = w->places,
        .ld = r->m.k,
        .to = w->c};
    (void)err;
    qdqi_moment_write(&to, part);
    return QDQ_OK;
}

static enum qdq_code
write_side(void *arg, size_t output, struct qdq_error *err)
{
    const struct writing *w = arg;
    (void)err;
    qdqi_row_pairs_write(&w->r->layer->pairs, w->group, output, w->r->key.is_centred,
                         w->sides + output * w->r->m.k);
    return QDQ_OK;
}

/* Adds the solutions to the elements of a group. */
static void
add_solutions(struct rebuilding *r, size_t group, const double *solutions)
{
    const struct qdqi_matrix *m = &r->m;
    for (size_t o = 0; o < m->outputs; o++)
        for (size_t i = 0; i < m->k; i++) {
            const size_t at = (group * m->outputs + o) * m->row + i * m->column;
            m->copied[at] = (float)((double)m->copied[at] + solutions[o * m->k + i]);
        }
}

/* Makes the elements of a group the real numbers that come nearest to the target. Where the moment has
   no factor they stay. */
static enum qdq_code
find_targets(struct rebuilding *r, size_t group, struct qdq_error *err)
{
    const size_t k = r->m.k, outputs = r->m.outputs;
    const struct qdqi_moment *moment = &r->layer->pairs.patches.moments[group];
    size_t *places = calloc(k, sizeof *places);
    struct writing w = {r, places, group, calloc(k, k * sizeof(double)),
                        calloc(outputs, k * sizeof(double))};
    enum qdq_code code = places && w.c && w.sides ? QDQ_OK : qdqi_no_memory(err);
    bool is_solved = false;
    for (size_t i = 0; !code && i < k; i++)
        places[i] = i;
    if (!code)
        code = qdqi_tasks_run(&r->tasks, qdqi_moment_matrix_parts(moment), write_moment,
                              &w, err);
    if (!code)
        code = qdqi_tasks_run(&r->tasks, outputs, write_side, &w, err);
    struct qdqi_least_squares l = {k, outputs, w.c, w.sides, damping, &r->tasks};
    if (!code)
        code = qdqi_least_squares(&l, &is_solved, err);
    if (!code && is_solved)
        add_solutions(r, group, w.sides);
    free(places);
    free(w.c);
    free(w.sides);
    return code;
}

/* --- scales --------------------------------------------------------------------- */

/* Begins with scales that cover the targets, where rounding goes on from there to other ones. */
static void
cover(struct rebuilding *r)
{
    const struct qdqi_format_row *format = qdqi_format_row((int)r->key.format);
    const size_t n = r->constant.n;
    struct qdqi_params *p = &r->p;
    if (format->bits >= 8 || !qdqi_has_own_scales(&r->m))
        return;
    memset(p->scales, 0, p->n * sizeof *p->scales);
    if (!p->zero_points) {
        for (size_t i = 0; i < n; i++) {
            float *s = &p->scales[r->m.scale_of[i]];
            *s = fmaxf(*s, fabsf(r->m.elements[i]) / (float)format->highest);
        }
    } else {
        float *low =
            p->scales + p->n; /* behind them there is room for the lowest elements */
        memset(low, 0, p->n * sizeof *low);
        for (size_t i = 0; i < n; i++) {
            const uint32_t s = r->m.scale_of[i];
            p->scales[s] = fmaxf(p->scales[s], r->m.elements[i]);
            low[s] = fminf(low[s], r->m.elements[i]);
        }
        for (size_t s = 0; s < p->n; s++) {
            float scale = 1;
            int32_t zero = 0;
            qdqi_range_params(r->key.format, false, QDQI_FLOAT32, (double)low[s],
                              (double)p->scales[s], &scale, &zero);
            p->scales[s] = scale;
            p->zero_points[s] = zero;
        }
        return;
    }
    for (size_t s = 0; s < p->n; s++)
        if (!isnormal(p->scales[s]))
            p->scales[s] = 1;
}

/* --- what is left to chance ------------------------------------------------------- */

/* One of twenty rows of a sample, which are patches of an image or tokens of a text, counts as independent
   of the others. */
static const double fresh = 0.05;

/* Returns the share of a moment's products of two inputs that so few samples leave to chance. */
static double
shrinkage(const struct rebuilding *r, size_t group)
{
    const struct qdqi_patches *patches = &r->layer->pairs.patches;
    const struct qdqi_moment *m = &patches->moments[group];
    const double samples = fmin((double)patches->taken, (double)m->rows);
    return qdqi_shrinks_moments(r->a->spec)
               ? qdqi_moment_noise(m, r->key.is_centred,
                                   samples + fresh * ((double)m->rows - samples))
               : 0;
}

/* --- bias ----------------------------------------------------------------------- */

/* Gives the bias the mean of the target's differences and of the errors of the weight. */
static enum qdq_code
shift_bias(struct rebuilding *r, struct qdq_error *err)
{
    struct qdqi_shifted_bias *bias = &r->a->scales.shifted[r->layer->shifted];
    const struct qdqi_matrix *m = &r->m;
    const struct qdqi_node *node = &r->a->model->graph.nodes[bias->node];
    float *values = qdqi_arena_array(r->a->scratch, bias->n, sizeof *values);
    struct qdqi_constant before;
    if (!values)
        return qdqi_no_memory(err);
    enum qdq_code code =
        qdqi_constant_read(r->a->model, node->inputs[bias->input], &before, err);
    for (size_t n = 0; n < bias->n && !code; n++) {
        const struct qdqi_moment *moment =
            &r->layer->pairs.patches.moments[n / m->outputs];
        const double rows = moment->rows ? (double)moment->rows : 1;
        double sum = 0;
        float given;
        for (size_t i = 0; i < m->k; i++) {
            const size_t at = n * m->row + i * m->column, s = m->scale_of[at];
            const double number =
                (double)(r->integers[at] - qdqi_zero_point(&r->p, s)) *
                (double)r->p.scales[s];
            sum += ((double)r->given[at] - number) * moment->sums[i] / rows;
        }
        memcpy(&given, before.bytes + n * sizeof given, sizeof given);
        values[n] =
            (float)((double)given + sum + qdqi_row_pairs_mean(&r->layer->pairs, n));
    }
    bias->values = values;
    return code;
}

/* --- the layer ------------------------------------------------------------------- */

/* Copies what rounding changes. */
static enum qdq_code
open_copies(struct rebuilding *r, struct qdq_error *err)
{
    struct qdqi_attempt *a = r->a;
    const struct qdqi_planned_weight *w = &a->plan->weights[r->layer->weight];
    const struct qdqi_params *from = &a->scales.weights[r->layer->weight];
    enum qdq_code code = qdqi_constant_read(a->model, w->tensor, &r->constant, err);
    if (code)
        return code;
    r->p = *from;
    r->p.scales = qdqi_arena_array(a->scratch, 2 * from->n, sizeof *r->p.scales);
    if (from->zero_points)
        r->p.zero_points =
            qdqi_arena_copy(a->scratch, from->zero_points, from->n, sizeof(int32_t));
    r->integers = calloc(r->constant.n, sizeof *r->integers);
    r->given = calloc(r->constant.n, sizeof *r->given);
    if (!r->p.scales || !r->p.zero_points != !from->zero_points || !r->integers ||
        !r->given || !qdqi_matrix_open(a, w, &r->constant, from, &r->m) ||
        !qdqi_matrix_copy(&r->m, r->constant.n))
        return qdqi_no_memory(err);
    memcpy(r->p.scales, from->scales, from->n * sizeof *from->scales);
    memcpy(r->given, r->m.elements, r->constant.n * sizeof *r->given);
    return QDQ_OK;
}

/* Puts the copies in the place of what was. */
static enum qdq_code
commit(struct rebuilding *r, struct qdq_error *err)
{
    struct qdqi_attempt *a = r->a;
    const struct qdqi_planned_weight *w = &a->plan->weights[r->layer->weight];
    struct qdqi_params *p = &a->scales.weights[r->layer->weight];
    if (w->is_reduced && w->pair_axis >= 0)
        qdqi_pairs_fit(&r->constant, w->pair_axis, w->axis, r->integers);
    enum qdq_code code = r->layer->shifted == QDQI_NONE ? QDQ_OK : shift_bias(r, err);
    if (code)
        return code;
    memcpy(p->scales, r->p.scales, p->n * sizeof *p->scales);
    if (p->zero_points)
        memcpy(p->zero_points, r->p.zero_points, p->n * sizeof *p->zero_points);
    p->rounded = qdqi_rounded_pack(a->scratch, p->format, r->integers, r->constant.n);
    if (!p->rounded)
        return qdqi_no_memory(err);
    p->rounded_floats = qdqi_rounded_new(a->scratch, &r->constant, p);
    if (p->integers)
        p->integers = qdqi_integers_new(a->scratch, &r->constant, p);
    return p->rounded_floats && (p->integers || !r->p.integers) ? QDQ_OK
                                                                : qdqi_no_memory(err);
}

static enum qdq_code
rebuild(struct rebuilding *r, const char **ret_why, struct qdq_error *err)
{
    const size_t groups = r->layer->pairs.patches.groups;
    enum qdq_code code = open_copies(r, err);
    for (size_t g = 0; g < groups && !code; g++)
        code = find_targets(r, g, err);
    if (code)
        return code;
    cover(r);
    for (size_t g = 0; g < groups && !code && !*ret_why; g++) {
        r->key.shrunk = shrinkage(r, g);
        code = qdqi_round_group(r->a, &r->key, &r->m, g,
                                &r->layer->pairs.patches.moments[g], &r->p, r->integers,
                                ret_why, err);
    }
    return code || *ret_why ? code : commit(r, err);
}

enum qdq_code
qdqi_rebuild_layer(struct qdqi_attempt *a, const struct qdqi_rebuilt *layer,
                   const char **ret_why, struct qdq_error *err)
{
    const struct qdqi_planned_weight *w = &a->plan->weights[layer->weight];
    struct rebuilding r = {.a = a,
                           .layer = layer,
                           .tasks = {.executor = a->context->engine->executor,
                                     .threads = a->context->engine->threads}};
    r.key = qdqi_rounded_key_of(w, &a->scales.weights[layer->weight]);
    r.key.is_centred = layer->shifted != QDQI_NONE;
    *ret_why = NULL;
    enum qdq_code code = rebuild(&r, ret_why, err);
    qdqi_matrix_close(&r.m);
    free(r.given);
    free(r.integers);
    return code;
}
