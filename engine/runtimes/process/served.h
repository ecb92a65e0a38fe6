/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime of an engine that another process serves, from one work to the next. */
#ifndef QDQI_RUNTIMES_PROCESS_SERVED_H
#define QDQI_RUNTIMES_PROCESS_SERVED_H

#include "qdq/judge.h"
#include "runtimes/common/deploy.h"

struct qdqi_remote;

struct qdqi_served {
    qdq_connect_judge_fn connect; /* how to reach a process */
    void *arg;
    char *name, *title; /* those of `row` */
    struct qdq_runtime_row row;
    struct qdqi_deploy_ops ops;
    struct qdqi_remote *remote; /* the process; NULL until the work needs it */
    struct qdq_error no_remote; /* why it does not serve this work */
    bool renewed;     /* it ended in this work, and another one has taken its place */
    char crashed[64]; /* how that was, where it crashed ("was killed by signal 11") */
};

/* `linked` is the engine's own row of that name, or NULL. NO_MEMORY. */
enum qdq_code qdqi_served_new(const struct qdq_served_runtime *as,
                              const struct qdqi_deploy_ops *linked,
                              struct qdqi_served **ret,
                              struct qdq_error *err) QDQ_MUST_CHECK;
/* Ends the use of the process, too. */
void qdqi_served_free(struct qdqi_served **served);
/* Reaches the process. One that has ended is replaced once in a work. RUNTIME_MISSING. */
enum qdq_code qdqi_served_reach(struct qdqi_served *served, struct qdqi_deploy *ret,
                                struct qdq_error *err) QDQ_MUST_CHECK;
/* Ends the use of the process, at the end of the work. */
void qdqi_served_release(struct qdqi_served *served);

#endif
