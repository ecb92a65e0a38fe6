/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/attempt/memory.h"

#include <sys/resource.h>
#include <sys/sysinfo.h>

static uint64_t
smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Returns the bytes of memory that a process may have here. */
static uint64_t
most_memory(void)
{
    static const __rlimit_resource_t kinds[] = {RLIMIT_DATA, RLIMIT_AS};
    struct sysinfo info;
    struct rlimit limit;
    uint64_t most = UINT64_MAX;
    if (sysinfo(&info) == 0)
        most = ((uint64_t)info.totalram + info.totalswap) * info.mem_unit;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (getrlimit(kinds[i], &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
            most = smaller(most, limit.rlim_cur);
    return most;
}

enum qdq_code
qdqi_attempt_check_memory(const struct qdqi_attempt *a, struct qdq_error *err)
{
    const struct qdq_spec *spec = a->spec;
    const uint64_t needed = a->plan->moment_bytes, most = most_memory();
    if (a->context->work->dataset < 0 || needed <= most)
        return QDQ_OK;
    return qdq_error_set(err, QDQ_LIMIT_EXCEEDED, QDQ_AT_POINTER,
                         spec->smooth_awq        ? "/smooth"
                         : qdq_spec_rounds(spec) ? "/weights/rounding"
                                                 : "/bias_correction",
                         "second moments and the integers that go by them take about "
                         "%llu MiB beside what the runtime takes, and a process may "
                         "have %llu MiB here: the rounding \"nearest\" needs neither",
                         (unsigned long long)(needed >> 20),
                         (unsigned long long)(most >> 20));
}
