/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/message.h"
#include "qdq/quantize.h"
#include "daemon.h"

#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>

static int ends[2];

static void
set_up(void)
{
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
}

static void
tear_down(void)
{
    close(ends[0]);
    close(ends[1]);
}

/* --- messages arrive as they were sent ------------------------------------ */

UNIT_LOOP(request_with_files, 2)
{
    char text[] = "{\"mode\":\"full\"}", read_back[4] = "";
    FILE *files[MESSAGE_FD_DATASET + 1];
    struct message sent = {.type = MESSAGE_QUANTIZE,
                           .text = text,
                           .text_len = strlen(text),
                           .n_fds = (size_t)(MESSAGE_FD_DATASET + _i)},
                   got;
    snprintf(sent.body.quantize.model_id, DIGEST_SIZE, "sha256:m");
    for (size_t i = 0; i <= MESSAGE_FD_DATASET; i++) {
        files[i] = tmpfile();
        sent.fds[i] = fileno(files[i]);
        ck_assert_int_eq(pwrite(sent.fds[i], "012345678" + i, 1, 0), 1);
    }
    ck_assert(message_send(ends[0], 5000, &sent));
    ck_assert_int_eq(message_receive(ends[1], 1000, 5000, &got), MESSAGE_GOT);
    ck_assert_int_eq(got.type, MESSAGE_QUANTIZE);
    ck_assert_str_eq(got.text, text);
    ck_assert_str_eq(got.body.quantize.model_id, "sha256:m");
    ck_assert_uint_eq(got.n_fds, sent.n_fds);
    for (size_t i = 0; i < got.n_fds; i++) {
        ck_assert_int_eq(pread(got.fds[i], read_back, 1, 0), 1);
        ck_assert_int_eq(read_back[0], '0' + (int)i);
        ck_assert_int_eq(fcntl(got.fds[i], F_GETFD), FD_CLOEXEC);
    }
    int fd = got.fds[0];
    message_fini(&got);
    ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
    for (size_t i = 0; i <= MESSAGE_FD_DATASET; i++)
        fclose(files[i]);
}

/* Sends as many files as a model may have, each with its path. */
UNIT_TEST(model_of_several_files)
{
    char names[MESSAGE_MAX_FILES * 5], text[] = "spec";
    FILE *file = tmpfile();
    struct message sent = {.type = MESSAGE_PLAN, .text = text, .text_len = 4}, got;
    sent.names = names;
    sent.n_files = MESSAGE_MAX_FILES;
    sent.n_fds = 1 + MESSAGE_MAX_FILES;
    for (size_t i = 0; i < sent.n_fds; i++)
        sent.fds[i] = fileno(file);
    for (size_t i = 0; i < MESSAGE_MAX_FILES; i++)
        sent.names_len += (size_t)snprintf(names + sent.names_len, 5, "w%zu", i) + 1;
    ck_assert(message_send(ends[0], 5000, &sent));
    ck_assert_int_eq(message_receive(ends[1], 1000, 5000, &got), MESSAGE_GOT);
    ck_assert_uint_eq(got.n_files, MESSAGE_MAX_FILES);
    ck_assert_uint_eq(message_own_fds(&got), 1);
    ck_assert_uint_eq(got.names_len, sent.names_len);
    ck_assert_mem_eq(got.names, names, sent.names_len);
    ck_assert_str_eq(got.text, "spec");
    message_fini(&got);
    fclose(file);
}

static const struct {
    const char *names;
    size_t len;
} bad_names[] = {{"a\0b\0c\0", 6}, {"a\0", 2}, {"a\0b", 3}, {"ab", 2}};

UNIT_ROWS(names_that_do_not_fit, bad_names)
{
    char names[8];
    memcpy(names, bad_names[_i].names, bad_names[_i].len);
    struct message sent = {.type = MESSAGE_INFO,
                           .names = names,
                           .names_len = bad_names[_i].len,
                           .n_files = 2,
                           .n_fds = 3};
    struct message got;
    ck_assert(message_send(ends[0], 5000, &sent));
    ck_assert_int_eq(message_receive(ends[1], 1000, 5000, &got), MESSAGE_BROKEN);
}

static void *
send_in_thread(void *arg)
{
    return message_send(ends[0], 5000, arg) ? arg : NULL;
}

