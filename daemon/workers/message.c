/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/message.h"
#include "base/clock.h"
#include "qdq/quantize.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define MAGIC 0x51445121u

struct header {
    uint32_t magic, type, text_len, n_fds, n_files, names_len;
};

static const struct {
    size_t body, max_text, min_fds, max_fds, max_files;
} types[MESSAGE_N_TYPES] = {
#define MESSAGE(name, body, text, min_fds, max_fds, max_files) \
    [MESSAGE_##name] = {body, text, min_fds, max_fds, max_files},
#include "workers/messages.h"
#undef MESSAGE
};

union control {
    struct cmsghdr header; /* aligns the buffer */
    char bytes[CMSG_SPACE(sizeof(int) * MESSAGE_MAX_FDS)];
};

static bool
header_fits(const struct header *h)
{
    if (h->magic != MAGIC || h->type >= MESSAGE_N_TYPES || h->n_fds < h->n_files)
        return false;
    uint32_t own = h->n_fds - h->n_files;
    return h->text_len <= types[h->type].max_text && own >= types[h->type].min_fds &&
           own <= types[h->type].max_fds && h->n_files <= types[h->type].max_files &&
           h->names_len >= h->n_files && h->names_len <= MESSAGE_MAX_NAMES &&
           (h->n_files || !h->names_len);
}

/* --- deadlines -------------------------------------------------------------- */

/* Returns the time of the steady clock at which `ms` from now are over; -1: never. */
static int64_t
deadline_in(int ms)
{
    return ms < 0 ? -1 : clock_steady_ms() + ms;
}

/* Waits until the socket can be read or written, or is closed. Returns false and sets
   errno when the deadline passes before. */
static bool
wait_for(int socket, short events, int64_t deadline)
{
    struct pollfd poll_fd = {.fd = socket, .events = events};
    for (;;) {
        int64_t left = deadline < 0 ? -1 : deadline - clock_steady_ms();
        int n = poll(&poll_fd, 1, deadline < 0 ? -1 : left < 0 ? 0 : (int)left);
        if (n > 0)
            return true;
        if (n < 0 && errno != EINTR)
            return false;
        if (n == 0) {
            errno = ETIMEDOUT;
            return false;
        }
    }
}

/* --- sending -------------------------------------------------------------- */

static void
attach_fds(struct msghdr *msg, union control *control, const struct message *message)
{
    if (!message->n_fds)
        return;
    size_t bytes = sizeof(int) * message->n_fds;
    memset(control, 0, sizeof *control);
    msg->msg_control = control->bytes;
    msg->msg_controllen = CMSG_SPACE(bytes);
    struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg);
    cmsg->cmsg_level = SOL_SOCKET;
    cmsg->cmsg_type = SCM_RIGHTS;
    cmsg->cmsg_len = CMSG_LEN(bytes);
    memcpy(CMSG_DATA(cmsg), message->fds, bytes);
}

/* Removes `n` sent bytes from the front of the vector. */
static void
advance(struct msghdr *msg, size_t n)
{
    while (msg->msg_iovlen && n >= msg->msg_iov->iov_len) {
        n -= msg->msg_iov->iov_len;
        msg->msg_iov++;
        msg->msg_iovlen--;
    }
    if (msg->msg_iovlen) {
        msg->msg_iov->iov_base = (char *)msg->msg_iov->iov_base + n;
        msg->msg_iov->iov_len -= n;
    }
}

bool
message_send(int socket, int within_ms, const struct message *message)
{
    struct header header = {
        MAGIC,
        message->type,
        (uint32_t)message->text_len,
        (uint32_t)message->n_fds,
        (uint32_t)message->n_files,
        (uint32_t)message->names_len,
    };
    if (message->text_len > UINT32_MAX || message->names_len > UINT32_MAX ||
        !header_fits(&header)) {
        errno = EMSGSIZE;
        return false;
    }
    struct message copy = *message; /* iovec is not const */
    struct iovec parts[] = {{&header, sizeof header},
                            {&copy.body, types[message->type].body},
                            {copy.names, copy.names_len},
                            {copy.text, copy.text_len}};
    struct msghdr msg = {.msg_iov = parts, .msg_iovlen = 4};
    union control control;
    attach_fds(&msg, &control, message);
    int64_t deadline = deadline_in(within_ms);
    while (msg.msg_iovlen) {
        ssize_t n = sendmsg(socket, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && (errno == EINTR ||
                      (errno == EAGAIN && wait_for(socket, POLLOUT, deadline))))
            continue;
        if (n < 0)
            return false;
        msg.msg_control = NULL; /* the descriptors went with the first byte */
        msg.msg_controllen = 0;
        advance(&msg, (size_t)n);
    }
    return true;
}

