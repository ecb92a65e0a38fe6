/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime in another process, which serves it with serve.h. */
#ifndef QDQI_RUNTIMES_PROCESS_REMOTE_H
#define QDQI_RUNTIMES_PROCESS_REMOTE_H

#include "runtimes/common/deploy.h"

struct qdqi_remote;

/* Takes ownership of the connected socket, also on failure. RUNTIME_MISSING when nobody
   serves it. */
enum qdq_code qdqi_remote_open(int socket, struct qdqi_remote **ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;
/* Returns whether the process has ended, or answered what is not of the protocol: calls fail with
   JUDGE_GONE from then on. */
bool qdqi_remote_is_gone(const struct qdqi_remote *remote);
/* Goes on with another process, which lacks the models of the one before: their runs fail with
   JUDGE_GONE, and they are still to be closed. Takes ownership of the socket. RUNTIME_MISSING. */
enum qdq_code qdqi_remote_renew(struct qdqi_remote *remote, int socket,
                                struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_remote_close(struct qdqi_remote **remote);

/* OpenVINO in another process; its place is a struct qdqi_remote. */
extern const struct qdqi_deploy_ops qdqi_deploy_remote_openvino;

#endif
