/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of libcurl that remote/ calls. qdqr_init() calls curl_global_init() first, so
 * that no other is called where the library cannot be loaded.
 */
#include "config.h"
#include "ondemand.h"

/* Newer versions declare its first argument as constant, older ones do not. */
#define curl_url_get declared_curl_url_get
#include <curl/curl.h>
#undef curl_url_get
#include <stdarg.h>

/* Macros of these names check the types of arguments. */
#undef curl_easy_setopt
#undef curl_easy_getinfo

ON_DEMAND(SONAME_CURL, CURLcode, CURLE_FAILED_INIT, curl_global_init, (long flags),
          (flags))
ON_DEMAND(SONAME_CURL, CURL *, NULL, curl_easy_init, (void), ())
ON_DEMAND_VOID(SONAME_CURL, curl_easy_cleanup, (CURL * curl), (curl))
ON_DEMAND(SONAME_CURL, CURLcode, CURLE_FAILED_INIT, curl_easy_perform, (CURL * curl),
          (curl))
ON_DEMAND(SONAME_CURL, const char *, SONAME_CURL " cannot be loaded",
          curl_easy_strerror, (CURLcode code), (code))
ON_DEMAND(SONAME_CURL, CURLHcode, CURLHE_NOT_BUILT_IN, curl_easy_header,
          (CURL * curl, const char *name, size_t i, unsigned origin, int request,
           struct curl_header **ret),
          (curl, name, i, origin, request, ret))

/* The type of an option's value is in its number. */
CURLcode
curl_easy_setopt(CURL *curl, CURLoption option, ...)
{
    va_list args;
    CURLcode code = CURLE_FAILED_INIT;
    ON_DEMAND_CALL(SONAME_CURL, curl_easy_setopt);
    va_start(args, option);
    if (call && option < CURLOPTTYPE_OBJECTPOINT)
        code = call(curl, option, va_arg(args, long));
    else if (call && option >= CURLOPTTYPE_OFF_T && option < CURLOPTTYPE_BLOB)
        code = call(curl, option, va_arg(args, curl_off_t));
    else if (call)
        code = call(curl, option, va_arg(args, void *));
    va_end(args);
    return code;
}

CURLcode
curl_easy_getinfo(CURL *curl, CURLINFO info, ...)
{
    va_list args;
    ON_DEMAND_CALL(SONAME_CURL, curl_easy_getinfo);
    va_start(args, info);
    void *ret = va_arg(args, void *);
    va_end(args);
    return call ? call(curl, info, ret) : CURLE_FAILED_INIT;
}

ON_DEMAND(SONAME_CURL, struct curl_slist *, NULL, curl_slist_append,
          (struct curl_slist * list, const char *text), (list, text))
ON_DEMAND_VOID(SONAME_CURL, curl_slist_free_all, (struct curl_slist * list), (list))
ON_DEMAND(SONAME_CURL, time_t, -1, curl_getdate, (const char *text, const time_t *now),
          (text, now))
ON_DEMAND_VOID(SONAME_CURL, curl_free, (void *data), (data))

ON_DEMAND(SONAME_CURL, CURLU *, NULL, curl_url, (void), ())
ON_DEMAND_VOID(SONAME_CURL, curl_url_cleanup, (CURLU * url), (url))
CURLUcode curl_url_get(CURLU *url, CURLUPart part, char **ret, unsigned flags);
ON_DEMAND(SONAME_CURL, CURLUcode, CURLUE_OUT_OF_MEMORY, curl_url_get,
          (CURLU * url, CURLUPart part, char **ret, unsigned flags),
          (url, part, ret, flags))
ON_DEMAND(SONAME_CURL, CURLUcode, CURLUE_OUT_OF_MEMORY, curl_url_set,
          (CURLU * url, CURLUPart part, const char *text, unsigned flags),
          (url, part, text, flags))
