/* One signed request.  Every header that we set is signed, so that nobody on the way can change a condition or a
 * range. */
#include "s3_internal.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"

void s3_add_query(s3_request *request, const char *name, const char *value)
{
    if (request->query_count == S3_PAIRS_MOST)
        SHOAL_BUG("too many parameters");
    request->query[request->query_count++] = (s3_pair){name, value};
}

void s3_add_header(s3_request *request, const char *name, const char *value)
{
    if (request->header_count == S3_HEADERS_MOST)
        SHOAL_BUG("too many headers");
    request->headers[request->header_count++] = (s3_pair){name, value};
}

void s3_add_condition(const s3_store *self, s3_request *request, const shoal_etag *expected)
{
    const char *quote = self->bare_etags ? "" : "\"";
    if (!expected)
        return;
    if (!expected->text[0]) {
        s3_add_header(request, "If-None-Match", "*");
        return;
    }
    snprintf(request->condition, sizeof request->condition, "%s%s%s", quote, expected->text, quote);
    s3_add_header(request, "If-Match", request->condition);
}

void s3_add_range(s3_request *request, int64_t offset, int64_t length)
{
    snprintf(request->range, sizeof request->range, "bytes=%lld-%lld", (long long)offset,
             (long long)(offset + length - 1));
    s3_add_header(request, "Range", request->range);
}

/* The authentication headers go after the request's own. */
static int add_proof(s3_store *self, s3_request *request, const s3_signing *signing)
{
    s3_signature signature = {0};
    int status = s3_sign(&signature, signing);
    for (size_t i = 0; i < signing->header_count && status == SHOAL_OK; i++)
        status = http_add_header(&request->http, "%s: %s", signing->headers[i].name, signing->headers[i].value);
    if (status == SHOAL_OK)
        status = http_add_header(&request->http,
                                 "Authorization: AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s",
                                 request->keys->id, signature.scope, signature.names, signature.hex);
    if (status == SHOAL_OK)
        status = base_format(&request->url, "%s%s%s%s", self->base, signature.path, *signature.query ? "?" : "",
                             signature.query);
    request->http.url = request->url;
    s3_signature_release(&signature);
    return status;
}

int s3_prepare(s3_store *self, s3_request *request, int64_t deadline)
{
    char hash[S3_HASH_TEXT] = S3_UNSIGNED, moment[32], *path = NULL;
    s3_pair headers[S3_HEADERS_MOST + 4];
    size_t count = request->header_count;
    time_t now = time(NULL);
    struct tm parts;
    s3_request_release(request);
    int status = s3_chain_get(&request->keys, self->chain, deadline);
    if (status < 0)
        return store_fail(&self->store, NULL, status, "%s", shoal_error());
    if (self->sends_hash)
        status = s3_hash(hash, &request->http.body);
    if (status == SHOAL_OK)
        status = request->key ? base_format(&path, "%s/%s", self->root, request->key)
                              : base_format(&path, "%s%s", self->root, *self->root ? "" : "/");
    strftime(moment, sizeof moment, "%Y%m%dT%H%M%SZ", gmtime_r(&now, &parts));
    memcpy(headers, request->headers, count * sizeof *headers);
    headers[count++] = (s3_pair){"Host", self->host};
    headers[count++] = (s3_pair){"x-amz-content-sha256", hash};
    headers[count++] = (s3_pair){"x-amz-date", moment};
    if (request->keys->token)
        headers[count++] = (s3_pair){"x-amz-security-token", base_secret_text(request->keys->token)};
    const s3_signing signing = {.method = request->http.method,
                                .path = path,
                                .query = request->query,
                                .query_count = request->query_count,
                                .headers = headers,
                                .header_count = count,
                                .payload = hash,
                                .time = moment,
                                .region = self->region,
                                .service = "s3",
                                .key = base_secret_text(request->keys->signing)};
    if (status == SHOAL_OK)
        status = add_proof(self, request, &signing);
    base_free(&path);
    return status;
}

