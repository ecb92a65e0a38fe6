/* SPDX-License-Identifier: Apache-2.0 */
/* The certificate and key of TLS, which can be read again while the daemon runs. */
#ifndef QDQD_HTTP_TLS_H
#define QDQD_HTTP_TLS_H

#include "settings/settings.h"
#include "api/problem.h"

#include <microhttpd.h>

/* TLS 1.2 and newer. */
#define TLS_PRIORITIES \
    "SECURE128:%SERVER_PRECEDENCE:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

struct tls;

/* Reads http.tls_cert and http.tls_key. */
bool tls_open(const struct settings *settings, struct tls **ret, struct api_problem *p);
/* Frees the credentials. All connections must be closed. */
void tls_close(struct tls **tls);
/* Reads both files again; on failure the old ones stay in use. */
bool tls_reload(struct tls *tls, struct api_problem *p);

/* Returns the callback for MHD_OPTION_HTTPS_CERT_CALLBACK2; it finds the tls by
   tls_of(). */
void *tls_callback(void);
/* Returns the tls of a connection; implemented in http/conns.c. */
struct tls *tls_of(struct MHD_Connection *connection);

/* Sends bytes past the HTTP library. */
bool tls_send(struct MHD_Connection *connection, const char *data, size_t len);

#endif
