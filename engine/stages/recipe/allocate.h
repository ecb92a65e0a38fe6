/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recipe's member `formats`: each weight gets the one of several formats that makes the best use
 * of its bytes. The noise of a weight in a format, as a part of its signal, stands for what the
 * format costs in accuracy; that noise adds up over the layers, so that for one price of a byte each
 * weight has its choice alone (a Lagrangian: Y. Shoham and A. Gersho, 1988). The prices between the
 * cheapest and the dearest formats give a row of allocations, each with one weight more in the next
 * better format on the lower convex hull of its own; what does not fit a bound makes way for what does.
 * A bounded number of them is then judged as deployed. Where the bound leaves a choice, the weights with
 * the most bytes at stake are tried in their cheapest formats one by one, and the noise of each counts by
 * what it did to the outputs.
 */
#ifndef QDQI_STAGES_RECIPE_ALLOCATE_H
#define QDQI_STAGES_RECIPE_ALLOCATE_H

#include "stages/recipe/variants.h"

/*
 * Finds the allocation within the bounds of the candidates: the most accurate one, or with a goal for
 * accuracy the smallest one that reaches it. The attempt of the candidates is then by that
 * allocation, whose entries of `layers` stand behind those of the spec. Entries and cases that select a
 * layer keep its format. NO_MEMORY, and the errors of trials.
 */
enum qdq_code qdqi_allocate_formats(struct qdqi_variants *variants,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

#endif
