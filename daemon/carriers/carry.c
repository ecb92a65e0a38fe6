/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "carriers/carry.h"
#include "workers/worker.h"

#include <stdlib.h>
#include <unistd.h>

#define MOST_SECRET (64 << 10)
#define MOST_CA (4 << 20)

/* --- answers --------------------------------------------------------------- */

void
carry_send(struct carrier *c, const struct message *message)
{
    if (!message_send(WORKER_SOCKET, -1, message))
        c->gone = true;
}

void
carry_answer(struct carrier *c, bool ok, enum message_type type,
             struct string_list *strings, const struct api_problem *problem)
{
    const struct message answer = {
        .type = type, .text = strings->text, .text_len = strings->len};
    const struct message failed = {.type = MESSAGE_FAILED, .body.failed = *problem};
    const struct message retry = {.type = MESSAGE_RETRY_AFTER,
                                  .body.retry.seconds = c->call.retry_after};
    if (!ok && c->call.retry_after > 0)
        carry_send(c, &retry);
    carry_send(c, ok ? &answer : &failed);
    string_list_fini(strings);
}

/* --- a remote -------------------------------------------------------------- */

/* Reads a file as text. The caller frees it. */
static char *
read_text(int fd, size_t most, size_t *ret_size, struct api_problem *p)
{
    char *text = calloc(1, most + 1);
    size_t len = 0;
    ssize_t n = 1;
    while (text && len < most &&
           (n = pread(fd, text + len, most - len, (off_t)len)) > 0)
        len += (size_t)n;
    if (text && n >= 0) {
        *ret_size = len;
        return text;
    }
    free(text);
    if (text)
        api_fail(p, API_IO, "a file of the remote's cannot be read");
    else
        api_problem_no_memory(p);
    return NULL;
}

void
carry_close_remote(struct opened *opened)
{
    for (int i = 0; i < MESSAGE_N_SECRETS; i++) {
        if (opened->texts[i])
            digest_cleanse(opened->texts[i], opened->sizes[i]);
        free(opened->texts[i]);
    }
    *opened = (struct opened){0};
}

bool
carry_open_remote(struct carrier *c, const struct message_remote *from,
                  const struct message *message, struct api_problem *p)
{
    struct opened *opened = &c->opened;
    carry_close_remote(opened);
    for (int i = 0; i < MESSAGE_N_SECRETS; i++) {
        if (!(from->secrets >> i & 1))
            continue;
        opened->texts[i] =
            read_text(message->fds[opened->n_fds++],
                      i == MESSAGE_CA ? MOST_CA : MOST_SECRET, &opened->sizes[i], p);
        if (!opened->texts[i])
            return false;
    }
    opened->remote =
        (struct qdqr_remote){.name = from->name,
                             .kind = from->kind,
                             .url = from->url,
                             .region = from->region,
                             .path_style = from->path_style,
                             .allow_private = from->allow_private,
                             .timeout = from->timeout,
                             .min_rate = from->min_rate,
                             .total_timeout = from->total_timeout,
                             .max_bytes = from->max_bytes,
                             .credentials = opened->texts[MESSAGE_CREDENTIALS],
                             .ca = opened->texts[MESSAGE_CA],
                             .ca_len = opened->sizes[MESSAGE_CA],
                             .secret = opened->texts[MESSAGE_SECRET],
                             .secret_old = opened->texts[MESSAGE_SECRET_OLD],
                             .artifacts_url = from->artifacts_url,
                             .artifacts_credentials = opened->texts[MESSAGE_ARTIFACTS]};
    return true;
}
