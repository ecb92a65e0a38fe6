/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "kept/journal.h"

#include "api/spec.h"
#include "judge.h"
#include "judges/runner.h"
#include "kept/folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

void
kept_journal_init(struct kept_journal *j, const struct qdq_spec *spec,
                  const struct judge *judge, const char *data, const char *judging_data,
                  struct pending_id *model_id)
{
    const struct runner_config *runner =
        qdq_spec_keeps_journal(spec) ? judge_runner(judge, spec->target->runtime)
                                     : NULL;
    *j = (struct kept_journal){.model_id = model_id, .fd = -1};
    if (!runner)
        return;
    char *text = api_spec_encode(spec), *program = runner_encode(runner);
    if (text && program &&
        asprintf(&j->of, "%s\n%s\n%s\n%s\n", text, program, data, judging_data) < 0)
        j->of = NULL;
    free(text);
    free(program);
}

/* Returns the path of the file; the caller frees it. NULL: there is none. */
static char *
find_path(const struct kept_journal *j)
{
    char *whole = NULL, *path = NULL;
    const char *id = pending_id_wait(j->model_id);
    if (id && asprintf(&whole, "%s\n%s", id, j->of) >= 0)
        path = kept_folder_path("journals", whole);
    free(whole);
    return path;
}

int
kept_journal_open(void *arg)
{
    struct kept_journal *j = arg;
    if (!j->of || !(j->path = find_path(j)))
        return -1;
    j->fd = open(j->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0600);
    if (j->fd >= 0 && flock(j->fd, LOCK_EX | LOCK_NB)) {
        close(j->fd);
        j->fd = -1;
    }
    if (j->fd >= 0) {
        (void)futimens(j->fd, NULL);
        kept_folder_trim(j->path);
    }
    return j->fd;
}

void
kept_journal_end(struct kept_journal *j, bool succeeded)
{
    if (j->fd >= 0) {
        if (succeeded)
            unlink(j->path);
        close(j->fd);
    }
    free(j->path);
    free(j->of);
    *j = (struct kept_journal){.fd = -1};
}
