/* Requests against a server of the test's own, which answers as the path asks: well, in pieces, not at all. */
#include "http_support.h"

#include "base/memory.h"
#include "base/world.h"
#include "store/http.h"

static bool closes_early(const asked *request)
{
    return strcmp(request->path, "/early") == 0;
}

/* Answers; false when the connection is to be closed. */
static bool answer(int socket, asked *request)
{
    const char *path = request->path;
    if (strcmp(path, "/echo") == 0) {
        char head[64];
        snprintf(head, sizeof head, "201 Created\r\nContent-Length: %zu", request->size);
        reply(socket, head, request->body, request->size);
    } else if (strcmp(path, "/head") == 0) {
        char head[64];
        snprintf(head, sizeof head, "200 OK\r\nContent-Length: %zu", strlen(request->head));
        reply(socket, head, request->head, strlen(request->head));
    } else if (strcmp(path, "/chunked") == 0) {
        reply(socket, "200 OK\r\nTransfer-Encoding: chunked", "5\r\nhello\r\n7\r\n, world\r\n0\r\n\r\n", 27);
    } else if (strcmp(path, "/interim") == 0) {
        reply(socket, "100 Continue\r\nETag: \"wrong\"", NULL, 0);
        text_reply(socket, "after", false);
    } else if (strcmp(path, "/cut-body") == 0) {
        reply(socket, "200 OK\r\nContent-Length: 100", "ten bytes.", 10);
        return false;
    } else if (strcmp(path, "/cut-head") == 0 || strcmp(path, "/early") == 0) {
        return false;
    } else if (strcmp(path, "/cut-interim") == 0) {
        reply(socket, "100 Continue", NULL, 0);
        return false;
    } else if (strcmp(path, "/cut-headers") == 0) {
        static const char start[] = "HTTP/1.1 200 OK\r\nETag: \"one\"\r\nContent-Le";
        (void)!write(socket, start, sizeof start - 1);
        return false;
    } else if (strcmp(path, "/stale") == 0) {
        if (request->number > 1)
            return false;
        text_reply(socket, "fresh", false);
    } else if (strcmp(path, "/429") == 0) {
        reply(socket, "429 Too Many\r\nRetry-After: 7\r\nContent-Length: 4", "slow", 4);
    } else if (strcmp(path, "/503") == 0) {
        reply(socket,
              "503 Busy\r\n"
              "Date: Sun, 15 Nov 2026 12:00:00 GMT\r\n"
              "Retry-After: Sun, 15 Nov 2026 12:01:30 GMT\r\n"
              "Content-Length: 0",
              NULL, 0);
    } else if (strcmp(path, "/500") == 0) {
        reply(socket, "500 Oh\r\nContent-Length: 2", "no", 2);
    } else if (strcmp(path, "/302") == 0) {
        reply(socket, "302 Found\r\nLocation: /hello\r\nContent-Length: 0", NULL, 0);
    } else if (strcmp(path, "/large") == 0 || strcmp(path, "/large-error") == 0) {
        static _Thread_local char bytes[200000]; /* of each connection */
        memset(bytes, 'x', sizeof bytes);
        reply(socket, path[6] ? "400 Bad\r\nContent-Length: 200000" : "200 OK\r\nContent-Length: 200000", bytes,
              sizeof bytes);
    } else if (strcmp(path, "/endless") == 0) {
        static const char chunk[] = "1000\r\n", end[] = "\r\n";
        static char bytes[0x1000];
        reply(socket, "200 OK\r\nTransfer-Encoding: chunked", NULL, 0);
        while (write(socket, chunk, 6) == 6 && write(socket, bytes, sizeof bytes) == sizeof bytes)
            if (write(socket, end, 2) != 2)
                break;
        return false;
    } else if (strcmp(path, "/garbage") == 0) {
        if (write(socket, "SSH-2.0-OpenSSH_9.2\r\n", 21) != 21)
            return false;
        return false;
    } else if (strcmp(path, "/headers") == 0) {
        if (write(socket, "HTTP/1.1 200 OK\r\n", 17) != 17)
            return false;
        for (int i = 0; i < 4000; i++)
            if (write(socket, "X-Padding: 0123456789\r\n", 23) != 23)
                return false;
        return false;
    } else if (strcmp(path, "/stall") == 0) {
        char byte;
        while (read(socket, &byte, 1) > 0) /* until the other side has had enough */
            ;
        return false;
    } else {
        text_reply(socket, "hello", strcmp(request->method, "HEAD") == 0);
    }
    return true;
}

