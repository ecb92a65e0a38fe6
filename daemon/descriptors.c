/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "descriptors.h"
#include "base/log.h"

#include <sys/resource.h>

enum {
    OF_DAEMON = 112, /* for folders and databases, and connections that get an error */
    OF_LANE = 16,    /* for a worker's socket and a job's files */
    OF_ENDINGS = 18, /* for the files and folders of two jobs that end meanwhile */
    OF_CONNECTION = 6, /* for its socket, an upload, an answer and an event */
    OF_CARRIERS =
        2240, /* for the files that carriers fetch; taken only where there are more */
    LEAST = 2 /* connections */
};

bool
descriptors_share(struct settings *settings, struct api_problem *p)
{
    struct rlimit limit;
    rlim_t lanes = (rlim_t)settings->workers_count;
    rlim_t kept = OF_DAEMON + OF_LANE * (lanes + 1) + OF_ENDINGS * lanes;
    rlim_t wanted = kept + OF_CONNECTION * (rlim_t)settings->http_connections;
    rlim_t best = wanted + OF_CARRIERS;
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= best)
        return true;
    limit.rlim_cur = best < limit.rlim_max ? best : limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit))
        getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur >= wanted)
        return true;
    if (limit.rlim_cur < kept + OF_CONNECTION * LEAST)
        return api_problem_set(p, API_UNAVAILABLE, QDQ_AT_NOTHING, NULL,
                               "%llu descriptors are too few (RLIMIT_NOFILE); it needs "
                               "%llu, and %d more for each connection",
                               (unsigned long long)limit.rlim_cur,
                               (unsigned long long)kept, OF_CONNECTION);
    settings->http_connections = (int64_t)((limit.rlim_cur - kept) / OF_CONNECTION);
    log_info("connections_lowered", "to=%lld descriptors=%llu",
             (long long)settings->http_connections, (unsigned long long)limit.rlim_cur);
    return true;
}
