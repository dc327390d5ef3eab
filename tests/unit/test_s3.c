/* src/store/s3_*.c, store_s3.c: where credentials come from and how they are renewed, and what answers mean.  The
 * servers here are stand-ins on loopback that say what a test wants to hear; test_store_s3.py has a real one. */
#include <setjmp.h>
#include <stdarg.h>
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/world.h"
#include "store/s3/s3_internal.h"

/* ---- a server that says what it is told -------------------------------------------------------------------------- */

typedef struct exchange {
    char method[8], target[2048], headers[8192];
    size_t body_size;
    char body[4096]; /* its start */
} exchange;

typedef struct reply {
    const char *status, *headers; /* "200 OK"; each header with its line's end */
    const char *body;
    size_t size; /* of the body; 0 for a text's own length */
} reply;

typedef reply answer_function(const exchange *asked);

static _Atomic(answer_function *) answer;
static int listener;
static char address[64];
static pthread_t server;
static atomic_int asked_keys, asked_token; /* how often */

/* Reads up to the end of the head; what came of the body is kept too. */
static bool read_request(int connection, exchange *out)
{
    static char head[16384];
    size_t size = 0, length;
    char *end = NULL, *field;
    memset(out, 0, sizeof *out);
    while (!end && size < sizeof head - 1) {
        ssize_t got = read(connection, head + size, sizeof head - 1 - size);
        if (got <= 0)
            return false;
        size += (size_t)got;
        head[size] = '\0';
        end = strstr(head, "\r\n\r\n");
    }
    if (!end || sscanf(head, "%7s %2047s", out->method, out->target) != 2)
        return false;
    *end = '\0';
    snprintf(out->headers, sizeof out->headers, "%s\r\n", strstr(head, "\r\n") ? strstr(head, "\r\n") : "");
    field = strcasestr(out->headers, "\r\nContent-Length:");
    out->body_size = field ? strtoull(field + 17, NULL, 10) : 0;
    end += 4;
    length = size - (size_t)(end - head);
    memcpy(out->body, end, length < sizeof out->body - 1 ? length : sizeof out->body - 1);
    while (length < out->body_size) {
        static char rest[1 << 16];
        ssize_t got = read(connection, rest, sizeof rest);
        if (got <= 0)
            return false;
        size_t room = sizeof out->body - 1;
        if (length < room)
            memcpy(out->body + length, rest, (size_t)got < room - length ? (size_t)got : room - length);
        length += (size_t)got;
    }
    return true;
}

static void write_all(int connection, const char *bytes, size_t size)
{
    for (ssize_t put; size > 0; bytes += put, size -= (size_t)put)
        if ((put = send(connection, bytes, size, MSG_NOSIGNAL)) <= 0)
            return;
}

static void *serve(void *context)
{
    (void)context;
    for (int connection; (connection = accept(listener, NULL, NULL)) >= 0; close(connection)) {
        static exchange asked;
        char head[2048];
        if (!read_request(connection, &asked))
            continue;
        reply said = atomic_load(&answer)(&asked);
        size_t size = said.size || !said.body ? said.size : strlen(said.body);
        if (!said.status)
            continue; /* hangs up */
        int length = snprintf(head, sizeof head, "HTTP/1.1 %s\r\nContent-Length: %zu\r\nConnection: close\r\n%s\r\n",
                              said.status, size, said.headers ? said.headers : "");
        write_all(connection, head, (size_t)length);
        if (strcmp(asked.method, "HEAD") != 0)
            write_all(connection, said.body, size);
    }
    return NULL;
}

static char folder[] = "/tmp/shoal-s3-XXXXXX";

static int start_server(void **state)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    (void)state;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&at, size) < 0 || listen(listener, 64) < 0 ||
        getsockname(listener, (struct sockaddr *)&at, &size) < 0 || !mkdtemp(folder))
        return -1;
    snprintf(address, sizeof address, "http://127.0.0.1:%d", ntohs(at.sin_port));
    return pthread_create(&server, NULL, serve, NULL);
}

static int stop_server(void **state)
{
    char path[128];
    (void)state;
    shutdown(listener, SHUT_RDWR);
    pthread_join(server, NULL);
    close(listener);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, i ? "config" : "credentials");
        unlink(path);
    }
    return rmdir(folder);
}

/* ---- the environment --------------------------------------------------------------------------------------------- */

/* Nothing of the machine's own must be seen: no keys, no files, no metadata service. */
static int clear_environment(void **state)
{
    static const char *const names[] = {"AWS_ACCESS_KEY_ID",
                                        "AWS_SECRET_ACCESS_KEY",
                                        "AWS_SESSION_TOKEN",
                                        "AWS_PROFILE",
                                        "AWS_REGION",
                                        "AWS_DEFAULT_REGION",
                                        "AWS_ENDPOINT_URL",
                                        "AWS_ENDPOINT_URL_S3",
                                        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                                        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                                        "AWS_CONTAINER_AUTHORIZATION_TOKEN",
                                        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
                                        "AWS_EC2_METADATA_DISABLED",
                                        "AWS_CA_BUNDLE"};
    char path[128];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, i ? "config" : "credentials");
        unlink(path);
        setenv(i ? "AWS_CONFIG_FILE" : "AWS_SHARED_CREDENTIALS_FILE", path, 1);
    }
    setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", address, 1);
    asked_keys = asked_token = 0;
    return 0;
}

