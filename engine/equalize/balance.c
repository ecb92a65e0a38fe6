/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Balances the channels of layers. Between two layers, channel c of the first layer's
 * output may be multiplied by any t > 0 when the second layer's weights of that channel
 * are divided by t. With r1 and r2 the largest magnitudes of the channel's weights in
 * the first and in the second layer, t = sqrt(r2 / r1) makes both magnitudes equal, so
 * that the channel uses the same share of the integers' range on both sides. Chains
 * share layers, so this is repeated until the factors are stable.
 *
 * The factors that are applied are the nearest powers of two. Products, sums, Relus and
 * pools then scale exactly, in any order of summation, and the model computes the same
 * bits as before (except for numbers at the ends of float32's range). A channel is off
 * its optimum by at most a factor of sqrt(2), half a bit.
 */
#include "config.h"
#include "equalize/balance.h"

#include <math.h>

enum {
    MAX_SWEEPS = 32,
    MAX_EXPONENT = 20, /* a channel that needs more is not skewed but unused */
};
#define BIAS_SHARE (1.0 / 16)
#define TOLERANCE (1.0 / 64) /* change of an exponent that counts as stable */
#define TINY 0x1p-64         /* a channel below this counts as zero */

struct balancing {
    const struct qdqi_chain *chains;
    size_t n;
    struct qdqi_balance *to;
    double **exponents; /* for each chain: an exponent for each channel */
    /* for each chain: one of its layers has changed since it was balanced */
    bool *waiting;
    /* for each node: index of the chain that begins there + 1, or 0 */
    size_t *by_first;
    size_t *by_second;
    double *r1, *r2; /* room for the channels of the largest layer */
};

/* --- ranges --------------------------------------------------------------- */

static double
largest(double a, double b)
{
    return a > b ? a : b;
}

/*
 * Computes the magnitude of each channel in the first layer. A bias counts only where
 * it outweighs the output that the weights can be expected to produce: a channel that
 * consists of little more than its bias must not be scaled up for its weights.
 */
static void
range_of_first(struct balancing *b, const struct qdqi_chain *chain)
{
    qdqi_weight_ranges(&chain->w1, true, b->to->layers[chain->first].in, b->r1);
    for (size_t i = 0; i < chain->n_biases; i++)
        for (size_t c = 0; c < chain->channels; c++) {
            double bias = fabs(qdqi_element(chain->biases[i].bytes, c));
            b->r1[c] = largest(b->r1[c], bias * BIAS_SHARE);
        }
}

static void
range_of_second(struct balancing *b, const struct qdqi_chain *chain)
{
    qdqi_weight_ranges(&chain->w2, false, b->to->layers[chain->second].out, b->r2);
    for (size_t c = 0; c < chain->channels; c++) {
        double range = 0;
        for (size_t k = 0; k < chain->block; k++)
            range = largest(range, b->r2[c * chain->block + k]);
        b->r2[c] = range;
    }
}

/* --- one chain ------------------------------------------------------------ */

static double
best_exponent(double r1, double r2)
{
    if (r1 < TINY || r2 < TINY)
        return 0;
    double best = 0.5 * log2(r2 / r1);
    return fmin(fmax(best, -MAX_EXPONENT), MAX_EXPONENT);
}

static void
set_scales(struct balancing *b, const struct qdqi_chain *chain, size_t c,
           double exponent)
{
    b->to->layers[chain->first].out[c] = exp2(exponent);
    for (size_t k = 0; k < chain->block; k++)
        b->to->layers[chain->second].in[c * chain->block + k] = exp2(-exponent);
}

/* Balances one chain. Returns true when a channel's exponent changed by more than
   the tolerance. */
static bool
balance_chain(struct balancing *b, size_t i)
{
    const struct qdqi_chain *chain = &b->chains[i];
    bool moved = false;
    range_of_first(b, chain);
    range_of_second(b, chain);
    for (size_t c = 0; c < chain->channels; c++) {
        double exponent = best_exponent(b->r1[c], b->r2[c]);
        moved |= fabs(exponent - b->exponents[i][c]) > TOLERANCE;
        b->exponents[i][c] = exponent;
        set_scales(b, chain, c, exponent);
    }
    return moved;
}

static void
mark_changed(struct balancing *b, size_t chain_plus_1)
{
    if (chain_plus_1)
        b->waiting[chain_plus_1 - 1] = true;
}

/* Balances the chains in file order, repeatedly, skipping those whose layers have
   not changed. */
static void
balance_until_stable(struct balancing *b)
{
    bool any = true;
    for (int s = 0; s < MAX_SWEEPS && any; s++) {
        any = false;
        for (size_t i = 0; i < b->n; i++) {
            if (!b->waiting[i])
                continue;
            b->waiting[i] = false;
            if (!balance_chain(b, i))
                continue;
            mark_changed(b, b->by_second[b->chains[i].first]);
            mark_changed(b, b->by_first[b->chains[i].second]);
            any = true;
        }
    }
}

/* Rounds the factors to powers of two, and counts the channels that are scaled. */
static void
round_to_powers_of_two(struct balancing *b, size_t i)
{
    const struct qdqi_chain *chain = &b->chains[i];
    size_t moved = 0;
    for (size_t c = 0; c < chain->channels; c++) {
        double exponent = rint(b->exponents[i][c]);
        set_scales(b, chain, c, exponent);
        moved += exponent != 0;
    }
    b->to->moved[i] = moved;
    b->to->layers[chain->first].changed |= moved > 0;
    b->to->layers[chain->second].changed |= moved > 0;
}

/* --- memory --------------------------------------------------------------- */

static double *
array_of_ones(struct qdqi_arena *arena, size_t n)
{
    double *all = qdqi_arena_array(arena, n, sizeof *all);
    for (size_t i = 0; all && i < n; i++)
        all[i] = 1;
    return all;
}

static bool
grow_layer(struct balancing *b, struct qdqi_arena *arena, size_t node,
           const struct qdqi_weight *w, size_t *most)
{
    struct qdqi_layer_scales *layer = &b->to->layers[node];
    *most = w->n_out > *most ? w->n_out : *most;
    *most = w->n_in > *most ? w->n_in : *most;
    if (layer->out)
        return true;
    layer->out = array_of_ones(arena, w->n_out);
    layer->in = array_of_ones(arena, w->n_in);
    return layer->out && layer->in;
}

static bool
prepare(struct balancing *b, struct qdqi_arena *arena, size_t n_nodes)
{
    size_t most = 0;
    b->to->layers = qdqi_arena_array(arena, n_nodes, sizeof *b->to->layers);
    b->to->moved = qdqi_arena_array(arena, b->n, sizeof *b->to->moved);
    b->exponents = qdqi_arena_array(arena, b->n, sizeof *b->exponents);
    b->waiting = qdqi_arena_array(arena, b->n, sizeof *b->waiting);
    b->by_first = qdqi_arena_array(arena, n_nodes, sizeof *b->by_first);
    b->by_second = qdqi_arena_array(arena, n_nodes, sizeof *b->by_second);
    if (!b->to->layers || !b->to->moved || !b->exponents || !b->waiting ||
        !b->by_first || !b->by_second)
        return false;
    for (size_t i = 0; i < b->n; i++) {
        const struct qdqi_chain *chain = &b->chains[i];
        if (chain->reason)
            continue;
        b->exponents[i] = qdqi_arena_array(arena, chain->channels, sizeof(double));
        if (!b->exponents[i] ||
            !grow_layer(b, arena, chain->first, &chain->w1, &most) ||
            !grow_layer(b, arena, chain->second, &chain->w2, &most))
            return false;
        b->waiting[i] = true;
        b->by_first[chain->first] = b->by_second[chain->second] = i + 1;
    }
    b->r1 = qdqi_arena_array(arena, most, sizeof *b->r1);
    b->r2 = qdqi_arena_array(arena, most, sizeof *b->r2);
    return b->r1 && b->r2;
}

enum qdq_code
qdqi_balance(const struct qdq_model *model, const struct qdqi_chain *chains, size_t n,
             struct qdqi_arena *arena, struct qdqi_balance *ret, struct qdq_error *err)
{
    struct balancing b = {.chains = chains, .n = n, .to = ret};
    if (!prepare(&b, arena, model->graph.n_nodes))
        return qdqi_no_memory(err);
    balance_until_stable(&b);
    for (size_t i = 0; i < n; i++)
        if (!chains[i].reason)
            round_to_powers_of_two(&b, i);
    return QDQ_OK;
}
