/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "carriers/carrier.h"
#include "base/clock.h"
#include "carriers/carry.h"
#include "settings/settings.h"
#include "workers/cage.h"
#include "workers/confine.h"
#include "workers/message.h"
#include "workers/worker.h"
#include "remote/remote.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_DATA ((rlim_t)512 << 20) /* bytes of the process's data */
#define PROGRESS_EVERY_MS 100
#define MOST_PAIRS 256

/* Tells how far the work is, and finds out whether the daemon has given it up. */
static bool
on_progress(void *arg, int64_t done, int64_t total)
{
    struct carrier *c = arg;
    struct pollfd socket = {.fd = WORKER_SOCKET, .events = POLLIN};
    int64_t now = clock_steady_ms();
    if (now - c->told_at < PROGRESS_EVERY_MS)
        return !c->gone;
    c->told_at = now;
    const struct message message = {
        .type = MESSAGE_CARRIED,
        .body.carried = {c->done_before + (uint64_t)(done > 0 ? done : 0),
                         (uint64_t)(total > 0 ? total : 0)}};
    carry_send(c, &message);
    return !c->gone && poll(&socket, 1, 0) == 0;
}

/* --- a remote -------------------------------------------------------------- */

/* --- fetching -------------------------------------------------------------- */

static bool
list_source(const struct qdqr_source *source, struct string_list *ret)
{
    bool ok = string_list_add(ret, source->resolved) &&
              string_list_add(ret, source->digest ? source->digest : "");
    for (size_t i = 0; ok && i < source->n_files; i++)
        ok = string_list_add_number(ret, source->files[i].role) &&
             string_list_add_number(ret, source->files[i].size) &&
             string_list_add(ret, source->files[i].name);
    return ok;
}

/* Pulls the files that the text names by their numbers, in its order. */
static bool
pull(struct carrier *c, const struct message *request, struct api_problem *p)
{
    struct string_list numbers = {request->text, request->text_len, 0};
    char digest[DIGEST_SIZE];
    long long number;
    c->done_before = 0;
    for (size_t i = 0; i < request->n_fds; i++) {
        struct stat st = {0};
        if (!string_list_next_number(&numbers, &number) || number < 0 ||
            (size_t)number >= c->source->n_files)
            return api_fail(p, API_INTERNAL, "a file was asked for that is not there");
        if (!qdqr_pull(&c->opened.remote, c->source, (size_t)number, request->fds[i],
                       &c->call, digest, p))
            return false;
        if (fstat(request->fds[i], &st) == 0)
            c->done_before += (uint64_t)st.st_size;
    }
    return true;
}

/* Waits for the files that the daemon wants of a source, and pulls them. */
static void
serve_pull(struct carrier *c)
{
    struct message request;
    struct api_problem problem = {0};
    if (message_receive(WORKER_SOCKET, -1, -1, &request) != MESSAGE_GOT)
        return;
    if (request.type == MESSAGE_PULL) {
        bool ok = pull(c, &request, &problem);
        carry_answer(c, ok, MESSAGE_RESULT, &(struct string_list){0}, &problem);
    }
    message_fini(&request);
}

static void
serve_fetch(struct carrier *c, const struct message *request)
{
    const struct message_fetch *asked = &request->body.fetch;
    struct api_problem problem = {0};
    struct string_list list = {0};
    bool ok =
        carry_open_remote(c, &asked->remote, request, &problem) &&
        qdqr_resolve(&c->opened.remote, asked->ref, &c->call, &c->source, &problem) &&
        (list_source(c->source, &list) || api_problem_no_memory(&problem));
    carry_answer(c, ok, MESSAGE_SOURCE, &list, &problem);
    if (ok)
        serve_pull(c);
    qdqr_source_free(&c->source);
}

/* --- publishing ------------------------------------------------------------ */

/* The lists of a publication. Their texts are those of the message. */
struct lists {
    struct qdqr_upload files[MESSAGE_MAX_PUBLISHED];
    struct qdqr_pair tags[MOST_PAIRS];
    struct qdqr_metric metrics[MOST_PAIRS];
    size_t n_files, n_tags, n_metrics;
};