static void write_file(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void set_keys(const char *id)
{
    setenv("AWS_ACCESS_KEY_ID", id, 1);
    setenv("AWS_SECRET_ACCESS_KEY", "environment-secret", 1);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static void parse(s3_profile *out, const char *text, const char *name, bool config)
{
    *out = (s3_profile){0};
    assert_int_equal(s3_profile_parse(out, text, strlen(text), name, config), SHOAL_OK);
}

static void assert_keys(const s3_keys *keys, const char *id, const char *secret, const char *token)
{
    assert_non_null(keys);
    assert_string_equal(keys->id, id);
    assert_string_equal(base_secret_text(keys->signing), secret);
    assert_string_equal(base_secret_text(keys->token), token);
}

static void odd_files_are_read(void **state)
{
    s3_profile profile;
    (void)state;
    parse(&profile,
          "\xef\xbb\xbf# a comment\r\n"
          "[default]\r\n"
          "aws_access_key_id=ONE\r\n"
          "aws_secret_access_key = a/b+c==\r\n"
          "[ other ]\r\n"
          "; another\r\n"
          "AWS_Access_Key_ID =  TWO  # mine\r\n"
          "aws_secret_access_key\t=\tx#y ;z\r\n"
          "aws_session_token=t=\r\n",
          "other", false);
    assert_keys(profile.keys, "TWO", "AWS4x#y", "t=");
    s3_profile_release(&profile);
    parse(&profile, "[default]\naws_access_key_id=ONE\naws_secret_access_key=s", "default", false); /* no line's end */
    assert_keys(profile.keys, "ONE", "AWS4s", "");
    s3_profile_release(&profile);
    /* A profile twice, a key twice: the last word counts.  What is nested or no setting is passed over. */
    parse(&profile,
          "aws_access_key_id=OUTSIDE\n"
          "[p]\n"
          "aws_access_key_id=A\n"
          "[q]\n"
          "aws_access_key_id=Q\n"
          "[p]\n"
          "nonsense\n"
          "=\n"
          "[\n"
          "[p]\n"
          "s3 =\n"
          "  aws_access_key_id=NESTED\n"
          "aws_access_key_id=B\n"
          "aws_secret_access_key=s\n",
          "p", false);
    assert_keys(profile.keys, "B", "AWS4s", "");
    s3_profile_release(&profile);
    parse(&profile, "[p]\naws_access_key_id=A\n", "p", false); /* half of a pair is none */
    assert_true(profile.found);
    assert_null(profile.keys);
    s3_profile_release(&profile);
    parse(&profile, "[pp]\naws_access_key_id=A\naws_secret_access_key=s\n", "p", false);
    assert_false(profile.found);
    s3_profile_release(&profile);
}

static void headings_of_the_config_file_say_profile(void **state)
{
    static const char text[] = "[default]\n"
                               "region=eu-west-1\n"
                               "[team]\n"
                               "region=wrong\n"
                               "[profile team]\n"
                               "region = eu-north-1\n"
                               "endpoint_url = https://x.example\n"
                               "[profile \"two words\"]\n"
                               "region=two\n"
                               "[profile role]\n"
                               "role_arn=arn:aws:iam::1:role/x\n"
                               "source_profile=default\n";
    s3_profile profile;
    (void)state;
    parse(&profile, text, "default", true);
    assert_string_equal(profile.region, "eu-west-1");
    s3_profile_release(&profile);
    parse(&profile, text, "team", true);
    assert_string_equal(profile.region, "eu-north-1");
    assert_string_equal(profile.endpoint, "https://x.example");
    s3_profile_release(&profile);
    parse(&profile, text, "two words", true);
    assert_string_equal(profile.region, "two");
    s3_profile_release(&profile);
    parse(&profile, text, "role", true);
    assert_string_equal(profile.unsupported, "role_arn");
    s3_profile_release(&profile);
}

static void keys_that_were_pasted_wrongly_are_refused_and_not_shown(void **state)
{
    static const char text[] = "[default]\naws_access_key_id=A\naws_secret_access_key=hid den\n";
    s3_profile profile = {0};
    (void)state;
    assert_int_equal(s3_profile_parse(&profile, text, strlen(text), "default", false), SHOAL_INVALID);
    assert_null(strstr(shoal_error(), "hid"));
    assert_null(profile.keys);
    s3_profile_release(&profile);
}

/* ---- the chain --------------------------------------------------------------------------------------------------- */

static char expiry[3][32]; /* of the first keys that the instance hands out, the second, ... */

static void expires_in(int which, int seconds)
{
    time_t when = time(NULL) + seconds;
    struct tm parts;
    strftime(expiry[which], sizeof expiry[which], "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&when, &parts));
}

/* IMDSv2 as an instance has it: nothing without the token. */
static reply instance(const exchange *asked)
{
    static char document[512];
    static const char roles[] = "/latest/meta-data/iam/security-credentials/";
    if (strcmp(asked->method, "PUT") == 0 && strcmp(asked->target, "/latest/api/token") == 0) {
        asked_token++;
        if (!strcasestr(asked->headers, "\r\nX-aws-ec2-metadata-token-ttl-seconds: "))
            return (reply){.status = "400 Bad Request"};
        return (reply){.status = "200 OK", .body = "the-token"};
    }
    if (!strcasestr(asked->headers, "\r\nX-aws-ec2-metadata-token: the-token\r\n"))
        return (reply){.status = "401 Unauthorized"};
    if (strcmp(asked->target, roles) == 0)
        return (reply){.status = "200 OK", .body = "my role\nother"};
    if (strcmp(asked->target, "/latest/meta-data/iam/security-credentials/my%20role") != 0)
        return (reply){.status = "404 Not Found"};
    int number = asked_keys++;
    snprintf(document, sizeof document,
             "{\n"
             " \"Code\" : \"Success\", \"Type\" : \"AWS-HMAC\",\n"
             " \"AccessKeyId\" : \"INSTANCE%d\",\n"
             " \"SecretAccessKey\" : \"i\\/s\", \"Token\" : \"tok%d\", \"Expiration\" : \"%s\", \"Extra\": 1 }\n",
             number, number, expiry[number < 2 ? number : 2]);
    return (reply){.status = "200 OK", .body = document};
}

static reply container(const exchange *asked)
{
    if (strcmp(asked->target, "/keys?a=b") != 0)
        return instance(asked);
    if (!strcasestr(asked->headers, "\r\nAuthorization: Basic proof\r\n"))
        return (reply){.status = "403 Forbidden"};
    return (reply){.status = "200 OK",
                   .body =
                       "{\"RoleArn\":\"x\",\"AccessKeyId\":\"CONTAINER\",\"SecretAccessKey\":\"cs\",\"Token\":\"ct\"}"};
}

static void assert_chain(const char *name, const char *id)
{
    s3_chain *chain = NULL;
    s3_keys *keys = NULL;
    assert_int_equal(s3_chain_new(&chain, NULL, name), SHOAL_OK);
    int status = s3_chain_get(&keys, chain, shoal_after(20));
    if (status < 0)
        print_message("%s\n", shoal_error());
    assert_int_equal(status, SHOAL_OK);
    assert_string_equal(keys->id, id);
    s3_keys_free(&keys);
    s3_chain_free(&chain);
}

static void assert_no_keys(const char *name, int status, const char *sentence)
{
    s3_chain *chain = NULL;
    s3_keys *keys = NULL;
    assert_int_equal(s3_chain_new(&chain, NULL, name), SHOAL_OK);
    assert_int_equal(s3_chain_get(&keys, chain, shoal_after(20)), status);
    assert_null(keys);
    if (!strstr(shoal_error(), sentence))
        print_message("%s\n", shoal_error());
    assert_non_null(strstr(shoal_error(), sentence));
    s3_chain_free(&chain);
}

static void the_first_place_with_keys_is_used(void **state)
{
    char full[128];
    (void)state;
    answer = container;
    expires_in(0, 3600);
    snprintf(full, sizeof full, "%s/keys?a=b", address);
    assert_chain(NULL, "INSTANCE0");
    asked_keys = 0;
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", full, 1);
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "Basic proof", 1);
    assert_chain(NULL, "CONTAINER");
    write_file("config", "[profile team]\naws_access_key_id=CONFIG\naws_secret_access_key=s\n");
    write_file("credentials", "[default]\n"
                              "aws_access_key_id=FILE\n"
                              "aws_secret_access_key=s\n"
                              "[other]\n"
                              "aws_access_key_id=OTHER\n"
                              "aws_secret_access_key=s\n");
    assert_chain(NULL, "FILE");
    setenv("AWS_PROFILE", "other", 1);
    assert_chain(NULL, "OTHER");
    setenv("AWS_PROFILE", "team", 1);
    assert_chain(NULL, "CONFIG");
    set_keys("ENVIRONMENT");
    assert_chain(NULL, "ENVIRONMENT");
    assert_chain("other", "OTHER"); /* a URL that names a profile means it */
    assert_int_equal(asked_keys, 0);
}

static void without_keys_there_is_a_sentence(void **state)
{
    (void)state;
    answer = instance;
    setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
    assert_no_keys(NULL, SHOAL_DENIED, "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE");
    assert_int_equal(asked_token, 0);
    assert_no_keys("nobody", SHOAL_USAGE, "there is no profile 'nobody'");
    setenv("AWS_ACCESS_KEY_ID", "LONELY", 1);
    assert_no_keys(NULL, SHOAL_DENIED, "only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set");
    unsetenv("AWS_ACCESS_KEY_ID");
    write_file("config", "[profile role]\nrole_arn=arn:aws:iam::1:role/x\n");
    setenv("AWS_PROFILE", "role", 1);
    assert_no_keys(NULL, SHOAL_DENIED, "role_arn, which is not supported");
}

static reply refuse_all(const exchange *asked)
{
    (void)asked;
    return (reply){.status = "403 Forbidden"};
}

/* A laptop: nobody listens, or somebody takes the connection and says nothing. */
static void a_machine_without_a_metadata_service_learns_so_soon(void **state)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    char silent[64];
    (void)state;
    answer = refuse_all;
    assert_no_keys(NULL, SHOAL_DENIED, "answered 403");
    int mute = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(mute, (struct sockaddr *)&at, size), 0);
    assert_int_equal(getsockname(mute, (struct sockaddr *)&at, &size), 0);
    snprintf(silent, sizeof silent, "http://127.0.0.1:%d/", ntohs(at.sin_port));
    setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", silent, 1);
    assert_no_keys(NULL, SHOAL_DENIED, "no metadata service answers");
    assert_int_equal(listen(mute, 8), 0);
    int64_t start = shoal_now();
    assert_no_keys(NULL, SHOAL_DENIED, "no metadata service answers");
    assert_true(shoal_now() - start < 5 * INT64_C(1000000000)); /* 2 s are promised, a busy machine may need more */
    close(mute);
}

