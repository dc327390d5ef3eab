/* The Azure store against known vectors, and against a stand-in for the server that says what real ones say rarely:
 * refusals of every kind, answers that are lost, blobs that change while they are read. */
#include "http_support.h"

#include <shoal/store.h>

#include "base/memory.h"
#include "base/world.h"
#include "store/azure/azure_internal.h"

static const char key_text[] =
    "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw==";

/* ---- vectors ----------------------------------------------------------------------------------------------------- */

static base_secret *test_key(void)
{
    base_secret *key = NULL;
    char bytes[64];
    for (int i = 0; i < 64; i++)
        bytes[i] = (char)i;
    assert_int_equal(base_secret_set(&key, bytes, sizeof bytes), SHOAL_OK);
    return key;
}

static void expect_signature(const azure_signed *request, const char *string, const char *signature)
{
    char *text = NULL, out[64];
    base_secret *key = test_key();
    assert_int_equal(azure_string_to_sign(&text, request), SHOAL_OK);
    assert_string_equal(text, string);
    assert_int_equal(azure_sign(out, key, text), SHOAL_OK);
    assert_string_equal(out, signature);
    base_free(&text);
    base_secret_free(&key);
}

/* Signatures computed by another program (Python's hmac) from strings written by hand after the documentation. */
static void test_signatures(void **state)
{
    (void)state;
    const azure_pair put_headers[] = {{"x-ms-version", "2021-12-02"},
                                      {"x-ms-date", "Sun, 15 Nov 2026 12:00:00 GMT"},
                                      {"x-ms-blob-type", "BlockBlob"}};
    expect_signature(&(azure_signed){.account = "acct",
                                     .method = "PUT",
                                     .path = "/box/jobs/1%20a",
                                     .headers = put_headers,
                                     .header_count = 3,
                                     .content_type = "application/octet-stream",
                                     .if_none_match = "*",
                                     .content_length = 5},
                     "PUT\n"
                     "\n"
                     "\n"
                     "5\n"
                     "\n"
                     "application/octet-stream\n"
                     "\n"
                     "\n"
                     "\n"
                     "*\n"
                     "\n"
                     "\n"
                     "x-ms-blob-type:BlockBlob\n"
                     "x-ms-date:Sun, 15 Nov 2026 12:00:00 GMT\n"
                     "x-ms-version:2021-12-02\n"
                     "/acct/box/jobs/1%20a",
                     "Za9hjOGtVZ7aseAJhQ01C3/1f3XJZs60IcDdEDVmWU0=");
    const azure_pair query[] = {
        {"restype", "container"}, {"comp", "list"}, {"maxresults", "5000"}, {"prefix", "a b/é"}};
    expect_signature(&(azure_signed){.account = "devstoreaccount1",
                                     .method = "GET",
                                     .path = "/devstoreaccount1/box",
                                     .query = query,
                                     .query_count = 4,
                                     .headers = put_headers,
                                     .header_count = 2},
                     "GET\n"
                     "\n"
                     "\n"
                     "\n"
                     "\n"
                     "\n"
                     "\n"
                     "\n"
                     "\n"
                     "\n"
                     "\n"
                     "\n"
                     "x-ms-date:Sun, 15 Nov 2026 12:00:00 GMT\n"
                     "x-ms-version:2021-12-02\n"
                     "/devstoreaccount1/devstoreaccount1/box\n"
                     "comp:list\n"
                     "maxresults:5000\n"
                     "prefix:a b/é\n"
                     "restype:container",
                     "pnW+xJo2BYKott9LPlj+wlT4xESvIsE9IrQnu9KXdVc=");
}

static void test_base64(void **state)
{
    (void)state;
    unsigned char *bytes = NULL;
    char *text = NULL;
    size_t size = 0;
    for (size_t length = 0; length < 9; length++) {
        assert_int_equal(azure_base64(&text, "\xff\0abcdefg", length), SHOAL_OK);
        assert_int_equal(azure_unbase64(&bytes, &size, text, strlen(text)), SHOAL_OK);
        assert_int_equal(size, length);
        assert_memory_equal(bytes, "\xff\0abcdefg", length);
        base_free(&text);
        base_free(&bytes);
    }
    static const char *const broken[] = {
        "a", "ab", "abc", "abcde", "ab=c", "a===", "====", "=", "ab\n=", "ab-_", "abcd "};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
        if (azure_unbase64(&bytes, &size, broken[i], strlen(broken[i])) != SHOAL_BROKEN)
            fail_msg("'%s' is read as Base64", broken[i]);
}