/* The parameters that carry a signature; `identity` is who signs, and for what. */
static int sign_lent(s3_signature *out, const s3_store *self, const s3_keys *keys, const char *path,
                     const char *identity, const char *moment, int64_t seconds)
{
    char lasts[24];
    snprintf(lasts, sizeof lasts, "%lld", (long long)seconds);
    const s3_pair query[] = {{"X-Amz-Algorithm", "AWS4-HMAC-SHA256"},
                             {"X-Amz-Credential", identity},
                             {"X-Amz-Date", moment},
                             {"X-Amz-Expires", lasts},
                             {"X-Amz-SignedHeaders", "host"},
                             {"X-Amz-Security-Token", keys->token ? base_secret_text(keys->token) : ""}};
    const s3_pair host = {"Host", self->host};
    const s3_signing signing = {.method = "GET",
                                .path = path,
                                .query = query,
                                .query_count = keys->token ? 6 : 5,
                                .headers = &host,
                                .header_count = 1,
                                .payload = S3_UNSIGNED,
                                .time = moment,
                                .region = self->region,
                                .service = "s3",
                                .key = base_secret_text(keys->signing)};
    return s3_sign(out, &signing);
}

int s3_lend(shoal_store *store, const char *key, int64_t seconds, char **url, int64_t deadline)
{
    s3_store *self = (s3_store *)store;
    s3_keys *keys = NULL;
    s3_signature signature = {0};
    char moment[32], *identity = NULL, *path = NULL;
    time_t now = time(NULL);
    struct tm parts;
    int status = s3_chain_get(&keys, self->chain, deadline);
    if (status < 0)
        return store_fail(store, NULL, status, "%s", shoal_error());
    strftime(moment, sizeof moment, "%Y%m%dT%H%M%SZ", gmtime_r(&now, &parts));
    status = base_format(&identity, "%s/%.8s/%s/s3/aws4_request", keys->id, moment, self->region);
    if (status == SHOAL_OK)
        status = base_format(&path, "%s/%s", self->root, key);
    if (status == SHOAL_OK)
        status = sign_lent(&signature, self, keys, path, identity, moment, seconds);
    if (status == SHOAL_OK)
        status =
            base_format(url, "%s%s?%s&X-Amz-Signature=%s", self->base, signature.path, signature.query, signature.hex);
    s3_signature_release(&signature);
    s3_keys_free(&keys);
    base_free(&identity);
    base_free(&path);
    return status;
}

int s3_perform(s3_store *self, s3_request *request, store_attempt *attempt)
{
    int status = s3_prepare(self, request, attempt->deadline);
    if (status == SHOAL_AGAIN)
        attempt->cause = SHOAL_CAUSE_UNREACHABLE; /* the metadata service */
    if (status == SHOAL_OK) {
        status = http_perform(self->pool, &request->http, 1, attempt->deadline);
        if (status < 0)
            store_fail(&self->store, request->key, status, "%s", shoal_error());
    }
    return status == SHOAL_OK ? s3_judge(self, request, attempt) : status;
}

int s3_read_etag(const s3_store *self, const s3_request *request, shoal_etag *out)
{
    char buffer[SHOAL_ETAG_BYTES + 8];
    const char *text = http_header(&request->http, "etag", buffer, sizeof buffer);
    size_t length = text ? strlen(text) : 0;
    if (length >= 2 && text[0] == '"' && text[length - 1] == '"') {
        text++;
        length -= 2;
    }
    int status = store_etag_set(out, text, length);
    return status < 0 ? store_fail(&self->store, request->key, status, "%s", shoal_error()) : SHOAL_OK;
}

void s3_request_release(s3_request *request)
{
    http_request_release(&request->http);
    s3_keys_free(&request->keys);
    base_free(&request->url);
    request->http.url = NULL;
}