/* --- receiving ------------------------------------------------------------ */

/* Reads `len` bytes. Returns false at the end of file, on an error, and with ETIMEDOUT
   after the deadline. */
static bool
read_all(int socket, int64_t deadline, void *buf, size_t len)
{
    for (char *at = buf; len;) {
        ssize_t n = recv(socket, at, len, MSG_DONTWAIT);
        if (n < 0 &&
            (errno == EINTR || (errno == EAGAIN && wait_for(socket, POLLIN, deadline))))
            continue;
        if (n == 0)
            errno = ECONNRESET;
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

/* Takes ownership of all descriptors that were received, including unexpected ones. */
static void
detach_fds(struct msghdr *msg, struct message *message)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (message->n_fds < MESSAGE_MAX_FDS)
                message->fds[message->n_fds++] = fd;
            else
                close(fd);
        }
    }
}

/* Returns why not all bytes of a message could be read. */
static enum message_got
why_not_read(void)
{
    return errno == ETIMEDOUT ? MESSAGE_OVERDUE : MESSAGE_EOF;
}

static enum message_got
read_header(int socket, int64_t deadline, struct header *header,
            struct message *message)
{
    struct iovec part = {header, sizeof *header};
    union control control;
    struct msghdr msg = {.msg_iov = &part,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof control.bytes};
    ssize_t n;
    do
        n = recvmsg(socket, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    while (n < 0 &&
           (errno == EINTR || (errno == EAGAIN && wait_for(socket, POLLIN, deadline))));
    if (n <= 0)
        return MESSAGE_EOF;
    detach_fds(&msg, message);
    if (msg.msg_flags & MSG_CTRUNC)
        return MESSAGE_BROKEN;
    if ((size_t)n < sizeof *header &&
        !read_all(socket, deadline, (char *)header + n, sizeof *header - (size_t)n))
        return why_not_read();
    return header_fits(header) && header->n_fds == message->n_fds ? MESSAGE_GOT
                                                                  : MESSAGE_BROKEN;
}

static bool
is_text(const char *chars, size_t size)
{
    return memchr(chars, '\0', size) != NULL;
}

static bool
remote_fits(const struct message *m, const struct message_remote *r)
{
    size_t n = (size_t)__builtin_popcount(r->secrets);
    return is_text(r->name, sizeof r->name) && is_text(r->kind, sizeof r->kind) &&
           is_text(r->url, sizeof r->url) && is_text(r->region, sizeof r->region) &&
           is_text(r->artifacts_url, sizeof r->artifacts_url) &&
           r->secrets < 1u << MESSAGE_N_SECRETS && n <= m->n_fds;
}

/* Returns whether the values in a received body are valid. */
static bool
body_fits(const struct message *m)
{
    const struct api_problem *p = &m->body.failed;
    switch (m->type) {
    case MESSAGE_QUANTIZE:
        return is_text(m->body.quantize.model_id, DIGEST_SIZE) &&
               is_text(m->body.quantize.dataset_id, DIGEST_SIZE) &&
               is_text(m->body.quantize.evaluation_id, DIGEST_SIZE) &&
               is_text(m->body.quantize.journal_of, DIGEST_SIZE) &&
               m->body.quantize.has_metric <= 1 && m->body.quantize.observe <= 1 &&
               m->body.quantize.keep_times <= 1;
    case MESSAGE_JUDGE_WANTED:
        return m->body.judge_wanted.again <= 1;
    case MESSAGE_GPU:
        return m->body.gpu.wanted <= 1;
    case MESSAGE_FETCH:
        return remote_fits(m, &m->body.fetch.remote) &&
               is_text(m->body.fetch.ref, sizeof m->body.fetch.ref);
    case MESSAGE_PUBLISH:
        return remote_fits(m, &m->body.publish.remote) &&
               is_text(m->body.publish.ref, sizeof m->body.publish.ref) &&
               is_text(m->body.publish.source, sizeof m->body.publish.source) &&
               is_text(m->body.publish.alias, sizeof m->body.publish.alias) &&
               is_text(m->body.publish.delivery, sizeof m->body.publish.delivery);
    case MESSAGE_DELIVER:
        return remote_fits(m, &m->body.deliver.remote) &&
               is_text(m->body.deliver.id, sizeof m->body.deliver.id);
    case MESSAGE_NEWS:
        return remote_fits(m, &m->body.news.remote);
    case MESSAGE_BUCKET:
        return remote_fits(m, &m->body.bucket.remote);
    case MESSAGE_OBJECT:
        return m->body.object.op < MESSAGE_N_OBJECT_OPS &&
               is_text(m->body.object.key, sizeof m->body.object.key) &&
               is_text(m->body.object.digest, sizeof m->body.object.digest) &&
               (m->n_fds == 1) == (m->body.object.op <= MESSAGE_OBJECT_GET);
    case MESSAGE_SIGN:
        return m->body.sign.form <= 1;
    case MESSAGE_RETRY_AFTER:
        return m->body.retry.seconds >= 0;
    case MESSAGE_NOTE:
        return m->body.note.event < MESSAGE_N_NOTES;
    case MESSAGE_PROGRESS:
        return m->body.progress.stage < QDQ_N_STAGES;
    case MESSAGE_REJECTED:
    case MESSAGE_FAILED:
        return (unsigned)p->code < API_N_CODES && (unsigned)p->kind < QDQ_N_WHERES &&
               is_text(p->where, sizeof p->where) &&
               is_text(p->detail, sizeof p->detail) &&
               is_text(p->model, sizeof p->model);
    default:
        return true;
    }
}

/* Reads `len` bytes and appends a NUL. Returns NULL and sets errno when out of memory, or
   as read_all(). */
static char *
read_text(int socket, int64_t deadline, size_t len)
{
    char *text = malloc(len + 1);
    if (text)
        text[len] = '\0';
    if (text && !read_all(socket, deadline, text, len)) {
        free(text);
        text = NULL;
    }
    return text;
}

/* Returns whether there are as many names as files. */
static bool
names_fit(const struct message *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->names_len; i++)
        n += !m->names[i];
    return n == m->n_files && !m->names[m->names_len - 1];
}