static void test_connection_strings(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int status;
        const char *account, *blob, *queue;
        bool key, sas;
    } cases[] = {
        {"AccountName=acct;AccountKey=AAEC", SHOAL_OK, "acct", "https://acct.blob.core.windows.net",
         "https://acct.queue.core.windows.net", true, false},
        {"DefaultEndpointsProtocol=http;AccountName=acct;AccountKey=AAE=;EndpointSuffix=core.chinacloudapi.cn;",
         SHOAL_OK, "acct", "http://acct.blob.core.chinacloudapi.cn", "http://acct.queue.core.chinacloudapi.cn", true,
         false},
        {"BlobEndpoint=https://acct.blob.example.org/;QueueEndpoint=https://q.example.org;"
         "SharedAccessSignature=?sv=1&sig=a%3D",
         SHOAL_OK, "acct", "https://acct.blob.example.org", "https://q.example.org", false, true},
        {"blobendpoint=http://127.0.0.1:10000/acct;accountkey=AAEC;", SHOAL_OK, "acct", "http://127.0.0.1:10000/acct",
         "https://acct.queue.core.windows.net", true, false},
        {"UseDevelopmentStorage=true", SHOAL_OK, "devstoreaccount1", "http://127.0.0.1:10000/devstoreaccount1",
         "http://127.0.0.1:10001/devstoreaccount1", true, false},
        {"AccountName=acct", SHOAL_DENIED, NULL, NULL, NULL, false, false},
        {"AccountKey=AAEC", SHOAL_DENIED, NULL, NULL, NULL, false, false},
        {"AccountName=acct;AccountKey=hidden!", SHOAL_DENIED, NULL, NULL, NULL, false, false},
        {"AccountName=acct;AccountKey=", SHOAL_DENIED, NULL, NULL, NULL, false, false},
        {"AccountName=acct;SharedAccessSignature=hidden", SHOAL_DENIED, NULL, NULL, NULL, false, false},
        {"AccountName=acct;SharedAccessSignature=sig=hid den", SHOAL_DENIED, NULL, NULL, NULL, false, false},
        {"AccountName=acct;hidden", SHOAL_DENIED, NULL, NULL, NULL, false, false},
        {"AccountName=acct;AccountKey=AAEC;BlobEndpoint=nowhere", SHOAL_USAGE, NULL, NULL, NULL, false, false},
        {"", SHOAL_DENIED, NULL, NULL, NULL, false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        azure_credentials out = {0};
        int status = azure_connection_string(&out, cases[i].text);
        if (status != cases[i].status)
            fail_msg("'%s' gives %d: %s", cases[i].text, status, shoal_error());
        if (status == SHOAL_OK) {
            assert_string_equal(out.account, cases[i].account);
            assert_string_equal(out.blob_endpoint, cases[i].blob);
            assert_string_equal(out.queue_endpoint, cases[i].queue);
            assert_int_equal(out.key != NULL, cases[i].key);
            assert_int_equal(out.sas != NULL, cases[i].sas);
        } else {
            assert_null(strstr(shoal_error(), "hid"));
        }
        azure_credentials_release(&out);
    }
}

static void test_names(void **state)
{
    (void)state;
    char name[AZURE_QUEUE_NAME], other[AZURE_QUEUE_NAME], *text = NULL, *back = NULL;
    azure_queue_name(name, "box", "jobs/q one");
    assert_string_equal(name, "jobs-q-one-83c1d4bdc4afe89e6beb0ff000143433"); /* by Python's hashlib */
    azure_queue_name(other, "box", "jobs/Q one");
    assert_string_not_equal(name, other);
    azure_queue_name(other, "bax", "jobs/q one");
    assert_string_not_equal(name, other);
    static const char *const queues[] = {
        "q", "---", "é", "a--b", "-a-", "A", "jobs/0123456789012345678901234567890123456789"};
    for (size_t i = 0; i < sizeof queues / sizeof *queues; i++) {
        azure_queue_name(name, "box", queues[i]);
        size_t length = strlen(name);
        assert_true(length >= 3 && length <= 63 && !strstr(name, "--") && name[0] != '-' && name[length - 1] != '-');
        assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-"), length);
    }
    /* In the order of their bytes, which their names keep as far as both have no character beyond U+E000. */
    static const char *const keys[] = {"a/b",
                                       "a[",
                                       "a[0",
                                       "a[1",
                                       "a[[",
                                       "a[\\",
                                       "a[\xef\x81\x9c",
                                       "a[\xef\x81\x9c"
                                       "0",
                                       "a[\xef\x81\x9c"
                                       "1",
                                       "a\\",
                                       "a\\\\",
                                       "a\\\xef\x81\x9c"
                                       "1",
                                       "a]"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        assert_int_equal(azure_blob_name(&text, keys[i]), SHOAL_OK);
        assert_null(strchr(text, '\\'));
        assert_int_equal(azure_blob_key(&back, text, strlen(text)), SHOAL_OK);
        assert_string_equal(back, keys[i]);
        base_free(&text);
        base_free(&back);
        assert_true(i == 0 || strcmp(keys[i - 1], keys[i]) < 0);
    }
}

enum { NOW = 1794744000 }; /* Sun, 15 Nov 2026 12:00:00 GMT */

static void test_reading_a_page(void **state)
{
    (void)state;
    static const char text[] =
        "\xef\xbb\xbf<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults ServiceEndpoint=\"x\" "
        "ContainerName=\"b\">"
        "<Prefix>p</Prefix><MaxResults>5</MaxResults><Blobs>"
        "<Blob><Name>p/a</Name><Properties><Last-Modified>Sun, 15 Nov 2026 11:58:20 GMT</Last-Modified>"
        "<Etag>0x1</Etag><Content-Length>7</Content-Length></Properties></Blob>"
        "<Blob><Name>p/b &amp; "
        "c</Name><Properties><Content-Length>0</Content-Length><Etag>\"0x2\"</Etag></Properties></Blob>"
        "<Blob><Name Encoded=\"true\">p/c%EF%BF%BD%25</Name><Properties><Etag>0x3</Etag></Properties></Blob>"
        "<Blob><Name>p[\xef\x81\x9c"
        "1x</Name><Properties><Etag>0x4</Etag></Properties></Blob></Blobs><NextMarker>go "
        "on</NextMarker></EnumerationResults>";
    shoal_listing page = {0};
    char *marker = NULL;
    bool high = false;
    assert_int_equal(azure_list_read(text, sizeof text - 1, NOW, "p", "p/a", &page, &marker, &high), SHOAL_OK);
    assert_int_equal(page.count, 3);
    assert_string_equal(page.entries[0].key, "p/b & c");
    assert_string_equal(page.entries[0].etag.text, "\"0x2\"");
    assert_string_equal(page.entries[1].key, "p/c\xef\xbf\xbd%");
    assert_string_equal(page.entries[1].etag.text, "\"0x3\"");
    assert_string_equal(page.entries[2].key, "p\\x");
    assert_true(high);
    assert_string_equal(marker, "go on");
    shoal_listing_release(&page);
    assert_int_equal(azure_list_read(text, sizeof text - 1, NOW, "p/", NULL, &page, &marker, &high), SHOAL_OK);
    assert_int_equal(page.count, 3);
    assert_int_equal(page.entries[0].size, 7);
    assert_string_equal(page.entries[0].etag.text, "\"0x1\"");
    assert_true(page.entries[0].age == 100 && page.entries[1].age == -1);
    shoal_listing_release(&page);
    base_free(&marker);
    assert_int_equal(azure_list_read(text, sizeof text - 9, NOW, "p", NULL, &page, &marker, &high), SHOAL_BROKEN);
    shoal_listing_release(&page);
    base_free(&marker);
}

