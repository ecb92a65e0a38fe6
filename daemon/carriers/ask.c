/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "carriers/ask.h"
#include "base/clock.h"
#include "tenants/service.h"

#include <string.h>
#include <sys/random.h>

#define SEND_MS 60000 /* for a message to the process, which is on this machine */
#define CHECK_MS 1000
#define SLACK_MS 2000 /* in which the process says itself that its time is over */
#define SILENT_MS \
    (10 * 60 * 1000) /* a process that works tells its progress now and then */
#define FIRST_WAIT_MS 1000
#define MOST_WAIT_MS (15 * 60 * 1000)
#define MOST_ASKED_S 3600 /* a remote cannot ask for a longer wait */

void
ask_init(struct carrier_work *work, const struct settings *settings,
         struct metrics *metrics)
{
    process_init(&work->process, settings, metrics);
    work->process.role = "carrier";
    work->slot.process = &work->process;
    work->delivery.process = &work->process;
    work->slot.device = GPUS_NONE;
}

void
ask_fini(struct carrier_work *work)
{
    process_fini(&work->process);
}

bool
ask_start(struct carrier_work *work, const struct message_remote *remote,
          struct api_problem *p)
{
    work->retry_after = 0;
    work->most = remote->total_timeout;
    work->ends_at =
        work->most > 0 ? clock_steady_ms() + work->most * 1000 + SLACK_MS : 0;
    switch (process_start(&work->process, GPUS_NONE, p)) {
    case PROCESS_RUNS:
        return true;
    case PROCESS_FAILED:
        return false;
    default:
        process_end(&work->process, true, NULL);
        return api_fail(p, API_UNAVAILABLE,
                        "the carrier process ended before its work");
    }
}

void
ask_end(struct carrier_work *work)
{
    process_end(&work->process, false, NULL);
}

static bool
fail_dead(struct carrier_work *work, struct api_problem *p)
{
    char how[64] = "is gone";
    bool killed = process_was_killed(&work->process);
    process_end(&work->process, true, how);
    if (killed)
        return api_fail(p, API_CANCELLED, "the carrier process was stopped");
    return api_fail(p, API_REMOTE_UNAVAILABLE, "the carrier process %s", how);
}

/* Handles a message that is no answer. Returns false when it must not come. */
static bool
handle_event(struct carrier_work *work, const struct message *message)
{
    switch (message->type) {
    case MESSAGE_NOTE:
        process_note(&work->process, message);
        return true;
    case MESSAGE_CARRIED:
        if (*work->slot.id)
            jobs_fetch_progress(work->service->jobs, &work->slot,
                                message->body.carried.done,
                                message->body.carried.total);
        return true;
    case MESSAGE_RETRY_AFTER:
        work->retry_after = message->body.retry.seconds;
        return true;
    default:
        return false;
    }
}

/* Returns whether the process may take more time. `heard` is when it last said something. */
static bool
check_time(const struct carrier_work *work, int64_t heard, struct api_problem *p)
{
    int64_t now = clock_steady_ms();
    if (work->ends_at && now >= work->ends_at)
        return api_fail(p, API_REMOTE_UNAVAILABLE,
                        "the carrier process has not ended within the %lld seconds for "
                        "all requests together (total_timeout)",
                        (long long)work->most);
    return now - heard < SILENT_MS ||
           api_fail(p, API_REMOTE_UNAVAILABLE, "the carrier process does not answer");
}

/* Asks the caller whether the work may go on, and ends it if not, or if its time is over. */
static bool
goes_on(struct carrier_work *work, int64_t heard, struct api_problem *p)
{
    if (check_time(work, heard, p) && (!work->watch || work->watch(work->watch_arg, p)))
        return true;
    process_end(&work->process, true, NULL);
    return false;
}

bool
ask_carrier(struct carrier_work *work, const struct message *request,
            enum message_type wanted, struct message *ret, struct api_problem *p)
{
    if (!message_send(work->process.socket, SEND_MS, request))
        return fail_dead(work, p);
    for (int64_t heard = clock_steady_ms();;) {
        struct message message;
        enum message_got got =
            message_receive(work->process.socket, CHECK_MS, SEND_MS, &message);
        process_relay(&work->process);
        if (got == MESSAGE_TIMEOUT && !goes_on(work, heard, p))
            return false;
        if (got == MESSAGE_TIMEOUT)
            continue;
        heard = clock_steady_ms();
        if (got != MESSAGE_GOT)
            return fail_dead(work, p);
        if (message.type == wanted) {
            *ret = message;
            return true;
        }
        bool is_event = handle_event(work, &message);
        if (message.type == MESSAGE_FAILED && p && !p->set) {
            *p = message.body.failed;
            p->set = true;
        }
        message_fini(&message);
        if (message.type == MESSAGE_FAILED)
            return false;
        if (!is_event)
            return fail_dead(work, p);
        if (!goes_on(work, heard, p))
            return false;
    }
}

bool
ask_may_retry(enum api_code code)
{
    return api_problem_retryable(code) && code != API_DAMAGED;
}

int64_t
ask_wait_ms(const struct carrier_work *work, int64_t attempts)
{
    int64_t ms = FIRST_WAIT_MS, asked = work->retry_after;
    unsigned short random = 0;
    for (int64_t i = 1; i < attempts && ms < MOST_WAIT_MS; i++)
        ms *= 2;
    ms = ms < MOST_WAIT_MS ? ms : MOST_WAIT_MS;
    (void)!getrandom(&random, sizeof random, GRND_NONBLOCK);
    ms = ms * 3 / 4 + ms / 2 * random / 65536; /* a quarter less, or a quarter more */
    asked = (asked < MOST_ASKED_S ? asked : MOST_ASKED_S) * 1000;
    return asked > ms ? asked : ms;
}