static enum message_got
read_rest(int socket, int64_t deadline, const struct header *header,
          struct message *message)
{
    message->type = (enum message_type)header->type;
    if (!read_all(socket, deadline, &message->body, types[message->type].body))
        return why_not_read();
    if (!body_fits(message))
        return MESSAGE_BROKEN;
    message->n_files = header->n_files;
    message->names_len = header->names_len;
    if (header->n_files &&
        !(message->names = read_text(socket, deadline, header->names_len)))
        return why_not_read();
    if (header->n_files && !names_fit(message))
        return MESSAGE_BROKEN;
    message->text_len = header->text_len;
    if (header->text_len &&
        !(message->text = read_text(socket, deadline, header->text_len)))
        return why_not_read();
    return MESSAGE_GOT;
}

enum message_got
message_receive(int socket, int begin_ms, int whole_ms, struct message *ret)
{
    struct message message = {0};
    struct header header;
    if (!wait_for(socket, POLLIN, deadline_in(begin_ms)))
        return errno == ETIMEDOUT ? MESSAGE_TIMEOUT : MESSAGE_BROKEN;
    int64_t deadline = deadline_in(whole_ms);
    enum message_got got = read_header(socket, deadline, &header, &message);
    if (got == MESSAGE_GOT)
        got = read_rest(socket, deadline, &header, &message);
    if (got == MESSAGE_GOT)
        *ret = message;
    else
        message_fini(&message);
    return got;
}

void
message_fini(struct message *message)
{
    free(message->text);
    message->text = NULL;
    message->text_len = 0;
    free(message->names);
    message->names = NULL;
    message->names_len = message->n_files = 0;
    while (message->n_fds)
        close(message->fds[--message->n_fds]);
}