static void test_tokens(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int status;
        double seconds;
    } cases[] = {
        {"{\"access_token\":\"t\",\"expires_in\":\"3599\",\"expires_on\":\"99\",\"token_type\":\"Bearer\"}", SHOAL_OK,
         3599},
        {"{\"access_token\":\"t\",\"expires_in\":60}", SHOAL_OK, 60},
        {"{\"access_token\":\"t\",\"expires_on\":\"1100\"}", SHOAL_OK, 100},
        {"{\"access_token\":\"t\",\"expires_on\":1100}", SHOAL_OK, 100},
        {"{\"access_token\":\"t\",\"expires_on\":900}", SHOAL_DENIED, 0},
        {"{\"access_token\":\"t\"}", SHOAL_DENIED, 0},
        {"{\"access_token\":\"\",\"expires_in\":60}", SHOAL_DENIED, 0},
        {"{\"expires_in\":60}", SHOAL_DENIED, 0},
        {"[]", SHOAL_DENIED, 0},
        {"hidden", SHOAL_DENIED, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        base_secret *token = NULL;
        double seconds = 0;
        assert_int_equal(azure_token_read(&token, &seconds, cases[i].text, strlen(cases[i].text), 1000),
                         cases[i].status);
        assert_string_equal(base_secret_text(token), cases[i].status == SHOAL_OK ? "t" : "");
        if (cases[i].status == SHOAL_OK)
            assert_true(seconds == cases[i].seconds);
        base_secret_free(&token);
    }
}

/* ---- the stand-in ------------------------------------------------------------------------------------------------ */

/* What is answered by a test's function is counted; the rest, such as the question for the container, is not. */
static _Atomic int calls;
static bool (*special)(int socket, asked *request, int call);

static bool is(const asked *request, const char *method, const char *part)
{
    return strcmp(request->method, method) == 0 && strstr(request->path, part);
}

static bool say(int socket, const char *status, const char *headers, const char *body)
{
    char head[1024];
    snprintf(head, sizeof head, "%s\r\nx-ms-request-id: the-id\r\nContent-Length: %zu%s%s", status, strlen(body),
             *headers ? "\r\n" : "", headers);
    reply(socket, head, body, strlen(body));
    return true;
}

static bool say_code(int socket, const char *status, const char *code)
{
    char body[256];
    snprintf(body, sizeof body, "<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>m</Message></Error>", code);
    return say(socket, status, "", body);
}

static bool answer(int socket, asked *request)
{
    if (is(request, "HEAD", "?restype=container")) {
        reply(socket, "200 OK\r\nContent-Length: 0", NULL, 0);
        return true;
    }
    return special(socket, request, ++calls);
}

static void clear_environment(void)
{
    static const char *const names[] = {"AZURE_STORAGE_CONNECTION_STRING",
                                        "AZURE_STORAGE_ACCOUNT",
                                        "AZURE_STORAGE_KEY",
                                        "AZURE_STORAGE_SAS_TOKEN",
                                        "AZURE_STORAGE_BLOB_ENDPOINT",
                                        "AZURE_STORAGE_QUEUE_ENDPOINT",
                                        "IDENTITY_ENDPOINT",
                                        "IDENTITY_HEADER",
                                        "AZURE_POD_IDENTITY_AUTHORITY_HOST",
                                        "AZURE_CLIENT_ID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
}

static void set_endpoints(void)
{
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/acct", server.port);
    setenv("AZURE_STORAGE_BLOB_ENDPOINT", url, 1);
    setenv("AZURE_STORAGE_QUEUE_ENDPOINT", url, 1);
}

static int setup(void **state)
{
    (void)state;
    clear_environment();
    set_endpoints();
    setenv("AZURE_STORAGE_KEY", key_text, 1);
    server.answer = answer;
    calls = 0;
    return 0;
}

static shoal_store *open_store(void)
{
    shoal_store *store = NULL;
    if (shoal_store_open(&store, "az://acct/box", NULL, shoal_after(20)) < 0)
        fail_msg("%s", shoal_error());
    return store;
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static const char *refused_status, *refused_code, *refused_headers = "";

static bool refuse(int socket, asked *request, int call)
{
    (void)request;
    (void)call;
    char body[256];
    snprintf(body, sizeof body, "<Error><Code>%s</Code><Message>m</Message></Error>", refused_code);
    return say(socket, refused_status, refused_headers, *refused_code ? body : "");
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *status, *code;
        int expected;
        const char *sentence;
    } cases[] = {
        {"404 Not Found", "BlobNotFound", SHOAL_ABSENT, "no such key"},
        {"404 Not Found", "ContainerNotFound", SHOAL_SYSTEM, "container"},
        {"404 Not Found", "", SHOAL_ABSENT, "no such"},
        {"409 Conflict", "BlobAlreadyExists", SHOAL_CONFLICT, "already exists"},
        {"412 Precondition Failed", "ConditionNotMet", SHOAL_CONFLICT, "version has changed"},
        {"412 Precondition Failed", "", SHOAL_CONFLICT, "version has changed"},
        {"412 Precondition Failed", "LeaseIdMissing", SHOAL_SYSTEM, "lease"},
        {"403 Forbidden", "AuthenticationFailed", SHOAL_DENIED, "key"},
        {"403 Forbidden", "AuthorizationPermissionMismatch", SHOAL_DENIED, "do not permit"},
        {"403 Forbidden", "AccountIsDisabled", SHOAL_DENIED, "disabled"},
        {"403 Forbidden", "", SHOAL_DENIED, "do not permit"},
        {"401 Unauthorized", "NoAuthenticationInformation", SHOAL_DENIED, "requires credentials"},
        {"400 Bad Request", "InvalidResourceName", SHOAL_USAGE, "not a valid Azure name"},
        {"400 Bad Request", "SomethingNew", SHOAL_SYSTEM, "SomethingNew"},
        {"409 Conflict", "SnapshotsPresent", SHOAL_SYSTEM, "SnapshotsPresent"},
        {"302 Found", "", SHOAL_SYSTEM, "302"},
    };
    shoal_store *store = open_store();
    special = refuse;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        shoal_blob blob = {0};
        refused_status = cases[i].status;
        refused_code = cases[i].code;
        calls = 0;
        int status = shoal_store_get(store, "key", &blob, shoal_after(20));
        if (status != cases[i].expected || !strstr(shoal_error(), cases[i].sentence) ||
            !strstr(shoal_error(), "the-id") || !strstr(shoal_error(), "az://acct/box") ||
            strstr(shoal_error(), "AAECAw"))
            fail_msg("%s %s gives %d: %s", cases[i].status, cases[i].code, status, shoal_error());
        assert_true(strstr(shoal_error(), *cases[i].code ? cases[i].code : "HTTP status"));
        assert_int_equal(calls, 1); /* none of these passes by itself */
    }
    refused_status = "403 Forbidden";
    refused_code = "AuthenticationFailed";
    refused_headers = "Date: Sun, 15 Nov 2020 12:00:00 GMT";
    shoal_blob blob = {0};
    assert_int_equal(shoal_store_get(store, "key", &blob, shoal_after(20)), SHOAL_DENIED);
    assert_non_null(strstr(shoal_error(), "clock is"));
    assert_non_null(strstr(shoal_error(), "minutes ahead"));
    refused_headers = "";
    shoal_store_close(&store);
}

