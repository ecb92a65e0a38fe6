/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures of calibration data and of what the float model makes of them, added up over samples.
 * No figure depends on the order of the samples but for hashes of equal ones.
 */
#ifndef QDQI_STAGES_PLAUSIBLE_FIGURES_H
#define QDQI_STAGES_PLAUSIBLE_FIGURES_H

#include "run/session/session.h"
#include "stages/plausible/probe.h"

enum {
    QDQI_MOST_PROBED_SAMPLES = 64,
    QDQI_SAMPLES_WITH_PROBES = 16 /* by which activations are judged */
};

/* One input. */
struct qdqi_input_figures {
    const char *name;
    double low, high;        /* of all elements that are finite */
    uint64_t n, n_nonfinite; /* elements */
    /* sums of the differences between neighbours along axes 1, 2 and 3, where these are of
       one size */
    double rough[3];
    uint64_t hashes[QDQI_MOST_PROBED_SAMPLES]; /* of each sample */
    bool
        has_places; /* it has axes of places, as pictures have, so that its layout may be wrong */
};

/* One output of the model. */
struct qdqi_answer_figures {
    const char *name;
    bool lists_classes;
    bool differs;       /* the number of elements does, so that there are no figures */
    size_t n;           /* elements in a sample */
    double *sum, *sum2; /* by element */
    size_t classes;     /* 0: a sample is not one row of classes */
    uint32_t *chosen;   /* by class: samples in which it has the largest value */
};

/* One channel of an activation. */
struct qdqi_channel {
    uint64_t n, at_low, at_high;
};

struct qdqi_probe_figures {
    struct qdqi_probe probe;
    size_t n; /* channels; 0: not known yet */
    bool differs;
    struct qdqi_channel *channels;
};

struct qdqi_data_figures {
    struct qdqi_arena *arena; /* borrowed */
    size_t samples, n_inputs, n_answers, n_probes;
    struct qdqi_input_figures *inputs;
    struct qdqi_answer_figures *answers;
    struct qdqi_probe_figures probes[QDQI_MOST_PROBES];
};

/* Adds one run of so many samples: its inputs, and the outputs of the probed model, of which those behind the
   first QDQI_SAMPLES_WITH_PROBES samples may lack the probes. NO_MEMORY. */
enum qdq_code qdqi_data_figures_add(struct qdqi_data_figures *figures, size_t samples,
                                    const struct qdqi_input *inputs,
                                    const struct qdqi_output *outputs,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns how many samples are equal to an earlier one in all inputs. */
size_t qdqi_repeated_samples(const struct qdqi_data_figures *figures);

#endif
