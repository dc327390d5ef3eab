/* What an unsuccessful answer means to a caller, and its message.
 *
 * S3 tells what is wrong by a code in an XML document; an answer to HEAD has none, and its status has to do.  Servers
 * other than AWS's have the same codes, mostly. */
#include "s3_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "store/xml.h"

/* ---- the document ------------------------------------------------------------------------------------------------ */

static int read_element(void *context, const char *path, const char *text, size_t length)
{
    s3_error *out = context;
    const struct {
        const char *path;
        char *to;
        size_t room;
    } known[] = {{"Error/Code", out->code, sizeof out->code},
                 {"Error/Message", out->message, sizeof out->message},
                 {"Error/RequestId", out->request_id, sizeof out->request_id},
                 {"Error/Region", out->region, sizeof out->region}};
    for (size_t i = 0; text && i < sizeof known / sizeof *known; i++)
        if (strcmp(path, known[i].path) == 0)
            snprintf(known[i].to, known[i].room, "%.*s", (int)(length < 1024 ? length : 1024), text);
    return SHOAL_OK;
}

void s3_error_parse(s3_error *out, const char *text, size_t size)
{
    memset(out, 0, sizeof *out);
    if (text && size > 0)
        (void)xml_read(text, size, read_element, out); /* without a document the status decides */
}

/* The document, completed by what headers tell. */
static void read_error(s3_error *out, const s3_request *request)
{
    const http_request *http = &request->http;
    char region[sizeof out->region], id[sizeof out->request_id];
    s3_error_parse(out, http->answer, http->size);
    if (!out->request_id[0] && http_header(http, "x-amz-request-id", id, sizeof id))
        memcpy(out->request_id, id, sizeof id);
    if (!out->region[0] && http_header(http, "x-amz-bucket-region", region, sizeof region))
        memcpy(out->region, region, sizeof region);
    if (out->code[0])
        return;
    const char *code = http->status == 404 && request->key ? "NoSuchKey"
                       : http->status == 404               ? "NoSuchBucket"
                       : http->status == 403               ? "AccessDenied"
                       : http->status == 412               ? "PreconditionFailed"
                       : http->status == 304               ? "PreconditionFailed"
                       : http->status == 307               ? "TemporaryRedirect"
                       : http->status == 416               ? "InvalidRange"
                                                           : "";
    snprintf(out->code, sizeof out->code, "%s", code);
}

/* ---- sentences --------------------------------------------------------------------------------------------------- */

/* " (403 AccessDenied, request tx00...)": what the server's owner needs to find it. */
static const char *details(char *buffer, size_t room, const s3_error *error, int status)
{
    snprintf(buffer, room, " (%d%s%s%s%s)", status, error->code[0] ? " " : "", error->code,
             error->request_id[0] ? ", request " : "", error->request_id);
    return buffer;
}

static int fail_clock(s3_store *self, const s3_request *request, const char *more)
{
    char buffer[64];
    const char *date = http_header(&request->http, "date", buffer, sizeof buffer);
    long long off = date && http_date(date) >= 0 ? (long long)time(NULL) - (long long)http_date(date) : 0;
    if (off == 0)
        return store_fail(&self->store, request->key, SHOAL_DENIED, "this machine's clock is wrong: set it%s", more);
    return store_fail(&self->store, request->key, SHOAL_DENIED,
                      "this machine's clock is %lld seconds %s the server's: set it%s", llabs(off),
                      off > 0 ? "ahead of" : "behind", more);
}

static int fail_region(s3_store *self, const s3_request *request, const s3_error *error, const char *more)
{
    if (!error->region[0])
        return store_fail(&self->store, request->key, SHOAL_USAGE,
                          "the bucket is not in region %s: set AWS_REGION to the one where it is%s", self->region,
                          more);
    return store_fail(&self->store, request->key, SHOAL_USAGE,
                      "the bucket is in region %s, not %s: set AWS_REGION=%s%s", error->region, self->region,
                      error->region, more);
}

/* Rejections by code, each with its own message. */
static const struct refusal {
    const char *code;
    int status;
    const char *sentence;
} refusals[] = {
    {"InvalidAccessKeyId", SHOAL_DENIED, "the server does not know this access key id (AWS_ACCESS_KEY_ID)"},
    {"SignatureDoesNotMatch", SHOAL_DENIED,
     "the secret key does not belong to the access key id (AWS_SECRET_ACCESS_KEY)"},
    {"ExpiredToken", SHOAL_DENIED, "these credentials have expired: get new ones (AWS_SESSION_TOKEN)"},
    {"InvalidToken", SHOAL_DENIED, "the session token is invalid (AWS_SESSION_TOKEN)"},
    {"AccessDenied", SHOAL_DENIED, "these credentials do not permit it"},
    {"AllAccessDisabled", SHOAL_DENIED, "the bucket's owner has disabled it"},
    {"AccountProblem", SHOAL_DENIED, "the account has a problem that its owner must resolve"},
    {"NoSuchBucket", SHOAL_ABSENT, "there is no such bucket"},
    {"NoSuchKey", SHOAL_ABSENT, "there is no such key"},
    {"NoSuchUpload", SHOAL_SYSTEM, "the upload was removed before it was complete"},
    {"PreconditionFailed", SHOAL_CONFLICT, "another writer was first"},
    {"EntityTooLarge", SHOAL_INVALID, "it is larger than the server accepts"},
    {"KeyTooLongError", SHOAL_INVALID, "the key with its prefix is longer than the server accepts"},
    {"QuotaExceeded", SHOAL_SYSTEM, "the bucket's quota is used up"},
    {"XMinioStorageFull", SHOAL_SYSTEM, "the server's disk is full"},
    {"NotImplemented", SHOAL_INVALID, "the server lacks a feature that shoal needs"},
    {"BucketAlreadyExists", SHOAL_DENIED, "the bucket's name belongs to someone else"},
    {"InvalidBucketName", SHOAL_USAGE, "the server does not accept a bucket of that name"},
};