static const struct {
    const char *status, *code, *headers;
    shoal_cause cause;
} passing[] = {
    {"503 Busy", "ServerBusy", "", SHOAL_CAUSE_THROTTLED},
    {"429 Too Many", "", "Retry-After: 0", SHOAL_CAUSE_THROTTLED},
    {"500 Oh", "InternalError", "", SHOAL_CAUSE_SERVER},
    {"500 Oh", "OperationTimedOut", "", SHOAL_CAUSE_SERVER},
    {"409 Conflict", "ContainerBeingDeleted", "", SHOAL_CAUSE_BUSY},
    {"400 Bad", "InvalidBlockList", "", SHOAL_CAUSE_RACE},
};

static bool pass_after_one(int socket, asked *request, int call)
{
    (void)request;
    if (call > 1)
        return say(socket, "201 Created", "ETag: \"0x1\"", "");
    return refuse(socket, request, call);
}

static void test_what_passes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++) {
        shoal_store *store = open_store();
        special = pass_after_one;
        refused_status = passing[i].status;
        refused_code = passing[i].code;
        refused_headers = passing[i].headers;
        calls = 0;
        assert_int_equal(shoal_store_put(store, "key", "x", 1, NULL, NULL, shoal_after(20)), SHOAL_OK);
        assert_int_equal(calls, 2);
        assert_int_equal(shoal_store_counted(store).causes[passing[i].cause], 1);
        assert_int_equal(shoal_store_counted(store).requests[SHOAL_REQUEST_PUT], 2);
        shoal_store_close(&store);
    }
    refused_headers = "";
}

/* Two answers to a put that expects nothing: the one under test, and that something is there. */
static bool conflict_after_one(int socket, asked *request, int call)
{
    return call > 1 ? say_code(socket, "409 Conflict", "BlobAlreadyExists") : refuse(socket, request, call);
}

/* Azure's own word for too many requests means that nothing was done; a 503 of something on the way does not. */
static void test_who_says_503(void **state)
{
    (void)state;
    shoal_store *store = open_store();
    special = conflict_after_one;
    refused_status = "503 Busy";
    refused_code = "ServerBusy";
    calls = 0;
    assert_int_equal(shoal_store_put(store, "key", "x", 1, SHOAL_NOTHING, NULL, shoal_after(20)), SHOAL_CONFLICT);
    refused_code = "";
    calls = 0;
    assert_int_equal(shoal_store_put(store, "key", "x", 1, SHOAL_NOTHING, NULL, shoal_after(20)), SHOAL_UNKNOWN);
    assert_int_equal(calls, 2);
    shoal_store_close(&store);
}

/* ---- blobs ------------------------------------------------------------------------------------------------------- */

enum { LARGE = 20 << 20 };

/* A blob of 20 MiB that becomes a small one after its first range was read. */
static bool replaced(int socket, asked *request, int call)
{
    static char bytes[8 << 20];
    if (call == 1) {
        char head[256];
        snprintf(head, sizeof head,
                 "206 Partial\r\nETag: \"old\"\r\nContent-Range: bytes 0-%zu/%d\r\nContent-Length: %zu",
                 sizeof bytes - 1, LARGE, sizeof bytes);
        reply(socket, head, bytes, sizeof bytes);
        return true;
    }
    if (strcasestr(request->head, "\r\nif-match: \"old\""))
        return say_code(socket, "412 Failed", "ConditionNotMet");
    return say(socket, "206 Partial", "ETag: \"new\"\r\nContent-Range: bytes 0-2/3", "new");
}

static void test_a_blob_that_is_replaced(void **state)
{
    (void)state;
    shoal_store *store = open_store();
    shoal_blob blob = {0};
    special = replaced;
    assert_int_equal(shoal_store_get(store, "key", &blob, shoal_after(20)), SHOAL_OK);
    assert_int_equal(blob.size, 3);
    assert_memory_equal(blob.data, "new", 3);
    assert_string_equal(blob.etag.text, "\"new\"");
    assert_true(shoal_store_counted(store).causes[SHOAL_CAUSE_RACE] >= 1);
    shoal_blob_release(&blob);
    shoal_etag old = {"\"old\""}; /* a caller that asked for that very version learns that it is gone */
    calls = 0;
    assert_int_equal(shoal_store_get_range(store, "key", 0, LARGE, &old, NULL, &blob, shoal_after(20)), SHOAL_CONFLICT);
    shoal_store_close(&store);
}

