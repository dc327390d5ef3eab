/* Requests to Azure: their URL and headers, and what refusals mean.  See azure_internal.h.
 *
 * A URL may end with a shared access signature and a header may hold a token: neither is ever part of a message, and
 * both are wiped when the request is released. */
#include "azure_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/memory.h"
#include "base/world.h"
#include "store/xml.h"

const char azure_version[] = "2021-12-02";

/* ---- making a request ready -------------------------------------------------------------------------------------- */

/* The present time as an HTTP date, whatever the locale. */
static void date_text(char out[40], time_t now)
{
    static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    struct tm t;
    gmtime_r(&now, &t);
    snprintf(out, 40, "%s, %02d %s %04d %02d:%02d:%02d GMT", days[t.tm_wday], t.tm_mday, months[t.tm_mon],
             t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
}

/* Appends `more` to *inout; the old text is wiped, because it may hold a signature. */
static int append_wiped(char **inout, const char *separator, const char *more)
{
    char *longer = NULL;
    int status = base_format(&longer, "%s%s%s", *inout ? *inout : "", separator, more);
    if (status < 0)
        return status;
    if (*inout)
        base_wipe(*inout, strlen(*inout));
    base_free(inout);
    *inout = longer;
    return SHOAL_OK;
}

static int append_encoded(char **inout, const char *separator, const char *text, bool keep_slash)
{
    char *encoded = NULL;
    int status = http_encode(&encoded, text, keep_slash);
    if (status == SHOAL_OK)
        status = append_wiped(inout, separator, encoded);
    base_free(&encoded);
    return status;
}

static size_t count_pairs(const azure_pair *pairs)
{
    size_t count = 0;
    while (count < AZURE_PAIRS && pairs[count].name)
        count++;
    return count;
}

static int build_url(const azure_store *store, const azure_call *call, char **out)
{
    const azure_credentials *who = &store->credentials;
    const char *separator = "?";
    int status = append_wiped(out, "", call->service == AZURE_BLOB ? who->blob_endpoint : who->queue_endpoint);
    if (status == SHOAL_OK && call->first)
        status = append_encoded(out, "/", call->first, false);
    if (status == SHOAL_OK && call->second)
        status = append_encoded(out, "/", call->second, true);
    for (size_t i = 0; i < count_pairs(call->query) && status == SHOAL_OK; i++) {
        status = append_wiped(out, separator, call->query[i].name);
        if (status == SHOAL_OK)
            status = append_encoded(out, "=", call->query[i].value, false);
        separator = "&";
    }
    if (status == SHOAL_OK && who->sas)
        status = append_wiped(out, separator, base_secret_text(who->sas));
    return status;
}

/* Where the path starts in a URL: after the server's name. */
static const char *path_of(const char *url)
{
    const char *server = strstr(url, "://");
    const char *path = server ? server + 3 + strcspn(server + 3, "/?") : url;
    return path;
}

static int sign(const azure_store *store, const azure_call *call, const azure_pair *headers, size_t header_count,
                http_request *out)
{
    const char *path = path_of(out->url);
    char *plain = NULL, *text = NULL, signature[64];
    int status = base_copy_text_n(&plain, path, strcspn(path, "?"));
    if (status == SHOAL_OK) {
        const azure_signed what = {.account = store->credentials.account,
                                   .method = call->method,
                                   .path = plain,
                                   .query = call->query,
                                   .query_count = count_pairs(call->query),
                                   .headers = headers,
                                   .header_count = header_count,
                                   .content_type = call->content_type,
                                   .content_md5 = call->content_md5,
                                   .if_match = call->if_match,
                                   .if_none_match = call->if_none_match,
                                   .content_length = call->sends_body ? store_body_size(&call->body) : 0};
        status = azure_string_to_sign(&text, &what);
    }
    if (status == SHOAL_OK)
        status = azure_sign(signature, store->credentials.key, text);
    if (status == SHOAL_OK)
        status = http_add_header(out, "Authorization: SharedKey %s:%s", store->credentials.account, signature);
    base_free(&plain);
    base_free(&text);
    return status;
}

static int authorize(azure_store *store, const azure_call *call, const azure_pair *headers, size_t header_count,
                     http_request *out, store_attempt *attempt)
{
    if (store->credentials.key)
        return sign(store, call, headers, header_count, out);
    if (!store->credentials.identity.used)
        return SHOAL_OK; /* the signature is in the URL */
    base_secret *header = NULL;
    int status = azure_token_header(&store->credentials, &header, attempt);
    if (status < 0 && status != SHOAL_MEMORY)
        status = store_fail(&store->base, NULL, status, "%s", shoal_error());
    if (status == SHOAL_OK)
        status = http_add_header(out, "%s", base_secret_text(header));
    base_secret_free(&header);
    return status;
}

static int add_headers(const azure_call *call, const azure_pair *headers, size_t count, http_request *out)
{
    int status = SHOAL_OK;
    for (size_t i = 0; i < count && status == SHOAL_OK; i++)
        status = http_add_header(out, "%s: %s", headers[i].name, headers[i].value);
    if (status == SHOAL_OK && call->if_match)
        status = http_add_header(out, "If-Match: %s", call->if_match);
    if (status == SHOAL_OK && call->if_none_match)
        status = http_add_header(out, "If-None-Match: %s", call->if_none_match);
    if (status == SHOAL_OK && call->content_type)
        status = http_add_header(out, "Content-Type: %s", call->content_type);
    if (status == SHOAL_OK && call->content_md5)
        status = http_add_header(out, "Content-MD5: %s", call->content_md5);
    return status;
}

int azure_prepare(azure_store *store, const azure_call *call, http_request *out, store_attempt *attempt)
{
    azure_pair headers[AZURE_PAIRS + 2];
    size_t count = count_pairs(call->headers);
    char date[40], *url = NULL;
    *out = (http_request){.method = call->method,
                          .kind = call->kind,
                          .body = call->body,
                          .sends_body = call->sends_body,
                          .buffer = call->buffer,
                          .room = call->room};
    date_text(date, time(NULL));
    memcpy(headers, call->headers, count * sizeof *headers);
    headers[count++] = (azure_pair){"x-ms-date", date};
    headers[count++] = (azure_pair){"x-ms-version", azure_version};
    int status = build_url(store, call, &url);
    out->url = url;
    if (status == SHOAL_OK)
        status = add_headers(call, headers, count, out);
    if (status == SHOAL_OK)
        status = authorize(store, call, headers, count, out, attempt);
    return status;
}

int azure_perform(azure_store *store, const azure_call *call, http_request *out, store_attempt *attempt)
{
    int status = azure_prepare(store, call, out, attempt);
    if (status == SHOAL_OK) {
        status = http_perform(store->pool, out, 1, attempt->deadline);
        if (status < 0)
            store_fail(&store->base, call->service == AZURE_BLOB ? call->second : NULL, status, "%s", shoal_error());
    }
    return status;
}

void azure_request_release(http_request *request)
{
    char *url = (char *)request->url;
    if (url)
        base_wipe(url, strlen(url));
    base_free(&url);
    request->url = NULL;
    http_request_release(request);
}

/* ---- what was refused -------------------------------------------------------------------------------------------- */

bool azure_succeeded(const http_request *request)
{
    return request->status >= 200 && request->status < 300;
}

typedef struct code_reading {
    char *buffer;
    size_t room;
} code_reading;

static int read_code(void *context, const char *path, const char *text, size_t length)
{
    code_reading *reading = context;
    if (text && strcmp(path, "Error/Code") == 0 && length < reading->room)
        memcpy(reading->buffer, text, length + 1);
    return SHOAL_OK;
}

const char *azure_error_code(const http_request *request, char *buffer, size_t room)
{
    buffer[0] = 0;
    if (http_header(request, "x-ms-error-code", buffer, room))
        return buffer;
    buffer[0] = 0;
    if (request->answer && request->size > 0 && !azure_succeeded(request))
        xml_read(request->answer, request->size, read_code, &(code_reading){buffer, room});
    return buffer;
}

/* What a code means, where the status alone does not say enough. */
typedef struct meaning {
    const char *code;
    int status;
    shoal_cause cause;
    const char *sentence;
} meaning;

static const meaning meanings[] = {
    {"BlobNotFound", SHOAL_ABSENT, 0, "there is no such key"},
    {"ResourceNotFound", SHOAL_ABSENT, 0, "no such resource"},
    {"ContainerNotFound", SHOAL_SYSTEM, 0, "the container no longer exists"},
    {"QueueNotFound", SHOAL_ABSENT, 0, "there is no such queue"},
    {"BlobAlreadyExists", SHOAL_CONFLICT, 0, "it already exists"},
    {"ConditionNotMet", SHOAL_CONFLICT, 0, "the stored version has changed"},
    {"TargetConditionNotMet", SHOAL_CONFLICT, 0, "the stored version has changed"},
    {"MessageNotFound", SHOAL_LOST, 0, "another process holds the message by now, or it is gone"},
    {"PopReceiptMismatch", SHOAL_LOST, 0, "another process holds the message by now"},
    {"InvalidBlockList", SHOAL_AGAIN, SHOAL_CAUSE_RACE, "another writer discarded the parts of this blob"},
    {"Md5Mismatch", SHOAL_AGAIN, SHOAL_CAUSE_RACE, "the server did not receive the bytes that were sent"},
    {"ContainerBeingDeleted", SHOAL_AGAIN, SHOAL_CAUSE_BUSY, "the container is being deleted"},
    {"QueueBeingDeleted", SHOAL_AGAIN, SHOAL_CAUSE_BUSY, "a queue of this name is being deleted"},
    {"AccountBeingCreated", SHOAL_AGAIN, SHOAL_CAUSE_BUSY, "the account is still being created"},
    {"LeaseIdMissing", SHOAL_SYSTEM, 0, "someone holds an Azure lease on it, so nobody else can write it"},
    {"ContainerDisabled", SHOAL_DENIED, 0, "the container has been disabled"},
    {"AccountIsDisabled", SHOAL_DENIED, 0, "the storage account is disabled"},
    {"InvalidResourceName", SHOAL_USAGE, 0,
     "not a valid Azure name: a container's name has 3 to 63 lower-case letters, digits and single dashes"},
    {"OutOfRangeInput", SHOAL_USAGE, 0,
     "not a valid Azure name: a container's name has 3 to 63 lower-case letters, digits and single dashes"},
    {"AuthorizationPermissionMismatch", SHOAL_DENIED, 0,
     "these credentials do not permit this (a signature may lack a permission: r, w, d, l, c for blobs, r, a, u, p "
     "for queues; an identity may lack a role)"},
    {"AuthorizationServiceMismatch", SHOAL_DENIED, 0, "the signature does not cover this service (blobs or queues)"},
    {"AuthorizationResourceTypeMismatch", SHOAL_DENIED, 0,
     "the signature does not cover this kind of resource (it needs srt=co for containers, queues and their contents)"},
    {"AuthorizationProtocolMismatch", SHOAL_DENIED, 0, "the signature is valid for https only"},
    {"AuthorizationSourceIPMismatch", SHOAL_DENIED, 0, "the signature is not valid for this machine's address"},
    {"KeyBasedAuthenticationNotPermitted", SHOAL_DENIED, 0,
     "the account does not allow keys, only identities: unset AZURE_STORAGE_KEY and give this machine an identity"},
    {"PublicAccessNotPermitted", SHOAL_DENIED, 0, "the account requires credentials"},
    {"NoAuthenticationInformation", SHOAL_DENIED, 0, "the account requires credentials"},
    {"InvalidAuthenticationInfo", SHOAL_DENIED, 0, "Azure cannot parse the credentials"},
};

static const meaning *find_meaning(const char *code)
{
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (strcmp(meanings[i].code, code) == 0)
            return &meanings[i];
    return NULL;
}

/* By how much the server's clock and ours differ, if that is more than it tolerates; 0 otherwise. */
static double clock_difference(const http_request *request)
{
    char buffer[64];
    const char *date = http_header(request, "date", buffer, sizeof buffer);
    int64_t theirs = date ? http_date(date) : -1;
    double difference = theirs >= 0 ? (double)((int64_t)time(NULL) - theirs) : 0;
    return fabs(difference) > 300 ? difference : 0;
}

/* When a shared access signature says it ends, readable: "2026-11-15T12:00:00Z"; "" when it does not say. */
static void signature_end(char out[32], const base_secret *sas)
{
    const char *text = base_secret_text(sas);
    size_t length = 0;
    while (text && strncmp(text, "se=", 3) != 0) {
        const char *next = strchr(text, '&');
        text = next ? next + 1 : NULL;
    }
    for (text = text ? text + 3 : ""; *text && *text != '&' && length < 31; text++) {
        bool colon = strncasecmp(text, "%3a", 3) == 0;
        out[length++] = colon ? ':' : *text;
        text += colon ? 2 : 0;
    }
    out[length] = 0;
}

/* Which credentials were rejected, and what may be wrong with them. */
static void explain_failed_authentication(const azure_store *store, const http_request *request, char *out, size_t room)
{
    double off = clock_difference(request);
    const azure_credentials *who = &store->credentials;
    char end[32];
    signature_end(end, who->sas);
    if (off != 0)
        snprintf(
            out, room,
            "this machine's clock is %.0f minutes %s, and Azure rejects signatures with a wrong time: set the clock",
            fabs(off) / 60, off > 0 ? "ahead" : "behind");
    else if (who->sas)
        snprintf(out, room, "the shared access signature is wrong or has expired%s%s%s", *end ? " (its expiry is " : "",
                 end, *end ? ")" : "");
    else if (who->key)
        snprintf(out, room, "the key does not belong to account '%s' (check AZURE_STORAGE_KEY or AccountKey)",
                 who->account);
    else
        snprintf(out, room, "Azure does not accept the token of this machine's identity");
}

/* "... (Azure says BlobNotFound, request 1-2-3)" */
static int fail_with_code(azure_store *store, const char *key, int status, const http_request *request,
                          const char *code, const char *sentence)
{
    char id[80] = "";
    if (!http_header(request, "x-ms-request-id", id, sizeof id))
        snprintf(id, sizeof id, "unknown");
    if (*code)
        return store_fail(&store->base, key, status, "%s (Azure says %s, request %s)", sentence, code, id);
    return store_fail(&store->base, key, status, "%s (HTTP status %d, request %s)", sentence, request->status, id);
}

int azure_refusal(azure_store *store, const char *key, const http_request *request, store_attempt *attempt)
{
    char code_buffer[80], sentence[320];
    if (request->status == 0) {
        int status = http_passing(request, attempt);
        return store_fail(&store->base, key, status, "%s", request->trouble);
    }
    const char *code = azure_error_code(request, code_buffer, sizeof code_buffer);
    const meaning *known = find_meaning(code);
    int status = http_passing(request, attempt);
    if (status < 0) {
        if (strcmp(code, "ServerBusy") == 0)
            status = SHOAL_AGAIN; /* it was rejected before anything was done */
        snprintf(sentence, sizeof sentence, "%s",
                 attempt->cause == SHOAL_CAUSE_THROTTLED ? "there are too many requests" : "the server failed");
        return fail_with_code(store, key, status, request, code, sentence);
    }
    bool firewall = strcmp(code, "AuthorizationFailure") == 0; /* or an emulator that says it for everything */
    if (firewall || strcmp(code, "AuthenticationFailed") == 0) {
        explain_failed_authentication(store, request, sentence, sizeof sentence);
        if (firewall)
            strncat(sentence, ", or the account's firewall blocks this machine",
                    sizeof sentence - strlen(sentence) - 1);
        return fail_with_code(store, key, SHOAL_DENIED, request, code, sentence);
    }
    if (known) {
        attempt->cause = known->cause;
        return fail_with_code(store, key, known->status, request, code, known->sentence);
    }
    if (request->status == 401 || request->status == 403)
        return fail_with_code(store, key, SHOAL_DENIED, request, code, "these credentials do not permit this");
    if (request->status == 404)
        return fail_with_code(store, key, SHOAL_ABSENT, request, code, "no such resource");
    if (request->status == 412)
        return fail_with_code(store, key, SHOAL_CONFLICT, request, code, "the stored version has changed");
    return fail_with_code(store, key, SHOAL_SYSTEM, request, code, "the server rejected the request");
}
