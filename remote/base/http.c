/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/http.h"
#include "base/address.h"
#include "api/grow.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_BODY (8 << 20)
#define MOST_REDIRECTS 5
#define MOST_BREAKS 4           /* broken connections that one file may have */
#define MOST_WAIT 86400         /* seconds of Retry-After that are believed */
#define BLOCK ((off_t)16 << 20) /* bytes that the disk is told of at once */

bool
qdqr_init(void)
{
    return curl_global_init(CURL_GLOBAL_DEFAULT) == 0;
}

/* --- callbacks of libcurl ------------------------------------------------- */

/* Makes the socket of a connection, unless the address is not public. */
static curl_socket_t
on_open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct http *http = arg;
    if (purpose != CURLSOCKTYPE_IPCXN)
        return CURL_SOCKET_BAD;
    if (!http->remote->allow_private && !address_is_public(&address->addr)) {
        http->refused = true;
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* The bytes of an answer: in memory, or in a file from `at` on. */
struct sink {
    struct http *http;
    const struct http_request *request;
    struct http_answer *answer;
    int fd;
    off_t at;
    int64_t most;
    bool has_begun;
};

static size_t
keep_in_memory(struct sink *sink, const char *bytes, size_t len)
{
    struct http_answer *answer = sink->answer;
    if ((int64_t)(answer->len + len) > sink->most) {
        answer->is_too_large = true;
        return 0;
    }
    char *body = api_grow(answer->body, answer->len, len + 1, 1);
    if (!body)
        return 0;
    memcpy(body + answer->len, bytes, len);
    answer->body = body;
    answer->len += len;
    answer->body[answer->len] = '\0';
    return len;
}

/* Lets the disk begin with what has come, a block at a time, so that who syncs the file at its
   end does not wait for all of it. This is a hint, which may fail. */
static void
begin_writing(const struct sink *sink, size_t len)
{
    off_t before = sink->at / BLOCK, after = (sink->at + (off_t)len) / BLOCK;
    if (after > before)
        (void)sync_file_range(sink->fd, before * BLOCK, (after - before) * BLOCK,
                              SYNC_FILE_RANGE_WRITE);
}

static size_t
write_to_file(struct sink *sink, const char *bytes, size_t len)
{
    if (sink->at + (int64_t)len > sink->most) {
        sink->answer->is_too_large = true;
        return 0;
    }
    for (size_t done = 0; done < len;) {
        ssize_t n = pwrite(sink->fd, bytes + done, len - done, sink->at + (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            sink->answer->has_failed_write = true;
            return 0;
        }
        done += (size_t)n;
    }
    begin_writing(sink, len);
    sink->at += (off_t)len;
    sink->http->done = sink->at;
    if (sink->http->hasher)
        hasher_allow(sink->http->hasher, sink->at);
    return len;
}

/* Returns whether the answer's range begins at `at`. */
static bool
is_range_from(CURL *curl, off_t at)
{
    char wanted[40];
    struct curl_header *header;
    snprintf(wanted, sizeof wanted, "bytes %lld-", (long long)at);
    return curl_easy_header(curl, "Content-Range", 0, CURLH_HEADER, -1, &header) ==
               CURLHE_OK &&
           strncasecmp(header->value, wanted, strlen(wanted)) == 0;
}

static size_t
on_bytes(char *bytes, size_t one, size_t len, void *arg)
{
    struct sink *sink = arg;
    long status = 0;
    (void)one;
    curl_easy_getinfo(sink->http->curl, CURLINFO_RESPONSE_CODE, &status);
    if (sink->request->on_body && status == 200)
        return sink->request->on_body(sink->request->on_body_arg, bytes, len) ? len : 0;
    if (!sink->fd || (status != 200 && status != 206))
        return keep_in_memory(sink, bytes, len);
    if (!sink->has_begun && status == 206 &&
        !is_range_from(sink->http->curl, sink->at)) {
        sink->answer->is_other_range = true;
        return 0;
    }
    /* An answer of status 200 has the whole file, whatever range was asked for. */
    if (!sink->has_begun && status == 200) {
        if (sink->at > 0)
            hasher_free(&sink->http->hasher);
        sink->at = 0;
        if (ftruncate(sink->fd, 0) != 0) {
            sink->answer->has_failed_write = true;
            return 0;
        }
    }
    sink->has_begun = true;
    return write_to_file(sink, bytes, len);
}

struct body {
    const struct http_request *request;
    int64_t at;
    struct http *http;
};

static size_t
on_read(char *to, size_t one, size_t len, void *arg)
{
    struct body *body = arg;
    int64_t left = body->request->body_size - body->at;
    size_t want = left < (int64_t)(one * len) ? (size_t)left : one * len;
    ssize_t n = pread(body->request->body_fd, to, want,
                      (off_t)(body->request->body_at + body->at));
    if (n < 0 || (n == 0 && want > 0))
        return CURL_READFUNC_ABORT;
    body->at += n;
    body->http->done += n;
    return (size_t)n;
}

static int
on_seek(void *arg, curl_off_t offset, int origin)
{
    struct body *body = arg;
    if (origin != SEEK_SET)
        return CURL_SEEKFUNC_CANTSEEK;
    body->http->done -= body->at - offset;
    body->at = offset;
    return CURL_SEEKFUNC_OK;
}

/* Returns whether the request may take more time. libcurl asks at least once a second. */
static bool
is_patient(struct http *http, int64_t bytes)
{
    int64_t now = rate_clock_ms(), most = http->remote->total_timeout;
    http->is_overdue = most > 0 && now - http->call->began_ms > most * 1000;
    http->is_slow = !rate_is_kept(&http->rate, now, bytes);
    return !http->is_overdue && !http->is_slow;
}

static int
on_progress(void *arg, curl_off_t total_down, curl_off_t down, curl_off_t total_up,
            curl_off_t up)
{
    struct http *http = arg;
    (void)total_down, (void)total_up;
    if (!is_patient(http, down + up))
        return 1;
    return http->call->on_progress &&
           !http->call->on_progress(http->call->arg, http->done, http->total);
}

/* --- open and close ------------------------------------------------------- */

/* The credentials end with the first line of their file. */
bool
http_authenticate(struct http *http, struct api_problem *problem)
{
    const char *text = http->remote->credentials ? http->remote->credentials : "";
    text += strspn(text, " \t\r\n");
    if (!*text)
        return true;
    bool is_bearer = strncmp(text, "bearer ", 7) == 0;
    if (!is_bearer && strncmp(text, "basic ", 6) != 0)
        return api_problem_set(
            problem, API_REMOTE_DENIED, QDQ_AT_NOTHING, NULL,
            "the credentials of remote %s are neither \"bearer TOKEN\" "
            "nor \"basic USER:PASSWORD\"",
            http->remote->name);
    text += is_bearer ? 7 : 6;
    char *word = strndup(text, strcspn(text, "\r\n"));
    if (!word)
        return api_problem_no_memory(problem);
    curl_easy_setopt(http->curl, CURLOPT_HTTPAUTH,
                     is_bearer ? CURLAUTH_BEARER : CURLAUTH_BASIC);
    CURLcode code = curl_easy_setopt(
        http->curl, is_bearer ? CURLOPT_XOAUTH2_BEARER : CURLOPT_USERPWD, word);
    explicit_bzero(word, strlen(word));
    free(word);
    return code == CURLE_OK || api_problem_no_memory(problem);
}

/* Sets the options that all requests share. */
static void
set_options(struct http *http)
{
    CURL *curl = http->curl;
    const struct qdqr_remote *remote = http->remote;
    long timeout = (long)http_timeout(http);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PROXY, ""); /* that of the environment is not used */
    curl_easy_setopt(curl, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, timeout);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, timeout);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, http);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, http);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "qdqd/" PACKAGE_VERSION);
    curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, 256L << 10);
    curl_easy_setopt(curl, CURLOPT_UPLOAD_BUFFERSIZE, 256L << 10);
    curl_easy_setopt(curl, CURLOPT_EXPECT_100_TIMEOUT_MS, 1L);
    if (remote->ca && remote->ca_len) {
        struct curl_blob blob = {(void *)(uintptr_t)remote->ca, remote->ca_len,
                                 CURL_BLOB_COPY};
        curl_easy_setopt(curl, CURLOPT_CAINFO_BLOB, &blob);
    }
}