static bool lies(int socket, asked *request, int call)
{
    if (strcmp(request->method, "HEAD") == 0) { /* no size, without a body */
        reply(socket, "200 OK\r\nETag: \"a\"", NULL, 0);
        return true;
    }
    switch (call) {
    case 1: /* more bytes than were asked for */
        return say(socket, "206 Partial", "ETag: \"a\"\r\nContent-Range: bytes 0-3/3", "four");
    case 2: /* fewer */ return say(socket, "206 Partial", "ETag: \"a\"\r\nContent-Range: bytes 0-9/10", "four");
    case 3: /* no size */ return say(socket, "206 Partial", "ETag: \"a\"\r\nContent-Range: bytes 0-9/x", "four");
    default: /* no version */ return say(socket, "206 Partial", "Content-Range: bytes 0-3/4", "four");
    }
}

static void test_lies(void **state)
{
    (void)state;
    shoal_store *store = open_store();
    shoal_blob blob = {0};
    special = lies;
    assert_int_equal(shoal_store_get(store, "key", &blob, shoal_after(20)), SHOAL_BROKEN);
    assert_int_equal(shoal_store_get(store, "key", &blob, shoal_after(20)), SHOAL_BROKEN);
    assert_int_equal(shoal_store_get_range(store, "key", 2, 3, NULL, NULL, &blob, shoal_after(20)), SHOAL_BROKEN);
    assert_int_equal(shoal_store_get(store, "key", &blob, shoal_after(20)), SHOAL_INVALID);
    assert_int_equal(shoal_store_get_range(store, "key", 0, 0, NULL, NULL, &blob, shoal_after(20)), SHOAL_BROKEN);
    assert_int_equal(calls, 5);
    shoal_store_close(&store);
}

typedef struct seen_blocks {
    int count;
    size_t id_size[4];
    int64_t size[4];
} seen_blocks;

static void see_block(void *context, const unsigned char *id, size_t id_size, int64_t size)
{
    seen_blocks *seen = context;
    assert_true(seen->count < 4 && id);
    seen->id_size[seen->count] = id_size;
    seen->size[seen->count++] = size;
}

static void test_reading_blocks(void **state)
{
    static const char text[] =
        "<BlockList><CommittedBlocks><Block><Name>AAAA</Name><Size>1</Size></Block></CommittedBlocks>"
        "<UncommittedBlocks><Block><Name>QUJD</Name><Size>7</Size></Block>"
        "<Block><Name>QUJDRA==</Name><Size>many</Size></Block><Block><Size>3</Size></Block>"
        "</UncommittedBlocks></BlockList>";
    static const char bad[] = "<BlockList><UncommittedBlocks><Block><Name>no base64</Name></Block>";
    seen_blocks seen = {0};
    (void)state;
    assert_int_equal(azure_blocks_read(text, sizeof text - 1, see_block, &seen), SHOAL_OK);
    assert_int_equal(seen.count, 2);
    assert_true(seen.id_size[0] == 3 && seen.size[0] == 7 && seen.id_size[1] == 4 && seen.size[1] == -1);
    assert_int_equal(azure_blocks_read(bad, sizeof bad - 1, see_block, &seen), SHOAL_BROKEN);
    assert_int_equal(seen.count, 2);
}

static _Atomic int blocks, lists, block_failures;
static _Atomic int64_t block_bytes;

/* Every seventh block fails once; the first list meets another writer. */
static bool take_blocks(int socket, asked *request, int call)
{
    (void)call;
    if (is(request, "PUT", "comp=blocklist")) {
        if (lists++ == 0)
            return say_code(socket, "400 Bad", "InvalidBlockList");
        int named = 0;
        for (const char *at = request->body; (at = strstr(at, "<Latest>")); at++)
            named++;
        return named == 9 && strcasestr(request->head, "\r\nif-none-match: *")
                   ? say(socket, "201 Created", "ETag: \"whole\"", "")
                   : say_code(socket, "400 Bad", "WrongList");
    }
    if (!is(request, "PUT", "comp=block&"))
        return say_code(socket, "400 Bad", "NoBlock");
    if (++blocks % 7 == 0) {
        block_failures++;
        return say_code(socket, "503 Busy", "ServerBusy");
    }
    block_bytes += (int64_t)request->size;
    return say(socket, "201 Created", "", "");
}

static void test_blocks(void **state)
{
    (void)state;
    shoal_store *store = open_store();
    size_t size = ((size_t)64 << 20) + 1;
    char *bytes = calloc(size, 1);
    shoal_etag etag;
    special = take_blocks;
    blocks = lists = block_failures = 0;
    block_bytes = 0;
    assert_int_equal(shoal_store_put(store, "key", bytes, size, SHOAL_NOTHING, &etag, shoal_after(60)), SHOAL_OK);
    assert_string_equal(etag.text, "\"whole\"");
    assert_int_equal(lists, 2);
    assert_true(block_failures >= 2);
    assert_int_equal(blocks, 18 + block_failures); /* only those that failed were sent again */
    assert_int_equal(block_bytes, 2 * (int64_t)size);
    assert_int_equal(shoal_store_counted(store).causes[SHOAL_CAUSE_RACE], 1);
    free(bytes);
    shoal_store_close(&store);
}

/* Three pages in the order of UTF-16, where U+1F41F comes before U+FF21. */
static bool list_pages(int socket, asked *request, int call)
{
    (void)call;
#define ROW(name) "<Blob><Name>" name "</Name><Properties><Etag>0x1</Etag></Properties></Blob>"
    const char *page = strstr(request->path, "marker=two")     ? ROW("a\xf0\x9f\x90\xa0") ROW("a\xef\xbc\xa1")
                       : strstr(request->path, "marker=three") ? ROW("b")
                                                               : ROW("a") ROW("a\xf0\x9f\x90\x9f");
    const char *marker = strstr(request->path, "marker=two")     ? "three"
                         : strstr(request->path, "marker=three") ? ""
                                                                 : "two";
    char body[1024];
    snprintf(body, sizeof body, "<EnumerationResults><Blobs>%s</Blobs><NextMarker>%s</NextMarker></EnumerationResults>",
             page, marker);
    return say(socket, "200 OK", "", body);
}

