/* SPDX-License-Identifier: Apache-2.0 */
/* Reports the daemon's state to the service manager (sd_notify's protocol), if there
   is one. */
#ifndef QDQD_WATCH_NOTIFY_H
#define QDQD_WATCH_NOTIFY_H

void notify_send(const char *state);

#endif
