/* SPDX-License-Identifier: Apache-2.0 */
/* The process that signs: it reads the key from a descriptor, in its cage, and signs once. With a key in
   a token the descriptor has the URI of that. */
#include "config.h"
#include "workers/signer.h"
#include "workers/cage.h"
#include "workers/confine.h"
#include "workers/message.h"
#include "workers/token_key.h"
#include "workers/worker.h"
#include "api/lineage.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define MOST_DATA ((rlim_t)512 << 20) /* bytes of the process's data */
#define MOST_PEM 65536                /* bytes of a key or of a chain */

/* The bytes of a file, overwritten when they are not needed any more. */
struct pem {
    char bytes[MOST_PEM];
    size_t len;
};

static bool
read_pem(int fd, struct pem *to, struct api_problem *p)
{
    ssize_t n = 1;
    while (n > 0 && to->len < sizeof to->bytes) {
        n = pread(fd, to->bytes + to->len, sizeof to->bytes - to->len, (off_t)to->len);
        to->len += n > 0 ? (size_t)n : 0;
    }
    return n == 0 || api_fail(p, API_UNAVAILABLE,
                              "a file of the section [signing] cannot be read, or has "
                              "more than %d bytes",
                              MOST_PEM);
}

/* The key, and where it is in a token that. */
struct held_key {
    struct api_signing_key *key;
    struct token_key *token;
};

/* Reads the key, or opens the token whose URI stands in its place. */
static bool
read_key(int fd, bool in_token, struct held_key *ret, struct api_problem *p)
{
    struct pem *pem = calloc(1, sizeof *pem);
    bool ok = (pem || api_problem_no_memory(p)) && read_pem(fd, pem, p);
    if (ok && in_token) {
        pem->bytes[pem->len < sizeof pem->bytes ? pem->len : sizeof pem->bytes - 1] =
            '\0';
        ok = token_key_open(pem->bytes, &ret->token, &ret->key, p);
    } else if (ok) {
        ok = api_signing_key_read(pem->bytes, pem->len, &ret->key, p);
    }
    if (pem)
        digest_cleanse(pem, sizeof *pem);
    free(pem);
    return ok;
}

/* Adds the certificates of the key. */
static bool
read_chain(int fd, struct held_key *held, struct api_problem *p)
{
    struct pem *chain = calloc(1, sizeof *chain);
    bool ok = (chain || api_problem_no_memory(p)) && read_pem(fd, chain, p) &&
              api_signing_key_certify(held->key, chain->bytes, chain->len, p);
    free(chain);
    return ok;
}

/* Makes the signed document. NULL: the problem is set. */
static char *
sign(const struct message *request, bool in_token, struct api_problem *p)
{
    struct held_key held = {.key = NULL};
    struct api_signature signature = {0};
    char *text = NULL;
    if (read_key(request->fds[0], in_token, &held, p) &&
        (request->n_fds < 2 || read_chain(request->fds[1], &held, p)) &&
        api_sign(held.key, request->text, request->text_len, &signature, p)) {
        text = request->body.sign.form == SIGNED_BUNDLE
                   ? api_bundle_encode(request->text, &signature)
                   : api_envelope_encode(request->text, &signature);
        if (!text)
            api_problem_no_memory(p);
    }
    api_signature_fini(&signature);
    api_signing_key_free(&held.key);
    token_key_close(&held.token);
    return text;
}

static int
serve(bool in_token)
{
    struct message request, answer = {.type = MESSAGE_RESULT};
    struct api_problem problem = {0};
    enum message_got got = message_receive(WORKER_SOCKET, -1, -1, &request);
    if (got != MESSAGE_GOT)
        return got == MESSAGE_EOF ? EXIT_SUCCESS : EXIT_FAILURE;
    bool known = request.type == MESSAGE_SIGN && request.text;
    char *text = known ? sign(&request, in_token, &problem) : NULL;
    message_fini(&request);
    answer.text = text;
    answer.text_len = text ? strlen(text) : 0;
    if (!text) {
        answer.type = MESSAGE_FAILED;
        answer.body.failed = problem;
    }
    bool sent = known && message_send(WORKER_SOCKET, -1, &answer);
    free(text);
    return sent ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Enters the cage after OpenSSL has read its own configuration, which it could not there. */
static bool
enter_cage(const char *setting)
{
    char lacking[CAGE_TEXT], id[DIGEST_SIZE];
    if (!digest_of("", 0, id))
        return false;
    if (strcmp(setting, "off") == 0)
        return true;
    if (cage_enter(CAGE_CPU, lacking) && !*lacking)
        return true;
    const struct message note = {.type = MESSAGE_NOTE,
                                 .body.note.event = MESSAGE_NOTE_CAGE_LACKING,
                                 .text = lacking,
                                 .text_len = strlen(lacking)};
    return message_send(WORKER_SOCKET, -1, &note) && strcmp(setting, "auto") == 0;
}

int
signer_main(int argc, char **argv)
{
    struct settings settings;
    const struct message ready = {.type = MESSAGE_READY};
    char error[SETTINGS_ERROR];
    bool in_token = argc == 3 && strcmp(argv[2], SIGNER_WITH_TOKEN) == 0;
    if (argc != 2 + in_token) {
        fprintf(stderr, "qdqd: --signer is started by the daemon itself\n");
        return 2;
    }
    if (!settings_load(NULL, NULL, 0, NULL, &settings, error)) {
        fprintf(stderr, "qdqd: %s\n", error);
        return 2;
    }
    /* No process of the same user may read the memory. */
    bool ok =
        confine_process((pid_t)strtol(argv[0], NULL, 10), MOST_DATA, "qdqd-signer") &&
        prctl(PR_SET_DUMPABLE, 0) == 0;
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    ok = ok && (in_token || enter_cage(settings.workers_cage));
    settings_fini(&settings);
    if (!ok)
        return EXIT_FAILURE;
    fcntl(WORKER_SOCKET, F_SETFD, FD_CLOEXEC);
    return message_send(WORKER_SOCKET, -1, &ready) ? serve(in_token) : EXIT_FAILURE;
}
