/* What the files of the S3 store share.
 *
 *     store_s3.c         the class: what is asked of a bucket, one attempt each
 *     s3_open.c          addresses, the bucket, and the probe for conditional writes
 *     s3_request.c       one signed request, or many at once
 *     s3_parts.c         large bodies in parts
 *     s3_error.c         what an unsuccessful answer means
 *     s3_list.c          the documents that list keys
 *     s3_credentials.c   credentials: the chain of places where keys may be, and their renewal
 *     s3_profile.c       the files below ~/.aws
 *     s3_metadata.c      keys of instance and container roles
 *     s3_sign.c          Signature Version 4 */
#ifndef S3_INTERNAL_H
#define S3_INTERNAL_H

#include <stdatomic.h>

#include "base/secret.h"
#include "store/http.h"
#include "store/store_internal.h"

/* ---- signing (s3_sign.c) ----------------------------------------------------------------------------------------- */

/* A parameter of a query or a header, not encoded. */
typedef struct s3_pair {
    const char *name, *value;
} s3_pair;

typedef struct s3_signing {
    const char *method;
    const char *path; /* not encoded */
    bool normalise;   /* resolve "." and ".." and double slashes, as services other than S3 do */
    const s3_pair *query;
    size_t query_count;
    const s3_pair *headers; /* all of them are signed */
    size_t header_count;
    const char *payload; /* SHA-256 of the body in hexadecimal, or S3_UNSIGNED */
    const char *time;    /* 20150830T123600Z */
    const char *region, *service;
    const char *key; /* "AWS4" and the secret key: so it is kept, and no copy has to be made */
} s3_signing;

typedef struct s3_signature {
    char *path, *query; /* encoded and in order: what has to be sent */
    char *names;        /* of the headers: "host;x-amz-date" */
    char *scope;        /* "20150830/us-east-1/s3/aws4_request" */
    char *canonical;    /* the request that is hashed */
    char *to_sign;
    char hex[65];
} s3_signature;

enum { S3_HASH_TEXT = 65 };
#define S3_UNSIGNED "UNSIGNED-PAYLOAD"

/* `out` is zero before, and to be released also after a failure. */
int s3_sign(s3_signature *out, const s3_signing *signing);
void s3_signature_release(s3_signature *signature);
/* SHA-256 of a body, in hexadecimal. */
int s3_hash(char out[S3_HASH_TEXT], const store_body *body);

/* ---- keys -------------------------------------------------------------------------------------------------------- */

/* Credentials of one moment, shared by the requests that are signed with them. */
typedef struct s3_keys {
    _Atomic int users;
    char *id;             /* access key id */
    base_secret *signing; /* "AWS4" and the secret key */
    base_secret *token;   /* of the session, or NULL */
    int64_t expires;      /* seconds since 1970; 0 for never */
} s3_keys;

int s3_keys_new(s3_keys **out);
/* `id_size` bytes of id and so on; a token of no bytes is none.  Spaces and control characters are refused. */
int s3_keys_set(s3_keys *keys, const char *id, size_t id_size, const char *secret, size_t secret_size,
                const char *token, size_t token_size);
/* Drops one use. */
void s3_keys_free(s3_keys **keys);

/* What the files below ~/.aws say about a profile. */
typedef struct s3_profile {
    bool found;
    s3_keys *keys;        /* NULL when there are none */
    char *region;         /* or NULL */
    char *endpoint;       /* or NULL */
    char unsupported[32]; /* a setting that asks for keys in a way that is not supported, or "" */
} s3_profile;

/* Reads one file's text, adding to what *out has; with `config` headings are [profile NAME], but for [default]. */
int s3_profile_parse(s3_profile *out, const char *text, size_t size, const char *name, bool config);
/* Reads both files, those that AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE name or those below ~/.aws. */
int s3_profile_load(s3_profile *out, const char *name);
void s3_profile_release(s3_profile *profile);

/* Asks the metadata service of a container or of an instance.  SHOAL_ABSENT: there is none, or it has no role. */
int s3_metadata_container(s3_keys *out, http_pool *pool, int64_t deadline);
int s3_metadata_instance(s3_keys *out, http_pool *pool, int64_t deadline);
/* Reads the document both answer with. */
int s3_metadata_parse(s3_keys *out, const char *text, size_t size);

/* The chain: environment, profile, container, instance.  The first that has keys is asked for all later ones too. */
typedef struct s3_chain s3_chain;

/* `name` is the profile a URL asked for, which goes before the environment, or NULL.  Requests to metadata services
 * are counted on `store`. */
int s3_chain_new(s3_chain **out, shoal_store *store, const char *name);
void s3_chain_free(s3_chain **chain);
/* Keys to sign with, to be freed after use.  New ones are fetched some minutes before the old ones expire; when that
 * fails, the old ones do until then.  SHOAL_DENIED when there are none. */
int s3_chain_get(s3_keys **out, s3_chain *chain, int64_t deadline);
/* The server refuses these keys: whether the place they came from has others by now. */
bool s3_chain_renew(s3_chain *chain, const s3_keys *refused, int64_t deadline);

/* ---- the store --------------------------------------------------------------------------------------------------- */

