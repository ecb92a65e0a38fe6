/* SPDX-License-Identifier: Apache-2.0 */
/* Tells the service manager how things are (sd_notify's protocol), if there is one. */
#ifndef QDQD_WATCH_NOTIFY_H
#define QDQD_WATCH_NOTIFY_H

void notify_send(const char *state);

#endif
