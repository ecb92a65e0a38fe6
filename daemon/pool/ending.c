/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "pool/ending.h"
#include "tenants/service.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- the files of one job ------------------------------------------------- */

/* Closes the files that only the worker uses. */
static void
close_inputs(struct work *work)
{
    model_fds_fini(&work->model);
    int *const inputs[] = {&work->dataset, &work->evaluation, &work->metric,
                           &work->journal};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        if (*inputs[i] >= 0)
            close(*inputs[i]);
        *inputs[i] = -1;
    }
}

bool
ending_lend(struct ending *ending, size_t which, struct spool **ret,
            struct api_problem *p)
{
    struct blobs *blobs = library_blobs(ending->service->library);
    if (ending->lent_by != ending->service)
        for (size_t i = 0; i < N_LENT; i++)
            lent_file_close(&ending->lent[i]);
    ending->lent_by = ending->service;
    return lent_file_open(blobs, &ending->lent[which], p) &&
           spool_open_lent(blobs, ending->lent[which], ret, p);
}

void
ending_close(struct ending *ending)
{
    struct work *work = &ending->work;
    close_inputs(work);
    spool_discard(&work->data);
    spool_discard(&work->output);
    spool_discard(&work->report);
    spool_discard(&work->frozen);
    spool_discard(&work->observed);
    spool_discard(&work->times);
    for (size_t i = 0; i < N_LENT; i++)
        lent_file_trim(&ending->lent[i]);
}

void
ending_settle_journal(struct ending *ending)
{
    if (*ending->work.journaled)
        library_journal_settle(ending->service->library, ending->work.journaled);
    ending->work.journaled[0] = '\0';
}

/* --- the end of one job --------------------------------------------------- */

static bool
is_empty(const struct spool *spool)
{
    struct stat st;
    return fstat(spool_fd(spool), &st) == 0 && st.st_size == 0;
}

/* Stores the files that the worker wrote as the job's result. Returns false
   with the problem set when that fails. */
static bool
keep_result(struct ending *ending, struct api_problem *p)
{
    struct jobs *jobs = ending->service->jobs;
    struct work *work = &ending->work;
    struct job_result result = {.model = &work->output,
                                .report = &work->report,
                                .frozen = &work->frozen,
                                .data_path = MESSAGE_DATA_NAME,
                                .summary = ending->summary};
    if (!spool_finish_file(work->output, p) ||
        (!is_empty(work->data) && !spool_finish_file(work->data, p)) ||
        !spool_finish_file(work->report, p) || !spool_finish_file(work->frozen, p))
        return false;
    if (spool_size(work->data))
        result.data = &work->data;
    if (ending->outcome == OUTCOME_DONE)
        jobs_succeed(jobs, &ending->slot, &result);
    else
        jobs_reject(jobs, &ending->slot, &result, &ending->problem);
    return true;
}

void
ending_report_full_disk(const struct ending *ending, struct api_problem *p)
{
    struct api_problem problem = {0};
    if (p->code == API_IO &&
        !blobs_has_room(library_blobs(ending->service->library), 0, &problem) &&
        problem.code == API_DISK_FULL)
        *p = problem;
}

/* Ends a job whose files cannot be kept. It runs once more when the problem may pass. */
static void
fail(struct ending *ending, struct api_problem *p)
{
    ending_report_full_disk(ending, p);
    if (p->code == API_UNAVAILABLE) {
        lane_count_unfinished(ending->service);
        jobs_put_back(ending->service->jobs, &ending->slot);
    } else {
        lane_count_finished(ending->service);
        jobs_fail(ending->service->jobs, &ending->slot, p);
    }
}

void
ending_finish(struct ending *ending)
{
    struct api_problem problem = {0};
    if (keep_result(ending, &problem))
        lane_count_finished(ending->service);
    else
        fail(ending, &problem);
    ending_close(ending);
    ending_settle_journal(ending);
    free(ending->summary);
    ending->summary = NULL;
}

/* --- their threads -------------------------------------------------------- */

void
endings_init(struct endings *endings, struct process *process)
{
    endings->process = process;
    endings->closing = false;
    lock_init(&endings->lock, LOCK_ENDINGS);
    pthread_cond_init(&endings->idle, NULL);
    for (size_t i = 0; i < MOST_ENDINGS; i++) {
        struct ending *ending = &endings->each[i];
        *ending = (struct ending){.endings = endings,
                                  .slot.device = GPUS_NONE,
                                  .lent = {-1, -1, -1, -1, -1, -1}};
        pthread_cond_init(&ending->given, NULL);
    }
}

void
endings_fini(struct endings *endings)
{
    lock_acquire(&endings->lock);
    endings->closing = true;
    for (size_t i = 0; i < MOST_ENDINGS; i++)
        pthread_cond_signal(&endings->each[i].given);
    lock_release(&endings->lock);
    for (size_t i = 0; i < MOST_ENDINGS; i++) {
        struct ending *ending = &endings->each[i];
        if (ending->started)
            pthread_join(ending->thread, NULL);
        ending->started = false;
        for (size_t k = 0; k < N_LENT; k++)
            lent_file_close(&ending->lent[k]);
        pthread_cond_destroy(&ending->given);
    }
    pthread_cond_destroy(&endings->idle);
    lock_fini(&endings->lock);
}

/* Returns an idle one, or NULL. */
static struct ending *
find_idle(struct endings *endings)
{
    lock_assert_held(&endings->lock);
    for (size_t i = 0; i < MOST_ENDINGS; i++)
        if (endings->each[i].state == ENDING_IDLE)
            return &endings->each[i];
    return NULL;
}

struct ending *
endings_take(struct endings *endings)
{
    struct ending *ending;
    lock_acquire(&endings->lock);
    while (!(ending = find_idle(endings)))
        lock_wait(&endings->lock, &endings->idle);
    ending->state = ENDING_TAKEN;
    lock_release(&endings->lock);
    ending->slot.process = endings->process;
    ending->work =
        (struct work){.dataset = -1, .evaluation = -1, .metric = -1, .journal = -1};
    ending->problem = (struct api_problem){0};
    return ending;
}

static void
set_state(struct ending *ending, enum ending_state state)
{
    lock_acquire(&ending->endings->lock);
    ending->state = state;
    pthread_cond_signal(state == ENDING_IDLE ? &ending->endings->idle : &ending->given);
    lock_release(&ending->endings->lock);
}

void
ending_leave(struct ending *ending)
{
    set_state(ending, ENDING_IDLE);
}

/* Waits for an end. Returns false when there will be none. */
static bool
wait_for_end(struct ending *ending)
{
    struct endings *endings = ending->endings;
    lock_acquire(&endings->lock);
    while (ending->state != ENDING_GIVEN && !endings->closing)
        lock_wait(&endings->lock, &ending->given);
    bool given = ending->state == ENDING_GIVEN;
    lock_release(&endings->lock);
    return given;
}

static void *
run(void *arg)
{
    struct ending *ending = arg;
    while (wait_for_end(ending)) {
        ending_finish(ending);
        ending_leave(ending);
    }
    return NULL;
}

void
ending_give(struct ending *ending)
{
    if (!ending->started)
        ending->started = pthread_create(&ending->thread, NULL, run, ending) == 0;
    if (!ending->started) {
        ending_finish(ending);
        ending_leave(ending);
        return;
    }
    jobs_leave_worker(ending->service->jobs, &ending->slot);
    close_inputs(&ending->work);
    set_state(ending, ENDING_GIVEN);
}
