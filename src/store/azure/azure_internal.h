/* What the files of the Azure store share.
 *
 * One request is described by an azure_call, made ready by azure_prepare (URL, headers, signature), sent by
 * azure_perform, and azure_refusal explains what the server rejected. */
#ifndef AZURE_INTERNAL_H
#define AZURE_INTERNAL_H

#include <pthread.h>

#include "base/secret.h"
#include "store/http.h"

/* ---- credentials (azure_credentials.c) --------------------------------------------------------------------------- */

/* Credentials, and where the services are.  One of key, sas or identity. */
typedef struct azure_credentials {
    char *account;
    char *blob_endpoint, *queue_endpoint; /* "https://acct.blob.core.windows.net", no slash at the end */
    base_secret *key;                     /* as bytes */
    base_secret *sas;                     /* "sv=...&sig=...", without a question mark */
    struct {
        bool used;
        bool guessed;               /* nothing says that there is one: it is tried last */
        char *url;                  /* where tokens are asked for */
        base_secret *header;        /* the header it requires, or NULL */
        http_pool *pool;            /* may ask metadata services */
        pthread_mutex_t lock;       /* of the rest */
        base_secret *token;         /* or NULL */
        int64_t refresh_at, end;    /* of the token, on base_now's clock */
        bool refreshing;            /* by one thread for all; the lock is not held meanwhile */
        _Atomic uint32_t refreshes; /* so far; changes when one ends */
    } identity;
} azure_credentials;

/* Reads the environment for `account`, which the URL names.  SHOAL_DENIED with a message that says what to set. */
int azure_credentials_init(azure_credentials *out, const char *account);
void azure_credentials_release(azure_credentials *credentials);
/* Sets *out to "Authorization: Bearer ..." with a token that is valid for some minutes, requesting one if needed. */
int azure_token_header(azure_credentials *credentials, base_secret **out, store_attempt *attempt);

/* For tests: the same without the environment.  `text` is a connection string. */
int azure_connection_string(azure_credentials *out, const char *text);
/* Reads the answer of a metadata service: the token and the seconds it is valid for; `now` is in seconds since 1970. */
int azure_token_read(base_secret **token, double *seconds, const char *answer, size_t size, int64_t now);

/* ---- requests (azure_request.c) ---------------------------------------------------------------------------------- */

typedef enum azure_service { AZURE_BLOB, AZURE_QUEUE } azure_service;

typedef struct azure_pair {
    const char *name, *value;
} azure_pair;

enum { AZURE_PAIRS = 6 };

typedef struct azure_call {
    const char *method;
    azure_service service;
    const char *first, *second;      /* segments of the path: container and key, or queue and "messages/ID"; or NULL */
    azure_pair query[AZURE_PAIRS];   /* decoded; up to the first without a name */
    azure_pair headers[AZURE_PAIRS]; /* beyond what every request has; names in lower case */
    const char *if_match, *if_none_match;
    const char *content_type, *content_md5; /* or NULL */
    store_body body;
    bool sends_body;
    shoal_request_kind kind;
    void *buffer;
    size_t room;
} azure_call;

typedef struct azure_store {
    shoal_store base; /* first */
    char *container;
    azure_credentials credentials;
    http_pool *pool;
} azure_store;

extern const char azure_version[];

/* Makes a request ready to be sent; signed again each time, because a signature is valid for a quarter of an hour. */
int azure_prepare(azure_store *store, const azure_call *call, http_request *out, store_attempt *attempt);
/* Prepares and sends one request.  SHOAL_OK: there is an answer or a cause in `out`. */
int azure_perform(azure_store *store, const azure_call *call, http_request *out, store_attempt *attempt);
void azure_request_release(http_request *request);

/* The error code of an answer, "" when there is none: "BlobNotFound". */
const char *azure_error_code(const http_request *request, char *buffer, size_t room);
/* What an answer other than 2xx means: one of the statuses of store_attempt, with a sentence.  `key` names what was
 * asked for; NULL for the store itself. */