static bool
add_file(struct lists *lists, struct string_list *strings, int fd)
{
    struct stat st;
    long long role;
    struct qdqr_upload *file = &lists->files[lists->n_files];
    bool ok =
        string_list_next_number(strings, &role) && role >= 0 && role < QDQR_N_ROLES;
    *file = (struct qdqr_upload){.role = (enum qdqr_role)role, .fd = fd};
    file->digest = ok ? string_list_next(strings) : NULL;
    file->name = file->digest ? string_list_next(strings) : NULL;
    if (!file->name || fstat(fd, &st))
        return false;
    file->size = st.st_size;
    lists->n_files++;
    return true;
}

/* Reads the lists: "file" ROLE DIGEST NAME, "tag" NAME VALUE, "figure" NAME VALUE. */
static bool
read_lists(const struct message *request, size_t fd, struct lists *ret)
{
    struct string_list strings = {request->text, request->text_len, 0};
    for (const char *kind; (kind = string_list_next(&strings));) {
        const char *name, *value;
        if (strcmp(kind, "file") == 0) {
            if (ret->n_files == MESSAGE_MAX_PUBLISHED || fd >= request->n_fds ||
                !add_file(ret, &strings, request->fds[fd++]))
                return false;
            continue;
        }
        if (!(name = string_list_next(&strings)) ||
            !(value = string_list_next(&strings)) || ret->n_tags == MOST_PAIRS ||
            ret->n_metrics == MOST_PAIRS)
            return false;
        if (strcmp(kind, "tag") == 0)
            ret->tags[ret->n_tags++] = (struct qdqr_pair){name, value};
        else
            ret->metrics[ret->n_metrics++] =
                (struct qdqr_metric){name, strtod(value, NULL)};
    }
    return true;
}

static void
serve_publish(struct carrier *c, const struct message *request)
{
    const struct message_publish *asked = &request->body.publish;
    struct api_problem problem = {0};
    struct string_list place = {0};
    char *location = NULL;
    struct lists *lists = calloc(1, sizeof *lists);
    bool ok = lists || api_problem_no_memory(&problem);
    ok = ok && carry_open_remote(c, &asked->remote, request, &problem) &&
         (read_lists(request, c->opened.n_fds, lists) ||
          api_fail(&problem, API_INTERNAL,
                   "the publication has too many files, tags or figures"));
    if (ok) {
        const struct qdqr_publication publication = {
            .ref = asked->ref,
            .alias = asked->alias,
            .delivery = asked->delivery,
            .source = *asked->source ? asked->source : NULL,
            .files = lists->files,
            .n_files = lists->n_files,
            .tags = lists->tags,
            .n_tags = lists->n_tags,
            .metrics = lists->metrics,
            .n_metrics = lists->n_metrics,
        };
        ok = qdqr_publish(&c->opened.remote, &publication, &c->call, &location,
                          &problem) &&
             (string_list_add(&place, location) || api_problem_no_memory(&problem));
    }
    carry_answer(c, ok, MESSAGE_RESULT, &place, &problem);
    free(location);
    free(lists);
}

static void
serve_deliver(struct carrier *c, const struct message *request)
{
    const struct message_deliver *asked = &request->body.deliver;
    const struct qdqr_event event = {asked->id, asked->timestamp,
                                     request->text ? request->text : "",
                                     request->text_len};
    struct api_problem problem = {0};
    bool ok = carry_open_remote(c, &asked->remote, request, &problem) &&
              qdqr_deliver(&c->opened.remote, &event, &c->call, &problem);
    carry_answer(c, ok, MESSAGE_RESULT, &(struct string_list){0}, &problem);
}

/* --- asking ---------------------------------------------------------------- */

/* Lists the new versions of the models whose names the text has. Those that have a tag of
   ours are ours. */
