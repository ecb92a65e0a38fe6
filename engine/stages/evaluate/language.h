/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures of a language model's logits: how far the distribution of the next token moves
 * (Kullback-Leibler divergence of the quantized model's from the float model's), and how well both
 * predict the tokens of the data (cross entropy), in nats.
 */
#ifndef QDQI_STAGES_EVALUATE_LANGUAGE_H
#define QDQI_STAGES_EVALUATE_LANGUAGE_H

#include "files/data/feed.h"
#include "files/model/model.h"
#include "qdq/report.h"

struct qdqi_language {
    bool is_logits; /* the output holds logits of tokens: [batch, length, vocabulary] */
    bool predicts;  /* of the token that follows */
    bool has_mask;
    size_t ids, mask; /* inputs of the model */
    /* sums over positions, and their numbers: all, and those with a token behind them */
    double divergence, float_nats, nats;
    int64_t rows, tokens;
};

/* Says whether an output of the model holds logits. */
struct qdqi_language qdqi_language_of(const struct qdq_model_info *model,
                                      size_t output);

/* Returns whether an output is the cache that the next run of a decoder reads. */
bool qdqi_output_is_cache(const struct qdq_model_info *model, size_t output);

/* Adds the output of one run, with the run's inputs. Positions that are masked are left out. Does
   nothing for other outputs. */
void qdqi_language_add(struct qdqi_language *to, const float *f, const float *q,
                       const int64_t *dims, size_t rank,
                       const struct qdqi_input *inputs);

/* Fills in the figures, which are NaN where there are none. */
void qdqi_language_finish(const struct qdqi_language *from,
                          struct qdq_output_report *ret);

#endif