bool
http_open(const struct qdqr_remote *remote, struct qdqr_call *call, struct http **ret,
          struct api_problem *problem)
{
    struct http *http = calloc(1, sizeof *http);
    if (!http)
        return api_problem_no_memory(problem);
    http->remote = remote;
    http->call = call;
    if (!call->began_ms)
        call->began_ms = rate_clock_ms();
    http->curl = curl_easy_init();
    bool ok = http->curl || api_problem_no_memory(problem);
    size_t len = strlen(remote->url);
    while (len && remote->url[len - 1] == '/')
        len--;
    if (ok && len >= sizeof http->base / 2)
        ok = api_problem_set(problem, API_REMOTE_DENIED, QDQ_AT_NOTHING, NULL,
                             "the URL of remote %s is too long", remote->name);
    if (ok) {
        memcpy(http->base, remote->url, len);
        set_options(http);
    }
    if (!ok)
        http_close(&http);
    *ret = http;
    return ok;
}

void
http_close(struct http **http)
{
    if (!*http)
        return;
    http_close(&(*http)->store);
    curl_easy_cleanup((*http)->curl);
    explicit_bzero((*http)->token, sizeof(*http)->token);
    hasher_free(&(*http)->hasher);
    free(*http);
    *http = NULL;
}

bool
url_add(char url[HTTP_URL], const char *text, const char *safe,
        struct api_problem *problem)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                "0123456789-._~";
    size_t at = strlen(url);
    for (; *text && at + 4 < HTTP_URL; text++) {
        if (strchr(plain, *text) || strchr(safe, *text))
            url[at++] = *text;
        else
            at += (size_t)snprintf(url + at, HTTP_URL - at, "%%%02X",
                                   (unsigned char)*text);
        url[at] = '\0';
    }
    return !*text || api_problem_set(problem, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL,
                                     "a URL of the remote would be too long");
}