static reply broken_document(const exchange *asked)
{
    reply said = instance(asked);
    if (said.body && said.body[0] == '{')
        said.body = "{\"Code\":\"Success\",\"AccessKeyId\":\"A\"}";
    return said;
}

static void documents_of_the_metadata_service_are_checked(void **state)
{
    static const char *const bad[] = {"",
                                      "{",
                                      "{}",
                                      "[]",
                                      "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"s\"",
                                      "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"s\",\"Expiration\":\"soon\"}",
                                      "{\"AccessKeyId\":\"A\\u0041\",\"SecretAccessKey\":\"s\"}",
                                      "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":{\"s\":1}}",
                                      "{\"Code\":\"AssumeRoleUnauthorizedAccess\"}"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        s3_keys *keys = NULL;
        assert_int_equal(s3_keys_new(&keys), SHOAL_OK);
        assert_true(s3_metadata_parse(keys, bad[i], strlen(bad[i])) < 0);
        s3_keys_free(&keys);
    }
    answer = broken_document;
    expires_in(0, 3600);
    assert_no_keys(NULL, SHOAL_BROKEN, "lacks AccessKeyId or SecretAccessKey");
}

static void keys_are_renewed_before_they_expire(void **state)
{
    s3_chain *chain = NULL;
    s3_keys *keys[3] = {NULL};
    (void)state;
    answer = instance;
    expires_in(0, 120); /* soon enough to be renewed */
    expires_in(1, 3600);
    assert_int_equal(s3_chain_new(&chain, NULL, NULL), SHOAL_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(s3_chain_get(&keys[i], chain, shoal_after(20)), SHOAL_OK);
    assert_keys(keys[0], "INSTANCE0", "AWS4i/s", "tok0"); /* still whole, though others have taken its place */
    assert_string_equal(keys[1]->id, "INSTANCE1");
    assert_ptr_equal(keys[2], keys[1]);
    assert_int_equal(asked_keys, 2);
    for (int i = 0; i < 3; i++)
        s3_keys_free(&keys[i]);
    s3_chain_free(&chain);
}

static reply works_once(const exchange *asked)
{
    if (asked_keys > 0)
        return (reply){.status = "500 Internal Server Error"};
    return instance(asked);
}

static void a_renewal_that_fails_has_time_until_the_old_keys_expire(void **state)
{
    s3_chain *chain = NULL;
    s3_keys *keys = NULL, *same = NULL;
    (void)state;
    answer = works_once;
    expires_in(0, 120);
    assert_int_equal(s3_chain_new(&chain, NULL, NULL), SHOAL_OK);
    assert_int_equal(s3_chain_get(&keys, chain, shoal_after(20)), SHOAL_OK);
    assert_int_equal(s3_chain_get(&same, chain, shoal_after(20)), SHOAL_OK);
    assert_ptr_equal(keys, same);
    s3_keys_free(&same);
    keys->expires = time(NULL) - 1; /* and now time has passed */
    assert_int_equal(s3_chain_get(&same, chain, shoal_after(20)), SHOAL_AGAIN);
    assert_null(same);
    s3_keys_free(&keys);
    s3_chain_free(&chain);
}

static void *get_keys(void *context)
{
    s3_keys *keys = NULL;
    intptr_t status = s3_chain_get(&keys, context, shoal_after(20));
    s3_keys_free(&keys);
    return (void *)status;
}

static void threads_share_one_renewal(void **state)
{
    s3_chain *chain = NULL;
    pthread_t threads[8];
    (void)state;
    answer = instance;
    expires_in(0, 3600);
    assert_int_equal(s3_chain_new(&chain, NULL, NULL), SHOAL_OK);
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, get_keys, chain), 0);
    for (int i = 0; i < 8; i++) {
        void *status;
        pthread_join(threads[i], &status);
        assert_int_equal((intptr_t)status, SHOAL_OK);
    }
    assert_int_equal(asked_keys, 1);
    s3_chain_free(&chain);
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

static _Atomic(const char *) told_status, told_headers, told_body;
static atomic_int times, requests; /* how often it is still told; how many came that were not HEAD */
static char seen_authorization[512], seen_hash[128], seen_target[2048];

/* The bucket is there; everything else gets the answer under test that many times, and then a plain success. */
static reply scripted(const exchange *asked)
{
    if (strcmp(asked->method, "HEAD") == 0 && !strchr(asked->target + 1, '/'))
        return (reply){.status = "200 OK"};
    if (strncmp(asked->target, "/latest/", 8) == 0)
        return instance(asked);
    const char *authorization = strcasestr(asked->headers, "\r\nAuthorization: ");
    snprintf(seen_authorization, sizeof seen_authorization, "%s", authorization ? authorization : "");
    const char *hash = strcasestr(asked->headers, "\r\nx-amz-content-sha256: ");
    snprintf(seen_hash, sizeof seen_hash, "%.64s", hash ? hash + 24 : "");
    snprintf(seen_target, sizeof seen_target, "%s", asked->target);
    requests++;
    if (times-- > 0)
        return (reply){.status = told_status, .headers = told_headers, .body = told_body};
    if (strcmp(asked->method, "GET") == 0)
        return (reply){.status = "206 Partial Content",
                       .headers = "ETag: \"abc\"\r\n"
                                  "Content-Range: bytes 0-4/5\r\n"
                                  "Last-Modified: Sun, 15 Nov 2026 12:00:00 GMT\r\n"
                                  "Date: Sun, 15 Nov 2026 12:01:40 GMT\r\n",
                       .body = "hello"};
    return (reply){.status = "200 OK", .headers = "ETag: \"abc\"\r\n"};
}

static void tell(int how_often, const char *status, const char *headers, const char *body)
{
    answer = scripted;
    told_status = status;
    told_headers = headers;
    told_body = body;
    times = how_often;
    requests = 0;
}

static shoal_store *open_store(const char *url)
{
    shoal_store *store = NULL;
    setenv("AWS_ENDPOINT_URL", address, 1);
    int status = shoal_store_open(&store, url, &(shoal_store_options){.read_only = true}, shoal_after(20));
    if (status < 0)
        print_message("%s\n", shoal_error());
    assert_int_equal(status, SHOAL_OK);
    return store;
}

enum { GET, PUT, PUT_NEW, PUT_OVER, REMOVE, LIST };

static int do_it(shoal_store *store, int what, double seconds)
{
    static const shoal_etag old = {"old"};
    shoal_blob blob = {0};
    shoal_listing page = {0};
    int64_t deadline = shoal_after(seconds);
    int status = SHOAL_OK;
    if (what == GET)
        status = shoal_store_get(store, "k", &blob, deadline);
    else if (what == REMOVE)
        status = shoal_store_remove(store, "k", deadline);
    else if (what == LIST)
        status = shoal_store_list(store, "", NULL, &page, deadline);
    else
        status = shoal_store_put(store, "k", "x", 1,
                                 what == PUT       ? NULL
                                 : what == PUT_NEW ? SHOAL_NOTHING
                                                   : &old,
                                 NULL, deadline);
    if (what == GET && status == SHOAL_OK) {
        assert_memory_equal(blob.data, "hello", 5);
        assert_string_equal(blob.etag.text, "abc");
        assert_true(blob.age == 100);
    }
    shoal_blob_release(&blob);
    shoal_listing_release(&page);
    return status;
}

#define CODE(code)                                                                                                     \
    "<?xml version=\"1.0\"?><Error><Code>" code "</Code><Message>m</Message><RequestId>rq7</RequestId></Error>"

static void each_answer_has_its_meaning_and_sentence(void **state)
{
    static const struct {
        int what;
        const char *status, *headers, *body;
        int expected;
        const char *sentence;
    } rows[] = {
        {GET, "404 Not Found", "", CODE("NoSuchKey"), SHOAL_ABSENT,
         "s3://box/k: there is no such key (404 NoSuchKey, request rq7)"},
        {GET, "404 Not Found", "", CODE("NoSuchBucket"), SHOAL_ABSENT, "there is no such bucket"},
        {PUT_NEW, "412 Precondition Failed", "", CODE("PreconditionFailed"), SHOAL_CONFLICT,
         "another writer was first"},
        {PUT_NEW, "412 Precondition Failed", "", "", SHOAL_CONFLICT, "another writer was first"},
        {PUT_OVER, "412 Precondition Failed", "", CODE("PreconditionFailed"), SHOAL_CONFLICT,
         "another writer was first"},
        {PUT_OVER, "404 Not Found", "", CODE("NoSuchKey"), SHOAL_CONFLICT, "a version of it was expected"},
        {PUT_OVER, "404 Not Found", "", CODE("NoSuchBucket"), SHOAL_ABSENT, "there is no such bucket"},
        {PUT, "403 Forbidden", "x-amz-request-id: header-id\r\n", "", SHOAL_DENIED,
         "do not permit it (403 AccessDenied, request header-id)"},
        {PUT, "403 Forbidden", "", CODE("InvalidAccessKeyId"), SHOAL_DENIED, "does not know this access key id"},
        {PUT, "403 Forbidden", "", CODE("SignatureDoesNotMatch"), SHOAL_DENIED, "the secret key does not belong"},
        {GET, "403 Forbidden", "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n", CODE("RequestTimeTooSkewed"), SHOAL_DENIED,
         "seconds ahead of the server's: set it"},
        {GET, "403 Forbidden", "Date: Sun, 06 Nov 2094 08:49:37 GMT\r\n", CODE("RequestTimeTooSkewed"), SHOAL_DENIED,
         "seconds behind the server's: set it"},
        {GET, "400 Bad Request", "", CODE("ExpiredToken"), SHOAL_DENIED, "get new ones"},
        {GET, "301 Moved Permanently", "x-amz-bucket-region: eu-west-3\r\n", "", SHOAL_USAGE,
         "set AWS_REGION=eu-west-3"},
        {GET, "400 Bad Request", "",
         "<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-west-2</Region></Error>", SHOAL_USAGE,
         "the bucket is in region eu-west-2, not us-east-1"},
        {LIST, "200 OK", "", "<ListBucketResult><Contents>", SHOAL_BROKEN, "s3://box: "},
        {LIST, "200 OK", "", "<html/>", SHOAL_BROKEN, "not a list of keys"},
        {GET, "200 OK", "", "hello", SHOAL_INVALID, "an ETag of 0 characters"},
        {GET, "206 Partial Content", "ETag: \"a\"\r\nContent-Range: bytes 0-4/9\r\n", "hello", SHOAL_BROKEN,
         "sent 5 of 9 bytes"},
        {PUT, "418 I'm a teapot", "", CODE("Odd\x07"), SHOAL_INVALID, "rejected the request"},
        {PUT, "501 Not Implemented", "", CODE("NotImplemented"), SHOAL_INVALID, "lacks a feature that shoal needs"},
        {PUT, "501 Not Implemented", "", "", SHOAL_INVALID, "rejected the request"},
        {REMOVE, "404 Not Found", "", CODE("NoSuchKey"), SHOAL_OK, ""},
    };
    (void)state;
    set_keys("A");
    tell(0, NULL, NULL, NULL);
    shoal_store *store = open_store("s3://box");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tell(1, rows[i].status, rows[i].headers, rows[i].body);
        int status = do_it(store, rows[i].what, 20);
        if (status != rows[i].expected || (status < 0 && !strstr(shoal_error(), rows[i].sentence)))
            print_message("row %zu: %d, %s\n", i, status, shoal_error());
        assert_int_equal(status, rows[i].expected);
        assert_true(status == SHOAL_OK || strstr(shoal_error(), rows[i].sentence));
        assert_int_equal(requests, 1);
    }
    shoal_store_close(&store);
}

