/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: the bytes on a connection, with requests, queries, headers and
   bodies. */
#include "config.h"
#include "server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char answer[4096];
    server_reset();
    int fd = server_connect();
    send_bytes(fd, data, size, 1 << 16);
    read_answers(fd, answer, sizeof answer);
    check_answer(answer);
    return 0;
}

#define CORPUS "tests/fuzz/corpus/http"
#include "replay.h"
