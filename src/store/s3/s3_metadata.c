/* Keys of a role that a machine or a container has, from the metadata service beside it.
 *
 * On an instance that is a conversation of three requests (IMDSv2): a token, the name of the role, its keys.  Other
 * machines have no such service, and must find out soon: the caller's deadline is short. */
#include "s3_internal.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/world.h"

enum { ANSWER_MOST = 64 << 10, TRIES = 3 };

/* ---- the document ------------------------------------------------------------------------------------------------ */

/* A JSON reader that allocates no memory, so that no secret is left in any. */
typedef struct json {
    char *at, *end;
} json;

static void skip_space(json *in)
{
    while (in->at < in->end && isspace((unsigned char)*in->at))
        in->at++;
}

static bool skip_letter(json *in, char letter)
{
    skip_space(in);
    if (in->at >= in->end || *in->at != letter)
        return false;
    in->at++;
    return true;
}

/* A string, unescaped where it stands.  Letters by number are not met in keys, and refused. */
static bool read_string(json *in, char **out, size_t *size)
{
    if (!skip_letter(in, '"'))
        return false;
    char *to = *out = in->at;
    for (; in->at < in->end && *in->at != '"'; in->at++) {
        if (*in->at == '\\') {
            if (++in->at == in->end || !strchr("\"\\/", *in->at))
                return false;
        }
        *to++ = *in->at;
    }
    *size = (size_t)(to - *out);
    return skip_letter(in, '"');
}

/* A number or a word: what the document may have beside strings. */
static bool skip_word(json *in)
{
    char *start = in->at;
    while (in->at < in->end && (isalnum((unsigned char)*in->at) || strchr("+-.", *in->at)) && *in->at)
        in->at++;
    return in->at > start;
}

/* What the document says: the five strings that matter. */
enum { CODE, ID, SECRET, TOKEN, EXPIRES, FIELDS };

typedef struct field {
    char *text;
    size_t size;
} field;

static void keep_field(field out[FIELDS], const char *name, size_t name_size, field value)
{
    static const char *const names[FIELDS] = {"Code", "AccessKeyId", "SecretAccessKey", "Token", "Expiration"};
    for (int i = 0; i < FIELDS; i++)
        if (strlen(names[i]) == name_size && memcmp(names[i], name, name_size) == 0)
            out[i] = value;
}

static bool read_fields(field out[FIELDS], char *text, size_t size)
{
    json in = {text, text + size};
    bool more = skip_letter(&in, '{');
    if (!more)
        return false;
    while (more) {
        char *name;
        size_t name_size;
        field value = {0};
        if (!read_string(&in, &name, &name_size) || !skip_letter(&in, ':'))
            return false;
        skip_space(&in);
        bool quoted = in.at < in.end && *in.at == '"';
        if (quoted ? !read_string(&in, &value.text, &value.size) : !skip_word(&in))
            return false;
        if (quoted)
            keep_field(out, name, name_size, value);
        more = skip_letter(&in, ',');
    }
    return skip_letter(&in, '}');
}

/* Seconds since 1970 of "2026-11-15T12:00:00Z"; -1 when it is none. */
static int64_t read_time(const char *text, size_t size)
{
    char copy[32];
    struct tm parts = {0};
    if (size >= sizeof copy)
        return -1;
    memcpy(copy, text, size);
    copy[size] = '\0';
    const char *rest = strptime(copy, "%Y-%m-%dT%H:%M:%S", &parts);
    return rest && (*rest == 'Z' || *rest == '.') ? (int64_t)timegm(&parts) : -1;
}

static int take_fields(s3_keys *out, const field fields[FIELDS])
{
    const field *code = &fields[CODE], *expires = &fields[EXPIRES];
    if (code->text && !(code->size == 7 && memcmp(code->text, "Success", 7) == 0))
        return shoal_fail(SHOAL_DENIED, "the metadata service has no keys: %.*s",
                          (int)(code->size < 64 ? code->size : 64), code->text);
    if (fields[ID].size == 0 || fields[SECRET].size == 0)
        return shoal_fail(SHOAL_BROKEN, "the metadata service's answer lacks AccessKeyId or SecretAccessKey");
    out->expires = expires->text ? read_time(expires->text, expires->size) : 0;
    if (out->expires < 0)
        return shoal_fail(SHOAL_BROKEN, "the metadata service's answer has an Expiration that is not a time");
    return s3_keys_set(out, fields[ID].text, fields[ID].size, fields[SECRET].text, fields[SECRET].size,
                       fields[TOKEN].text, fields[TOKEN].size);
}

int s3_metadata_parse(s3_keys *out, const char *text, size_t size)
{
    field fields[FIELDS] = {{0}};
    char *copy = NULL;
    int status = base_copy_text_n(&copy, text, size);
    if (status < 0)
        return status;
    if (read_fields(fields, copy, size))
        status = take_fields(out, fields);
    else
        status = shoal_fail(SHOAL_BROKEN, "the metadata service's answer is not the expected JSON");
    base_wipe(copy, size);
    base_free(&copy);
    return status;
}

/* ---- the conversation -------------------------------------------------------------------------------------------- */

static void release_request(http_request *request)
{
    if (request->answer)
        base_wipe(request->answer, request->size); /* tokens and keys */
    http_request_release(request);
}

