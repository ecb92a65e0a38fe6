/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "run/operators/variants.h"

#include "run/operators/compare_op.h"
#include "run/operators/fake.h"
#include "run/operators/moments.h"
#include "run/operators/observe.h"
#include "run/operators/peaks.h"

static size_t
init(const struct qdqi_op_objects *objects, void *state, const OrtApi *api,
     struct qdqi_op ops[QDQI_MOST_OPS])
{
    size_t n = 0;
    (void)state;
    if (objects->observers)
        qdqi_observe_init(&ops[n++], api, objects->observers);
    if (objects->moments)
        qdqi_moments_init(&ops[n++], api, objects->moments);
    if (objects->peaks)
        qdqi_peaks_init(&ops[n++], api, objects->peaks);
    if (objects->fakes)
        qdqi_fake_init(&ops[n++], api, objects->fakes);
    if (objects->comparisons) {
        qdqi_compare_init(&ops[n++], api, objects->comparisons);
        qdqi_pass_init(&ops[n++], api);
    }
    return n;
}

const struct qdqi_op_variants qdqi_host_variants = {.init = init};
