/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "carriers/remote_fds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* The places of the system's authorities, of which the first that exists is used. */
static const char *const system_ca[] = {"/etc/ssl/certs/ca-certificates.crt",
                                        "/etc/pki/tls/certs/ca-bundle.crt",
                                        "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"};

static int
open_file(const char *path)
{
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

static int
open_system_ca(void)
{
    int fd = -1;
    for (size_t i = 0; fd < 0 && i < sizeof system_ca / sizeof *system_ca; i++)
        fd = open_file(system_ca[i]);
    return fd;
}

bool
remote_fds_open(const struct remote *remote, struct message_remote *ret,
                struct message *message, struct api_problem *p)
{
    const char *const paths[MESSAGE_N_SECRETS] = {
        [MESSAGE_CREDENTIALS] = remote->credentials,
        [MESSAGE_CA] = remote->ca,
        [MESSAGE_SECRET] = remote->secret,
        [MESSAGE_SECRET_OLD] = remote->secret_old,
        [MESSAGE_ARTIFACTS] = remote->artifacts_credentials};
    *ret = (struct message_remote){
        .path_style = strcmp(remote->path_style, "true") == 0,
        .allow_private = strcmp(remote->allow_private, "true") == 0,
        .timeout = remote->timeout,
        .min_rate = remote->min_rate,
        .total_timeout = remote->total_timeout,
        .max_bytes = remote->max_bytes};
    snprintf(ret->name, sizeof ret->name, "%s", remote->section.name);
    snprintf(ret->kind, sizeof ret->kind, "%s", remote->kind);
    snprintf(ret->url, sizeof ret->url, "%s", remote->url);
    snprintf(ret->region, sizeof ret->region, "%s", remote->region);
    snprintf(ret->artifacts_url, sizeof ret->artifacts_url, "%s",
             remote->artifacts_url);
    for (int i = 0; i < MESSAGE_N_SECRETS; i++) {
        bool named = paths[i] && *paths[i];
        int fd = named ? open_file(paths[i]) : i == MESSAGE_CA ? open_system_ca() : -1;
        if (named && fd < 0)
            return api_fail(p, API_REMOTE_UNAVAILABLE,
                            "a file of remote %s cannot be opened: %s", ret->name,
                            strerror(errno));
        if (fd < 0)
            continue;
        ret->secrets |= 1u << i;
        message->fds[message->n_fds++] = fd;
    }
    return true;
}