/* Asks, and once more after a temporary failure.  SHOAL_ABSENT: nobody is there.  SHOAL_OK: 200. */
static int ask_service(http_request *request, http_pool *pool, const char *what, int64_t deadline)
{
    int status = SHOAL_OK;
    request->kind = SHOAL_REQUEST_OTHER;
    request->room = ANSWER_MOST;
    for (int i = 0; i < TRIES; i++) {
        status = http_perform(pool, request, 1, deadline);
        if (status < 0 || (request->status != 0 && request->status != 429 && request->status < 500))
            break;
        int64_t next = base_time_after(base_now(), 0.1);
        if (request->status == 0 || next >= deadline)
            break;
        base_sleep_until(next);
    }
    if (status < 0 || request->status == 200)
        return status;
    if (request->status == 0)
        return shoal_fail(SHOAL_ABSENT, "no metadata service answers (%s)", request->trouble);
    /* A service that refuses is not Amazon's, or has no role for us: the next place in the chain may have keys. */
    return shoal_fail(request->status == 429 || request->status >= 500 ? SHOAL_AGAIN : SHOAL_ABSENT,
                      "the metadata service answered %d to the request for %s", request->status, what);
}

/* Gets `address` followed by `more`, with a header that authorises us; *out is the caller's to release. */
static int ask_for(http_request *out, http_pool *pool, const char *address, const char *header, const char *proof,
                   const char *what, int64_t deadline)
{
    *out = (http_request){.method = "GET", .url = address};
    int status = proof && *proof ? http_add_header(out, "%s: %s", header, proof) : SHOAL_OK;
    return status == SHOAL_OK ? ask_service(out, pool, what, deadline) : status;
}

/* The first line of a text, in place. */
static char *first_line(char *text)
{
    text[strcspn(text, "\r\n")] = '\0';
    return text;
}

static int ask_role(s3_keys *out, http_pool *pool, const char *folder, const char *token, int64_t deadline)
{
    static const char header[] = "X-aws-ec2-metadata-token";
    http_request role = {0}, keys = {0};
    char *name = NULL, *address = NULL;
    int status = ask_for(&role, pool, folder, header, token, "the instance's role", deadline);
    if (status == SHOAL_OK && !*first_line(role.answer))
        status = shoal_fail(SHOAL_ABSENT, "the instance has no role");
    if (status == SHOAL_OK)
        status = http_encode(&name, role.answer, false);
    if (status == SHOAL_OK)
        status = base_format(&address, "%s%s", folder, name);
    if (status == SHOAL_OK)
        status = ask_for(&keys, pool, address, header, token, "the keys of the instance's role", deadline);
    if (status == SHOAL_OK)
        status = s3_metadata_parse(out, keys.answer, keys.size);
    release_request(&role);
    release_request(&keys);
    base_free(&name);
    base_free(&address);
    return status;
}

int s3_metadata_instance(s3_keys *out, http_pool *pool, int64_t deadline)
{
    const char *disabled = getenv("AWS_EC2_METADATA_DISABLED"), *given = getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    const char *endpoint = given && *given ? given : "http://169.254.169.254";
    size_t length = strlen(endpoint);
    http_request request = {.method = "PUT"};
    char *address = NULL, *folder = NULL;
    if (disabled && strcasecmp(disabled, "true") == 0)
        return shoal_fail(SHOAL_ABSENT, "AWS_EC2_METADATA_DISABLED is set");
    length -= length > 0 && endpoint[length - 1] == '/';
    int status = base_format(&address, "%.*s/latest/api/token", (int)length, endpoint);
    if (status == SHOAL_OK)
        status = base_format(&folder, "%.*s/latest/meta-data/iam/security-credentials/", (int)length, endpoint);
    if (status == SHOAL_OK)
        status = http_add_header(&request, "X-aws-ec2-metadata-token-ttl-seconds: 21600");
    if (status == SHOAL_OK) {
        request.url = address;
        status = ask_service(&request, pool, "a token", deadline);
    }
    if (status == SHOAL_OK)
        status = ask_role(out, pool, folder, first_line(request.answer), deadline);
    release_request(&request);
    base_free(&address);
    base_free(&folder);
    return status;
}

/* A container's authorisation: a variable, or a file that is rewritten now and then. */
static int read_proof(char **out)
{
    const char *path = getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    const char *proof = getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    char text[8192];
    if (!path || !*path)
        return base_copy_text(out, proof ? proof : "");
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t size = file < 0 ? -1 : read(file, text, sizeof text - 1);
    int error = errno;
    if (file >= 0)
        close(file);
    if (size < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, error, "%s (AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE)", path);
    text[size] = '\0';
    int status = base_copy_text(out, first_line(text));
    base_wipe(text, sizeof text);
    return status;
}

int s3_metadata_container(s3_keys *out, http_pool *pool, int64_t deadline)
{
    const char *relative = getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const char *full = getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    http_request request = {0};
    char *address = NULL, *proof = NULL;
    if ((!relative || !*relative) && (!full || !*full))
        return shoal_fail(SHOAL_ABSENT, "no container role");
    int status = relative && *relative ? base_format(&address, "http://169.254.170.2%s", relative)
                                       : base_copy_text(&address, full);
    if (status == SHOAL_OK)
        status = read_proof(&proof);
    if (status == SHOAL_OK)
        status = ask_for(&request, pool, address, "Authorization", proof, "the keys of the container's role", deadline);
    if (status == SHOAL_OK)
        status = s3_metadata_parse(out, request.answer, request.size);
    if (proof)
        base_wipe(proof, strlen(proof));
    release_request(&request);
    base_free(&proof);
    base_free(&address);
    return status;
}