static void test_pages_in_order(void **state)
{
    (void)state;
    static const char *const expected[] = {"a", "a\xef\xbc\xa1", "a\xf0\x9f\x90\x9f", "a\xf0\x9f\x90\xa0", "b"};
    shoal_store *store = open_store();
    shoal_listing page = {0};
    size_t found = 0;
    special = list_pages;
    do {
        assert_int_equal(shoal_store_list(store, "", NULL, &page, shoal_after(20)), SHOAL_OK);
        for (size_t i = 0; i < page.count; i++, found++) {
            assert_true(found < 5);
            assert_string_equal(page.entries[i].key, expected[found]);
        }
    } while (page.more);
    assert_int_equal(found, 5);
    assert_int_equal(calls, 3);
    shoal_listing_release(&page);
    shoal_store_close(&store);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static const char *message_text = "aWhp";

/* Gives a message; the answers to the first extend and the first finish are lost. */
static bool lose_answers(int socket, asked *request, int call)
{
    char body[512];
    if (is(request, "GET", "/messages?")) {
        snprintf(body, sizeof body,
                 "<QueueMessagesList><QueueMessage><MessageId>id</MessageId><PopReceipt>r+/=</PopReceipt>"
                 "<DequeueCount>3</DequeueCount><MessageText>%s</MessageText></QueueMessage></QueueMessagesList>",
                 message_text);
        return say(socket, "200 OK", "", body);
    }
    if (call == 1)
        return false;
    if (is(request, "PUT", "/messages/id?popreceipt=r%2B%2F%3D&"))
        return say_code(socket, "400 Bad", "PopReceiptMismatch");
    return say_code(socket, "404 Not Found", "MessageNotFound");
}

static void test_lost_answers(void **state)
{
    (void)state;
    shoal_store *store = open_store();
    shoal_message message = {0};
    special = lose_answers;
    assert_int_equal(shoal_store_take(store, "q", 30, &message, shoal_after(20)), SHOAL_OK);
    assert_int_equal(message.size, 2);
    assert_memory_equal(message.data, "hi", 2);
    assert_int_equal(message.deliveries, 3);
    calls = 0; /* the first finish was done, and the second finds nothing: done */
    assert_int_equal(shoal_store_finish(store, "q", &message, shoal_after(20)), SHOAL_OK);
    assert_int_equal(calls, 2);
    calls = 1; /* nothing was lost: the message is not ours */
    assert_int_equal(shoal_store_finish(store, "q", &message, shoal_after(20)), SHOAL_LOST);
    calls = 0; /* the receipt that an extend gave was lost with its answer */
    assert_int_equal(shoal_store_extend(store, "q", &message, 30, shoal_after(20)), SHOAL_LOST);
    shoal_message_release(&message);
    static const char *const foreign[] = {"", "!!!!", "eA==", "Yg==", "YjAxMjM=", "aGVsbG8"};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        message_text = foreign[i];
        calls = 0;
        assert_int_equal(shoal_store_take(store, "q", 30, &message, shoal_after(20)), SHOAL_BROKEN);
        assert_non_null(strstr(shoal_error(), "az://acct/box/q"));
        assert_int_equal(calls, 2); /* it was removed */
    }
    message_text = "aWhp";
    message = (shoal_message){.lease_ends = shoal_after(20)}; /* without a receipt */
    assert_int_equal(shoal_store_finish(store, "q", &message, shoal_after(20)), SHOAL_USAGE);
    shoal_store_close(&store);
}

static int64_t lease_end;

/* The first finish is not done, and its connection lasts until the lease has ended and another has the message. */
static bool outlive_lease(int socket, asked *request, int call)
{
    if (call > 1)
        return say_code(socket, "404 Not Found", "MessageNotFound");
    (void)request;
    base_sleep_until(lease_end);
    return false;
}

/* What Azure does not find any more may be someone else's, if the lease has ended since. */
static void test_a_finish_that_outlives_the_lease(void **state)
{
    (void)state;
    shoal_store *store = open_store();
    shoal_message message = {0};
    special = lose_answers;
    assert_int_equal(shoal_store_take(store, "q", 30, &message, shoal_after(20)), SHOAL_OK);
    special = outlive_lease;
    calls = 0;
    message.lease_ends = lease_end = shoal_after(1.5);
    assert_int_equal(shoal_store_finish(store, "q", &message, shoal_after(20)), SHOAL_LOST);
    assert_int_equal(calls, 2);
    shoal_message_release(&message);
    shoal_store_close(&store);
}

/* Neither the body's place nor the queue is there, and a queue that was dropped is still on its way out. */
static bool have_nothing(int socket, asked *request, int call)
{
    (void)call;
    if (is(request, "GET", "comp=list"))
        return say(socket, "200 OK", "", "<EnumerationResults><Blobs/><NextMarker/></EnumerationResults>");
    if (is(request, "DELETE", "/acct/q-"))
        return say_code(socket, "409 Conflict", "QueueBeingDeleted");
    return is(request, "PUT", "/acct/q-") ? say(socket, "201 Created", "", "") : say(socket, "404 Not Found", "", "");
}

static void test_a_queue_without_a_place(void **state)
{
    (void)state;
    static char large[100000];
    shoal_store *store = open_store();
    special = have_nothing;
    assert_int_equal(shoal_store_push(store, "q", large, sizeof large, shoal_after(20)), SHOAL_ABSENT);
    calls = 0;
    assert_int_equal(shoal_store_drop(store, "q", shoal_after(20)), SHOAL_OK);
    assert_int_equal(calls, 2); /* the queue and the list of bodies */
    shoal_store_close(&store);
}

static _Atomic int pushes, queues_made, eternal;