/* ---- the tests --------------------------------------------------------------------------------------------------- */

static shoal_store counted; /* what requests are counted on */
static http_pool *pool;

static int make_pool(void **state)
{
    (void)state;
    memset(&counted, 0, sizeof counted);
    server.answer = answer;
    server.skips_body = closes_early;
    return http_pool_new(&pool, &counted, &(http_settings){.attempt_seconds = 1});
}

static int drop_pool(void **state)
{
    (void)state;
    http_pool_free(&pool);
    return 0;
}

static char *url_of(const char *path)
{
    static char url[16][512];
    static int next;
    char *out = url[next++ % 16];
    snprintf(out, sizeof url[0], "http://127.0.0.1:%d%s", server.port, path);
    return out;
}

static void ask(http_request *request, const char *method, const char *path)
{
    request->method = method;
    request->url = url_of(path);
    int status = http_perform(pool, request, 1, base_time_after(base_now(), 30));
    if (status < 0)
        fail_msg("%s %s: %s", method, path, shoal_error());
}

static void expect_failure(const char *method, const char *path, shoal_cause cause, bool maybe_done)
{
    http_request request = {0};
    store_attempt attempt = {0};
    ask(&request, method, path);
    assert_int_equal(request.status, 0);
    assert_int_equal(request.cause, cause);
    assert_int_equal(request.maybe_done, maybe_done);
    assert_true(request.trouble[0]);
    assert_int_equal(http_passing(&request, &attempt), maybe_done ? SHOAL_UNKNOWN : SHOAL_AGAIN);
    assert_int_equal(attempt.cause, cause);
    http_request_release(&request);
}

static void test_an_answer(void **state)
{
    (void)state;
    http_request request = {0};
    store_attempt attempt = {0};
    char buffer[64];
    ask(&request, "GET", "/hello");
    assert_int_equal(request.status, 200);
    assert_string_equal(request.answer, "hello");
    assert_int_equal(request.size, 5);
    assert_string_equal(http_header(&request, "etag", buffer, sizeof buffer), "\"one\"");
    assert_null(http_header(&request, "etag", buffer, 5)); /* what does not fit is not cut off */
    assert_null(http_header(&request, "eta", buffer, sizeof buffer));
    assert_int_equal(http_passing(&request, &attempt), SHOAL_OK);
    http_request_release(&request);
    ask(&request, "HEAD", "/hello");
    assert_int_equal(request.status, 200);
    assert_string_equal(http_header(&request, "Content-Length", buffer, sizeof buffer), "5");
    assert_string_equal(request.answer, "");
    http_request_release(&request);
    ask(&request, "GET", "/chunked");
    assert_string_equal(request.answer, "hello, world");
    http_request_release(&request);
    ask(&request, "GET", "/interim");
    assert_string_equal(request.answer, "after");
    assert_string_equal(http_header(&request, "etag", buffer, sizeof buffer), "\"one\"");
    http_request_release(&request);
    ask(&request, "GET", "/302");
    assert_int_equal(request.status, 302);
    http_request_release(&request);
}

