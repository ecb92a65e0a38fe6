/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "http/tls.h"
#include "base/lock.h"

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>

#define MAX_CERTS 16 /* longest chain of certificates */

/* A certificate chain and its key. Handshakes may still use older pairs, so all
   pairs are freed at the end. */
struct pair {
    gnutls_pcert_st certs[MAX_CERTS];
    unsigned n;
    gnutls_privkey_t key;
    struct pair *before;
};

struct tls {
    const struct settings *settings;
    struct lock lock;
    struct pair *newest; /* guarded by lock */
};

/* --- reading the files ---------------------------------------------------- */

static bool
fail(struct api_problem *p, const char *setting, const char *path, int rc)
{
    return api_fail(p, API_IO, "%s: %s: %s", setting, path, gnutls_strerror(rc));
}

static bool
read_certs(const char *path, struct pair *pair, struct api_problem *p)
{
    gnutls_datum_t data;
    unsigned n = MAX_CERTS;
    int rc = gnutls_load_file(path, &data);
    if (rc)
        return fail(p, "http.tls_cert", path, rc);
    rc = gnutls_pcert_list_import_x509_raw(pair->certs, &n, &data, GNUTLS_X509_FMT_PEM,
                                           GNUTLS_X509_CRT_LIST_FAIL_IF_UNSORTED);
    gnutls_free(data.data);
    if (rc)
        return fail(p, "http.tls_cert", path, rc);
    pair->n = n;
    return true;
}

static bool
read_key(const char *path, struct pair *pair, struct api_problem *p)
{
    gnutls_datum_t data;
    int rc = gnutls_load_file(path, &data);
    if (rc)
        return fail(p, "http.tls_key", path, rc);
    rc = gnutls_privkey_init(&pair->key);
    if (!rc)
        rc = gnutls_privkey_import_x509_raw(pair->key, &data, GNUTLS_X509_FMT_PEM, NULL,
                                            0);
    gnutls_memset(data.data, 0, data.size);
    gnutls_free(data.data);
    return !rc || fail(p, "http.tls_key", path, rc);
}

/* Checks that the key belongs to the first certificate. */
static bool
check_pair(const struct pair *pair, struct api_problem *p)
{
    unsigned char ids[2][64];
    size_t sizes[2] = {sizeof ids[0], sizeof ids[1]};
    gnutls_pubkey_t own = NULL;
    bool ok =
        pair->n && gnutls_pubkey_init(&own) == 0 &&
        gnutls_pubkey_import_privkey(own, pair->key, 0, 0) == 0 &&
        gnutls_pubkey_get_key_id(own, 0, ids[0], &sizes[0]) == 0 &&
        gnutls_pubkey_get_key_id(pair->certs[0].pubkey, 0, ids[1], &sizes[1]) == 0 &&
        sizes[0] == sizes[1] && gnutls_memcmp(ids[0], ids[1], sizes[0]) == 0;
    gnutls_pubkey_deinit(own);
    return ok || api_fail(p, API_IO, "http.tls_key is not the key of http.tls_cert");
}

static void
free_pair(struct pair *pair)
{
    for (unsigned i = 0; i < pair->n; i++)
        gnutls_pcert_deinit(&pair->certs[i]);
    if (pair->key)
        gnutls_privkey_deinit(pair->key);
    free(pair);
}

bool
tls_reload(struct tls *tls, struct api_problem *p)
{
    struct pair *pair = calloc(1, sizeof *pair);
    if (!pair)
        return api_problem_no_memory(p);
    if (!read_certs(tls->settings->http_tls_cert, pair, p) ||
        !read_key(tls->settings->http_tls_key, pair, p) || !check_pair(pair, p)) {
        free_pair(pair);
        return false;
    }
    lock_acquire(&tls->lock);
    pair->before = tls->newest;
    tls->newest = pair;
    lock_release(&tls->lock);
    return true;
}

bool
tls_open(const struct settings *settings, struct tls **ret, struct api_problem *p)
{
    struct tls *tls = calloc(1, sizeof *tls);
    if (!tls)
        return api_problem_no_memory(p);
    tls->settings = settings;
    lock_init(&tls->lock, LOCK_TLS);
    if (!tls_reload(tls, p)) {
        tls_close(&tls);
        return false;
    }
    *ret = tls;
    return true;
}

void
tls_close(struct tls **tls)
{
    if (!*tls)
        return;
    while ((*tls)->newest) {
        struct pair *pair = (*tls)->newest;
        (*tls)->newest = pair->before;
        free_pair(pair);
    }
    lock_fini(&(*tls)->lock);
    free(*tls);
    *tls = NULL;
}

/* --- connections ---------------------------------------------------------- */

/* Selects the newest pair for a handshake. libmicrohttpd has put its connection into
   the session. */
static int
on_certificate_request(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
                       gnutls_pcert_st **ret, unsigned *ret_n,
                       gnutls_ocsp_data_st **ret_ocsp, unsigned *ret_n_ocsp,
                       gnutls_privkey_t *ret_key, unsigned *flags)
{
    struct MHD_Connection *connection = gnutls_session_get_ptr(session);
    struct tls *tls = connection ? tls_of(connection) : NULL;
    (void)info;
    if (!tls)
        return -1;
    lock_acquire(&tls->lock);
    struct pair *pair = tls->newest;
    lock_release(&tls->lock);
    *ret = pair->certs;
    *ret_n = pair->n;
    *ret_ocsp = NULL;
    *ret_n_ocsp = 0;
    *ret_key = pair->key;
    *flags = 0; /* GnuTLS must not free any of these */
    return 0;
}

void *
tls_callback(void)
{
    gnutls_certificate_retrieve_function3 *const fn = on_certificate_request;
    return (void *)fn;
}

bool
tls_send(struct MHD_Connection *connection, const char *data, size_t len)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    return info && info->tls_session &&
           gnutls_record_send(info->tls_session, data, len) == (ssize_t)len;
}
