/* SPDX-License-Identifier: Apache-2.0 */
/* Sends a request's reply through the HTTP library, or past it. */
#ifndef QDQD_HTTP_RESPONSE_H
#define QDQD_HTTP_RESPONSE_H

#include <microhttpd.h>

struct request;

/* What is read of a body that nobody wants, so that the client sees the answer. */
enum { DROP_BYTES = 8 << 20, DROP_MS = 2000 };

enum MHD_Result response_send(struct request *request);
/*
 * Answers with the request's problem in the middle of a body, which the library cannot.
 * What is sent is small and the first that goes this way, so it fits into the socket's
 * buffer.
 */
void response_break_off(struct request *request);
/*
 * Closing a socket with unread bytes in it makes the kernel reset the connection, and
 * the client may never see the answer. So this reads the rest of the body for a while.
 */
void response_linger(struct MHD_Connection *connection);

#endif