/* Two parts are sent one after another, with their length announced, and nothing waits for "100 Continue". */
static void test_bodies_are_sent(void **state)
{
    (void)state;
    size_t size = (size_t)9 << 20;
    char *bytes = malloc(size), *back = malloc(size + 2);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)(i * 2654435761u >> 13);
    http_request request = {.sends_body = true, .buffer = back, .room = size + 2};
    request.body.part[0] = (struct iovec){"ab", 2};
    request.body.part[1] = (struct iovec){bytes, size};
    ask(&request, "PUT", "/echo");
    assert_int_equal(request.status, 201);
    assert_int_equal(request.size, size + 2);
    assert_null(request.answer);
    assert_memory_equal(back, "ab", 2);
    assert_memory_equal(back + 2, bytes, size);
    assert_int_equal(counted.counts.sent, size + 2);
    assert_int_equal(counted.counts.received, size + 2);
    http_request_release(&request);
    free(bytes);
    free(back);

    for (int i = 0; i < 2; i++) { /* an empty body has a length, too */
        http_request empty = {.sends_body = i == 0};
        assert_int_equal(http_add_header(&empty, "X-Word: %s", "w"), SHOAL_OK);
        ask(&empty, i == 0 ? "PUT" : "POST", "/head");
        assert_non_null(strcasestr(empty.answer, "\r\nContent-Length: 0\r\n"));
        assert_non_null(strstr(empty.answer, "\r\nX-Word: w\r\n"));
        assert_null(strcasestr(empty.answer, "\r\nExpect:"));
        assert_null(strcasestr(empty.answer, "chunked"));
        http_request_release(&empty);
    }
    http_request forged = {0};
    assert_int_equal(http_add_header(&forged, "X-Key: a\r\nX-Other: b"), SHOAL_INVALID);
    http_request_release(&forged);
}

static void test_connections_are_kept(void **state)
{
    (void)state;
    int before = server.accepted;
    for (int i = 0; i < 20; i++) {
        http_request request = {.kind = i % 2 ? SHOAL_REQUEST_PUT : SHOAL_REQUEST_GET};
        ask(&request, i % 2 ? "PUT" : "GET", i % 3 ? "/hello" : "/429");
        http_request_release(&request);
    }
    assert_int_equal(server.accepted - before, 1);
    assert_int_equal(counted.counts.requests[SHOAL_REQUEST_GET], 10);
    assert_int_equal(counted.counts.requests[SHOAL_REQUEST_PUT], 10);

    http_request many[40] = {0}; /* more than there are places: all are made, over no more connections than places */
    for (int i = 0; i < 40; i++)
        many[i] = (http_request){.method = "GET", .url = url_of("/hello")};
    for (int round = 0; round < 3; round++) {
        assert_int_equal(http_perform(pool, many, 40, base_time_after(base_now(), 30)), SHOAL_OK);
        for (int i = 0; i < 40; i++)
            assert_string_equal(many[i].answer, "hello");
    }
    for (int i = 0; i < 40; i++)
        http_request_release(&many[i]);
    assert_true(server.accepted - before <= HTTP_PARALLEL_MOST);
}

