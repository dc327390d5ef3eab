/* Finds the server and the bucket, and tests whether the server honours conditional writes.
 *
 * AWS honours If-None-Match and If-Match; of servers that only speak its protocol some ignore them, and answer 200 to a
 * put that must not be done.  On such a server two workers would both believe they were first.  So any endpoint but
 * AWS's own is tested before it is used, on an internal key of the store. */
#include "s3_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "base/world.h"

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

/* "//bucket/some/prefix/" */
static int split_url(s3_store *self, char **rest, const store_url *url)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    const char *name = strncmp(url->rest, "//", 2) == 0 ? url->rest + 2 : "";
    size_t length = strcspn(name, "/"), end;
    if (length < 3 || length > 63 || strspn(name, letters) < length || name[0] == '.' || name[0] == '-')
        return shoal_fail(
            SHOAL_USAGE,
            "%s: must be s3://BUCKET or s3://BUCKET/PREFIX; a bucket's name has 3 to 63 letters, digits, dots and "
            "dashes",
            url->text);
    int status = base_copy_text_n(&self->bucket, name, length);
    name += length;
    name += strspn(name, "/");
    for (end = strlen(name); end > 0 && name[end - 1] == '/'; end--)
        ;
    if (status == SHOAL_OK)
        status = base_format(&self->store.name, "s3://%s", self->bucket);
    if (status == SHOAL_OK)
        status = base_copy_text_n(rest, name, end);
    return status;
}