/* Sends an answer longer than any socket's buffer. */
UNIT_TEST(long_answer)
{
    void *ok;
    pthread_t thread;
    size_t len = 8 << 20;
    struct message sent = {
        .type = MESSAGE_RESULT, .text = malloc(len), .text_len = len};
    struct message got;
    for (size_t i = 0; i < len; i++)
        sent.text[i] = (char)('a' + i % 23);
    pthread_create(&thread, NULL, send_in_thread, &sent);
    ck_assert_int_eq(message_receive(ends[1], 5000, 5000, &got), MESSAGE_GOT);
    pthread_join(thread, &ok);
    ck_assert_ptr_nonnull(ok);
    ck_assert_uint_eq(got.text_len, len);
    ck_assert_mem_eq(got.text, sent.text, len);
    message_fini(&got);
    free(sent.text);
}

/* Several messages in a row keep their boundaries. */
UNIT_TEST(row_of_answers)
{
    struct message sent = {.type = MESSAGE_PROGRESS}, got;
    for (unsigned i = 0; i < 100; i++) {
        sent.body.progress =
            (struct message_progress){i % QDQ_N_STAGES, i, 100, 2 * i, 3 * i};
        ck_assert(message_send(ends[0], 5000, &sent));
    }
    for (unsigned i = 0; i < 100; i++) {
        ck_assert_int_eq(message_receive(ends[1], 1000, 5000, &got), MESSAGE_GOT);
        ck_assert_uint_eq(got.body.progress.done, i);
        ck_assert_uint_eq(got.body.progress.later, 2 * i);
        ck_assert_uint_eq(got.body.progress.unknown, 3 * i);
        ck_assert_ptr_null(got.text);
    }
    ck_assert_int_eq(message_receive(ends[1], 10, 5000, &got), MESSAGE_TIMEOUT);
    close(ends[0]);
    ck_assert_int_eq(message_receive(ends[1], 1000, 5000, &got), MESSAGE_EOF);
    ends[0] = -1;
}

/* A rejection carries the reason and the summary of the model. */
UNIT_TEST(rejected)
{
    static char text[] = "{\"layers\":3}";
    struct message sent = {.type = MESSAGE_REJECTED, .text = text, .text_len = 12}, got;
    api_problem_set(&sent.body.failed, API_ACCURACY, QDQ_AT_POINTER, "/accept", "off");
    ck_assert(message_send(ends[0], 5000, &sent));
    ck_assert_int_eq(message_receive(ends[1], 1000, 5000, &got), MESSAGE_GOT);
    ck_assert_int_eq(got.type, MESSAGE_REJECTED);
    ck_assert_int_eq(got.body.failed.code, API_ACCURACY);
    ck_assert_str_eq(got.body.failed.detail, "off");
    ck_assert_str_eq(got.text, text);
    message_fini(&got);
}

UNIT_TEST(the_other_side_is_closed)
{
    struct message sent = {.type = MESSAGE_RUNTIME};
    close(ends[1]);
    ck_assert(!message_send(ends[0], 5000, &sent));
    ends[1] = -1;
}

/* --- messages that do not follow the table are refused -------------------- */

