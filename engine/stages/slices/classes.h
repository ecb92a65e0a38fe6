/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the last axis of an output lists classes, of which the largest is the answer. */
#ifndef QDQI_STAGES_SLICES_CLASSES_H
#define QDQI_STAGES_SLICES_CLASSES_H

#include "files/model/model.h"

/*
 * Returns whether output i of the model may list classes. It does not if a Sigmoid makes
 * it or a part of it, whose values are independent of each other; if a normalization of
 * layers makes it, as the features of an embedding; if its last axis is one of places, as that
 * of a Conv's output is; nor if it has three or more axes and
 * the type and shape of an input, as a recurrent state, a cache or an image has. Sizes
 * that the model does not declare count as equal.
 */
bool qdqi_output_may_list_classes(const struct qdq_model *model, size_t i);

/* Returns whether the axes of output i from the third one on are those of places. */
bool qdqi_output_is_of_places(const struct qdq_model *model, size_t i);

/* Returns whether a Softmax or its like makes output i, whose elements are then parts of one whole. */
bool qdqi_output_compares_its_elements(const struct qdq_model *model, size_t i);

#endif
