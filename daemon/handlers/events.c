/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends the life of a job as server-sent events. The connection's thread waits in the
 * function that reads the stream: for a change of the job, for the next look at its
 * progress, or for the client to close the connection.
 *
 * The id of an event is the number of the change of state that it reports. Change 1 is
 * the job's first entry into the queue; up to the end, each odd number is an entry into
 * the queue and each even number is a run. A client that comes back with the id that it
 * received last therefore gets all changes after that one, and none twice. A progress
 * event carries the id of the state that it belongs to.
 */
#include "config.h"
#include "base/clock.h"
#include "handlers/handlers.h"
#include "settings/settings.h"
#include "api/grow.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TICK_MS 500   /* time between two looks at the progress of a running job */
#define TOKEN_MS 1000 /* time between two looks at the access token */
/* time after which a comment shows that the connection is alive */
#define MAX_QUIET_MS 15000

struct events {
    struct jobs *jobs;
    struct tokens *tokens; /* NULL: nobody needs one */
    struct token who;
    int64_t asked_at; /* steady clock of the last look at the token */
    struct job_watch *watch;
    char id[JOB_ID_SIZE];
    int64_t last_sent; /* id of the last event that was sent; 0: none */
    bool changed; /* the job may have changed since it was last read from the store */
    bool running, over;
    const char *stage; /* the progress that was sent last */
    uint64_t done, total;
    int64_t quiet_since, max_quiet; /* ms */
    char *text;                     /* bytes to send, from `at` to `len` */
    size_t at, len;
};

/* --- events --------------------------------------------------------------- */

/* Appends an event; takes ownership of `data`. */
static bool
add_event(struct events *events, const char *name, int64_t id, char *data)
{
    static const char form[] = "id: %lld\nevent: %s\ndata: %s\n\n";
    size_t room = data ? sizeof form + strlen(name) + strlen(data) + 20 : 0;
    char *grown = data ? api_grow(events->text, events->len, room, 1) : NULL;
    if (grown) {
        events->text = grown;
        events->len += (size_t)snprintf(grown + events->len, room, form, (long long)id,
                                        name, data);
    }
    free(data);
    return grown;
}

/* Appends the job's state after an earlier change. */
static bool
add_past(struct events *events, const struct api_job *now, int64_t change)
{
    struct api_job job = *now;
    bool ran = change % 2 == 0;
    job.state = ran ? API_JOB_RUNNING : API_JOB_QUEUED;
    job.started_at = ran ? now->started_at : 0;
    job.attempts = change / 2;
    job.ended_at = job.position = 0;
    job.stage = job.result_model = NULL;
    job.error = NULL;
    return add_event(events, "state", change, api_job_encode(&job));
}

static bool
add_changes(struct events *events, const struct job_view *view)
{
    struct api_job job = show_job(view);
    job.omits = job.omits_spec || job.omits_labels;
    bool ended = api_job_state_ended(job.state), ok = true;
    int64_t change = view->row.changes;
    if (events->last_sent == change)
        return true;
    for (int64_t i = events->last_sent; ok && i && ++i < change;)
        ok = add_past(events, &job, i);
    events->last_sent = change;
    return ok &&
           add_event(events, ended ? "end" : "state", change, api_job_encode(&job));
}

static bool
add_progress(struct events *events, const struct job_view *view)
{
    if (!view->stage || (view->stage == events->stage && view->done == events->done &&
                         view->total == events->total))
        return true;
    const struct api_job job = show_job(view);
    events->stage = view->stage;
    events->done = view->done;
    events->total = view->total;
    return add_event(events, "progress", events->last_sent, api_progress_encode(&job));
}

/* --- the stream ----------------------------------------------------------- */

/* Reads the job from the store and appends its news. Returns false when that fails. */
static bool
add_job_news(struct events *events)
{
    struct api_problem problem = {0};
    struct job_view view = {0};
    bool useful = job_watch_clear(events->jobs, events->watch);
    events->changed = false;
    bool ok = jobs_get(events->jobs, events->id, &view, &problem) &&
              add_changes(events, &view) && add_progress(events, &view);
    events->running = ok && view.row.state == API_JOB_RUNNING;
    events->over = !useful || (ok && api_job_state_ended(view.row.state));
    if (!events->running)
        events->stage = NULL;
    job_view_fini(&view);
    return ok;
}

