/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Activations of 8 and 16 bits in one model, for targets whose layers take both: where 8 bits do not
 * reach the goal, the layers whose own tensors have the most noise as a part of their signal get 16
 * bits, as few as reach the goal, or nearly what 16 bits for all reach.
 */
#ifndef QDQI_STAGES_RECIPE_WIDTHS_H
#define QDQI_STAGES_RECIPE_WIDTHS_H

#include "stages/recipe/variants.h"

/*
 * Judges the candidates' attempt, then 16 bits for all, and then for some of the layers, of which the
 * literal arithmetic guesses how many they have to be. The attempt of the candidates is then the first
 * one if it reaches the goal, else the one with the fewest wide layers that is good enough. Entries of
 * `layers` with the names of the wide layers stand behind those of the spec. NO_MEMORY, and the errors
 * of trials.
 */
enum qdq_code qdqi_choose_widths(struct qdqi_variants *variants,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

#endif