/* --- requests ------------------------------------------------------------- */

static bool
add_header(struct curl_slist **list, const char *header)
{
    struct curl_slist *longer = curl_slist_append(*list, header);
    if (longer)
        *list = longer;
    return longer;
}

/* Makes the list of headers; NULL when out of memory. */
static struct curl_slist *
make_headers(const struct http *http, const struct http_request *request)
{
    struct curl_slist *list = NULL;
    /* Without this one libcurl waits a second before a large body. With a signature it must
       not be there: libcurl 7.88 would sign it without sending it. */
    bool ok = http->is_signed || add_header(&list, "Expect:");
    for (size_t i = 0; ok && i < HTTP_HEADERS && request->headers[i]; i++)
        ok = add_header(&list, request->headers[i]);
    ok = ok && (!*http->token || add_header(&list, http->token));
    if (ok)
        return list;
    curl_slist_free_all(list);
    return NULL;
}

static void
set_body(struct http *http, const struct http_request *request, struct body *body)
{
    CURL *curl = http->curl;
    curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
    if (request->body_size > 0) {
        curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(curl, CURLOPT_READFUNCTION, on_read);
        curl_easy_setopt(curl, CURLOPT_READDATA, body);
        curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, on_seek);
        curl_easy_setopt(curl, CURLOPT_SEEKDATA, body);
        curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE,
                         (curl_off_t)request->body_size);
    } else if (request->method && strcmp(request->method, "HEAD") == 0) {
        curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    } else if (request->method) {
        curl_easy_setopt(curl, CURLOPT_POST, 1L);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body ? request->body : "");
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE,
                         (curl_off_t)(request->body ? request->body_len : 0));
    }
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request->method);
}

/* Sets how slow the remote may be. The bytes of a file have to keep their lowest rate. All else
   has to be over after a few timeouts. */
static void
set_patience(struct http *http, const struct http_request *request)
{
    bool is_file = request->to_fd > 0 || request->body_size > 0 || request->is_file;
    long timeout = (long)http_timeout(http);
    rate_init(&http->rate, is_file ? http->remote->min_rate : 0, timeout * 1000);
    http->is_slow = http->is_overdue = false;
    curl_easy_setopt(http->curl, CURLOPT_TIMEOUT,
                     is_file ? 0L : HTTP_MOST_TIMEOUTS * timeout);
}

/* Sends one request, which no redirect follows. */
static CURLcode
perform(struct http *http, const char *url, const struct http_request *request,
        struct http_answer *answer, struct sink *sink)
{
    struct body body = {request, 0, http};
    struct curl_slist *headers = make_headers(http, request);
    if (!headers)
        return CURLE_OUT_OF_MEMORY;
    CURL *curl = http->curl;
    char range[32];
    snprintf(range, sizeof range, "%lld-", (long long)sink->at);
    http->refused = false;
    set_body(http, request, &body);
    set_patience(http, request);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_RANGE, sink->at > 0 ? range : NULL);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, sink);
    CURLcode code = curl_easy_perform(curl);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(headers);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer->status);
    return code;
}

