/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "handlers/handlers.h"
#include "settings/remotes.h"
#include "tenants/tenants.h"
#include "tenants/tokens.h"
#include "workers/signer.h"
#include "remote/remote.h"

#include <stdio.h>
#include <string.h>

#define MOST_ALIAS 255

/* Sets the problem of another check, at a member of the request. */
static bool
fail_at(struct api_problem *p, const char *pointer, const struct api_problem *problem)
{
    return api_fail_at(p, problem->code, pointer, "%s", problem->detail);
}

/* The token that asks for a job, and the remotes that there are. */
struct asker {
    const char *tenant;
    char scopes[TOKEN_SCOPES];
    const struct remotes *remotes;
    bool signs; /* whether the service has a key */
};

static bool
check_place(const struct asker *asker, const struct api_place *place,
            const char *pointer, bool to_publish, struct api_problem *p)
{
    struct api_problem problem = {0};
    const struct remote *remote = remotes_find(asker->remotes, place->remote);
    if (!remote)
        return api_fail_at(p, API_REMOTE_UNKNOWN, pointer,
                           "there is no remote %s; GET /v1/remotes lists them",
                           place->remote);
    if (!remote_allows(remote, asker->tenant, asker->scopes))
        return api_fail_at(p, API_REMOTE_DENIED, pointer,
                           "the access token may not use remote %s", place->remote);
    const struct qdqr_remote checked = {
        .name = place->remote, .kind = remote->kind, .url = remote->url};
    return qdqr_check_ref(&checked, place->ref, to_publish, &problem) ||
           fail_at(p, pointer, &problem);
}

static bool
check_publication(const struct asker *asker, const struct api_publication *publication,
                  size_t i, struct api_problem *p)
{
    char pointer[32];
    snprintf(pointer, sizeof pointer, "/publish/%zu", i);
    if (publication->alias && strlen(publication->alias) > MOST_ALIAS)
        return api_fail_at(p, API_BAD_REQUEST, pointer, "an alias has at most %d bytes",
                           MOST_ALIAS);
    if (!(publication->what & API_PUBLISH_MODEL))
        return api_fail_at(
            p, API_UNSUPPORTED, pointer,
            "what lacks \"model\", without which there is no version to publish");
    if (publication->says_what && publication->what & API_PUBLISH_SIGNATURE &&
        !asker->signs)
        return api_fail_at(p, API_UNSUPPORTED, pointer,
                           "what lists \"signature\", and this service signs nothing: "
                           "its configuration has no signing.key");
    return check_place(asker, &publication->place, pointer, true, p);
}

static bool
check_publications(const struct asker *asker, const struct api_job_request *job,
                   struct api_problem *p)
{
    struct api_publication *list;
    size_t n;
    if (!job->publish)
        return true;
    if (!api_publications_decode(job->publish, &list, &n, p))
        return false;
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++)
        ok = check_publication(asker, &list[i], i, p);
    api_publications_free(&list, n);
    return ok;
}

/* Checks that a tenant who may have signed models alone names a remote that demands signatures. */
static bool
check_signed(const struct service *service, const struct api_job_request *job,
             const struct remotes *remotes, struct api_problem *p)
{
    const struct remote *remote =
        job->model_place.ref ? remotes_find(remotes, job->model_place.remote) : NULL;
    return !tenant_is_listed(service->settings->tenants_signed_models,
                             service->tenant) ||
           (remote && *remote->signers) ||
           api_fail_at(p, API_FORBIDDEN, "/model",
                       "this tenant's models have to be signed: name one in a remote "
                       "whose section has signers");
}

bool
places_check(const struct service *service, unsigned scopes,
             const struct api_job_request *job, struct api_problem *p)
{
    const struct api_place *const places[] = {&job->model_place,
                                              &job->calibration_place};
    static const char *const pointers[] = {"/model", "/calibration"};
    struct remotes *remotes = tenants_remotes(service->tenants);
    struct asker asker = {.tenant = service->tenant,
                          .remotes = remotes,
                          .signs = signer_is_configured(service->settings)};
    token_scopes_print(scopes, asker.scopes);
    bool ok = true;
    for (size_t i = 0; ok && i < sizeof places / sizeof *places; i++)
        ok = !places[i]->ref || check_place(&asker, places[i], pointers[i], false, p);
    ok = ok && check_signed(service, job, remotes, p) &&
         check_publications(&asker, job, p);
    remotes_release(&remotes);
    return ok;
}
