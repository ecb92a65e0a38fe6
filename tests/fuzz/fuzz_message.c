/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: the messages between daemon and worker. The first byte is the number
   of descriptors with the first message; the rest are the bytes on the socket. */
#include "config.h"
#include "workers/message.h"

#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_FDS 9 /* one more than any message has */
#define MAX_SIZE (1u << 16)

/* Sends bytes as a process would that does not follow messages.h. */
static void
send_raw(int socket, const uint8_t *data, size_t size, size_t n_fds)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int) * MAX_FDS)];
    } control;
    struct iovec part = {(void *)(uintptr_t)data, size};
    struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1};
    memset(&control, 0, sizeof control);
    if (n_fds) {
        msg.msg_control = control.bytes;
        msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        for (size_t i = 0; i < n_fds; i++)
            memcpy(CMSG_DATA(c) + i * sizeof(int), &socket, sizeof(int));
    }
    ssize_t sent = sendmsg(socket, &msg, MSG_NOSIGNAL);
    assert(sent == (ssize_t)size);
}

/* A message that was received can be sent on and received again. */
static void
try_again(const struct message *message)
{
    int sockets[2];
    struct message again;
    int rc = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets);
    assert(rc == 0 && message->text_len < MAX_SIZE);
    bool sent = message_send(sockets[0], 5000, message);
    assert(sent);
    enum message_got got = message_receive(sockets[1], 0, 5000, &again);
    assert(got == MESSAGE_GOT && again.type == message->type);
    assert(again.n_fds == message->n_fds && again.text_len == message->text_len);
    assert(!again.text_len || !memcmp(again.text, message->text, again.text_len));
    message_fini(&again);
    close(sockets[0]);
    close(sockets[1]);
}

/* Returns the lowest free descriptor, which stays the same unless descriptors leak. */
static int
lowest_free(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(fd);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int sockets[2], before = lowest_free();
    struct message message;
    if (size < 2 || size > MAX_SIZE ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
        return 0;
    send_raw(sockets[0], data + 1, size - 1, data[0] % (MAX_FDS + 1));
    shutdown(sockets[0], SHUT_WR);
    enum message_got got;
    while ((got = message_receive(sockets[1], 0, 5000, &message)) == MESSAGE_GOT) {
        try_again(&message);
        message_fini(&message);
    }
    assert(got != MESSAGE_TIMEOUT);
    close(sockets[0]);
    close(sockets[1]);
    assert(lowest_free() == before);
    return 0;
}

#define CORPUS "tests/fuzz/corpus/message"
#include "replay.h"