static void what_passes_is_tried_again_and_counted(void **state)
{
    static const struct {
        int what;
        const char *status, *headers, *body;
        shoal_cause cause;
    } rows[] = {
        {GET, "503 Slow Down", "", CODE("SlowDown"), SHOAL_CAUSE_THROTTLED},
        {PUT_NEW, "503 Slow Down", "", CODE("SlowDown"), SHOAL_CAUSE_THROTTLED},
        {PUT, "429 Too Many Requests", "", "", SHOAL_CAUSE_THROTTLED},
        {PUT_NEW, "409 Conflict", "", CODE("ConditionalRequestConflict"), SHOAL_CAUSE_RACE},
        {PUT, "500 Internal Server Error", "", CODE("InternalError"), SHOAL_CAUSE_SERVER},
        {GET, "502 Bad Gateway", "", "<html>nothing to see", SHOAL_CAUSE_SERVER},
        {PUT, "400 Bad Request", "", CODE("RequestTimeout"), SHOAL_CAUSE_TIMEOUT},
        {PUT, "307 Temporary Redirect", "Location: http://127.0.0.1:1/\r\n", "", SHOAL_CAUSE_SERVER},
        {GET, NULL, "", "", SHOAL_CAUSE_CUT},
        {PUT, NULL, "", "", SHOAL_CAUSE_CUT},
    };
    (void)state;
    set_keys("A");
    tell(0, NULL, NULL, NULL);
    shoal_store *store = open_store("s3://box");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t before = shoal_store_counted(store).causes[rows[i].cause];
        tell(2, rows[i].status, rows[i].headers, rows[i].body);
        int status = do_it(store, rows[i].what, 20);
        if (status < 0)
            print_message("row %zu: %s\n", i, shoal_error());
        assert_int_equal(status, SHOAL_OK);
        assert_int_equal(requests, 3);
        assert_int_equal(shoal_store_counted(store).causes[rows[i].cause] - before, 2);
    }
    tell(1000, "503 Slow Down", "Retry-After: 100\r\n", CODE("SlowDown"));
    assert_int_equal(do_it(store, PUT_NEW, 5), SHOAL_AGAIN); /* at once: there is no time to do as the server asks */
    assert_int_equal(requests, 1);
    shoal_store_close(&store);
}