typedef struct s3_store {
    shoal_store store;
    char *bucket;
    char *region;
    char *base;      /* "https://host:port", in front of every path */
    char *host;      /* as the header has it */
    char *root;      /* what paths begin with, not encoded: "" or "/bucket", perhaps with more in front */
    bool sends_hash; /* plain http: the body's hash is signed too */
    bool custom;     /* the endpoint is not AWS's own */
    bool bare_etags; /* If-Match takes etags without quotes */
    http_pool *pool;
    s3_chain *chain;
} s3_store;

/* ---- requests (s3_request.c) ------------------------------------------------------------------------------------- */

enum { S3_PAIRS_MOST = 6, S3_HEADERS_MOST = 3 };

/* A request to the bucket, or to a key in it; zero but for what is set. */
typedef struct s3_request {
    const char *key; /* or NULL */
    s3_pair query[S3_PAIRS_MOST], headers[S3_HEADERS_MOST];
    size_t query_count, header_count;
    http_request http; /* method, kind, body and buffer are set by the caller */
    /* Private: values of headers, what it was signed with, where it goes. */
    char condition[SHOAL_ETAG_BYTES + 4], range[64];
    s3_keys *keys;
    char *url;
} s3_request;

void s3_add_query(s3_request *request, const char *name, const char *value);
void s3_add_header(s3_request *request, const char *name, const char *value);
/* If-Match or If-None-Match, as the server likes them; nothing when `expected` is NULL. */
void s3_add_condition(const s3_store *self, s3_request *request, const shoal_etag *expected);
void s3_add_range(s3_request *request, int64_t offset, int64_t length);
/* Signs the request as of now. */
int s3_prepare(s3_store *self, s3_request *request, int64_t deadline);
/* As store_lend: the address carries the signature. */
int s3_lend(shoal_store *store, const char *key, int64_t seconds, char **url, int64_t deadline);
/* Signs and makes the request.  SHOAL_OK: there is an answer, perhaps a rejection.  SHOAL_AGAIN or SHOAL_UNKNOWN for
 * temporary failures. */
int s3_perform(s3_store *self, s3_request *request, store_attempt *attempt);
/* Frees the answer, and what the request was signed with; it can be made again. */
void s3_request_release(s3_request *request);
/* Copies the answer's etag without its quotes. */
int s3_read_etag(const s3_store *self, const s3_request *request, shoal_etag *out);

/* ---- what answers mean (s3_error.c) ------------------------------------------------------------------------------ */

/* An error document. */
typedef struct s3_error {
    char code[64], message[256], request_id[128], region[64];
} s3_error;

void s3_error_parse(s3_error *out, const char *text, size_t size);
/* SHOAL_OK if there is an answer that is not a temporary failure. */
int s3_judge(s3_store *self, const s3_request *request, store_attempt *attempt);
/* The status and the message for an unsuccessful answer. */
int s3_fail(s3_store *self, const s3_request *request, store_attempt *attempt);
/* Whether the key does not exist, rather than the bucket. */
bool s3_is_about_key(const s3_request *request);

/* ---- listing (s3_list.c) ----------------------------------------------------------------------------------------- */

/* Reads a page; *token, base_alloc'd, is where the next one continues, NULL after the last. */
int s3_list_parse(shoal_listing *page, char **token, const char *text, size_t size, int64_t now);

/* ---- large bodies (s3_parts.c) ----------------------------------------------------------------------------------- */

enum {
    S3_PARALLEL = 8,    /* requests at once */
    S3_RANGE = 8 << 20, /* of a large get */
    S3_PART = 8 << 20,  /* of a large put; more when there would be too many */
    S3_PARTS_MOST = 10000,
    S3_SINGLE_MOST = 64 << 20 /* what is put in one request though it could be put in parts */
};

/* Gets `size` bytes from `offset` of that version, in several ranges at once. */
int s3_get_parts(s3_store *self, const char *key, int64_t offset, char *to, size_t size, const shoal_etag *etag,
                 store_attempt *attempt);
/* Puts a body in parts, and continues an earlier put of the same bytes that was killed; if it fails, nothing of it
 * stays. */
int s3_put_parts(s3_store *self, const char *key, const store_body *body, shoal_etag *etag, store_attempt *attempt);

/* ---- uploads that were broken off (s3_uploads.c) ----------------------------------------------------------------- */

/* The newest upload of a key that is neither completed nor aborted, base_alloc'd; NULL when there is none. */
int s3_find_upload(s3_store *self, const char *key, char **out, store_attempt *attempt);
/* Calls `found` for every part of it.  What the server did not tell is -1 or "". */
typedef void s3_found_part(void *context, int64_t number, int64_t size, const char *etag);
int s3_list_parts(s3_store *self, const char *key, const char *upload, s3_found_part *found, void *context,
                  store_attempt *attempt);
/* The documents.  *next is the part that the next page comes after, 0 after the last. */
int s3_upload_parse(char **out, const char *key, const char *text, size_t size);
int s3_parts_parse(int64_t *next, s3_found_part *found, void *context, const char *text, size_t size);

/* ---- opening (s3_open.c) ----------------------------------------------------------------------------------------- */

/* Sets base, host, root, sends_hash and custom from bucket, region, the environment and the URL's options. */
int s3_choose_endpoint(s3_store *self, const store_url *url, const s3_profile *profile);
int s3_open(shoal_store *store, char **rest, const store_url *url, const shoal_store_options *options,
            store_attempt *attempt);

#endif