/* A queue that has to be made first. */
static bool take_push(int socket, asked *request, int call)
{
    (void)call;
    if (is(request, "PUT", "/acct/jobs-q-")) {
        queues_made++;
        return say(socket, "201 Created", "", "");
    }
    if (!is(request, "POST", "/messages?"))
        return say_code(socket, "400 Bad", "NoPush");
    eternal += strstr(request->path, "messagettl=-1") != NULL;
    if (pushes++ == 0)
        return say_code(socket, "404 Not Found", "QueueNotFound");
    bool right = strstr(request->body, "<QueueMessage><MessageText>aWhp</MessageText></QueueMessage>") != NULL;
    return right ? say(socket, "201 Created", "", "<QueueMessagesList/>") : say_code(socket, "400 Bad", "NoMessage");
}

static void test_push(void **state)
{
    (void)state;
    shoal_store *store = open_store();
    special = take_push;
    pushes = queues_made = eternal = 0;
    assert_int_equal(shoal_store_push(store, "jobs/q", "hi", 2, shoal_after(20)), SHOAL_OK);
    assert_int_equal(pushes, 2);
    assert_int_equal(queues_made, 1);
    assert_int_equal(eternal, 2); /* otherwise the server would forget it after a week */
    shoal_store_close(&store);
}

/* ---- identities -------------------------------------------------------------------------------------------------- */

static _Atomic int token_requests;
static char last_token_request[8192], last_authorization[256];
static const char *token_answer, *token_trouble;
static _Atomic bool token_stalls;
static pthread_mutex_t recorded = PTHREAD_MUTEX_INITIALIZER;

static bool identity(int socket, asked *request)
{
    if (strstr(request->path, "/token")) {
        pthread_mutex_lock(&recorded);
        snprintf(last_token_request, sizeof last_token_request, "%s", request->head);
        pthread_mutex_unlock(&recorded);
        token_requests++;
        while (token_stalls)
            base_sleep_until(shoal_after(0.01));
        if (token_trouble) {
            const char *status = token_trouble;
            token_trouble = NULL;
            return say(socket, status, "", "");
        }
        if (!token_answer)
            return say(socket, "400 Bad Request", "", "{\"error\":\"invalid_request\"}");
        return say(socket, "200 OK", "Content-Type: application/json", token_answer);
    }
    const char *line = strcasestr(request->head, "\r\nauthorization: ");
    pthread_mutex_lock(&recorded);
    snprintf(last_authorization, sizeof last_authorization, "%.*s", line ? (int)strcspn(line + 17, "\r") : 0,
             line ? line + 17 : "");
    pthread_mutex_unlock(&recorded);
    return say(socket, "200 OK", "ETag: \"0x1\"", "");
}

static void test_identity(void **state)
{
    (void)state;
    shoal_store *store = NULL;
    char url[64];
    unsetenv("AZURE_STORAGE_KEY");
    server.answer = identity;
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", server.port);
    setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", url, 1);
    setenv("AZURE_CLIENT_ID", "a b", 1);
    token_answer = "{\"access_token\":\"hidden-token\",\"expires_in\":\"3600\"}";
    token_requests = 0;
    store = open_store();
    assert_int_equal(shoal_store_put(store, "key", "x", 1, NULL, NULL, shoal_after(20)), SHOAL_OK);
    assert_int_equal(shoal_store_put(store, "key", "x", 1, NULL, NULL, shoal_after(20)), SHOAL_OK);
    assert_string_equal(last_authorization, "Bearer hidden-token");
    assert_int_equal(token_requests, 1); /* it is kept */
    assert_non_null(strstr(last_token_request, "GET /metadata/identity/oauth2/token?api-version=2018-02-01&"
                                               "resource=https%3A%2F%2Fstorage.azure.com%2F&client_id=a%20b HTTP"));
    assert_non_null(strcasestr(last_token_request, "\r\nMetadata: true\r\n"));
    shoal_store_close(&store);

    snprintf(url, sizeof url, "http://127.0.0.1:%d/msi/token", server.port);
    setenv("IDENTITY_ENDPOINT", url,
           1); /* an App Service; its token is good for a blink, so there is a new one each time */
    setenv("IDENTITY_HEADER", "hidden-header", 1);
    token_answer = "{\"access_token\":\"t2\",\"expires_in\":0.000001}";
    token_requests = 0;
    store = open_store();
    assert_int_equal(shoal_store_put(store, "key", "x", 1, NULL, NULL, shoal_after(20)), SHOAL_OK);
    assert_int_equal(token_requests, 2);
    assert_non_null(strcasestr(last_token_request, "\r\nX-IDENTITY-HEADER: hidden-header\r\n"));
    assert_non_null(strstr(last_token_request, "GET /msi/token?api-version=2019-08-01&"));
    token_answer = NULL;
    assert_int_equal(shoal_store_put(store, "key", "x", 1, NULL, NULL, shoal_after(20)), SHOAL_DENIED);
    assert_null(strstr(shoal_error(), "hidden"));
    shoal_store_close(&store);
}

static void *put_once(void *store)
{
    return shoal_store_put(store, "key", "x", 1, NULL, NULL, shoal_after(20)) == SHOAL_OK ? store : NULL;
}

/* While the old token is good, a service that fails is not asked for every request, and one that hangs holds up only
 * its caller. */
static void test_a_token_that_is_due(void **state)
{
    (void)state;
    char url[64];
    pthread_t other;
    void *done = NULL;
    unsetenv("AZURE_STORAGE_KEY");
    server.answer = identity;
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", server.port);
    setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", url, 1);
    token_answer = "{\"access_token\":\"t\",\"expires_in\":\"3600\"}";
    token_trouble = "429 Too Many Requests"; /* passes by itself */
    token_requests = 0;
    shoal_store *store = open_store();
    azure_credentials *who = &((azure_store *)store)->credentials;
    assert_int_equal(token_requests, 2);
    token_answer = NULL;
    who->identity.refresh_at = 0;
    for (int i = 0; i < 3; i++)
        assert_non_null(put_once(store));
    assert_int_equal(token_requests, 3);
    token_stalls = true;
    who->identity.refresh_at = 0;
    assert_int_equal(pthread_create(&other, NULL, put_once, store), 0);
    while (token_requests < 4)
        base_sleep_until(shoal_after(0.01));
    assert_non_null(put_once(store));
    assert_int_equal(token_requests, 4);
    token_stalls = false;
    pthread_join(other, &done);
    assert_non_null(done);
    shoal_store_close(&store);
}

