/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the daemon's HTTP server in the process of a fuzz target, with real sockets,
 * bodies, handlers, store and files. The linker replaces the functions that would run a
 * worker, wait or use random numbers (--wrap; see SERVED in daemon.mk): no upload is
 * checked, no job runs, and the ids of jobs count from 1. Before each request there are
 * one model and one queued job.
 */
#ifndef TESTS_FUZZ_SERVER_H
#define TESTS_FUZZ_SERVER_H

#include "handlers/handlers.h"
#include "http/server.h"
#include "http/listen.h"
#include "settings/settings.h"
#include "tenants/tokens.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* time to wait for an answer; a server that hangs is a finding */
#define PATIENCE_MS 5000

struct server {
    char folder[64];
    struct settings settings;
    struct tokens *tokens;
    struct tenants *tenants;
    const struct service *service;
    struct listener listener;
    struct http *http;
};

/* --- replaced functions --------------------------------------------------- */

bool __wrap_pool_ask(const struct service *service, const struct message *request,
                     char **ret, struct api_problem *p);
bool __wrap_jobs_wait(struct jobs *jobs, const char *id, int seconds,
                      struct job_view *ret, struct api_problem *p);
bool __wrap_pool_is_failing(struct pool *pool);
ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned flags);
void __wrap_log_info(const char *event, const char *fmt, ...);
void __wrap_log_error(const char *event, const char *fmt, ...);

static atomic_uint next_id;

bool
__wrap_pool_ask(const struct service *service, const struct message *request,
                char **ret, struct api_problem *p)
{
    (void)service;
    if (request->type != MESSAGE_CHECK_MODEL && request->type != MESSAGE_CHECK_DATASET)
        return api_problem_set(p, API_RUNTIME_MISSING, QDQ_AT_NOTHING, NULL,
                               "no worker");
    char paths[64 * 8] = "[";
    size_t at = 1;
    for (size_t i = 1; i < request->n_fds && at < sizeof paths - 16; i++)
        at += (size_t)snprintf(paths + at, sizeof paths - at, "%s\"w%zu\"",
                               i > 1 ? "," : "", i);
    snprintf(paths + at, sizeof paths - at, "]");
    *ret = strdup(request->type == MESSAGE_CHECK_MODEL
                      ? paths
                      : "{\"samples\":1,\"inputs\":[],\"files\":[]}");
    return *ret || api_problem_set(p, API_NO_MEMORY, QDQ_AT_NOTHING, NULL, "memory");
}

bool
__wrap_jobs_wait(struct jobs *jobs, const char *id, int seconds, struct job_view *ret,
                 struct api_problem *p)
{
    (void)seconds;
    return jobs_get(jobs, id, ret, p);
}

bool
__wrap_pool_is_failing(struct pool *pool)
{
    (void)pool;
    return false;
}

ssize_t
__wrap_getrandom(void *bytes, size_t size, unsigned flags)
{
    (void)flags;
    memset(bytes, 0, size);
    ((unsigned char *)bytes)[size - 1] = (unsigned char)atomic_fetch_add(&next_id, 1);
    return (ssize_t)size;
}

void
__wrap_log_info(const char *event, const char *fmt, ...)
{
    (void)event;
    (void)fmt;
}

void
__wrap_log_error(const char *event, const char *fmt, ...)
{
    (void)event;
    (void)fmt;
}

/* --- the server's life ---------------------------------------------------- */

static struct server server;