/* The server finds that a session has ended before we do; the instance has new keys. */
static void keys_that_a_server_refuses_are_replaced(void **state)
{
    (void)state;
    expires_in(0, 3600);
    expires_in(1, 3600);
    tell(0, NULL, NULL, NULL);
    shoal_store *store = open_store("s3://box");
    assert_int_equal(asked_keys, 1);
    tell(1, "400 Bad Request", "", CODE("ExpiredToken"));
    assert_int_equal(do_it(store, GET, 20), SHOAL_OK);
    assert_int_equal(requests, 2);
    assert_int_equal(asked_keys, 2);
    assert_non_null(strstr(seen_authorization, "Credential=INSTANCE1/"));
    shoal_store_close(&store);
}

static void addresses_are_made_of_bucket_region_and_style(void **state)
{
    shoal_store *store = NULL;
    (void)state;
    set_keys("A");
    write_file("config", "[default]\nregion = eu-west-9\n");
    tell(0, NULL, NULL, NULL);
    store = open_store("s3://my.box/some/prefix/");
    assert_int_equal(do_it(store, GET, 20), SHOAL_OK);
    assert_string_equal(seen_target, "/my.box/some/prefix/k");
    assert_non_null(strstr(seen_authorization,
                           "/eu-west-9/s3/aws4_request, SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"));
    assert_int_equal(do_it(store, PUT_OVER, 20), SHOAL_OK);
    assert_non_null(strstr(seen_authorization, "SignedHeaders=host;if-match;"));
    shoal_store_close(&store);
    setenv("AWS_REGION", "us-west-2", 1);
    setenv("AWS_SESSION_TOKEN", "tt", 1);
    store = open_store("s3://box?style=path");
    assert_int_equal(do_it(store, PUT, 20), SHOAL_OK);
    assert_non_null(strstr(seen_authorization, "/us-west-2/s3/aws4_request"));
    assert_non_null(strstr(seen_authorization, "x-amz-security-token"));
    /* Without encryption the body is signed too: SHA-256 of "x". */
    assert_string_equal(seen_hash, "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881");
    shoal_store_close(&store);
    static const char *const wrong[] = {"s3://ab",           "s3:box",           "s3:///box",           "s3://b_x/%00",
                                        "s3://box?style=up", "s3://box?region=", "s3://box?colour=red", "s3://-box"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(shoal_store_open(&store, wrong[i], NULL, shoal_after(20)), SHOAL_USAGE);
    static const char *const endpoints[] = {"127.0.0.1:9",
                                            "ftp://x",
                                            "http://",
                                            "http://u:p@127.0.0.1",
                                            "http://10.1.2.3",
                                            "https://x/?q",
                                            "http://127.0.0.1:123456"};
    for (size_t i = 0; i < sizeof endpoints / sizeof *endpoints; i++) {
        setenv("AWS_ENDPOINT_URL_S3", endpoints[i], 1); /* goes before the general one */
        assert_int_equal(shoal_store_open(&store, "s3://box", NULL, shoal_after(20)), SHOAL_USAGE);
    }
    unsetenv("AWS_ENDPOINT_URL_S3");
}

static void assert_endpoint(const char *text, const char *bucket, const char *region, const char *endpoint,
                            const char *base, const char *root)
{
    s3_store store = {.bucket = (char *)bucket, .region = (char *)region};
    s3_profile profile = {.endpoint = (char *)endpoint};
    store_url url = {0};
    assert_int_equal(store_url_parse(&url, text), SHOAL_OK);
    assert_int_equal(s3_choose_endpoint(&store, &url, &profile), SHOAL_OK);
    assert_string_equal(store.base, base);
    assert_string_equal(store.host, strstr(base, "//") + 2);
    assert_string_equal(store.root, root);
    assert_int_equal(store.sends_hash, strncmp(base, "http:", 5) == 0);
    assert_int_equal(store.custom, !strstr(base, "amazonaws") || strstr(base, ".example"));
    base_free(&store.base);
    base_free(&store.host);
    base_free(&store.root);
    store_url_release(&url);
}

static void the_bucket_is_in_the_host_or_in_the_path(void **state)
{
    (void)state;
    assert_endpoint("s3://box", "box", "eu-west-1", NULL, "https://box.s3.eu-west-1.amazonaws.com", "");
    assert_endpoint("s3://b.x", "b.x", "us-east-1", NULL, "https://s3.us-east-1.amazonaws.com", "/b.x");
    assert_endpoint("s3://box?style=path", "box", "cn-north-1", NULL, "https://s3.cn-north-1.amazonaws.com.cn", "/box");
    assert_endpoint("s3://box", "box", "r", "https://Minio.Example:443/", "https://minio.example", "/box");
    assert_endpoint("s3://box", "box", "r", "http://[::1]:9000/s3/", "http://[::1]:9000", "/s3/box");
    assert_endpoint("s3://box?style=host", "box", "r", "https://x.example:8443/a", "https://box.x.example:8443", "/a");
    assert_endpoint("s3://box", "box", "r", "https://s3.amazonaws.com.example", "https://s3.amazonaws.com.example",
                    "/box"); /* somebody else's */
    assert_endpoint("s3://box", "box", "r", "https://vpce-1.s3.r.vpce.amazonaws.com",
                    "https://vpce-1.s3.r.vpce.amazonaws.com", "/box");
}

/* Everything once, on a fresh store. */
static int do_all(int64_t fail_after)
{
    shoal_store *store = NULL;
    base_memory_fail_after(fail_after);
    int status = shoal_store_open(&store, "s3://box/p", &(shoal_store_options){.read_only = true}, shoal_after(20));
    for (int what = GET; what <= REMOVE && status == SHOAL_OK; what++)
        status = do_it(store, what, 20);
    base_memory_fail_after(-1);
    shoal_store_close(&store);
    return status;
}

static void every_failed_allocation_is_reported(void **state)
{
    int64_t failures = 0;
    (void)state;
    write_file("credentials", "[default]\naws_access_key_id=A\naws_secret_access_key=s\naws_session_token=t\n");
    setenv("AWS_ENDPOINT_URL", address, 1);
    tell(0, NULL, NULL, NULL);
    for (int status; (status = do_all(failures)) != SHOAL_OK; failures++) {
        if (status != SHOAL_MEMORY)
            print_message("allocation %lld: %s\n", (long long)failures, shoal_error());
        assert_int_equal(status, SHOAL_MEMORY);
    }
    assert_true(failures > 100);
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

enum { NOW = 1794744000 }; /* Sun, 15 Nov 2026 12:00:00 GMT */

static void lists_are_read(void **state)
{
    static const char text[] =
        "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>box</Name>"
        "<IsTruncated>true</IsTruncated>"
        "<Contents><Key>a+b%2Bc%20%C3%A4%26</Key><Size>12</Size>"
        "<LastModified>2026-11-15T11:58:20.123Z</LastModified><ETag>&quot;e1&quot;</ETag></Contents>"
        "<Contents><Owner><ID>x</ID></Owner><ETag>e2</ETag><Size>0</Size><Key>z</Key></Contents>"
        "<CommonPrefixes><Prefix>p/</Prefix></CommonPrefixes>"
        "<EncodingType>url</EncodingType><NextContinuationToken>1/t+=</NextContinuationToken></ListBucketResult>";
    static const char *const bad[] = {
        "",
        "<x/>",
        "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Size>1</Size></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key><Size>-1</Size></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key><Size>99999999999999999999</Size></Contents></ListBucketResult>",
        "<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>a%0</Key><Size>1</Size></Contents></"
        "ListBucketResult>",
        "<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>a%00</Key><Size>1</Size></Contents></"
        "ListBucketResult>"};
    shoal_listing page = {0};
    char *token = NULL;
    (void)state;
    assert_int_equal(s3_list_parse(&page, &token, text, strlen(text), NOW), SHOAL_OK);
    assert_int_equal(page.count, 2);
    assert_string_equal(page.entries[0].key, "a b+c \xc3\xa4&");
    assert_int_equal(page.entries[0].size, 12);
    assert_string_equal(page.entries[0].etag.text, "e1");
    assert_true(page.entries[0].age == 100 && page.entries[1].age == -1);
    assert_string_equal(page.entries[1].key, "z");
    assert_string_equal(page.entries[1].etag.text, "e2");
    assert_string_equal(token, "1/t+=");
    base_free(&token);
    shoal_listing_release(&page);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_true(s3_list_parse(&page, &token, bad[i], strlen(bad[i]), NOW) < 0);
        assert_null(token);
        shoal_listing_release(&page);
    }
}

/* ---- uploads that were broken off -------------------------------------------------------------------------------- */

typedef struct seen_parts {
    int count;
    int64_t number[4], size[4];
    char etag[4][64];
} seen_parts;

static void see_part(void *context, int64_t number, int64_t size, const char *etag)
{
    seen_parts *seen = context;
    assert_true(seen->count < 4);
    seen->number[seen->count] = number;
    seen->size[seen->count] = size;
    snprintf(seen->etag[seen->count++], sizeof seen->etag[0], "%s", etag);
}

static void uploads_that_were_broken_off_are_found(void **state)
{
#define UPLOAD(key, id) "<Upload><Key>" key "</Key><UploadId>" id "</UploadId></Upload>"
    static const char uploads[] = "<ListMultipartUploadsResult>" UPLOAD("a", "1") UPLOAD("a/b", "2") UPLOAD("a", "3")
        UPLOAD("a&amp;", "4") "<Upload><Key>a</Key></Upload></ListMultipartUploadsResult>";
    static const char *const bad[] = {"", "x", "<ListMultipartUploadsResult>" UPLOAD("a", "1"),
                                      "<!DOCTYPE a><ListMultipartUploadsResult/>"};
    char *upload = NULL;
    (void)state;
    assert_int_equal(s3_upload_parse(&upload, "a", uploads, strlen(uploads)), SHOAL_OK);
    assert_string_equal(upload, "3"); /* the newest of this very key */
    base_free(&upload);
    assert_int_equal(s3_upload_parse(&upload, "b", uploads, strlen(uploads)), SHOAL_OK);
    assert_null(upload);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_true(s3_upload_parse(&upload, "a", bad[i], strlen(bad[i])) < 0);
        assert_null(upload);
    }
}

