/* src/store/s3_sign.c: requests are signed as AWS's documents, its test suite and another program sign them. */
#include <setjmp.h>
#include <stdarg.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/memory.h"
#include "store/s3/s3_internal.h"

#define EMPTY_HASH "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define EXAMPLE_KEY "AWS4wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"

static void assert_signature(const s3_signing *signing, const char *expected)
{
    s3_signature signature = {0};
    assert_int_equal(s3_sign(&signature, signing), SHOAL_OK);
    assert_string_equal(signature.hex, expected);
    s3_signature_release(&signature);
}

/* "Authenticating Requests: Using the Authorization Header", Amazon S3 API reference. */
static void amazons_own_examples_are_met(void **state)
{
    static const char welcome[] = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
    const s3_pair get[] = {{"Host", "examplebucket.s3.amazonaws.com"},
                           {"Range", "bytes=0-9"},
                           {"x-amz-content-sha256", EMPTY_HASH},
                           {"x-amz-date", "20130524T000000Z"}};
    const s3_pair put[] = {{"x-amz-storage-class", "REDUCED_REDUNDANCY"},
                           {"Host", "examplebucket.s3.amazonaws.com"},
                           {"Date", "Fri, 24 May 2013 00:00:00 GMT"},
                           {"x-amz-date", "20130524T000000Z"},
                           {"x-amz-content-sha256", welcome}};
    const s3_pair plain[] = {get[0], get[2], get[3]};
    const s3_pair lifecycle[] = {{"lifecycle", ""}}, list[] = {{"prefix", "J"}, {"max-keys", "2"}};
    char hash[S3_HASH_TEXT];
    s3_signing signing = {.method = "GET",
                          .path = "/test.txt",
                          .headers = get,
                          .header_count = 4,
                          .payload = EMPTY_HASH,
                          .time = "20130524T000000Z",
                          .region = "us-east-1",
                          .service = "s3",
                          .key = EXAMPLE_KEY};
    (void)state;
    assert_signature(&signing, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
    signing.headers = plain;
    signing.header_count = 3;
    signing.path = "/";
    signing.query = lifecycle;
    signing.query_count = 1;
    assert_signature(&signing, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    signing.query = list;
    signing.query_count = 2;
    assert_signature(&signing, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
    assert_int_equal(s3_hash(hash, &(store_body){{{"Welcome to ", 11}, {"Amazon S3.", 10}}}), SHOAL_OK);
    assert_string_equal(hash, welcome);
    signing = (s3_signing){.method = "PUT",
                           .path = "/test$file.text",
                           .headers = put,
                           .header_count = 5,
                           .payload = hash,
                           .time = "20130524T000000Z",
                           .region = "us-east-1",
                           .service = "s3",
                           .key = EXAMPLE_KEY};
    assert_signature(&signing, "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

/* Computed with Python's hmac and hashlib: S3's paths are encoded once and left as they are otherwise. */
static void awkward_keys_are_signed_as_they_are_sent(void **state)
{
    const s3_pair query[] = {{"uploadId", "x/y=z&"}, {"partNumber", "7"}};
    const s3_pair headers[] = {{"If-Match", "\"0cc1\""},
                               {"Host", "127.0.0.1:9000"},
                               {"x-amz-content-sha256", S3_UNSIGNED},
                               {"x-amz-date", "20261115T010203Z"},
                               {"x-amz-security-token", "to/ken=="}};
    const s3_signing signing = {.method = "PUT",
                                .path = "/box/a//./../\xc3\xa4 b+c%2F~",
                                .query = query,
                                .query_count = 2,
                                .headers = headers,
                                .header_count = 5,
                                .payload = S3_UNSIGNED,
                                .time = "20261115T010203Z",
                                .region = "eu-central-1",
                                .service = "s3",
                                .key = "AWS4secret/+="};
    s3_signature signature = {0};
    (void)state;
    assert_int_equal(s3_sign(&signature, &signing), SHOAL_OK);
    assert_string_equal(signature.path, "/box/a//./../%C3%A4%20b%2Bc%252F~");
    assert_string_equal(signature.query, "partNumber=7&uploadId=x%2Fy%3Dz%26");
    assert_string_equal(signature.names, "host;if-match;x-amz-content-sha256;x-amz-date;x-amz-security-token");
    assert_string_equal(signature.scope, "20261115/eu-central-1/s3/aws4_request");
    assert_string_equal(signature.hex, "d75e0671cc4b185956e42a8123978f0c67f7e7dd64bd2a612e73301912f2cc5e");
    s3_signature_release(&signature);
}

static void parameters_are_sorted_by_name_and_value(void **state)
{
    const s3_pair query[] = {{"b", "2"}, {"b", "10"}, {"B", ""}, {"a-", "1"}, {"a", "z"}, {"a", "\xc3\xa4"}};
    const s3_signing signing = {.method = "GET",
                                .path = "",
                                .query = query,
                                .query_count = 6,
                                .payload = S3_UNSIGNED,
                                .time = "20261115T010203Z",
                                .region = "r",
                                .service = "s3",
                                .key = "AWS4k"};
    s3_signature signature = {0};
    (void)state;
    assert_int_equal(s3_sign(&signature, &signing), SHOAL_OK);
    assert_string_equal(signature.path, "/");
    assert_string_equal(signature.query, "B=&a=%C3%A4&a=z&a-=1&b=10&b=2");
    s3_signature_release(&signature);
}

static void every_failed_allocation_is_reported(void **state)
{
    const s3_pair query[] = {{"b", "1"}, {"a", "2"}}, headers[] = {{"Host", "h"}, {"Range", "bytes=0-1"}};
    const s3_signing signing = {.method = "GET",
                                .path = "/a/../b",
                                .normalise = true,
                                .query = query,
                                .query_count = 2,
                                .headers = headers,
                                .header_count = 2,
                                .payload = S3_UNSIGNED,
                                .time = "20261115T010203Z",
                                .region = "r",
                                .service = "s3",
                                .key = "AWS4k"};
    int failures = 0;
    (void)state;
    for (int status = SHOAL_MEMORY; status != SHOAL_OK; failures++) {
        s3_signature signature = {0};
        base_memory_fail_after(failures);
        status = s3_sign(&signature, &signing);
        base_memory_fail_after(-1);
        assert_true(status == SHOAL_OK || status == SHOAL_MEMORY);
        s3_signature_release(&signature);
    }
    assert_true(failures > 10);
}

/* ---- the test suite that Amazon publishes with its libraries ----------------------------------------------------- */

#define SUITE "../shared/data/vectors/sigv4"

static char *read_file(const char *vector, const char *name)
{
    char path[1024];
    static char text[1 << 16];
    snprintf(path, sizeof path, SUITE "/%s/%s", vector, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = '\0';
    return strdup(text);
}

static void assert_file(const char *vector, const char *name, const char *text)
{
    char *expected = read_file(vector, name);
    if (strcmp(expected, text) != 0)
        print_message("%s/%s\n", vector, name);
    assert_string_equal(text, expected);
    free(expected);
}

static char *decoded(char *text)
{
    char *to = text;
    unsigned int code;
    for (const char *from = text; *from; to++)
        if (sscanf(from, "%%%2x", &code) == 1)
            *to = (char)code, from += 3;
        else
            *to = *from++;
    *to = '\0';
    return text;
}

enum { PAIRS = 16 };

/* A request of the suite, taken apart; all points into `text`. */
typedef struct parsed {
    char *text, *method, *path, *body;
    s3_pair query[PAIRS + 8], headers[PAIRS + 8];
    size_t query_count, header_count;
} parsed;

static void parse_query(parsed *out, char *text)
{
    for (char *next; text && *text; text = next) {
        next = strchr(text, '&');
        if (next)
            *next++ = '\0';
        char *value = strchr(text, '=');
        if (value)
            *value++ = '\0';
        assert_true(out->query_count < PAIRS);
        out->query[out->query_count++] = (s3_pair){decoded(text), value ? decoded(value) : ""};
    }
}

/* Lines that begin with a space go on with the header before. */
static void parse_headers(parsed *out, char *text)
{
    while (*text && *text != '\n') {
        char *end = strchr(text, '\n');
        while (end && (end[1] == ' ' || end[1] == '\t'))
            end = strchr(end + 1, '\n');
        char *value = strchr(text, ':');
        assert_non_null(value);
        *value++ = '\0';
        assert_true(out->header_count < PAIRS);
        out->headers[out->header_count++] = (s3_pair){text, value};
        text = end ? end + 1 : text + strlen(text);
        if (end)
            *end = '\0';
    }
    out->body = *text ? text + 1 : text;
}

static void parse_request(parsed *out, const char *vector)
{
    char *line = read_file(vector, "request.txt"), *end = strchr(line, '\n'), *version;
    *out = (parsed){.text = line, .method = line};
    if (end)
        *end = '\0';
    version = strstr(line, " HTTP/1.1");
    assert_non_null(version);
    *version = '\0';
    out->path = strchr(line, ' ');
    *out->path++ = '\0';
    char *query = strchr(out->path, '?');
    if (query)
        *query++ = '\0';
    parse_query(out, query);
    parse_headers(out, end ? end + 1 : version + strlen(version + 1) + 1);
}

static const char *text_of(json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static void add(s3_pair *pairs, size_t *count, const char *name, const char *value)
{
    if (value)
        pairs[(*count)++] = (s3_pair){name, value};
}

static void check_signed(const char *vector, const char *kind, const s3_signing *signing, const char *id)
{
    char name[64];
    s3_signature signature = {0};
    assert_int_equal(s3_sign(&signature, signing), SHOAL_OK);
    snprintf(name, sizeof name, "%s-canonical-request.txt", kind);
    assert_file(vector, name, signature.canonical);
    snprintf(name, sizeof name, "%s-string-to-sign.txt", kind);
    assert_file(vector, name, signature.to_sign);
    snprintf(name, sizeof name, "%s-signature.txt", kind);
    assert_file(vector, name, signature.hex);
    if (strcmp(kind, "header") == 0) {
        char line[1024], *text = read_file(vector, "header-signed-request.txt");
        snprintf(line, sizeof line, "Credential=%s/%s, SignedHeaders=%s, Signature=%s", id, signature.scope,
                 signature.names, signature.hex);
        assert_non_null(strstr(text, line));
        free(text);
    }
    s3_signature_release(&signature);
}

/* The signature in a header, and then in the query. */
static void check_vector(const char *vector)
{
    parsed request;
    char key[256], moment[32] = "", credential[256], hash[S3_HASH_TEXT], *text = read_file(vector, "context.json");
    json_t *context = json_loads(text, 0, NULL), *credentials = json_object_get(context, "credentials");
    assert_non_null(credentials);
    for (const char *c = text_of(context, "timestamp"); *c; c++)
        if (*c != '-' && *c != ':')
            strncat(moment, c, 1);
    snprintf(key, sizeof key, "AWS4%s", text_of(credentials, "secret_access_key"));
    parse_request(&request, vector);
    size_t body = strlen(request.body);
    assert_int_equal(s3_hash(hash, &(store_body){{{request.body, body}}}), SHOAL_OK);
    const char *token =
        json_is_true(json_object_get(context, "omit_session_token")) ? NULL : text_of(credentials, "token");
    bool sign_body = json_is_true(json_object_get(context, "sign_body"));
    s3_signing signing = {.method = request.method,
                          .path = request.path,
                          .normalise = json_is_true(json_object_get(context, "normalize")),
                          .query = request.query,
                          .query_count = request.query_count,
                          .headers = request.headers,
                          .payload = hash,
                          .time = moment,
                          .region = text_of(context, "region"),
                          .service = text_of(context, "service"),
                          .key = key};
    size_t plain = request.header_count;
    add(request.headers, &request.header_count, "X-Amz-Date", moment);
    add(request.headers, &request.header_count, "X-Amz-Security-Token", token);
    add(request.headers, &request.header_count, "x-amz-content-sha256", sign_body ? hash : NULL);
    signing.header_count = request.header_count;
    check_signed(vector, "header", &signing, text_of(credentials, "access_key_id"));

    signing.header_count = plain;
    s3_signature names = {0};
    assert_int_equal(s3_sign(&names, &signing), SHOAL_OK);
    snprintf(credential, sizeof credential, "%s/%s", text_of(credentials, "access_key_id"), names.scope);
    add(request.query, &signing.query_count, "X-Amz-Algorithm", "AWS4-HMAC-SHA256");
    add(request.query, &signing.query_count, "X-Amz-Credential", credential);
    add(request.query, &signing.query_count, "X-Amz-Date", moment);
    add(request.query, &signing.query_count, "X-Amz-Expires", "3600");
    add(request.query, &signing.query_count, "X-Amz-Security-Token", token);
    add(request.query, &signing.query_count, "X-Amz-SignedHeaders", names.names);
    check_signed(vector, "query", &signing, "");
    s3_signature_release(&names);
    json_decref(context);
    free(request.text);
    free(text);
}

static void amazons_suite_is_met(void **state)
{
    DIR *folder = opendir(SUITE);
    int vectors = 0;
    (void)state;
    if (!folder) {
        print_message("left out: %s is not here\n", SUITE);
        skip();
    }
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
            check_vector(entry->d_name);
            vectors++;
        }
    closedir(folder);
    print_message("%d vectors, each in a header and in a query\n", vectors);
    assert_true(vectors >= 38);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(amazons_own_examples_are_met),
        cmocka_unit_test(awkward_keys_are_signed_as_they_are_sent),
        cmocka_unit_test(parameters_are_sorted_by_name_and_value),
        cmocka_unit_test(every_failed_allocation_is_reported),
        cmocka_unit_test(amazons_suite_is_met),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