static void test_failures_are_told_apart(void **state)
{
    (void)state;
    http_request request = {0};
    store_attempt attempt = {0};
    expect_failure("GET", "/cut-body", SHOAL_CAUSE_CUT, true);
    expect_failure("GET", "/cut-head", SHOAL_CAUSE_CUT, true);
    expect_failure("PUT", "/cut-head", SHOAL_CAUSE_CUT, true);
    expect_failure("GET", "/cut-headers", SHOAL_CAUSE_CUT, true);
    expect_failure("PUT", "/cut-interim", SHOAL_CAUSE_CUT, true);
    expect_failure("HEAD", "/cut-headers", SHOAL_CAUSE_CUT, true);
    expect_failure("PUT", "/cut-headers", SHOAL_CAUSE_CUT, true);
    expect_failure("GET", "/garbage", SHOAL_CAUSE_SERVER, true);
    int64_t began = base_now();
    expect_failure("PUT", "/stall", SHOAL_CAUSE_TIMEOUT, true);
    assert_true(base_now() - began <
                INT64_C(15000000000)); /* after attempt_seconds, long before the deadline of 30 s */

    ask(&request, "GET", "/429");
    assert_int_equal(http_passing(&request, &attempt), SHOAL_AGAIN);
    assert_int_equal(attempt.cause, SHOAL_CAUSE_THROTTLED);
    assert_true(attempt.retry_after == 7);
    assert_string_equal(request.answer, "slow");
    http_request_release(&request);
    ask(&request, "GET", "/503"); /* a gateway says so, too, of a server that was cut off at its work */
    assert_int_equal(http_passing(&request, &attempt), SHOAL_UNKNOWN);
    assert_int_equal(attempt.cause, SHOAL_CAUSE_THROTTLED);
    assert_true(attempt.retry_after == 90);
    http_request_release(&request);
    ask(&request, "GET", "/500");
    assert_int_equal(http_passing(&request, &attempt), SHOAL_UNKNOWN);
    assert_int_equal(attempt.cause, SHOAL_CAUSE_SERVER);
    http_request_release(&request);

    int gone = socket(AF_INET, SOCK_STREAM, 0); /* a port that is taken, where nobody listens */
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    char url[64];
    assert_int_equal(bind(gone, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(gone, (struct sockaddr *)&address, &length), 0);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/x?sig=hidden", ntohs(address.sin_port));
    request = (http_request){.method = "PUT", .url = url};
    assert_int_equal(http_perform(pool, &request, 1, base_time_after(base_now(), 30)), SHOAL_OK);
    assert_int_equal(request.cause, SHOAL_CAUSE_UNREACHABLE);
    assert_false(request.maybe_done);
    assert_null(strstr(request.trouble, "hidden"));
    http_request_release(&request);
    close(gone);
}

/* A kept connection that the server closes instead of answering: reads are repeated, writes are reported. */
static void test_a_connection_that_was_closed(void **state)
{
    (void)state;
    http_request request = {0};
    int before = server.requests;
    for (int i = 0; i < 2; i++) {
        ask(&request, "GET", "/stale");
        assert_string_equal(request.answer, "fresh");
        http_request_release(&request);
    }
    assert_int_equal(server.requests - before, 3);
    assert_int_equal(counted.counts.requests[SHOAL_REQUEST_GET], 3);
    before = server.requests;
    expect_failure("PUT", "/stale", SHOAL_CAUSE_CUT, true); /* an empty body, on the connection made just now */
    assert_int_equal(server.requests - before, 1);
    ask(&request, "GET", "/stale");
    assert_string_equal(request.answer, "fresh");
    http_request_release(&request);
    before = server.requests;
    request = (http_request){.sends_body = true, .body.part[1] = {"body", 4}};
    ask(&request, "PUT", "/stale");
    assert_int_equal(request.cause, SHOAL_CAUSE_CUT);
    assert_true(request.maybe_done);
    assert_int_equal(server.requests - before, 1);
    http_request_release(&request);
}

/* A body that was not sent to its end can't have been stored. */
static void test_a_body_that_was_cut(void **state)
{
    (void)state;
    size_t size = (size_t)64 << 20;
    char *bytes = calloc(size, 1);
    http_request request = {.sends_body = true, .body.part[0] = {bytes, size}};
    ask(&request, "PUT", "/early");
    assert_int_equal(request.status, 0);
    assert_int_equal(request.cause, SHOAL_CAUSE_CUT);
    assert_false(request.maybe_done);
    http_request_release(&request);
    free(bytes);
}

static void test_too_much(void **state)
{
    (void)state;
    char small[101];
    memset(small, 'q', sizeof small);
    http_request request = {.method = "GET", .url = url_of("/large?sig=hidden"), .buffer = small, .room = 100};
    request.url = url_of("/large");
    assert_int_equal(http_perform(pool, &request, 1, base_time_after(base_now(), 30)), SHOAL_BROKEN);
    assert_int_equal(small[100], 'q');
    http_request_release(&request);
    request = (http_request){.method = "GET", .url = url_of("/large"), .room = 199999};
    assert_int_equal(http_perform(pool, &request, 1, base_time_after(base_now(), 30)), SHOAL_BROKEN);
    http_request_release(&request);
    request = (http_request){.method = "GET", .url = url_of("/large"), .room = 200000};
    assert_int_equal(http_perform(pool, &request, 1, base_time_after(base_now(), 30)), SHOAL_OK);
    assert_int_equal(request.size, 200000);
    http_request_release(&request);
    request = (http_request){.method = "GET", .url = url_of("/endless")}; /* without a bound of its own */
    assert_int_equal(http_perform(pool, &request, 1, base_time_after(base_now(), 60)), SHOAL_BROKEN);
    http_request_release(&request);
    request = (http_request){.method = "GET", .url = url_of("/headers")};
    assert_int_equal(http_perform(pool, &request, 1, base_time_after(base_now(), 30)), SHOAL_BROKEN);
    http_request_release(&request);
    request = (http_request){.buffer = small, .room = 100}; /* an error's text is kept beside the buffer, its start */
    ask(&request, "GET", "/large-error");
    assert_int_equal(request.status, 400);
    assert_int_equal(request.size, HTTP_ERROR_MOST);
    assert_int_equal(strlen(request.answer), HTTP_ERROR_MOST);
    assert_int_equal(small[0], 'q');
    http_request_release(&request);
}

static void test_the_deadline(void **state)
{
    (void)state;
    http_pool *patient = NULL;
    assert_int_equal(http_pool_new(&patient, NULL, NULL), SHOAL_OK);
    bool answered = false;
    for (double seconds = 0.3; !answered; seconds *= 2) { /* more where the machine is busy */
        http_request requests[3] = {{.method = "GET", .url = url_of("/hello")},
                                    {.method = "GET", .url = url_of("/stall")},
                                    {.method = "GET", .url = url_of("/stall")}};
        int64_t began = base_now();
        assert_int_equal(http_perform(patient, requests, 3, base_time_after(began, seconds)), SHOAL_OK);
        assert_true((double)(base_now() - began) * 1e-9 >= seconds - 0.01);
        answered = requests[0].status == 200;
        assert_true(answered || seconds < 20);
        for (int i = 1; i < 3 && answered; i++) {
            assert_int_equal(requests[i].status, 0);
            assert_int_equal(requests[i].cause, SHOAL_CAUSE_TIMEOUT);
            assert_true(requests[i].maybe_done);
        }
        for (int i = 0; i < 3; i++)
            http_request_release(&requests[i]);
    }
    http_pool_free(&patient);
}

/* A server whose queue of connections is full: nothing was asked of it, and the sentence does not say so either. */
static void test_no_connection_in_time(void **state)
{
    (void)state;
    int full = socket(AF_INET, SOCK_STREAM, 0), waiting[3];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    char url[64];
    assert_int_equal(bind(full, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(full, 0), 0);
    assert_int_equal(getsockname(full, (struct sockaddr *)&address, &length), 0);
    for (int i = 0; i < 3; i++) {
        waiting[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)!connect(waiting[i], (struct sockaddr *)&address, sizeof address);
    }
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", ntohs(address.sin_port));
    http_request request = {.method = "PUT", .url = url};
    assert_int_equal(http_perform(pool, &request, 1, base_time_after(base_now(), 0.2)), SHOAL_OK);
    assert_int_equal(request.cause, SHOAL_CAUSE_UNREACHABLE);
    assert_false(request.maybe_done);
    assert_non_null(strstr(request.trouble, "connection"));
    http_request_release(&request);
    for (int i = 0; i < 3; i++)
        close(waiting[i]);
    close(full);
}

static void test_what_is_refused(void **state)
{
    (void)state;
    static const char *const refused[] = {"http://example.com/?sig=hidden",
                                          "http://10.0.0.1/?sig=hidden",
                                          "http://169.254.169.254/?sig=hidden",
                                          "http://127.0.0.1.example.com/?sig=hidden",
                                          "http://[fe80::1]/?sig=hidden",
                                          "ftp://127.0.0.1/?sig=hidden",
                                          "file:///etc/passwd",
                                          "no url?sig=hidden",
                                          "127.0.0.1/?sig=hidden"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        http_request request = {.method = "GET", .url = refused[i]};
        int before = server.requests;
        if (http_perform(pool, &request, 1, base_time_after(base_now(), 5)) != SHOAL_USAGE)
            fail_msg("%s is not refused", refused[i]);
        assert_null(strstr(shoal_error(), "hidden"));
        assert_int_equal(server.requests, before);
        http_request_release(&request);
    }
    http_pool *metadata = NULL; /* which may be asked without encryption, but is not here: any answer but a refusal */
    assert_int_equal(http_pool_new(&metadata, NULL, &(http_settings){.metadata = true, .connect_seconds = 1}),
                     SHOAL_OK);
    http_request request = {.method = "GET", .url = "http://169.254.169.254/"};
    assert_int_equal(http_perform(metadata, &request, 1, base_time_after(base_now(), 0.2)), SHOAL_OK);
    http_request_release(&request);
    request.url = "http://10.0.0.1/";
    assert_int_equal(http_perform(metadata, &request, 1, base_time_after(base_now(), 0.2)), SHOAL_USAGE);
    http_request_release(&request);
    http_pool_free(&metadata);
}

static void test_dates_and_encoding(void **state)
{
    (void)state;
    char *text = NULL;
    assert_int_equal(http_date("Sun, 15 Nov 2026 12:00:00 GMT"), 1794744000);
    assert_int_equal(http_date("soon"), -1);
    assert_int_equal(http_date(""), -1);
    assert_int_equal(http_date("Sun, 15 Nov 1663 12:00:00 GMT"), -1);
    http_request request = {.headers = (char *)"HTTP/1.1 200 OK\r\n"
                                               "Date: Sun, 15 Nov 2026 12:00:00 GMT\r\n"
                                               "Last-Modified:Sun, 15 Nov 2026 11:58:00 GMT  \r\n"
                                               "Retry-After: 99999\r\n"};
    assert_true(http_age(&request) == 120);
    assert_true(http_retry_after(&request) == 3600);
    request.headers = (char *)"HTTP/1.1 200 OK\r\nRetry-After: never\r\n";
    assert_true(http_age(&request) == -1);
    assert_true(http_retry_after(&request) == 0);
    assert_int_equal(http_encode(&text, "a b/%\xc3\xa9~", true), SHOAL_OK);
    assert_string_equal(text, "a%20b/%25%C3%A9~");
    base_free(&text);
    assert_int_equal(http_encode(&text, "a/b", false), SHOAL_OK);
    assert_string_equal(text, "a%2Fb");
    base_free(&text);
}

static void *ask_often(void *context)
{
    for (int i = 0; i < 50; i++) {
        http_request request = {.method = "GET", .url = context};
        if (http_perform(pool, &request, 1, base_time_after(base_now(), 30)) != SHOAL_OK || request.status != 200)
            abort();
        http_request_release(&request);
    }
    return NULL;
}

static void test_many_threads(void **state)
{
    (void)state;
    pthread_t threads[8];
    char *url = url_of("/hello");
    int before = server.accepted;
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_often, url), 0);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    assert_true(server.accepted - before <= 8);
    assert_int_equal(counted.counts.requests[SHOAL_REQUEST_GET], 400);
}

