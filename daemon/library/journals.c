/* SPDX-License-Identifier: Apache-2.0 */
/* The journals of jobs that search by patterns: STATE/journals/JOB, each written by the job's worker alone. */
#include "config.h"
#include "base/log.h"
#include "library/inner.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "journals"

int
library_journal_open(struct library *library, const char *job)
{
    char path[sizeof FOLDER + JOB_ID_SIZE + 1];
    snprintf(path, sizeof path, FOLDER "/%s", job);
    if (mkdirat(library->dir, FOLDER, 0700) && errno != EEXIST)
        return -1;
    return openat(library->dir, path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* Returns whether a job will not run any more. */
static bool
has_ended(struct library *library, const char *job)
{
    struct api_problem problem = {0};
    enum api_job_state state;
    if (!store_job_state(library->store, job, &state, &problem))
        return problem.code == API_NOT_FOUND;
    return state != API_JOB_QUEUED && state != API_JOB_RUNNING;
}

void
library_journal_settle(struct library *library, const char *job)
{
    char path[sizeof FOLDER + JOB_ID_SIZE + 1];
    snprintf(path, sizeof path, FOLDER "/%s", job);
    if (has_ended(library, job) && unlinkat(library->dir, path, 0) && errno != ENOENT)
        log_error("journal_not_removed", "job=%s errno=%d", job, errno);
}

void
library_journals_sweep(struct library *library)
{
    DIR *stream = blobs_open_stream(library->dir, FOLDER);
    for (struct dirent *entry; stream && (entry = readdir(stream));)
        if (entry->d_name[0] != '.' && strlen(entry->d_name) < JOB_ID_SIZE)
            library_journal_settle(library, entry->d_name);
    if (stream)
        closedir(stream);
}