static void test_credentials(void **state)
{
    (void)state;
    shoal_store *store = NULL;
    setenv("AZURE_STORAGE_ACCOUNT", "other", 1);
    assert_int_equal(shoal_store_open(&store, "az://acct/box", NULL, shoal_after(20)), SHOAL_DENIED);
    assert_non_null(strstr(shoal_error(), "'other'"));
    setenv("AZURE_STORAGE_KEY", "hidden", 1);
    assert_int_equal(shoal_store_open(&store, "az://acct/box", NULL, shoal_after(20)), SHOAL_DENIED);
    assert_null(strstr(shoal_error(), "hidden"));
    setup(NULL); /* what can't be asked at all has the store's name in its sentence, too */
    setenv("AZURE_STORAGE_BLOB_ENDPOINT", "http://10.1.2.3/acct", 1);
    assert_int_equal(shoal_store_open(&store, "az://acct/box", NULL, shoal_after(20)), SHOAL_USAGE);
    assert_non_null(strstr(shoal_error(), "az://acct/box: http://10.1.2.3: "));
    clear_environment();
    setenv("AZURE_STORAGE_SAS_TOKEN", "?sv=2021&se=2020-01-01T00%3A00%3A00Z&sig=hidden", 1);
    set_endpoints();
    store = open_store();
    special = refuse;
    refused_status = "403 Forbidden";
    refused_code = "AuthenticationFailed";
    assert_int_equal(shoal_store_put(store, "key", "x", 1, NULL, NULL, shoal_after(20)), SHOAL_DENIED);
    assert_non_null(strstr(shoal_error(), "2020-01-01T00:00:00Z"));
    assert_null(strstr(shoal_error(), "hidden"));
    shoal_store_close(&store);
    static const char *const wrong[] = {"az:acct/box",    "az://acct",      "az://acct/",    "az:///box",
                                        "az://Acct/box",  "az://acct/Box",  "az://acct/b",   "az://acct/b--x",
                                        "az://acct/box-", "az://ac.ct/box", "az://acct/b_x", "az://acct/box?x=1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (shoal_store_open(&store, wrong[i], NULL, shoal_after(20)) != SHOAL_USAGE)
            fail_msg("%s is not refused: %s", wrong[i], shoal_error());
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static bool serve_all(int socket, asked *request, int call)
{
    (void)call;
    if (is(request, "GET", "comp=list"))
        return list_pages(socket, request, call);
    if (is(request, "GET", "/messages?"))
        return lose_answers(socket, request, call);
    if (strcmp(request->method, "GET") == 0)
        return say(socket, "206 Partial", "ETag: \"0x1\"\r\nContent-Range: bytes 0-2/3", "one");
    return say(socket, "201 Created", "ETag: \"0x1\"\r\nx-ms-popreceipt: r2", "");
}

static int use_everything(void)
{
    shoal_store *store = NULL;
    shoal_blob blob = {0};
    shoal_listing page = {0};
    shoal_message message = {0};
    static char large[100000];
    int64_t deadline = shoal_after(20);
    int status = shoal_store_open(&store, "az://acct/box/pre", NULL, deadline);
    if (status == SHOAL_OK)
        status = shoal_store_put(store, "k\\y", "one", 3, SHOAL_NOTHING, NULL, deadline);
    if (status == SHOAL_OK)
        status = shoal_store_get(store, "key", &blob, deadline);
    while (status == SHOAL_OK && (page.more || !page.entries)) {
        status = shoal_store_list(store, "", NULL, &page, deadline);
        if (!page.entries)
            break;
    }
    if (status == SHOAL_OK)
        status = shoal_store_push(store, "q", large, sizeof large, deadline);
    if (status == SHOAL_OK)
        status = shoal_store_take(store, "q", 30, &message, deadline);
    if (status == SHOAL_OK)
        status = shoal_store_extend(store, "q", &message, 30, deadline);
    if (status == SHOAL_OK)
        status = shoal_store_finish(store, "q", &message, deadline);
    shoal_blob_release(&blob);
    shoal_listing_release(&page);
    shoal_message_release(&message);
    shoal_store_close(&store);
    return status;
}

/* The n-th allocation fails, for every n: a message, nothing leaked, and never a wrong answer. */
static void test_no_memory(void **state)
{
    (void)state;
    int failed = 0;
    special = serve_all;
    for (int64_t n = 0;; n++) {
        base_memory_fail_after(n);
        int status = use_everything();
        base_memory_fail_after(-1);
        if (status == SHOAL_OK)
            break;
        if (status != SHOAL_MEMORY)
            fail_msg("allocation %d: %d %s", (int)n, status, shoal_error());
        failed++;
        assert_true(n < 2000);
    }
    assert_true(failed > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signatures),
        cmocka_unit_test(test_base64),
        cmocka_unit_test(test_connection_strings),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_reading_a_page),
        cmocka_unit_test(test_reading_blocks),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test_setup(test_refusals, setup),
        cmocka_unit_test_setup(test_what_passes, setup),
        cmocka_unit_test_setup(test_who_says_503, setup),
        cmocka_unit_test_setup(test_a_blob_that_is_replaced, setup),
        cmocka_unit_test_setup(test_lies, setup),
        cmocka_unit_test_setup(test_blocks, setup),
        cmocka_unit_test_setup(test_pages_in_order, setup),
        cmocka_unit_test_setup(test_lost_answers, setup),
        cmocka_unit_test_setup(test_a_finish_that_outlives_the_lease, setup),
        cmocka_unit_test_setup(test_a_queue_without_a_place, setup),
        cmocka_unit_test_setup(test_push, setup),
        cmocka_unit_test_setup(test_identity, setup),
        cmocka_unit_test_setup(test_a_token_that_is_due, setup),
        cmocka_unit_test_setup(test_credentials, setup),
        cmocka_unit_test_setup(test_no_memory, setup),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