static int
remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static void
server_stop(void)
{
    server_close(&server.http);
    listen_forget(&server.listener);
    tenants_close(&server.tenants);
    tokens_close(&server.tokens);
    settings_fini(&server.settings);
    nftw(server.folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void
must(bool ok, const struct api_problem *problem)
{
    if (ok)
        return;
    fprintf(stderr, "server: %s\n", problem->detail);
    abort();
}

/* Makes a state folder in memory where possible, because syncs cost nothing there. */
static void
make_folder(void)
{
    const char *disk = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";
    snprintf(server.folder, sizeof server.folder, "%s/qdqd-fuzz-XXXXXX", disk);
    if (!mkdtemp(server.folder))
        abort();
}

static void
server_start(void)
{
    struct api_problem p = {0};
    char state[96], address[96], tokens[96], error[SETTINGS_ERROR];
    make_folder();
    snprintf(state, sizeof state, "%s/state", server.folder);
    snprintf(address, sizeof address, "unix:%s/socket", server.folder);
    const struct setting_flag flags[] = {
        {"state.dir", state},    {"http.listen", address},  {"engine.cases", ""},
        {"http.max_body", "1M"}, {"storage.min_free", "1"}, {"queue.max", "4"}};
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    if (!settings_load(NULL, flags, sizeof flags / sizeof *flags, NULL,
                       &server.settings, error))
        abort();
    snprintf(tokens, sizeof tokens, "%s/tokens", server.folder);
    must(tokens_open(tokens, &server.tokens, &p), &p);
    must(tenants_open(&server.settings, NULL, &server.tenants, &p), &p);
    must(tenants_get(server.tenants, "", false, &server.service, &p), &p);
    must(listen_open(address, false, &server.listener, &p), &p);
    snprintf(server.listener.host, sizeof server.listener.host, "127.0.0.1");
    const struct http_needs needs = {handler_of, &server.settings, server.tenants,
                                     server.tokens};
    must(server_open(&needs, &server.listener, &server.http, &p), &p);
    atexit(server_stop);
}

/* --- before each request -------------------------------------------------- */

static void
remove_jobs(void)
{
    struct api_problem p = {0};
    const struct store_filter all = {
        .state = API_N_JOB_STATES, .before = INT64_MAX, .limit = 100};
    struct store_job *jobs;
    size_t n;
    must(store_job_list(library_store(server.service->library), &all, &jobs, &n, &p),
         &p);
    for (size_t i = 0; i < n; i++) {
        (void)jobs_cancel(server.service->jobs, jobs[i].id, &p);
        p = (struct api_problem){0};
        must(library_job_remove(server.service->library, jobs[i].id, STORE_REQUEST, &p),
             &p);
        store_job_fini(&jobs[i]);
    }
    free(jobs);
}

static void
remove_files(void)
{
    struct library *library = server.service->library;
    struct api_problem p = {0};
    for (;;) {
        enum store_kind kind;
        char id[DIGEST_SIZE];
        bool any;
        must(store_oldest_file(library_store(library), INT64_MAX / 2, 0, &kind, id,
                               &any, &p),
             &p);
        if (!any)
            return;
        must(library_remove(library, kind, id, STORE_REQUEST, &p), &p);
    }
}

static void
add_model_and_job(void)
{
    static char id[DIGEST_SIZE], job_id[JOB_ID_SIZE];
    struct library *library = server.service->library;
    struct api_problem p = {0};
    struct spool *spool = NULL;
    struct store_file file;
    bool is_new;
    must(spool_open(library_blobs(library), &spool, &p) &&
             spool_write(spool, "model", 5, &p) && spool_finish(spool, &p),
         &p);
    snprintf(id, sizeof id, "%s", spool_id(spool));
    must(library_add(library, STORE_MODEL, &spool, NULL, &file, &is_new, &p), &p);
    store_file_fini(&file);
    spool_discard(&spool);
    next_id = 1;
    must(jobs_submit(server.service->jobs, &(struct store_job){.model = id},
                     &(struct store_asking){0}, job_id, &p),
         &p);
}

static void
server_reset(void)
{
    if (!server.http)
        server_start();
    remove_jobs();
    remove_files();
    add_model_and_job();
}

/* --- one connection ------------------------------------------------------- */

static int
server_connect(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", server.folder);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address))
        abort();
    return fd;
}

static void
send_bytes(int fd, const uint8_t *data, size_t size, size_t piece)
{
    while (size) {
        ssize_t n = send(fd, data, size < piece ? size : piece, MSG_NOSIGNAL);
        if (n <= 0)
            return; /* the server has refused the rest */
        data += n;
        size -= (size_t)n;
    }
}

/* Ends the sending side and reads to the end of file. `ret` receives the first
   bytes. */
static void
read_answers(int fd, char *ret, size_t size)
{
    char rest[4096];
    size_t at = 0;
    ssize_t n = 1;
    shutdown(fd, SHUT_WR);
    while (n > 0) {
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        if (poll(&poll_fd, 1, PATIENCE_MS) == 0)
            abort();
        bool whole = at == size - 1;
        n = recv(fd, whole ? rest : ret + at, whole ? sizeof rest : size - 1 - at, 0);
        if (n > 0 && !whole)
            at += (size_t)n;
    }
    ret[at] = '\0';
    close(fd);
}

/* A 5xx answer, which blames the server itself, is a finding. */
static void
check_answer(const char *answer)
{
    if (!*answer)
        return;
    assert(!strncmp(answer, "HTTP/1.1 ", 9) || !strncmp(answer, "HTTP/1.0 ", 9));
    int status = (int)strtol(answer + 9, NULL, 10);
    assert(status >= 100 && status < 600);
    /* libmicrohttpd answers 501 to a transfer encoding that it does not know. */
    if (status >= 500 && status != 501 && status != 503 && status != 504 &&
        status != 505 && status != 507) {
        fprintf(stderr, "%s\n", answer);
        abort();
    }
}

#endif
