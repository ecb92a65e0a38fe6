/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Balances the channels of layers. Between two layers, channel c of the first layer's
 * output may be multiplied by any t > 0 when the second layer's weights of that channel
 * are divided by t. With r1 and r2 the largest magnitudes of the channel's weights in
 * the first and in the second layer, t = sqrt(r2 / r1) makes both magnitudes equal, so
 * that the channel uses the same share of the integers' range on both sides. Pairs
 * share layers, so this is repeated until the factors are stable.
 *
 * The factors that are applied are the nearest powers of two. Products, sums, Relus and
 * pools then scale exactly, in any order of summation, and the model computes the same
 * bits as before (except for numbers at the ends of float32's range). A channel is off
 * its optimum by at most a factor of sqrt(2), half a bit.
 */
#include "config.h"
#include "transform/equalize/balance.h"

#include <math.h>

enum {
    MAX_SWEEPS = 32,
    MAX_EXPONENT = 20, /* a channel that needs more is not skewed but unused */
};
#define BIAS_SHARE (1.0 / 16)
#define TOLERANCE (1.0 / 64) /* change of an exponent that counts as stable */
#define TINY 0x1p-64         /* a channel below this counts as zero */

/* The factors of a layer's weight while they are balanced, all 1 at first. */
struct layer_factors {
    double *out; /* by output channel; NULL: the layer is in no pair */
    double *in;  /* by input channel */
};

struct balancing {
    const struct qdqi_pair *pairs;
    size_t n;
    struct layer_factors *layers; /* by node */
    double **exponents;           /* for each pair: an exponent for each channel */
    /* for each pair: one of its layers has changed since it was balanced */
    bool *waiting;
    /* for each node: index of the pair that begins there + 1, or 0 */
    size_t *by_first;
    size_t *by_second;
    double *r1, *r2; /* room for the channels of the largest layer */
};

/* --- ranges --------------------------------------------------------------- */

/*
 * Computes the magnitude of each output of the first layer. A bias counts only where
 * it outweighs the output that the weights can be expected to produce: a channel that
 * consists of little more than its bias must not be scaled up for its weights.
 */
static void
range_of_first(struct balancing *b, const struct qdqi_pair *pair)
{
    const struct qdqi_chain *chain = pair->chain;
    qdqi_weight_ranges(&chain->maker.weight, true, b->layers[pair->first].in, b->r1);
    for (size_t i = 0; i < chain->maker.n_constants; i++)
        for (size_t k = 0; k < chain->maker.weight.n_out; k++) {
            double bias = fabs(qdqi_float_at(chain->maker.constants[i].bytes, k));
            b->r1[k] = fmax(b->r1[k], bias * BIAS_SHARE);
        }
}

static void
range_of_second(struct balancing *b, const struct qdqi_pair *pair)
{
    qdqi_weight_ranges(&pair->chain->readers->weight, false,
                       b->layers[pair->second].out, b->r2);
    qdqi_chain_fold(pair->chain, b->r2);
}

/* --- one pair- ------------------------------------------------------------ */

static double
best_exponent(double r1, double r2)
{
    if (r1 < TINY || r2 < TINY)
        return 0;
    double best = 0.5 * log2(r2 / r1);
    return fmin(fmax(best, -MAX_EXPONENT), MAX_EXPONENT);
}

static void
set_factor(struct balancing *b, const struct qdqi_pair *pair, size_t c, double exponent)
{
    const struct qdqi_chain *chain = pair->chain;
    b->layers[pair->first].out[qdqi_chain_output(chain, c)] = exp2(exponent);
    for (size_t k = 0; k < chain->block; k++)
        b->layers[pair->second].in[c * chain->block + k] = exp2(-exponent);
}

/* Balances one pair. Returns true when a channel's exponent changed by more than
   the tolerance. */
static bool
balance_pair(struct balancing *b, size_t i)
{
    const struct qdqi_pair *pair = &b->pairs[i];
    bool moved = false;
    range_of_first(b, pair);
    range_of_second(b, pair);
    for (size_t c = 0; c < pair->chain->channels; c++) {
        double exponent =
            best_exponent(b->r1[qdqi_chain_output(pair->chain, c)], b->r2[c]);
        moved |= fabs(exponent - b->exponents[i][c]) > TOLERANCE;
        b->exponents[i][c] = exponent;
        set_factor(b, pair, c, exponent);
    }
    return moved;
}

static void
mark_changed(struct balancing *b, size_t pair_plus_1)
{
    if (pair_plus_1)
        b->waiting[pair_plus_1 - 1] = true;
}

/* Balances the pairs in file order, repeatedly, skipping those whose layers have
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
            if (!balance_pair(b, i))
                continue;
            mark_changed(b, b->by_second[b->pairs[i].first]);
            mark_changed(b, b->by_first[b->pairs[i].second]);
            any = true;
        }
    }
}

/* Turns exponents into factors that are powers of two. Returns the number of channels that
   are scaled. */
static size_t
round_to_powers_of_two(double *exponents, size_t n)
{
    size_t moved = 0;
    for (size_t c = 0; c < n; c++) {
        exponents[c] = exp2(rint(exponents[c]));
        moved += exponents[c] != 1;
    }
    return moved;
}

/* --- memory --------------------------------------------------------------- */

static bool
grow_layer(struct balancing *b, struct qdqi_arena *arena, size_t node,
           const struct qdqi_weight *w, size_t *most)
{
    struct layer_factors *layer = &b->layers[node];
    *most = w->n_out > *most ? w->n_out : *most;
    *most = w->n_in > *most ? w->n_in : *most;
    if (layer->out)
        return true;
    layer->out = qdqi_weight_ones(arena, w->n_out);
    layer->in = qdqi_weight_ones(arena, w->n_in);
    return layer->out && layer->in;
}

static bool
prepare(struct balancing *b, struct qdqi_arena *arena, size_t n_nodes)
{
    size_t most = 0;
    b->layers = qdqi_arena_array(arena, n_nodes, sizeof *b->layers);
    b->exponents = qdqi_arena_array(arena, b->n, sizeof *b->exponents);
    b->waiting = qdqi_arena_array(arena, b->n, sizeof *b->waiting);
    b->by_first = qdqi_arena_array(arena, n_nodes, sizeof *b->by_first);
    b->by_second = qdqi_arena_array(arena, n_nodes, sizeof *b->by_second);
    if (!b->layers || !b->exponents || !b->waiting || !b->by_first || !b->by_second)
        return false;
    for (size_t i = 0; i < b->n; i++) {
        const struct qdqi_pair *pair = &b->pairs[i];
        if (!pair->chain)
            continue;
        b->exponents[i] =
            qdqi_arena_array(arena, pair->chain->channels, sizeof(double));
        if (!b->exponents[i] ||
            !grow_layer(b, arena, pair->first, &pair->chain->maker.weight, &most) ||
            !grow_layer(b, arena, pair->second, &pair->chain->readers->weight, &most))
            return false;
        b->waiting[i] = true;
        b->by_first[pair->first] = b->by_second[pair->second] = i + 1;
    }
    b->r1 = qdqi_arena_array(arena, most, sizeof *b->r1);
    b->r2 = qdqi_arena_array(arena, most, sizeof *b->r2);
    return b->r1 && b->r2;
}

enum qdq_code
qdqi_balance(const struct qdq_model *model, const struct qdqi_pair *pairs, size_t n,
             struct qdqi_arena *arena, struct qdqi_balance *ret, struct qdq_error *err)
{
    struct balancing b = {.pairs = pairs, .n = n};
    ret->moved = qdqi_arena_array(arena, n, sizeof *ret->moved);
    if (!ret->moved || !prepare(&b, arena, model->graph.n_nodes))
        return qdqi_no_memory(err);
    balance_until_stable(&b);
    ret->factors = b.exponents;
    for (size_t i = 0; i < n; i++)
        if (pairs[i].chain)
            ret->moved[i] =
                round_to_powers_of_two(ret->factors[i], pairs[i].chain->channels);
    return QDQ_OK;
}
