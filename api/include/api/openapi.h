/* SPDX-License-Identifier: Apache-2.0 */
/* The contract, api/openapi.yaml, as a text in the program. */
#ifndef API_OPENAPI_H
#define API_OPENAPI_H

/* Returns the text of the document. */
const char *api_openapi(void);

#endif