int azure_refusal(azure_store *store, const char *key, const http_request *request, store_attempt *attempt);
bool azure_succeeded(const http_request *request);

/* The string to sign of a request by the account's key ("Authorize with Shared Key", 2015-02-21 and later).  `path` is
 * the URL's, encoded; headers and query need not be sorted. */
typedef struct azure_signed {
    const char *account, *method, *path;
    const azure_pair *query;
    size_t query_count;
    const azure_pair *headers; /* those that start with x-ms- */
    size_t header_count;
    const char *content_type, *content_md5, *if_match, *if_none_match; /* or NULL */
    size_t content_length;
} azure_signed;
int azure_string_to_sign(char **out, const azure_signed *request);
/* Base64 of HMAC-SHA256. */
int azure_sign(char out[64], const base_secret *key, const char *text);

/* Base64 of bytes, and back; decoding refuses what is not exactly Base64. */
int azure_base64(char **out, const void *bytes, size_t size);
int azure_unbase64(unsigned char **out, size_t *size, const char *text, size_t length);

/* ---- names (azure_name.c) ---------------------------------------------------------------------------------------- */

/* The name of a blob for a key, and back.  They are the same but for the backslash, which Azure turns into a slash. */
int azure_blob_name(char **out, const char *key);
int azure_blob_key(char **out, const char *name, size_t length);

enum { AZURE_QUEUE_NAME = 64 };
/* A queue's name for Azure: 3 to 63 lower-case letters, digits and dashes. */
void azure_queue_name(char out[AZURE_QUEUE_NAME], const char *container, const char *queue);

/* ---- blobs (azure_blob.c) and queues (azure_queue.c) ------------------------------------------------------------- */

int get_azure(shoal_store *self, const char *key, const store_range *range, shoal_blob *out, store_attempt *attempt);
int put_azure(shoal_store *self, const char *key, const store_body *body, const shoal_etag *expected, shoal_etag *etag,
              store_attempt *attempt);
int remove_azure(shoal_store *self, const char *key, store_attempt *attempt);
int list_azure(shoal_store *self, const char *prefix, const char *after, shoal_listing *page, store_attempt *attempt);
int put_azure_blocks(azure_store *store, const char *key, const store_body *body, const shoal_etag *expected,
                     shoal_etag *etag, store_attempt *attempt); /* azure_blocks.c */
/* The blocks of a blob that are in no list yet, as the server tells: calls `found` for each, with its id decoded.
 * For tests, too. */
typedef void azure_found_block(void *context, const unsigned char *id, size_t id_size, int64_t size);
int azure_blocks_read(const char *document, size_t size, azure_found_block *found, void *context);
/* The etag of an answer, or a sentence. */
int azure_answer_etag(azure_store *store, const char *key, const http_request *request, shoal_etag *etag);

/* Reads a page of a listing into `page`, keys that start with `prefix` and come after `after`; *marker is what the
 * server expects for the next page, NULL at the end.  For tests, too. */
int azure_list_read(const char *document, size_t size, int64_t now, const char *prefix, const char *after,
                    shoal_listing *page, char **marker, bool *last_is_high);

int push_azure(shoal_store *self, const char *queue, const store_body *body, store_attempt *attempt);
int take_azure(shoal_store *self, const char *queue, double lease, shoal_message *out, store_attempt *attempt);
int extend_azure(shoal_store *self, const char *queue, shoal_message *message, double lease, store_attempt *attempt);
int finish_azure(shoal_store *self, const char *queue, shoal_message *message, store_attempt *attempt);
int count_azure(shoal_store *self, const char *queue, int64_t *out, store_attempt *attempt);
int drop_azure(shoal_store *self, const char *queue, store_attempt *attempt);

/* A message as the server has it.  For tests, too. */
typedef struct azure_message {
    char *id, *receipt, *text;
    int64_t deliveries;
} azure_message;
/* Reads the answer to a take; *found is false when it has no message. */
int azure_message_read(azure_message *out, bool *found, const char *document, size_t size);
void azure_message_release(azure_message *message);

#endif
