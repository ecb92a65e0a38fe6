/* SPDX-License-Identifier: Apache-2.0 */
/* Sends a request's reply through the HTTP library, or past it. */
#ifndef QDQD_HTTP_RESPONSE_H
#define QDQD_HTTP_RESPONSE_H

#include <microhttpd.h>

struct request;

/* Limits of the unread body that is dropped, so that the client sees the answer. */
enum { DROP_BYTES = 8 << 20, DROP_MS = 2000 };

enum MHD_Result response_send(struct request *request);
/*
 * Answers with the request's problem in the middle of a body, which the library cannot
 * do. The bytes are few and the first to be sent past the library, so they fit into the
 * socket's buffer.
 */
void response_break_off(struct request *request);
/* Reads the rest of the body for a while. Closing a socket with unread bytes makes
   the kernel reset the connection, and the client might never see the answer. */
void response_linger(struct MHD_Connection *connection);

#endif
