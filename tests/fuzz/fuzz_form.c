/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: multipart forms, sent in pieces. The first byte chooses the route and
   the size of the pieces; a line with the boundary follows; the rest is the body. */
#include "config.h"
#include "server.h"

#define MAX_BOUNDARY 100

static const char *const routes[] = {"/v1/jobs",   "/v1/quantize", "/v1/plan",
                                     "/v1/models", "/v1/datasets", "/v1/jobs?wait=1"};

#define N_ROUTES (sizeof routes / sizeof *routes)

/* Copies the boundary without characters that would end the header. */
static size_t
copy_boundary(char *to, const uint8_t *data, size_t size)
{
    size_t n = 0, at = 0;
    while (at < size && data[at] != '\n') {
        if (n < MAX_BOUNDARY && data[at] >= ' ' && data[at] != 127)
            to[n++] = (char)data[at];
        at++;
    }
    to[n] = '\0';
    return at < size ? at + 1 : at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char head[512], boundary[MAX_BOUNDARY + 1], answer[4096];
    if (size == 0)
        return 0;
    size_t begin = 1 + copy_boundary(boundary, data + 1, size - 1);
    int n = snprintf(head, sizeof head,
                     "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                     "multipart/form-data; boundary=%s\r\nContent-Length: %zu\r\n\r\n",
                     routes[data[0] % N_ROUTES], boundary, size - begin);
    server_reset();
    int fd = server_connect();
    send_bytes(fd, (const uint8_t *)head, (size_t)n, sizeof head);
    /* The pieces are few and large, or many and small. */
    size_t piece = (size_t)1 << (data[0] / N_ROUTES % 17);
    send_bytes(fd, data + begin, size - begin, piece > size / 64 ? piece : size / 64);
    read_answers(fd, answer, sizeof answer);
    check_answer(answer);
    return 0;
}

#define CORPUS "tests/fuzz/corpus/form"
#include "replay.h"
