/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/evaluate/sample_choice.h"

#include "plan/gates/gates.h"
#include "stages/evaluate/deployed.h"

#include <string.h>

enum { TELLING_ELEMENTS = 16384 }; /* elements of an output whose noise is well known */

/* Returns the elements of an output in one sample; 1 where a size is not declared. */
static int64_t
elements_of(const struct qdq_value *output)
{
    int64_t n = 1;
    for (size_t i = 1; output->has_shape && i < output->rank && n < TELLING_ELEMENTS;
         i++) {
        const int64_t size = output->dims[i].value;
        if (size < 1)
            return 1;
        n *= size < TELLING_ELEMENTS ? size : TELLING_ELEMENTS;
    }
    return n;
}

/* Returns the elements in one sample of the floating output that has the fewest of them. */
static int64_t
fewest_elements(const struct qdq_model_info *info)
{
    int64_t fewest = TELLING_ELEMENTS;
    bool any = false;
    for (size_t i = 0; i < info->n_outputs; i++) {
        const struct qdq_value *output = &info->outputs[i];
        if (strncmp(output->dtype, "float", strlen("float")) != 0)
            continue;
        const int64_t n = elements_of(output);
        fewest = n < fewest ? n : fewest;
        any = true;
    }
    return any ? fewest : 1;
}

int64_t
qdqi_enough_samples(const struct qdqi_attempt *a, int64_t few, int64_t least)
{
    const struct qdqi_deploy_ops *ops = qdqi_judging_ops(a->context);
    if (!ops || !ops->opens_slowly)
        return few;
    const int64_t elements = fewest_elements(&a->model->info);
    const int64_t n = (TELLING_ELEMENTS + elements - 1) / elements;
    const int64_t enough = n > least ? n : least;
    return enough < few ? enough : few;
}

/* --- the evaluation --------------------------------------------------------- */

/* The fewest samples of an evaluation, where there are so many: fewer cap the verdict. */
enum { UNASKED_SAMPLES = 16 };

bool
qdqi_asks_for_figures(const struct qdq_spec *spec)
{
    return spec->evaluate == QDQ_YES || qdqi_gates_ask(&spec->accept) ||
           spec->recipe >= QDQ_RECIPE_BEST || spec->sensitivity_samples > 0 ||
           qdq_spec_searches(spec);
}

/*
 * Returns how many samples the evaluation takes at most; 0: all. Where another runtime than
 * the one that calibrates judges the result, three models run for each sample. An evaluation
 * that nobody asks for then takes those that calibration did not see, or UNASKED_SAMPLES. If the outputs
 * are large, it takes no more than UNASKED_SAMPLES.
 */
static int64_t
most_samples(const struct qdqi_attempt *a, int64_t fresh)
{
    const struct qdq_spec *spec = a->spec;
    const struct qdqi_deploy_ops *ops = qdqi_judging_ops(a->context);
    const int64_t wanted = spec->evaluate_samples;
    const int64_t enough = qdqi_enough_samples(a, UNASKED_SAMPLES, 1);
    const bool is_large = enough < UNASKED_SAMPLES;
    const int64_t few = fresh > UNASKED_SAMPLES && !is_large ? fresh : UNASKED_SAMPLES;
    if (!ops || ops->calibrates || qdqi_asks_for_figures(spec))
        return wanted;
    return wanted && wanted < few ? wanted : few;
}

void
qdqi_choose_samples(const struct qdqi_attempt *a, int64_t available,
                    struct qdqi_feed_options *options)
{
    /* calibration has read none of the data that was given to judge by */
    const int64_t read = a->context->evaluation ? 0 : a->calibrated.samples;
    int64_t fresh = available - read;
    int64_t wanted = most_samples(a, fresh);
    const int64_t most = a->spec->target->judged_samples;
    if (most > 0 && (wanted == 0 || wanted > most) &&
        a->spec->evaluate_samples == QDQ_EVALUATE_SAMPLES)
        wanted = most; /* no spec says another number */
    if (wanted == QDQ_EVALUATE_SAMPLES && fresh >= UNASKED_SAMPLES && fresh < wanted)
        wanted = fresh; /* no spec says this number */
    options->max_samples = wanted;
    if (fresh >= (wanted ? wanted : 1))
        options->first = read;
    else if (wanted && wanted < available)
        options->first = available - wanted;
}