/* Returns whether two URLs have the same scheme, host and port. */
static bool
is_same_origin(const char *a, const char *b)
{
    static const CURLUPart parts[] = {CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_PORT};
    CURLU *urls[] = {curl_url(), curl_url()};
    bool same = urls[0] && urls[1] && !curl_url_set(urls[0], CURLUPART_URL, a, 0) &&
                !curl_url_set(urls[1], CURLUPART_URL, b, 0);
    for (size_t i = 0; same && i < sizeof parts / sizeof *parts; i++) {
        char *texts[2] = {NULL, NULL};
        same = !curl_url_get(urls[0], parts[i], &texts[0], CURLU_DEFAULT_PORT) &&
               !curl_url_get(urls[1], parts[i], &texts[1], CURLU_DEFAULT_PORT) &&
               !strcasecmp(texts[0], texts[1]);
        curl_free(texts[0]);
        curl_free(texts[1]);
    }
    curl_url_cleanup(urls[0]);
    curl_url_cleanup(urls[1]);
    return same;
}

bool
http_is_own(const struct http *http, const char *url)
{
    return is_same_origin(http->base, url);
}

/* Finds where a redirect goes. A body is not sent to another place. */
static bool
follow(struct http *http, const struct http_request *request, int redirects,
       char url[HTTP_URL], struct api_problem *problem)
{
    const char *to = NULL;
    curl_easy_getinfo(http->curl, CURLINFO_REDIRECT_URL, &to);
    if (!to || redirects == MOST_REDIRECTS || request->method || strlen(to) >= HTTP_URL)
        return api_problem_set(
            problem, API_REMOTE_DENIED, QDQ_AT_NOTHING, NULL,
            "remote %s answered with a redirect that is not followed",
            http->remote->name);
    if (!is_same_origin(http->base, to))
        return api_problem_set(problem, API_REMOTE_DENIED, QDQ_AT_NOTHING, NULL,
                               "remote %s redirects to another host",
                               http->remote->name);
    snprintf(url, HTTP_URL, "%s", to);
    return true;
}

bool
http_fail(const struct http *http, const struct http_answer *answer, const char *what,
          struct api_problem *problem)
{
    static const struct {
        long low, high;
        enum api_code code;
        const char *text;
    } rows[] = {
        {401, 401, API_REMOTE_DENIED, "does not accept the credentials"},
        {403, 403, API_REMOTE_DENIED, "refuses access"},
        {404, 404, API_REMOTE_NOT_FOUND, "does not have"},
        {408, 408, API_REMOTE_UNAVAILABLE, "is too slow"},
        {412, 412, API_REMOTE_UNAVAILABLE, "has changed meanwhile"},
        {413, 413, API_REMOTE_TOO_LARGE, "finds too large"},
        {425, 425, API_REMOTE_UNAVAILABLE, "is not ready"},
        {429, 429, API_REMOTE_UNAVAILABLE, "has too many requests"},
        {500, 599, API_REMOTE_UNAVAILABLE, "has a fault of its own"},
        {0, 999, API_REMOTE_DENIED, "refuses the request"},
    };
    size_t row = 0;
    while (answer->status < rows[row].low || answer->status > rows[row].high)
        row++;
    return api_problem_set(problem, rows[row].code, QDQ_AT_NOTHING, NULL,
                           "remote %s %s: %s (status %ld)", http->remote->name,
                           rows[row].text, what, answer->status);
}

static void
note_retry_after(struct http *http)
{
    curl_off_t seconds = 0;
    curl_easy_getinfo(http->curl, CURLINFO_RETRY_AFTER, &seconds);
    http->call->retry_after = seconds > MOST_WAIT ? MOST_WAIT : seconds;
}