static void
serve_news(struct carrier *c, const struct message *request)
{
    const struct message_news *asked = &request->body.news;
    const struct qdqr_question question = {request->text ? request->text : "",
                                           API_OUR_TAGS, asked->since};
    struct api_problem problem = {0};
    struct qdqr_version *list = NULL;
    struct string_list strings = {0};
    size_t n = 0;
    bool ok =
        carry_open_remote(c, &asked->remote, request, &problem) &&
        qdqr_versions(&c->opened.remote, &question, &c->call, &list, &n, &problem);
    for (size_t i = 0; ok && i < n; i++)
        ok = (string_list_add(&strings, list[i].name) &&
              string_list_add(&strings, list[i].version) &&
              string_list_add_number(&strings, list[i].created) &&
              string_list_add_number(&strings, list[i].is_tagged)) ||
             api_problem_no_memory(&problem);
    carry_answer(c, ok, MESSAGE_RESULT, &strings, &problem);
    qdqr_versions_free(list, n);
}

/* --- start ----------------------------------------------------------------- */

/* Has the C library load its modules for names, which it could not open in the cage. */
static void
load_resolver(void)
{
    struct addrinfo *found = NULL;
    if (getaddrinfo("localhost", NULL, NULL, &found) == 0)
        freeaddrinfo(found);
    if (getaddrinfo("name.invalid", NULL,
                    &(struct addrinfo){.ai_flags = AI_NUMERICHOST}, &found) == 0)
        freeaddrinfo(found);
}

static bool
enter_cage(struct carrier *c, const char *setting)
{
    char lacking[CAGE_TEXT];
    if (strcmp(setting, "off") == 0)
        return true;
    if (cage_enter(CAGE_CARRIER, lacking) && !*lacking)
        return true;
    const struct message note = {.type = MESSAGE_NOTE,
                                 .body.note.event = MESSAGE_NOTE_CAGE_LACKING,
                                 .text = lacking,
                                 .text_len = strlen(lacking)};
    carry_send(c, &note);
    return strcmp(setting, "auto") == 0;
}

/* Does one piece of work, or all work for a bucket. */
static int
serve(struct carrier *c)
{
    static const struct {
        enum message_type type;
        void (*serve)(struct carrier *c, const struct message *request);
    } rows[] = {{MESSAGE_FETCH, serve_fetch},
                {MESSAGE_PUBLISH, serve_publish},
                {MESSAGE_DELIVER, serve_deliver},
                {MESSAGE_NEWS, serve_news},
                {MESSAGE_BUCKET, carry_objects}};
    struct message request;
    enum message_got got = message_receive(WORKER_SOCKET, -1, -1, &request);
    if (got != MESSAGE_GOT)
        return got == MESSAGE_EOF ? EXIT_SUCCESS : EXIT_FAILURE;
    size_t i = 0, n = sizeof rows / sizeof *rows;
    while (i < n && rows[i].type != request.type)
        i++;
    if (i < n)
        rows[i].serve(c, &request);
    carry_close_remote(&c->opened);
    message_fini(&request);
    return i < n ? EXIT_SUCCESS : EXIT_FAILURE;
}

int
carrier_main(int argc, char **argv)
{
    struct settings settings;
    struct carrier c = {.call = {.on_progress = on_progress, .arg = &c}};
    const struct message ready = {.type = MESSAGE_READY};
    char error[SETTINGS_ERROR];
    if (argc != 2) {
        fprintf(stderr, "qdqd: --carrier is started by the daemon itself\n");
        return 2;
    }
    if (!settings_load(NULL, NULL, 0, NULL, &settings, error)) {
        fprintf(stderr, "qdqd: %s\n", error);
        return 2;
    }
    bool ok =
        confine_process((pid_t)strtol(argv[0], NULL, 10), MOST_DATA, "qdqd-carrier") &&
        qdqr_init();
    if (ok)
        load_resolver();
    ok = ok && enter_cage(&c, settings.workers_cage);
    settings_fini(&settings);
    if (!ok)
        return EXIT_FAILURE;
    fcntl(WORKER_SOCKET, F_SETFD, FD_CLOEXEC);
    carry_send(&c, &ready);
    return serve(&c);
}