UNIT_TEST(not_sent)
{
    static char text[] = "text";
    const struct message wrong[] = {
        {.type = MESSAGE_N_TYPES},
        {.type = MESSAGE_CHECK_MODEL},                           /* without its file */
        {.type = MESSAGE_PROGRESS, .text = text, .text_len = 4}, /* with a text */
        {.type = MESSAGE_RESULT, .text = text, .text_len = SIZE_MAX}, /* too long */
        {.type = MESSAGE_RESULT, .n_fds = 1},                         /* with a file */
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_msg(!message_send(ends[0], 5000, &wrong[i]), "row %zu", i);
}

#define MAGIC 0x51445121u

/* The header as message.c writes it, and the number of bytes that follow. */
static const struct {
    const char *what;
    /* magic, type, length of the text, number of descriptors, number of the model's
       other files, length of their names */
    uint32_t header[6];
    size_t body; /* number of zero bytes behind the header, before the end of file */
    enum message_got wanted;
} raw[] = {
    {"wrong magic", {MAGIC + 1, MESSAGE_RUNTIME, 0, 0, 0, 0}, 0, MESSAGE_BROKEN},
    {"unknown type", {MAGIC, MESSAGE_N_TYPES, 0, 0, 0, 0}, 0, MESSAGE_BROKEN},
    {"negative type", {MAGIC, UINT32_MAX, 0, 0, 0, 0}, 0, MESSAGE_BROKEN},
    {"text where none may be", {MAGIC, MESSAGE_RUNTIME, 1, 0, 0, 0}, 1, MESSAGE_BROKEN},
    {"text too long", {MAGIC, MESSAGE_RESULT, UINT32_MAX, 0, 0, 0}, 9, MESSAGE_BROKEN},
    {"descriptor missing", {MAGIC, MESSAGE_INFO, 0, 1, 0, 0}, 0, MESSAGE_BROKEN},
    {"descriptor not named", {MAGIC, MESSAGE_INFO, 0, 0, 0, 0}, 0, MESSAGE_BROKEN},
    {"body cut", {MAGIC, MESSAGE_PROGRESS, 0, 0, 0, 0}, 3, MESSAGE_EOF},
    {"text cut", {MAGIC, MESSAGE_RESULT, 10, 0, 0, 0}, 9, MESSAGE_EOF},
    {"more files than descriptors",
     {MAGIC, MESSAGE_INFO, 0, 1, 2, 4},
     4,
     MESSAGE_BROKEN},
    {"files where none may be",
     {MAGIC, MESSAGE_RUNTIME, 0, 1, 1, 2},
     2,
     MESSAGE_BROKEN},
    {"names without files", {MAGIC, MESSAGE_RUNTIME, 0, 0, 0, 2}, 2, MESSAGE_BROKEN},
    {"good", {MAGIC, MESSAGE_RESULT, 10, 0, 0, 0}, 10, MESSAGE_GOT},
};

UNIT_ROWS(raw_bytes, raw)
{
    struct message got = {0};
    char zeros[64] = {0};
    ck_assert_int_eq(write(ends[0], raw[_i].header, sizeof raw[_i].header), 24);
    ck_assert_int_eq(write(ends[0], zeros, raw[_i].body), (ssize_t)raw[_i].body);
    shutdown(ends[0], SHUT_WR);
    ck_assert_msg(message_receive(ends[1], 1000, 5000, &got) == raw[_i].wanted, "%s",
                  raw[_i].what);
    message_fini(&got);
}

UNIT_LOOP(header_cut, 24)
{
    struct message got;
    ck_assert_int_eq(write(ends[0], raw[0].header, (size_t)_i), _i);
    shutdown(ends[0], SHUT_WR);
    ck_assert_int_eq(message_receive(ends[1], 1000, 5000, &got), MESSAGE_EOF);
}

enum { N_BAD_BODIES = 6 };

/* Refuses values in a body that would index beyond a table or a string. */
UNIT_LOOP(bad_body, N_BAD_BODIES)
{
    struct message sent[N_BAD_BODIES] = {
        {.type = MESSAGE_PROGRESS}, {.type = MESSAGE_FAILED},
        {.type = MESSAGE_FAILED},   {.type = MESSAGE_FAILED},
        {.type = MESSAGE_FAILED},   {.type = MESSAGE_REJECTED},
    };
    struct message got;
    sent[0].body.progress.stage = QDQ_N_STAGES;
    sent[1].body.failed.code = API_N_CODES;
    sent[2].body.failed.kind = QDQ_N_WHERES;
    memset(sent[3].body.failed.detail, 'x', sizeof sent[3].body.failed.detail);
    memset(sent[4].body.failed.model, 'x', sizeof sent[4].body.failed.model);
    sent[5].body.failed.code = API_N_CODES;
    ck_assert(message_send(ends[0], 5000, &sent[_i]));
    ck_assert_int_eq(message_receive(ends[1], 1000, 5000, &got), MESSAGE_BROKEN);
}

/* --- deadlines ------------------------------------------------------------ */

/* A message that begins has to become whole, wherever it stops. */
UNIT_TEST(late)
{
    char bytes[256], text[] = "0123456789";
    struct message sent = {.type = MESSAGE_RESULT, .text = text, .text_len = 10}, got;
    ck_assert(message_send(ends[0], 5000, &sent));
    ssize_t whole = recv(ends[1], bytes, sizeof bytes, 0);
    ck_assert_int_gt(whole, 10);
    for (ssize_t part = 1; part < whole; part++) {
        ck_assert_int_eq(send(ends[0], bytes, (size_t)part, 0), part);
        ck_assert_int_eq(message_receive(ends[1], 1000, 1, &got), MESSAGE_OVERDUE);
        tear_down();
        set_up();
    }
}

/* The other side reads nothing. */
UNIT_TEST(slow_reader)
{
    struct message sent = {.type = MESSAGE_RESULT, .text_len = 8 << 20};
    sent.text = calloc(1, sent.text_len);
    ck_assert_ptr_nonnull(sent.text);
    ck_assert(!message_send(ends[0], 10, &sent));
    ck_assert_int_eq(errno, ETIMEDOUT);
    free(sent.text);
}

UNIT_SUITE("daemon/message", .setup = set_up, .teardown = tear_down)
