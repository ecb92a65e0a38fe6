/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime in another process, which serves it with serve.h. */
#ifndef QDQI_RUNTIMES_PROCESS_REMOTE_H
#define QDQI_RUNTIMES_PROCESS_REMOTE_H

#include "runtimes/common/deploy.h"

struct qdqi_remote;

/* Takes ownership of the connected socket, also on failure. `runtime` is the name of the runtime
   that is to be served; borrowed. RUNTIME_MISSING when nobody serves it. */
enum qdq_code qdqi_remote_open(int socket, const char *runtime,
                               struct qdqi_remote **ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;
/* Returns whether the process has ended, or answered what is not of the protocol: calls fail with
   JUDGE_GONE from then on. */
bool qdqi_remote_is_gone(const struct qdqi_remote *remote);
/* Goes on with another process, which lacks the models of the one before: their runs fail with
   JUDGE_GONE, and they are still to be closed. Takes ownership of the socket. RUNTIME_MISSING. */
enum qdq_code qdqi_remote_renew(struct qdqi_remote *remote, int socket,
                                struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_remote_close(struct qdqi_remote **remote);

/*
 * Returns the row of a runtime that another process serves, whose place is a struct qdqi_remote:
 * `row` has its names and is borrowed; `linked` is the row of the same name that the engine has
 * itself, or NULL.
 */
struct qdqi_deploy_ops qdqi_remote_ops(const struct qdq_runtime_row *row,
                                       const struct qdqi_deploy_ops *linked);

#endif
