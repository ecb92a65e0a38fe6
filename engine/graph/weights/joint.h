/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scales that are chosen together with the integers of the elements that share one: of many
 * scales, each with the integers that go with it, the one with the least error of the layer's
 * output while all other elements stay.
 */
#ifndef QDQI_GRAPH_WEIGHTS_JOINT_H
#define QDQI_GRAPH_WEIGHTS_JOINT_H

#include "graph/weights/panel.h"

enum { QDQI_MOST_SHARING = 128 }; /* elements that share a scale which is chosen so */

/* The elements that share a scale; they are the same ones in every output. */
struct qdqi_joint {
    const struct qdqi_gptq *r;
    const size_t *members;
    size_t n;
    const double *c; /* [n][n]: what the moment has of them */
    bool is_usable;  /* the moment has a factor */
    /* the elements by ascending diagonal of c, and c = factor factor^T in that order */
    size_t order[QDQI_MOST_SHARING];
    double factor[QDQI_MOST_SHARING * QDQI_MOST_SHARING];
};

/* Prepares members, n and c, which are set, for all outputs. */
void qdqi_joint_begin(struct qdqi_joint *j);

/* Gives the elements of an output the best scale and integers. `gradient` has C times the
   output's error at the members, and follows the change. Returns whether one was made, which is
   only where the error is smaller after it. */
bool qdqi_joint_search(const struct qdqi_joint *j, size_t output, double *gradient);

#endif