/* The n-th allocation fails, for every n until the request is made: no crash, nothing leaked, and a message. */
static void test_no_memory(void **state)
{
    (void)state;
    for (int64_t n = 0;; n++) {
        http_pool *fresh = NULL;
        http_request request = {.method = "GET", .url = url_of("/hello")};
        base_memory_fail_after(n);
        int status = http_pool_new(&fresh, NULL, NULL);
        if (status == SHOAL_OK)
            status = http_add_header(&request, "X-Word: w");
        if (status == SHOAL_OK)
            status = http_perform(fresh, &request, 1, base_time_after(base_now(), 30));
        base_memory_fail_after(-1);
        http_request_release(&request);
        http_pool_free(&fresh);
        if (status == SHOAL_OK)
            break;
        assert_int_equal(status, SHOAL_MEMORY);
        assert_true(n < 100);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_pool, drop_pool)
    const struct CMUnitTest tests[] = {
        TEST(test_an_answer),
        TEST(test_bodies_are_sent),
        TEST(test_connections_are_kept),
        TEST(test_failures_are_told_apart),
        TEST(test_a_connection_that_was_closed),
        TEST(test_a_body_that_was_cut),
        TEST(test_too_much),
        TEST(test_the_deadline),
        TEST(test_no_connection_in_time),
        TEST(test_what_is_refused),
        TEST(test_dates_and_encoding),
        TEST(test_many_threads),
        TEST(test_no_memory),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
