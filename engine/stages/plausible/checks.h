/* SPDX-License-Identifier: Apache-2.0 */
/* The signs that data cannot be those that the model was made for; one row each. */
#ifndef QDQI_STAGES_PLAUSIBLE_CHECKS_H
#define QDQI_STAGES_PLAUSIBLE_CHECKS_H

#include "stages/plausible/figures.h"

/* A sign that a check found. */
struct qdqi_finding {
    const char *node; /* the input, the activation or the output; NULL: no single one */
    char text[400];   /* with figures */
};

/* Writes to *ret what check i finds. Returns false where it finds nothing. */
bool qdqi_data_check(const struct qdqi_data_figures *figures, size_t i,
                     struct qdqi_finding *ret);
size_t qdqi_data_checks(void); /* the number of checks */

#endif