static void parts_of_an_upload_are_read(void **state)
{
    static const char parts[] =
        "<ListPartsResult><IsTruncated>true</IsTruncated><NextPartNumberMarker>7</NextPartNumberMarker>"
        "<Part><PartNumber>1</PartNumber><ETag>\"abc\"</ETag><Size>5</Size></Part>"
        "<Part><PartNumber>many</PartNumber><ETag>\"\"</ETag><Size>-</Size></Part><Part><Size>3</Size></Part>"
        "</ListPartsResult>";
    static const char last[] = "<ListPartsResult><NextPartNumberMarker>9</NextPartNumberMarker></ListPartsResult>";
    seen_parts seen = {0};
    int64_t next = -1;
    (void)state;
    assert_int_equal(s3_parts_parse(&next, see_part, &seen, parts, strlen(parts)), SHOAL_OK);
    assert_int_equal(next, 7);
    assert_int_equal(seen.count, 3);
    assert_true(seen.number[0] == 1 && seen.size[0] == 5 && strcmp(seen.etag[0], "abc") == 0);
    assert_true(seen.number[1] == -1 && seen.size[1] == -1 && strcmp(seen.etag[1], "") == 0);
    assert_true(seen.number[2] == -1 && seen.size[2] == 3);
    assert_int_equal(s3_parts_parse(&next, see_part, &seen, last, strlen(last)), SHOAL_OK);
    assert_int_equal(next, 0);
    assert_true(s3_parts_parse(&next, see_part, &seen, "<a>", 3) < 0);
}

/* A server that ignores what was asked for. */
static reply lists_too_much(const exchange *asked)
{
    if (strcmp(asked->method, "HEAD") == 0)
        return (reply){.status = "200 OK"};
#define ROW(key) "<Contents><Key>" key "</Key><Size>1</Size></Contents>"
    return (reply){.status = "200 OK",
                   .body = "<ListBucketResult>" ROW("") ROW("a") ROW("team/a") ROW("team/b") ROW("team/c") ROW("z")
                       ROW("team") "</ListBucketResult>"};
}

static void keys_that_were_not_asked_for_are_left_out(void **state)
{
    shoal_listing page = {0};
    (void)state;
    set_keys("A");
    answer = lists_too_much;
    shoal_store *store = open_store("s3://box/team");
    assert_int_equal(shoal_store_list(store, "", "a", &page, shoal_after(20)), SHOAL_OK);
    assert_int_equal(page.count, 2);
    assert_string_equal(page.entries[0].key, "b");
    assert_string_equal(page.entries[1].key, "c");
    shoal_listing_release(&page);
    shoal_store_close(&store);
}

/* ---- large bodies ------------------------------------------------------------------------------------------------ */

static char large[20 << 20];
static const size_t large_size = sizeof large;
static atomic_int version, refusals;

/* A blob of 20 MiB whose every byte is its version, which is replaced behind the reader's back after the first
 * range. */
static reply replaced_while_read(const exchange *asked)
{
    static char headers[256], expected[64];
    long long from = 0, to = 0;
    if (strcmp(asked->method, "HEAD") == 0)
        return (reply){.status = "200 OK"};
    const char *range = strcasestr(asked->headers, "\r\nRange: bytes="),
               *match = strcasestr(asked->headers, "\r\nIf-Match: ");
    requests++;
    if (!range || sscanf(range + 15, "%lld-%lld", &from, &to) != 2 || from > to ||
        to >= (long long)large_size + (8 << 20))
        return (reply){.status = "400 Bad Request"};
    to = to < (long long)large_size ? to : (long long)large_size - 1;
    snprintf(expected, sizeof expected, "\r\nIf-Match: \"v%d\"", (int)version);
    if (match && strncmp(match, expected, strlen(expected)) != 0) {
        refusals++; /* some servers look at the range first, where the new one ends before it */
        return (reply){.status = refusals % 2 ? "416 Range Not Satisfiable" : "412 Precondition Failed"};
    }
    memset(large, version, large_size);
    snprintf(headers, sizeof headers, "ETag: \"v%d\"\r\nContent-Range: bytes %lld-%lld/%zu\r\n", (int)version, from, to,
             large_size);
    if (requests == 1)
        version++;
    return (reply){.status = "206 Partial Content", .headers = headers, .body = large, .size = (size_t)(to - from + 1)};
}