/* Appends the job's progress, which is in memory and not in the store. */
static bool
add_progress_news(struct events *events)
{
    struct job_view view = {.eta_s = -1};
    if (events->running)
        (void)jobs_view_progress(events->jobs, events->id, &view);
    return add_progress(events, &view);
}

/* Returns whether the stream's token has not been revoked. */
static bool
may_go_on(struct events *events)
{
    int64_t now = clock_steady_ms();
    if (!events->tokens || now - events->asked_at < TOKEN_MS)
        return true;
    events->asked_at = now;
    return tokens_hold(events->tokens, &events->who);
}

/* Waits until the job may have news, or appends a comment when it was quiet for
   long. Returns false when the client has closed the connection. */
static bool
wait_for_change(struct events *events, int socket)
{
    static const char comment[] = ":\n\n";
    struct pollfd fds[] = {{.fd = job_watch_fd(events->watch), .events = POLLIN},
                           {.fd = socket, .events = POLLRDHUP}};
    int64_t left = events->quiet_since + events->max_quiet - clock_steady_ms();
    int64_t most = events->running ? TICK_MS : TOKEN_MS;
    if (left > 0) {
        (void)poll(fds, 2, (int)(left < most ? left : most));
        events->changed = fds[0].revents;
        return !fds[1].revents;
    }
    return api_append(&events->text, &events->len, comment, sizeof comment - 1);
}

static ssize_t
read_events(void *arg, int socket, char *to, size_t size)
{
    struct events *events = arg;
    while (events->at == events->len) {
        events->at = events->len = 0;
        if (events->over || !may_go_on(events))
            return 0;
        if (!(events->changed ? add_job_news(events) : add_progress_news(events)))
            return -1;
        if (!events->len && !events->over && !wait_for_change(events, socket))
            return -1;
    }
    size_t n = events->len - events->at;
    if (n > size)
        n = size;
    memcpy(to, events->text + events->at, n);
    events->at += n;
    events->quiet_since = clock_steady_ms();
    return (ssize_t)n;
}

static void
free_events(void *arg)
{
    struct events *events = arg;
    jobs_unwatch(events->jobs, &events->watch);
    free(events->text);
    free(events);
}

/* --- the reply ------------------------------------------------------------ */

/* Returns the id that the client received last; 0: the request has none. */
static int64_t
last_event_id(const struct request *request)
{
    const char *text = request_header(request, "Last-Event-ID");
    int64_t id = 0;
    if (text)
        (void)request_parse_number(text, strlen(text), &id);
    return id;
}

static struct events *
make_events(const struct request *request, const struct job_view *view,
            struct api_problem *p)
{
    const struct service *service = request->service;
    struct events *events = calloc(1, sizeof *events);
    if (!events) {
        api_problem_no_memory(p);
        return NULL;
    }
    int64_t third = service->settings->http_timeout * 1000 / 3;
    events->jobs = service->jobs;
    events->tokens = request->tokens;
    events->who = request->who;
    events->asked_at = clock_steady_ms();
    memcpy(events->id, view->row.id, sizeof events->id);
    events->last_sent = last_event_id(request);
    events->changed = true;
    events->quiet_since = clock_steady_ms();
    events->max_quiet = third < MAX_QUIET_MS ? third : MAX_QUIET_MS;
    if (jobs_watch(service->jobs, events->id, &events->watch, p))
        return events;
    free(events);
    return NULL;
}

void
handle_job_events(struct request *request)
{
    struct stream stream = {.read = read_events, .free = free_events};
    struct job_view view;
    if (!jobs_get(request->service->jobs, request->match.id, &view, &request->problem))
        return;
    if (api_job_state_ended(view.row.state) &&
        last_event_id(request) == view.row.changes) {
        reply_empty(request, 204);
    } else if ((stream.arg = make_events(request, &view, &request->problem))) {
        reply_stream(request, "text/event-stream", &stream);
        reply_header(request, "Cache-Control", "no-store");
    }
    job_view_fini(&view);
}
