/* SPDX-License-Identifier: Apache-2.0 */
/* A remote of the settings as its carrier gets it: the daemon opens the files of credentials
   and hands their descriptors on, and never reads them. */
#ifndef QDQD_CARRIERS_REMOTE_FDS_H
#define QDQD_CARRIERS_REMOTE_FDS_H

#include "settings/remotes.h"
#include "workers/message.h"

/* Fills a remote, and adds the descriptors of its files to the message, which owns them
   (message_fini() of a message without text). REMOTE_UNAVAILABLE when a file cannot be
   opened. */
bool remote_fds_open(const struct remote *remote, struct message_remote *ret,
                     struct message *message, struct api_problem *p);
#endif
