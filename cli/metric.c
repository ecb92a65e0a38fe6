/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "metric.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "files.h"

bool
metric_open(struct api_spec *spec, int *ret_fd, struct api_problem *problem)
{
    const struct qdq_task *task = &api_spec_get(spec)->task;
    char id[DIGEST_SIZE];
    if (!task->asked || !task->model)
        return true;
    if (digest_is_id(task->model))
        return api_fail_at(problem, API_INVALID_SPEC, "/task/model",
                           "an id stands for a file of a service: name the path of the "
                           "metric");
    return file_open(task->model, ret_fd, problem) &&
           digest_file(*ret_fd, task->model, id, problem) &&
           api_spec_set_metric(spec, id, problem);
}

/* Returns the bytes of writable memory that the process has; 0: not known. */
static rlim_t
memory_in_use(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%*u %*u %*u %*u %*u %lu", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static void
bound_memory(bool bounded)
{
    static const rlim_t more = (rlim_t)2 << 30;
    struct rlimit limit;
    const rlim_t used = memory_in_use();
    if (getrlimit(RLIMIT_DATA, &limit) || (bounded && used == 0))
        return;
    limit.rlim_cur =
        bounded && used + more < limit.rlim_max ? used + more : limit.rlim_max;
    setrlimit(RLIMIT_DATA, &limit);
}

void
metric_bound(void *arg, unsigned seconds)
{
    const struct itimerval timer = {.it_value = {.tv_sec = (time_t)seconds}};
    (void)arg;
    bound_memory(seconds > 0);
    setitimer(ITIMER_REAL, &timer, NULL);
}
