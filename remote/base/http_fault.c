/* SPDX-License-Identifier: Apache-2.0 */
/* The problems of transfers that failed. */
#include "config.h"
#include "base/http.h"

#include <errno.h>
#include <string.h>

#define TIMEOUT 60L /* seconds */

int64_t
http_timeout(const struct http *http)
{
    return http->remote->timeout > 0 ? http->remote->timeout : TIMEOUT;
}

/* Sets the problem of a transfer that took too long. */
static bool
fail_time(struct http *http, struct api_problem *problem)
{
    const struct qdqr_remote *remote = http->remote;
    long long timeout = http_timeout(http);
    curl_off_t connected = 0, total = 0;
    curl_easy_getinfo(http->curl, CURLINFO_PRETRANSFER_TIME_T, &connected);
    curl_easy_getinfo(http->curl, CURLINFO_TOTAL_TIME_T, &total);
    if (http->is_overdue)
        return api_problem_set(
            problem, API_REMOTE_UNAVAILABLE, QDQ_AT_NOTHING, NULL,
            "remote %s needs more than %lld seconds for all requests "
            "together (total_timeout)",
            remote->name, (long long)remote->total_timeout);
    if (http->is_slow)
        return api_problem_set(problem, API_REMOTE_UNAVAILABLE, QDQ_AT_NOTHING, NULL,
                               "the file of remote %s moved by %lld bytes a second "
                               "within %lld seconds, and its min_rate is %lld",
                               remote->name, (long long)http->rate.measured, timeout,
                               (long long)remote->min_rate);
    if (!connected)
        return api_problem_set(problem, API_REMOTE_UNAVAILABLE, QDQ_AT_NOTHING, NULL,
                               "remote %s has accepted no connection within %lld "
                               "seconds (timeout)",
                               remote->name, timeout);
    if (total >= HTTP_MOST_TIMEOUTS * timeout * 1000000)
        return api_problem_set(problem, API_REMOTE_UNAVAILABLE, QDQ_AT_NOTHING, NULL,
                               "remote %s has not answered in full within %lld seconds "
                               "(ten times its timeout)",
                               remote->name, HTTP_MOST_TIMEOUTS * timeout);
    return api_problem_set(problem, API_REMOTE_UNAVAILABLE, QDQ_AT_NOTHING, NULL,
                           "remote %s moved no byte for %lld seconds (timeout)",
                           remote->name, timeout);
}

/* Returns what is wrong with the certificate of the connection that was refused. The numbers are
   OpenSSL's (X509_V_ERR_...). libcurl itself compares the name of the host, and leaves the number
   that it began with when the names differ. */
static const char *
certificate_fault(CURL *curl)
{
    enum { UNCHECKED = 1 };
    static const struct {
        long error;
        const char *text;
    } rows[] = {
        {UNCHECKED, "that is for another host than its url names"},
        {9, "that is not valid yet"},
        {10, "that has expired"},
        {18, "that is signed by itself; where it is to be trusted, name it in ca"},
        {19, "of an authority that is not known; name the authority in ca"},
        {20, "whose issuer is not known: the remote does not send its intermediate "
             "certificates, or ca lacks the authority"},
        {21, "whose issuer is not known: the remote does not send its intermediate "
             "certificates, or ca lacks the authority"},
    };
    long error = -1;
    curl_easy_getinfo(curl, CURLINFO_SSL_VERIFYRESULT, &error);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].error == error)
            return rows[i].text;
    return "that is not valid";
}

bool
http_fail_transfer(struct http *http, const struct http_answer *answer, CURLcode code,
                   struct api_problem *problem)
{
    const char *name = http->remote->name;
    if (answer->is_too_large)
        return api_problem_set(problem, API_REMOTE_TOO_LARGE, QDQ_AT_NOTHING, NULL,
                               "remote %s sent more bytes than it may", name);
    if (answer->has_failed_write)
        return api_problem_set(problem, API_IO, QDQ_AT_NOTHING, NULL,
                               "the bytes of remote %s cannot be written: %s", name,
                               strerror(errno));
    if (answer->is_other_range)
        return api_problem_set(problem, API_REMOTE_UNAVAILABLE, QDQ_AT_NOTHING, NULL,
                               "remote %s answered with another range of the file",
                               name);
    if (http->is_overdue || http->is_slow || code == CURLE_OPERATION_TIMEDOUT)
        return fail_time(http, problem);
    if (code == CURLE_ABORTED_BY_CALLBACK)
        return api_problem_set(problem, API_CANCELLED, QDQ_AT_NOTHING, NULL,
                               "the transfer was cancelled");
    if (code == CURLE_OUT_OF_MEMORY)
        return api_problem_no_memory(problem);
    if (code == CURLE_PEER_FAILED_VERIFICATION)
        return api_problem_set(problem, API_REMOTE_DENIED, QDQ_AT_NOTHING, NULL,
                               "remote %s has a certificate %s", name,
                               certificate_fault(http->curl));
    if (code == CURLE_SSL_CACERT_BADFILE)
        return api_problem_set(problem, API_REMOTE_DENIED, QDQ_AT_NOTHING, NULL,
                               "the authorities of remote %s (ca) cannot be read",
                               name);
    if (http->refused)
        return api_problem_set(
            problem, API_REMOTE_DENIED, QDQ_AT_NOTHING, NULL,
            "remote %s has an address that is not public; its operator can set "
            "allow_private",
            name);
    return api_problem_set(problem, API_REMOTE_UNAVAILABLE, QDQ_AT_NOTHING, NULL,
                           "remote %s: %s", name, curl_easy_strerror(code));
}