static void a_large_get_is_of_one_version(void **state)
{
    shoal_blob blob = {0};
    (void)state;
    set_keys("A");
    tell(0, NULL, NULL, NULL);
    shoal_store *store = open_store("s3://box");
    version = 1;
    refusals = requests = 0;
    answer = replaced_while_read;
    assert_int_equal(shoal_store_get(store, "k", &blob, shoal_after(60)), SHOAL_OK);
    assert_int_equal(blob.size, large_size);
    assert_string_equal(blob.etag.text, "v2");
    assert_true(refusals > 0);
    for (size_t i = 0; i < large_size; i++)
        if (((char *)blob.data)[i] != 2)
            fail_msg("byte %zu is of version %d", i, ((char *)blob.data)[i]);
    shoal_blob_release(&blob);
    shoal_store_close(&store);
}

enum { PARTS = 9 };
static atomic_int parts_put[PARTS + 1], uploads, aborted, completed;
static _Atomic(const char *) completion;
static _Atomic(int) failing_part;

static reply multipart(const exchange *asked)
{
    static char headers[64];
    const char *number = strstr(asked->target, "partNumber=");
    if (strcmp(asked->method, "POST") == 0 && strstr(asked->target, "?uploads=")) {
        uploads++;
        return (reply){.status = "200 OK",
                       .body =
                           "<InitiateMultipartUploadResult><UploadId>u/1+</UploadId></InitiateMultipartUploadResult>"};
    }
    if (strcmp(asked->method, "DELETE") == 0) {
        aborted += strstr(asked->target, "?uploadId=u%2F1%2B") != NULL;
        return (reply){.status = "204 No Content"};
    }
    if (strcmp(asked->method, "POST") == 0) {
        bool whole =
            strstr(asked->body, "<PartNumber>9</PartNumber><ETag>\"e9\"</ETag>") && strstr(asked->body, "\"e1\"");
        completed++;
        return whole ? (reply){.status = "200 OK", .body = completion} : (reply){.status = "400 Bad Request"};
    }
    int part = number ? atoi(number + 11) : 0;
    bool right = part >= 1 && part <= PARTS && asked->body_size == (part < PARTS ? 8 << 20 : 5);
    if (!right || !strstr(asked->target, "&uploadId=u%2F1%2B"))
        return (reply){.status = "400 Bad Request"};
    if (parts_put[part]++ == 0 && part == failing_part)
        return (reply){.status = "500 Internal Server Error"};
    snprintf(headers, sizeof headers, "ETag: \"e%d\"\r\n", part);
    return (reply){.status = "200 OK", .headers = headers};
}

static int put_large(shoal_store *store, reply (*server)(const exchange *), const char *said, int fails,
                     shoal_etag *etag)
{
    size_t size = (64 << 20) + 5;
    char *body = calloc(size, 1);
    memset(parts_put, 0, sizeof parts_put);
    uploads = aborted = completed = 0;
    failing_part = fails;
    completion = said;
    answer = server;
    int status = shoal_store_put(store, "k", body, size, NULL, etag, shoal_after(60));
    free(body);
    return status;
}

static void a_large_put_is_made_of_parts(void **state)
{
    shoal_etag etag = {""};
    (void)state;
    set_keys("A");
    tell(0, NULL, NULL, NULL);
    shoal_store *store = open_store("s3://box");
    assert_int_equal(/* white space comes while the server is at work */
                     put_large(store, multipart,
                               " \n <?xml "
                               "version=\"1.0\"?><CompleteMultipartUploadResult><ETag>\"whole-9\"</ETag></"
                               "CompleteMultipartUploadResult>",
                               3, &etag),
                     SHOAL_OK);
    assert_string_equal(etag.text, "whole-9");
    for (int i = 1; i <= PARTS; i++)
        assert_int_equal(parts_put[i], i == 3 ? 2 : 1); /* what failed is sent once more, and nothing else */
    assert_int_equal(aborted, 0);
    /* 200, and a failure in the body.  Nothing is left behind. */
    assert_int_equal(put_large(store, multipart, CODE("InvalidPart"), 0, &etag), SHOAL_INVALID);
    assert_non_null(strstr(shoal_error(), "InvalidPart"));
    assert_int_equal(uploads, 2); /* another put might have changed the parts of the first */
    assert_int_equal(aborted, 2);
    assert_int_equal(put_large(store, multipart, CODE("AccessDenied"), 0, &etag), SHOAL_DENIED);
    assert_int_equal(aborted, 1);
    shoal_store_close(&store);
}

static atomic_int old_parts;
static atomic_bool old_is_gone;
static _Atomic(const char *) old_etag;

/* An upload of an earlier put is there, with the first part. */
static reply with_an_old_upload(const exchange *asked)
{
    static char parts[256];
    if (strcmp(asked->method, "GET") == 0 && strstr(asked->target, "uploads="))
        return (reply){.status = "200 OK",
                       .body = "<ListMultipartUploadsResult>" UPLOAD("k", "old") "</ListMultipartUploadsResult>"};
    if (!strstr(asked->target, "uploadId=old"))
        return multipart(asked);
    if (strcmp(asked->method, "GET") == 0) {
        snprintf(parts, sizeof parts,
                 "<ListPartsResult><Part><PartNumber>1</PartNumber><ETag>%s</ETag><Size>8388608</Size></Part>"
                 "</ListPartsResult>",
                 old_etag);
        return (reply){.status = "200 OK", .body = parts};
    }
    old_parts++;
    if (old_is_gone)
        return (reply){.status = "404 Not Found", .body = CODE("NoSuchUpload")};
    if (strcmp(asked->method, "POST") == 0) {
        completed +=
            strstr(asked->body, "<PartNumber>1</PartNumber><ETag>\"96995b58d4cbf6aaa9041b4f00c7f6ae\"</ETag>") != NULL;
        return (reply){.status = "200 OK", .body = completion};
    }
    return (reply){.status = "200 OK", .headers = "ETag: \"e\"\r\n"};
}

static void a_large_put_goes_on_with_an_upload_of_the_same_bytes(void **state)
{
    static const char said[] = "<CompleteMultipartUploadResult><ETag>\"w\"</ETag></CompleteMultipartUploadResult>";
    static const struct {
        const char *etag;
        bool gone;
        int sent, begun; /* to the old upload, the end of it included; new uploads */
    } cases[] = {{"96995b58d4cbf6aaa9041b4f00c7f6ae", false, PARTS, 0},
                 {"ffffffffffffffffffffffffffffffff", false, 0, 1},
                 {"96995b58d4cbf6aaa9041b4f00c7f6ae", true, 0, 1}};
    shoal_etag etag = {""};
    (void)state;
    set_keys("A");
    tell(0, NULL, NULL, NULL);
    shoal_store *store = open_store("s3://box");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        old_parts = 0;
        old_etag = cases[i].etag;
        old_is_gone = cases[i].gone; /* whoever began it was not dead */
        assert_int_equal(put_large(store, with_an_old_upload, said, 0, &etag), SHOAL_OK);
        assert_int_equal(uploads, cases[i].begun);
        assert_int_equal(completed, 1);
        assert_true(cases[i].gone ? old_parts > 0 : old_parts == cases[i].sent);
        assert_int_equal(aborted, 0);
    }
    shoal_store_close(&store);
}

/* ---- the probe --------------------------------------------------------------------------------------------------- */

static atomic_int quotes, ignores; /* the quotes an If-Match must have; the condition that is ignored: 1 or 2 */
static atomic_int stored, removed;