/* Sends a request and the requests of its redirects. */
static bool
send_all(struct http *http, const struct http_request *request, struct http_answer *ret,
         struct api_problem *problem)
{
    char url[HTTP_URL];
    if (snprintf(url, sizeof url, "%s%s", http->base, request->url) >= (int)sizeof url)
        return api_problem_set(problem, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL,
                               "a URL of the remote would be too long");
    http->call->retry_after = 0;
    for (int redirects = 0;; redirects++) {
        struct sink sink = {http, request, ret, request->to_fd, 0, 0, false};
        if (request->to_fd)
            sink.at = lseek(request->to_fd, 0, SEEK_END);
        sink.most = request->max_body ? request->max_body : MOST_BODY;
        CURLcode code = perform(http, url, request, ret, &sink);
        if (code != CURLE_OK)
            return http_fail_transfer(http, ret, code, problem);
        if (ret->status < 300 || ret->status > 399)
            break;
        http_answer_fini(ret);
        if (!follow(http, request, redirects, url, problem))
            return false;
    }
    if (ret->status == 401 && request->accepts_401)
        return true;
    if (request->accepts_all) {
        note_retry_after(http);
        return true;
    }
    if (ret->status != 401 && ret->status != 403 && ret->status != 429 &&
        ret->status != 408 && ret->status < 500)
        return true;
    note_retry_after(http);
    return http_fail(http, ret, "the request", problem);
}

bool
http_send(struct http *http, const struct http_request *request,
          struct http_answer *ret, struct api_problem *problem)
{
    *ret = (struct http_answer){0};
    bool ok = send_all(http, request, ret, problem);
    if (!ok) {
        free(ret->body);
        ret->body = NULL;
    }
    return ok;
}

void
http_answer_fini(struct http_answer *answer)
{
    free(answer->body);
    *answer = (struct http_answer){0};
}

void
http_header(struct http *http, const char *name, char *ret, size_t size)
{
    struct curl_header *header;
    ret[0] = '\0';
    if (curl_easy_header(http->curl, name, 0, CURLH_HEADER, -1, &header) == CURLHE_OK &&
        strlen(header->value) < size)
        snprintf(ret, size, "%s", header->value);
}

/* Empties the file of a pull and drops the digest of its bytes. */
static bool
empty_file(struct http *http, int fd)
{
    hasher_free(&http->hasher);
    return ftruncate(fd, 0) == 0;
}

/* Requests the bytes that the file of a pull lacks. After a failure *ret_can_go_on is
   whether another request can get the rest: the connection broke within the file, or the
   remote does not serve the range that was asked for, and the file is empty now. */
static bool
pull_rest(struct http *http, const struct http_request *request, int64_t size,
          bool *ret_can_go_on, struct api_problem *problem)
{
    struct http_answer answer;
    off_t before = lseek(request->to_fd, 0, SEEK_END);
    bool ok = http_send(http, request, &answer, problem);
    off_t after = lseek(request->to_fd, 0, SEEK_END);
    bool is_file = answer.status == 200 || answer.status == 206;
    if (ok && !is_file)
        ok = http_fail(http, &answer, "a file", problem);
    else if (ok && size >= 0 && after != size)
        ok = api_problem_set(problem, API_REMOTE_UNAVAILABLE, QDQ_AT_NOTHING, NULL,
                             "remote %s sent another number of bytes than it listed",
                             http->remote->name);
    bool lacks_range = answer.is_other_range || (answer.status == 416 && before > 0);
    http_answer_fini(&answer);
    if (!ok && lacks_range)
        *ret_can_go_on = empty_file(http, request->to_fd);
    else if (!ok)
        *ret_can_go_on = is_file && after > 0 &&
                         problem->code == API_REMOTE_UNAVAILABLE && !http->is_overdue;
    return ok;
}

bool
http_pull(struct http *http, struct http_request *request, int64_t size,
          struct api_problem *problem)
{
    int64_t limit = http->remote->max_bytes > 0 ? http->remote->max_bytes : INT64_MAX;
    request->max_body = size >= 0 && size < limit ? size : limit;
    http->total = size > 0 ? size : 0;
    for (int breaks = 0;; breaks++) {
        struct api_problem fault = {0};
        bool can_go_on;
        off_t there = lseek(request->to_fd, 0, SEEK_END);
        if (size > 0 && there == size)
            return true;
        if (size >= 0 && there > size && !empty_file(http, request->to_fd))
            return api_problem_set(problem, API_IO, QDQ_AT_NOTHING, NULL,
                                   "a temporary file: %s", strerror(errno));
        if (pull_rest(http, request, size, &can_go_on, &fault))
            return true;
        if (!can_go_on || breaks == MOST_BREAKS) {
            *problem = problem->set ? *problem : fault;
            return false;
        }
    }
}