/* Codes of temporary failures, whatever their HTTP status. */
static int fail_passing(s3_store *self, const s3_request *request, const s3_error *error, store_attempt *attempt,
                        const char *more)
{
    static const struct {
        const char *code;
        shoal_cause cause;
        int status;
        const char *sentence;
    } passing[] = {
        {"ConditionalRequestConflict", SHOAL_CAUSE_RACE, SHOAL_AGAIN, "another writer interfered"},
        {"TemporaryRedirect", SHOAL_CAUSE_SERVER, SHOAL_AGAIN, "the bucket is new and not known everywhere yet"},
        {"OperationAborted", SHOAL_CAUSE_RACE, SHOAL_AGAIN, "another request interfered"},
        {"SlowDown", SHOAL_CAUSE_THROTTLED, SHOAL_AGAIN, "too many requests"},
        {"Throttling", SHOAL_CAUSE_THROTTLED, SHOAL_AGAIN, "too many requests"},
        {"RequestTimeout", SHOAL_CAUSE_TIMEOUT, SHOAL_AGAIN, "the server waited too long for the body"},
        {"InternalError", SHOAL_CAUSE_SERVER, SHOAL_UNKNOWN, "the server failed"},
    };
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++) {
        if (strcmp(error->code, passing[i].code) != 0)
            continue;
        attempt->cause = passing[i].cause;
        attempt->retry_after = http_retry_after(&request->http);
        return store_fail(&self->store, request->key, passing[i].status, "%s%s", passing[i].sentence, more);
    }
    return SHOAL_OK;
}

/* Keys that expired between two requests may have successors already. */
static bool has_newer_keys(s3_store *self, const s3_request *request, const s3_error *error, store_attempt *attempt)
{
    bool about_keys = strcmp(error->code, "ExpiredToken") == 0 || strcmp(error->code, "InvalidAccessKeyId") == 0 ||
                      strcmp(error->code, "InvalidToken") == 0;
    return about_keys && s3_chain_renew(self->chain, request->keys, attempt->deadline);
}

int s3_fail(s3_store *self, const s3_request *request, store_attempt *attempt)
{
    s3_error error;
    char more[320];
    const http_request *http = &request->http;
    const struct refusal *end = refusals + sizeof refusals / sizeof *refusals;
    read_error(&error, request);
    details(more, sizeof more, &error, http->status);
    int status = fail_passing(self, request, &error, attempt, more);
    if (status < 0)
        return status;
    if (has_newer_keys(self, request, &error, attempt)) {
        attempt->cause = SHOAL_CAUSE_SERVER;
        return store_fail(&self->store, request->key, SHOAL_AGAIN, "the credentials had expired%s", more);
    }
    if (strcmp(error.code, "RequestTimeTooSkewed") == 0)
        return fail_clock(self, request, more);
    if (http->status == 301 || strcmp(error.code, "AuthorizationHeaderMalformed") == 0 ||
        strcmp(error.code, "IllegalLocationConstraintException") == 0 || (http->status == 400 && error.region[0]))
        return fail_region(self, request, &error, more);
    for (const struct refusal *row = refusals; row < end; row++)
        if (strcmp(row->code, error.code) == 0)
            return store_fail(&self->store, request->key, row->status, "%s%s", row->sentence, more);
    status = http->status == 501 ? SHOAL_OK : http_passing(http, attempt);
    if (status < 0)
        return store_fail(&self->store, request->key, status, "the server answered %d%s", http->status, more);
    return store_fail(&self->store, request->key, SHOAL_INVALID, "%s%s%s",
                      error.message[0] ? error.message : "the server rejected the request", more,
                      http->status >= 200 && http->status < 300 ? ", though it reports success" : "");
}

bool s3_is_about_key(const s3_request *request)
{
    s3_error error;
    read_error(&error, request);
    return strcmp(error.code, "NoSuchKey") == 0;
}

int s3_judge(s3_store *self, const s3_request *request, store_attempt *attempt)
{
    const http_request *http = &request->http;
    int status = http_passing(http, attempt);
    if (status == SHOAL_OK || http->status == 501)
        return SHOAL_OK;
    if (http->status == 0)
        return store_fail(&self->store, request->key, status, "%s: %s", shoal_cause_name(attempt->cause),
                          http->trouble);
    return s3_fail(self, request, attempt);
}