static int choose_region(s3_store *self, const store_url *url, const s3_profile *profile)
{
    const char *region = store_url_option(url, "region");
    region = region ? region : variable("AWS_REGION");
    region = region ? region : variable("AWS_DEFAULT_REGION");
    region = region ? region : profile->region;
    region = region ? region : "us-east-1";
    size_t length = strlen(region);
    if (length == 0 || length > 63 ||
        strspn(region, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") < length)
        return shoal_fail(SHOAL_USAGE, "%s: '%s' can't be a region", url->text, region);
    return base_copy_text(&self->region, region);
}

/* An endpoint, "https://host:port/path", taken apart. */
typedef struct endpoint {
    const char *scheme;
    char host[256];
    char port[8];   /* with its colon, or "" */
    char path[256]; /* without a slash at its end */
} endpoint;

static int parse_endpoint(endpoint *out, const char *text)
{
    bool plain = strncasecmp(text, "http://", 7) == 0;
    const char *host = text + (plain ? 7 : 8);
    if (!plain && strncasecmp(text, "https://", 8) != 0)
        return shoal_fail(SHOAL_USAGE, "'%s' (AWS_ENDPOINT_URL) must begin with https:// or http://", text);
    size_t length = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/?#");
    const char *port = host + length;
    size_t digits = *port == ':' ? strspn(port + 1, "0123456789") : 0;
    const char *path = port + (*port == ':') + digits;
    size_t path_length = strlen(path);
    bool good = length > 0 && length < sizeof out->host && !memchr(host, '@', length) && digits <= 5 &&
                (*path == '/' || *path == '\0') && !strpbrk(path, "?#%@") && path_length < sizeof out->path;
    if (!good)
        return shoal_fail(SHOAL_USAGE, "'%.*s' (AWS_ENDPOINT_URL) is not a server's address", (int)strcspn(text, "?@"),
                          text);
    while (path_length > 0 && path[path_length - 1] == '/')
        path_length--;
    snprintf(out->host, sizeof out->host, "%.*s", (int)length, host);
    snprintf(out->path, sizeof out->path, "%.*s", (int)path_length, path);
    /* A default port is not in the header, and so must not be signed. */
    bool usual = digits == 0 || atoi(port + 1) == (plain ? 80 : 443);
    snprintf(out->port, sizeof out->port, "%.*s", usual ? 0 : (int)digits + 1, port);
    for (char *c = out->host; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    out->scheme = plain ? "http" : "https";
    return SHOAL_OK;
}

static int use_endpoint(s3_store *self, const endpoint *at, bool host_style)
{
    int status =
        base_format(&self->host, "%s%s%s%s", host_style ? self->bucket : "", host_style ? "." : "", at->host, at->port);
    if (status == SHOAL_OK)
        status = base_format(&self->base, "%s://%s", at->scheme, self->host);
    if (status == SHOAL_OK)
        status = base_format(&self->root, "%s%s%s", at->path, host_style ? "" : "/", host_style ? "" : self->bucket);
    self->sends_hash = strcmp(at->scheme, "http") == 0;
    return status;
}

int s3_choose_endpoint(s3_store *self, const store_url *url, const s3_profile *profile)
{
    endpoint at = {0};
    char usual[160];
    const char *style = store_url_option(url, "style"), *given = variable("AWS_ENDPOINT_URL_S3");
    given = given ? given : variable("AWS_ENDPOINT_URL");
    given = given ? given : profile->endpoint;
    snprintf(usual, sizeof usual, "https://s3.%s.amazonaws.com%s", self->region,
             strncmp(self->region, "cn-", 3) == 0 ? ".cn" : "");
    if (style && strcmp(style, "path") != 0 && strcmp(style, "host") != 0)
        return shoal_fail(SHOAL_USAGE, "%s: style must be path or host, not '%s'", url->text, style);
    /* The certificate of *.s3.amazonaws.com is not valid for a name with a dot. */
    bool host_style = style ? strcmp(style, "host") == 0 : !given && !strchr(self->bucket, '.');
    int status = parse_endpoint(&at, given ? given : usual);
    self->custom = !base_text_ends(at.host, ".amazonaws.com") && !base_text_ends(at.host, ".amazonaws.com.cn");
    return status == SHOAL_OK ? use_endpoint(self, &at, host_style) : status;
}

static int find_server(s3_store *self, const store_url *url)
{
    const http_settings settings = {
        .certificates = variable("AWS_CA_BUNDLE"), .certificates_by = "AWS_CA_BUNDLE", .parallel = S3_PARALLEL};
    const char *named = store_url_option(url, "profile"), *name = named ? named : variable("AWS_PROFILE");
    s3_profile profile = {0};
    int status = s3_profile_load(&profile, name ? name : "default");
    if (status == SHOAL_OK)
        status = choose_region(self, url, &profile);
    if (status == SHOAL_OK)
        status = s3_choose_endpoint(self, url, &profile);
    s3_profile_release(&profile);
    if (status == SHOAL_OK)
        status = http_pool_new(&self->pool, &self->store, &settings);
    if (status == SHOAL_OK)
        status = s3_chain_new(&self->chain, &self->store, named);
    return status;
}

/* ---- the bucket -------------------------------------------------------------------------------------------------- */

/* Asks whether the bucket is there.  HEAD tells little when it is refused, so then a listing is asked for, which tells
 * all. */
static int check_bucket(s3_store *self, store_attempt *attempt)
{
    s3_request request = {.http = {.method = "HEAD", .kind = SHOAL_REQUEST_OTHER}};
    int status = s3_perform(self, &request, attempt);
    if (status == SHOAL_OK && request.http.status != 200 && request.http.status != 404) {
        request.http.method = "GET";
        s3_add_query(&request, "list-type", "2");
        s3_add_query(&request, "max-keys", "1");
        status = s3_perform(self, &request, attempt);
    }
    if (status == SHOAL_OK && request.http.status != 200)
        status = s3_fail(self, &request, attempt);
    s3_request_release(&request);
    return status;
}

static int make_bucket(s3_store *self, store_attempt *attempt)
{
    s3_request request = {.http = {.method = "PUT", .kind = SHOAL_REQUEST_OTHER, .sends_body = true}};
    char where[256] = "";
    if (!self->custom && strcmp(self->region, "us-east-1") != 0)
        snprintf(where, sizeof where,
                 "<CreateBucketConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><LocationConstraint>%s"
                 "</LocationConstraint></CreateBucketConfiguration>",
                 self->region);
    request.http.body.part[0] = (struct iovec){where, strlen(where)};
    int status = s3_perform(self, &request, attempt);
    bool refused = status == SHOAL_OK && request.http.status != 200 && request.http.status != 204;
    if (refused)
        status = s3_fail(self, &request, attempt);
    s3_request_release(&request);
    if (!refused || status == SHOAL_AGAIN)
        return status;
    /* Somebody may have created it since: then it exists, ours or not.  Otherwise the message is that of the
 * rejection. */
    char message[1024];
    snprintf(message, sizeof message, "%s", shoal_error());
    return check_bucket(self, attempt) == SHOAL_OK ? SHOAL_OK : shoal_fail(status, "%s", message);
}

static int find_bucket(s3_store *self, bool create, store_attempt *attempt)
{
    int status = check_bucket(self, attempt);
    return status == SHOAL_ABSENT && create ? make_bucket(self, attempt) : status;
}

/* ---- the probe --------------------------------------------------------------------------------------------------- */

/* Whether an answer to a conditional put tells if conditions are honoured, rather than of another trouble. */
static bool tells_support(int code)
{
    return code == 200 || code == 400 || code == 409 || code == 412 || code == 501;
}

/* Puts a few bytes under a condition; *code is the status, 409 for one that the server could not decide. */
static int try_put(s3_store *self, const char *key, const char *text, const shoal_etag *expected, shoal_etag *etag,
                   int *code, store_attempt *attempt)
{
    s3_request request = {.key = key,
                          .http = {.method = "PUT",
                                   .kind = SHOAL_REQUEST_PUT,
                                   .body = {{{(char *)text, strlen(text)}, {NULL, 0}}},
                                   .sends_body = true}};
    s3_add_condition(self, &request, expected);
    int status = s3_perform(self, &request, attempt);
    if (status == SHOAL_OK) {
        *code = request.http.status;
        if (*code == 200 && etag)
            status = s3_read_etag(self, &request, etag);
        else if (!tells_support(*code))
            status = s3_fail(self, &request, attempt);
    }
    s3_request_release(&request);
    return status == SHOAL_UNKNOWN ? SHOAL_AGAIN : status;
}

static int refuse_server(const s3_store *self, const char *header)
{
    return store_fail(
        &self->store, NULL, SHOAL_INVALID,
        "%s does not honour conditional writes (%s), which shoal needs so that exactly one of several writers wins; "
        "use AWS itself, Ceph's radosgw, MinIO or another server that does",
        self->base, header);
}

/* Whether If-None-Match is honoured: of two puts the second must be refused. */
static int probe_absent(s3_store *self, const char *key, shoal_etag *etag, store_attempt *attempt)
{
    int code = 0;
    int status = try_put(self, key, "1", SHOAL_NOTHING, etag, &code, attempt);
    if (status == SHOAL_DENIED)
        return store_fail(&self->store, NULL, status,
                          "these credentials may not write here, and the store was not opened read-only: %s",
                          shoal_error());
    if (status == SHOAL_OK && code != 200)
        status = refuse_server(self, "If-None-Match");
    if (status == SHOAL_OK)
        status = try_put(self, key, "2", SHOAL_NOTHING, NULL, &code, attempt);
    if (status == SHOAL_OK && code != 412 && code != 409)
        status = refuse_server(self, "If-None-Match");
    return status;
}

/* Whether If-Match is honoured, and how it wants etags: AWS with their quotes, radosgw without. */
static int probe_match(s3_store *self, const char *key, const shoal_etag *etag, store_attempt *attempt)
{
    static const shoal_etag wrong = {"00000000000000000000000000000000"};
    int code = 0;
    int status = try_put(self, key, "3", etag, NULL, &code, attempt);
    if (status == SHOAL_OK && code == 412) {
        self->bare_etags = true;
        status = try_put(self, key, "3", etag, NULL, &code, attempt);
    }
    if (status == SHOAL_OK && code != 200)
        status = refuse_server(self, "If-Match");
    if (status == SHOAL_OK)
        status = try_put(self, key, "4", &wrong, NULL, &code, attempt);
    if (status == SHOAL_OK && code != 412)
        status = refuse_server(self, "If-Match");
    return status;
}

static int probe_conditions(s3_store *self, const char *rest, store_attempt *attempt)
{
    uint64_t random;
    shoal_etag etag = {""};
    char *key = NULL, message[1024];
    base_entropy(&random, sizeof random);
    int status = base_format(&key, "%s%s.shoal/probe-%016llx", rest, *rest ? "/" : "", (unsigned long long)random);
    if (status < 0)
        return status;
    status = probe_absent(self, key, &etag, attempt);
    if (status == SHOAL_OK)
        status = probe_match(self, key, &etag, attempt);
    if (status != SHOAL_DENIED) {
        store_attempt last = {.deadline = attempt->deadline};
        snprintf(message, sizeof message, "%s", shoal_error());
        (void)self->store.class->remove(&self->store, key, &last);
        shoal_fail(status, "%s", message);
    }
    base_free(&key);
    return status;
}

int s3_open(shoal_store *store, char **rest, const store_url *url, const shoal_store_options *options,
            store_attempt *attempt)
{
    s3_store *self = (s3_store *)store;
    int status = split_url(self, rest, url);
    if (status == SHOAL_OK)
        status = find_server(self, url);
    if (status == SHOAL_OK)
        status = find_bucket(self, options->create && !options->read_only, attempt);
    if (status == SHOAL_OK && self->custom && !options->read_only)
        status = probe_conditions(self, *rest, attempt);
    return status;
}
