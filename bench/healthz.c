/* SPDX-License-Identifier: Apache-2.0 */
/* The least work of libmicrohttpd: one fixed answer, with the same threads as qdqd.
   Prints its port, and ends with its standard input. */
#include <arpa/inet.h>
#include <microhttpd.h>
#include <stdio.h>
#include <unistd.h>

static enum MHD_Result
answer(void *arg, struct MHD_Connection *connection, const char *url,
       const char *method, const char *version, const char *data, size_t *len,
       void **state)
{
    static char body[] = "{\"status\":\"ok\"}";
    (void)arg, (void)url, (void)method, (void)version, (void)data, (void)len;
    if (!*state) {
        *state = body;
        return MHD_YES;
    }
    struct MHD_Response *response =
        MHD_create_response_from_buffer(sizeof body - 1, body, MHD_RESPMEM_PERSISTENT);
    MHD_add_response_header(response, "Content-Type", "application/json");
    enum MHD_Result result = MHD_queue_response(connection, 200, response);
    MHD_destroy_response(response);
    return result;
}

int
main(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL,
        0, NULL, NULL, answer, NULL, MHD_OPTION_SOCK_ADDR, &address,
        MHD_OPTION_CONNECTION_LIMIT, 512u, MHD_OPTION_END);
    if (!daemon)
        return 1;
    printf("%u\n", MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
    fflush(stdout);
    char ignored;
    while (read(0, &ignored, 1) > 0)
        continue;
    MHD_stop_daemon(daemon);
    return 0;
}
