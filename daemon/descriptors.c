/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "descriptors.h"
#include "base/log.h"

#include <sys/resource.h>

enum {
    DAEMON_FDS = 112, /* for folders and databases, and connections that get an error */
    LANE_FDS = 16,    /* for a worker's socket and a job's files */
    ENDING_FDS = 18,  /* for the files and folders of two jobs that end meanwhile */
    CONNECTION_FDS = 6, /* for its socket, an upload, an answer and an event */
    CARRIER_FDS =
        2240, /* for the files that carriers fetch; taken only where there are more */
    LEAST_CONNECTIONS = 2
};

bool
descriptors_share(struct settings *settings, struct api_problem *p)
{
    struct rlimit limit;
    rlim_t lanes = (rlim_t)settings->workers_count;
    rlim_t kept = DAEMON_FDS + LANE_FDS * (lanes + 1) + ENDING_FDS * lanes;
    rlim_t wanted = kept + CONNECTION_FDS * (rlim_t)settings->http_connections;
    rlim_t best = wanted + CARRIER_FDS;
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= best)
        return true;
    limit.rlim_cur = best < limit.rlim_max ? best : limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit))
        getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur >= wanted)
        return true;
    if (limit.rlim_cur < kept + CONNECTION_FDS * LEAST_CONNECTIONS)
        return api_problem_set(p, API_UNAVAILABLE, QDQ_AT_NOTHING, NULL,
                               "%llu descriptors are too few (RLIMIT_NOFILE); it needs "
                               "%llu, and %d more for each connection",
                               (unsigned long long)limit.rlim_cur,
                               (unsigned long long)kept, CONNECTION_FDS);
    settings->http_connections = (int64_t)((limit.rlim_cur - kept) / CONNECTION_FDS);
    log_info("connections_lowered", "to=%lld descriptors=%llu",
             (long long)settings->http_connections, (unsigned long long)limit.rlim_cur);
    return true;
}