static reply conditional(const exchange *asked)
{
    static char headers[64];
    char right[64];
    bool none = strcasestr(asked->headers, "\r\nIf-None-Match: *\r\n"),
         match = strcasestr(asked->headers, "\r\nIf-Match: ");
    if (strcmp(asked->method, "HEAD") == 0)
        return (reply){.status = "200 OK"};
    if (strcmp(asked->method, "DELETE") == 0) {
        removed += strstr(asked->target, "/box/team/.shoal/probe-") != NULL;
        return (reply){.status = "204 No Content"};
    }
    snprintf(right, sizeof right, "\r\nIf-Match: %s%d%s\r\n", quotes ? "\"" : "", (int)stored, quotes ? "\"" : "");
    if ((none && stored && ignores != 1) || (match && !strcasestr(asked->headers, right) && ignores != 2))
        return (reply){.status = "412 Precondition Failed"};
    snprintf(headers, sizeof headers, "ETag: \"%d\"\r\n", (int)++stored);
    return (reply){.status = "200 OK", .headers = headers};
}

static int probe(int with_quotes, int ignoring, shoal_store **store)
{
    setenv("AWS_ENDPOINT_URL", address, 1);
    stored = removed = 0;
    quotes = with_quotes;
    ignores = ignoring;
    answer = conditional;
    return shoal_store_open(store, "s3://box/team", NULL, shoal_after(20));
}

static void servers_are_tried_for_conditional_writes(void **state)
{
    shoal_store *store = NULL;
    shoal_etag etag;
    (void)state;
    set_keys("A");
    for (int with_quotes = 0; with_quotes < 2; with_quotes++) {
        assert_int_equal(probe(with_quotes, 0, &store), SHOAL_OK);
        assert_int_equal(removed, 1);
        stored = 0;
        assert_int_equal(shoal_store_put(store, "k", "x", 1, SHOAL_NOTHING, &etag, shoal_after(20)), SHOAL_OK);
        assert_int_equal(shoal_store_put(store, "k", "x", 1, &etag, NULL, shoal_after(20)), SHOAL_OK);
        assert_int_equal(shoal_store_put(store, "k", "x", 1, &etag, NULL, shoal_after(20)), SHOAL_CONFLICT);
        shoal_store_close(&store);
    }
    for (int ignoring = 1; ignoring <= 2; ignoring++) {
        assert_int_equal(probe(1, ignoring, &store), SHOAL_INVALID);
        assert_null(store);
        assert_non_null(strstr(shoal_error(), "does not honour conditional writes (If-"));
        assert_int_equal(removed, 1);
    }
}

/* Reading works, writing does not. */
static reply read_only(const exchange *asked)
{
    bool reads = strcmp(asked->method, "HEAD") == 0 || strcmp(asked->method, "GET") == 0;
    return reads ? (reply){.status = "200 OK"} : (reply){.status = "403 Forbidden", .body = CODE("AccessDenied")};
}

static void keys_that_only_read_get_a_sentence(void **state)
{
    shoal_store *store = NULL;
    (void)state;
    set_keys("A");
    answer = read_only;
    setenv("AWS_ENDPOINT_URL", address, 1);
    assert_int_equal(shoal_store_open(&store, "s3://box", NULL, shoal_after(20)), SHOAL_DENIED);
    assert_non_null(strstr(shoal_error(), "may not write here"));
    store = open_store("s3://box");
    shoal_store_close(&store);
}

/* There is no bucket, and none may be made. */
static reply no_bucket(const exchange *asked)
{
    return strcmp(asked->method, "PUT") == 0 ? (reply){.status = "403 Forbidden", .body = CODE("AccessDenied")}
                                             : (reply){.status = "404 Not Found", .body = CODE("NoSuchBucket")};
}

static void a_bucket_that_may_not_be_made_gets_a_sentence(void **state)
{
    shoal_store *store = NULL;
    (void)state;
    set_keys("A");
    answer = no_bucket;
    setenv("AWS_ENDPOINT_URL", address, 1);
    assert_int_equal(shoal_store_open(&store, "s3://box", &(shoal_store_options){.create = true}, shoal_after(20)),
                     SHOAL_DENIED);
    assert_non_null(strstr(shoal_error(), "do not permit it"));
}

/* The bucket goes while it is tried. */
static reply going_bucket(const exchange *asked)
{
    return strcmp(asked->method, "HEAD") == 0 ? (reply){.status = "200 OK"}
                                              : (reply){.status = "404 Not Found", .body = CODE("NoSuchBucket")};
}

static void another_trouble_of_the_probe_is_told_as_what_it_is(void **state)
{
    shoal_store *store = NULL;
    (void)state;
    set_keys("A");
    answer = going_bucket;
    setenv("AWS_ENDPOINT_URL", address, 1);
    assert_int_equal(shoal_store_open(&store, "s3://box", NULL, shoal_after(20)), SHOAL_ABSENT);
    assert_non_null(strstr(shoal_error(), "there is no such bucket"));
}

#define WITH_CLEAN_ENVIRONMENT(test) cmocka_unit_test_setup(test, clear_environment)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_CLEAN_ENVIRONMENT(odd_files_are_read),
        WITH_CLEAN_ENVIRONMENT(headings_of_the_config_file_say_profile),
        WITH_CLEAN_ENVIRONMENT(keys_that_were_pasted_wrongly_are_refused_and_not_shown),
        WITH_CLEAN_ENVIRONMENT(the_first_place_with_keys_is_used),
        WITH_CLEAN_ENVIRONMENT(without_keys_there_is_a_sentence),
        WITH_CLEAN_ENVIRONMENT(a_machine_without_a_metadata_service_learns_so_soon),
        WITH_CLEAN_ENVIRONMENT(documents_of_the_metadata_service_are_checked),
        WITH_CLEAN_ENVIRONMENT(keys_are_renewed_before_they_expire),
        WITH_CLEAN_ENVIRONMENT(a_renewal_that_fails_has_time_until_the_old_keys_expire),
        WITH_CLEAN_ENVIRONMENT(threads_share_one_renewal),
        WITH_CLEAN_ENVIRONMENT(each_answer_has_its_meaning_and_sentence),
        WITH_CLEAN_ENVIRONMENT(uploads_that_were_broken_off_are_found),
        WITH_CLEAN_ENVIRONMENT(parts_of_an_upload_are_read),
        WITH_CLEAN_ENVIRONMENT(what_passes_is_tried_again_and_counted),
        WITH_CLEAN_ENVIRONMENT(keys_that_a_server_refuses_are_replaced),
        WITH_CLEAN_ENVIRONMENT(addresses_are_made_of_bucket_region_and_style),
        WITH_CLEAN_ENVIRONMENT(the_bucket_is_in_the_host_or_in_the_path),
        WITH_CLEAN_ENVIRONMENT(every_failed_allocation_is_reported),
        WITH_CLEAN_ENVIRONMENT(lists_are_read),
        WITH_CLEAN_ENVIRONMENT(keys_that_were_not_asked_for_are_left_out),
        WITH_CLEAN_ENVIRONMENT(a_large_get_is_of_one_version),
        WITH_CLEAN_ENVIRONMENT(a_large_put_is_made_of_parts),
        WITH_CLEAN_ENVIRONMENT(a_large_put_goes_on_with_an_upload_of_the_same_bytes),
        WITH_CLEAN_ENVIRONMENT(servers_are_tried_for_conditional_writes),
        WITH_CLEAN_ENVIRONMENT(keys_that_only_read_get_a_sentence),
        WITH_CLEAN_ENVIRONMENT(another_trouble_of_the_probe_is_told_as_what_it_is),
        WITH_CLEAN_ENVIRONMENT(a_bucket_that_may_not_be_made_gets_a_sentence),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
