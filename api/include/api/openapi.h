/* SPDX-License-Identifier: Apache-2.0 */
/* The contract itself, api/openapi.yaml, built in. */
#ifndef API_OPENAPI_H
#define API_OPENAPI_H

/* The document's text. */
const char *api_openapi(void);

#endif
