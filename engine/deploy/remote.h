/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime in another process, which serves it with serve.h. */
#ifndef QDQI_DEPLOY_REMOTE_H
#define QDQI_DEPLOY_REMOTE_H

#include "deploy/deploy.h"

struct qdqi_remote;

/* Takes ownership of the connected socket, also on failure. RUNTIME_MISSING when nobody
   serves it. */
enum qdq_code qdqi_remote_open(int socket, struct qdqi_remote **ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_remote_close(struct qdqi_remote **remote);

/* OpenVINO in another process; its place is a struct qdqi_remote. */
extern const struct qdqi_deploy_ops qdqi_deploy_remote_openvino;

#endif
