/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the threshold below which `percentile` percent of all |x| are, including
 * zeros. Within a bin it interpolates, so the error is at most the width of a bin,
 * which is at most 1/1024 of the largest |x|. 100 percent is exactly the largest |x|.
 */
#include "config.h"
#include "numbers/range/method.h"

static struct qdqi_range
share(const struct qdqi_observer *observer, const struct qdqi_range_use *use)
{
    const struct qdqi_histogram *h = observer->all.histogram;
    double width = qdqi_histogram_width(h);
    double wanted = (double)qdqi_histogram_total(h) * use->spec->percentile / 100;
    double amax = (double)qdqi_extremes_amax(&observer->all.extremes);
    double below = 0;
    size_t j = 0, n = qdqi_histogram_used(h);
    while (j + 1 < n && below + (double)h->counts[j] < wanted)
        below += (double)h->counts[j++];
    double t = ((double)j + (wanted - below) / (double)h->counts[j]) * width;
    return use->spec->percentile < 100 && t < amax ? qdqi_range_within(observer, t)
                                                   : qdqi_range_seen(observer);
}

QDQI_METHOD(percentile, .needs = QDQI_NEEDS_HISTOGRAM, .range = share,
            .uses_percentile = true);
