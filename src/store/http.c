/* Requests over HTTP.  See http.h.
 *
 * A thread that makes requests takes a *client* from the pool, a libcurl multi handle whose cache has the connections
 * that were used before, and gives it back when it is done.  So no two threads ever meet in a connection, and there are
 * as many as threads that were here at once, times the requests each made at once.
 *
 * The one thing to know: libcurl repeats a request by itself when a kept connection turns out to be closed.  A put with
 * a condition that is repeated so could find itself in its own way, so only what reads is repeated here; before_sending
 * stops the rest, and the caller learns that the connection was cut and whether the request may have been done. */
#include "http.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/secret.h"
#include "base/world.h"

enum {
    HEADERS_MOST = 64 << 10,
    UPLOAD_BUFFER = 2 << 20,
    DOWNLOAD_BUFFER = 512 << 10,
    MOST_BELIEVED = 64 << 20, /* memory to allocate for a length the server announces before it has sent any of it */
    POLL_MOST_MS = 500,       /* how late a stall is noticed */
};

/* A request under way. */
typedef struct transfer {
    CURL *easy;
    CURLU *url;
    http_request *request; /* NULL when this place is free */
    size_t handed_out;     /* bytes of the body that libcurl has */
    int sends;             /* how often the request was sent, or begun to be */
    size_t room;           /* of request->answer, without its NUL */
    size_t headers_size, headers_room;
    bool reads, overrun, refused, placed;
    bool head_whole; /* the empty line after the headers came: libcurl reports success even when they are truncated */
    int failure;     /* SHOAL_MEMORY or another status that ends http_perform */
    int64_t began, moved_at;
    curl_off_t moved; /* bytes sent and received at the last check */
    char error[CURL_ERROR_SIZE];
} transfer;

typedef struct client {
    struct client *next;
    CURLM *multi;
    transfer transfers[HTTP_PARALLEL_MOST];
} client;

struct http_pool {
    shoal_store *store;
    char *certificates, *certificate_folder;
    const char *certificates_by; /* the variable that names them, or could */
    int64_t attempt_ns;
    int connect_seconds, parallel;
    bool metadata;
    CURLSH *share;
    pthread_mutex_t share_lock[CURL_LOCK_DATA_LAST];
    pthread_mutex_t lock; /* of `idle` */
    client *idle;
};

/* ---- the pool ---------------------------------------------------------------------------------------------------- */

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;
static CURLcode curl_ready;

static void start_curl(void)
{
    curl_ready = curl_global_init(CURL_GLOBAL_DEFAULT);
}

static void lock_share(CURL *easy, curl_lock_data data, curl_lock_access access, void *context)
{
    http_pool *pool = context;
    (void)easy;
    (void)access;
    pthread_mutex_lock(&pool->share_lock[data]);
}

static void unlock_share(CURL *easy, curl_lock_data data, void *context)
{
    http_pool *pool = context;
    (void)easy;
    pthread_mutex_unlock(&pool->share_lock[data]);
}

static void free_client(client **victim)
{
    if (!*victim)
        return;
    for (int i = 0; i < HTTP_PARALLEL_MOST; i++) {
        curl_easy_cleanup((*victim)->transfers[i].easy);
        curl_url_cleanup((*victim)->transfers[i].url);
    }
    curl_multi_cleanup((*victim)->multi);
    base_free(victim);
}

static int new_client(client **out)
{
    client *fresh = NULL;
    int status = base_alloc(&fresh, 1, sizeof *fresh, "connections");
    if (status < 0)
        return status;
    fresh->multi = curl_multi_init();
    if (!fresh->multi) {
        free_client(&fresh);
        return shoal_fail(SHOAL_MEMORY, "out of memory for connections");
    }
    curl_multi_setopt(fresh->multi, CURLMOPT_MAXCONNECTS, (long)HTTP_PARALLEL_MOST);
    curl_multi_setopt(fresh->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
    *out = fresh;
    return SHOAL_OK;
}

/* The one that was given back last has the warmest connections. */
static int take_client(http_pool *pool, client **out)
{
    pthread_mutex_lock(&pool->lock);
    *out = pool->idle;
    if (*out)
        pool->idle = (*out)->next;
    pthread_mutex_unlock(&pool->lock);
    return *out ? SHOAL_OK : new_client(out);
}

static void give_client(http_pool *pool, client *used)
{
    pthread_mutex_lock(&pool->lock);
    used->next = pool->idle;
    pool->idle = used;
    pthread_mutex_unlock(&pool->lock);
}

/* The file of trusted authorities, from the caller or the environment, as curl and OpenSSL read it. */
static int choose_certificates(http_pool *pool, const http_settings *settings)
{
    static const char *const variables[] = {"CURL_CA_BUNDLE", "SSL_CERT_FILE"};
    const char *file = settings->certificates, *folder = getenv("SSL_CERT_DIR");
    pool->certificates_by = settings->certificates_by ? settings->certificates_by : "SSL_CERT_FILE";
    for (int i = 0; i < 2 && (!file || !*file); i++) {
        file = getenv(variables[i]);
        if (file && *file)
            pool->certificates_by = variables[i];
    }
    int status = file && *file ? base_copy_text(&pool->certificates, file) : SHOAL_OK;
    if (status == SHOAL_OK && folder && *folder)
        status = base_copy_text(&pool->certificate_folder, folder);
    return status;
}

int http_pool_new(http_pool **out, shoal_store *store, const http_settings *settings)
{
    static const http_settings usual = {0};
    http_pool *pool = NULL;
    pthread_once(&curl_once, start_curl);
    if (curl_ready != CURLE_OK)
        return shoal_fail(SHOAL_SYSTEM, "can't initialise libcurl: %s", curl_easy_strerror(curl_ready));
    int status = base_alloc(&pool, 1, sizeof *pool, "connections");
    if (status < 0)
        return status;
    settings = settings ? settings : &usual;
    pool->store = store;
    pool->attempt_ns = (settings->attempt_seconds > 0 ? settings->attempt_seconds : 20) * INT64_C(1000000000);
    pool->connect_seconds = settings->connect_seconds > 0 ? settings->connect_seconds : 5;
    pool->metadata = settings->metadata;
    pool->parallel =
        settings->parallel > 0 && settings->parallel < HTTP_PARALLEL_MOST ? settings->parallel : HTTP_PARALLEL_MOST;
    pthread_mutex_init(&pool->lock, NULL);
    for (int i = 0; i < CURL_LOCK_DATA_LAST; i++)
        pthread_mutex_init(&pool->share_lock[i], NULL);
    pool->share = curl_share_init();
    if (!pool->share) {
        status = shoal_fail(SHOAL_MEMORY, "out of memory for connections");
        goto done;
    }
    curl_share_setopt(pool->share, CURLSHOPT_LOCKFUNC, lock_share);
    curl_share_setopt(pool->share, CURLSHOPT_UNLOCKFUNC, unlock_share);
    curl_share_setopt(pool->share, CURLSHOPT_USERDATA, pool);
    curl_share_setopt(pool->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_DNS);
    curl_share_setopt(pool->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
    status = choose_certificates(pool, settings);
    if (status == SHOAL_OK) {
        *out = pool;
        pool = NULL;
    }
done:
    http_pool_free(&pool);
    return status;
}

void http_pool_free(http_pool **pool)
{
    if (!*pool)
        return;
    while ((*pool)->idle) {
        client *next = (*pool)->idle->next;
        free_client(&(*pool)->idle);
        (*pool)->idle = next;
    }
    if ((*pool)->share)
        curl_share_cleanup((*pool)->share);
    for (int i = 0; i < CURL_LOCK_DATA_LAST; i++)
        pthread_mutex_destroy(&(*pool)->share_lock[i]);
    pthread_mutex_destroy(&(*pool)->lock);
    base_free(&(*pool)->certificates);
    base_free(&(*pool)->certificate_folder);
    base_free(pool);
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

int http_add_header(http_request *request, const char *format, ...)
{
    char *line = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    int status = length < 0 ? shoal_fail(SHOAL_INVALID, "can't format a request header")
                            : base_alloc(&line, (size_t)length + 1, 1, "a header");
    if (status < 0)
        return status;
    va_start(arguments, format);
    vsnprintf(line, (size_t)length + 1, format, arguments);
    va_end(arguments);
    for (const char *c = line; *c && status == SHOAL_OK; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            status = shoal_fail(SHOAL_INVALID, "a request header contains a control character");
    if (status == SHOAL_OK) {
        struct curl_slist *grown = curl_slist_append(request->headers_sent, line);
        if (grown)
            request->headers_sent = grown;
        else
            status = shoal_fail(SHOAL_MEMORY, "out of memory for a header");
    }
    base_wipe(line, (size_t)length);
    base_free(&line);
    return status;
}

/* Forgets an answer, so that the request can be made again. */
static void forget_answer(http_request *request)
{
    base_free(&request->answer);
    base_free(&request->headers);
    request->status = 0;
    request->cause = SHOAL_CAUSE_NONE;
    request->maybe_done = false;
    request->trouble[0] = 0;
    request->size = 0;
    request->seconds = 0;
}

void http_request_release(http_request *request)
{
    forget_answer(request);
    for (struct curl_slist *header = request->headers_sent; header; header = header->next)
        base_wipe(header->data, strlen(header->data)); /* it may hold credentials */
    curl_slist_free_all(request->headers_sent);
    request->headers_sent = NULL;
}

static bool is_loopback(const char *host)
{
    struct in_addr four;
    struct in6_addr six;
    if (strcasecmp(host, "localhost") == 0)
        return true; /* libcurl never asks a name server for it */
    if (inet_pton(AF_INET, host, &four) == 1)
        return ntohl(four.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, host, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

/* Where clouds tell a machine its identity: 169.254.0.0/16, which no router forwards, and Amazon's fd00:ec2::/32. */
static bool is_metadata(const char *host)
{
    struct in_addr four;
    struct in6_addr six;
    if (inet_pton(AF_INET, host, &four) == 1)
        return ntohl(four.s_addr) >> 16 == 0xa9fe;
    return inet_pton(AF_INET6, host, &six) == 1 && memcmp(six.s6_addr, "\xfd\x00\x0e\xc2", 4) == 0;
}

/* Reads the URL and refuses what must not be used.  *plain: it is http, to a machine where that is allowed. */
static int check_url(const http_pool *pool, CURLU *parsed, const char *url, bool *plain)
{
    char *scheme = NULL, *host = NULL, bare[256] = "";
    int status = SHOAL_OK;
    if (curl_url_set(parsed, CURLUPART_URL, url, CURLU_PATH_AS_IS) != CURLUE_OK ||
        curl_url_get(parsed, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
        curl_url_get(parsed, CURLUPART_HOST, &host, 0) != CURLUE_OK) {
        status = shoal_fail(SHOAL_USAGE, "'%.*s' is not the URL of a server", (int)strcspn(url, "?"), url);
        goto done;
    }
    snprintf(bare, sizeof bare, "%s", host[0] == '[' ? host + 1 : host);
    bare[strcspn(bare, "]%")] = 0;
    *plain = strcmp(scheme, "http") == 0;
    if (!*plain && strcmp(scheme, "https") != 0)
        status = shoal_fail(SHOAL_USAGE, "%s://%s: use https (http is for servers on this machine)", scheme, host);
    else if (*plain && !is_loopback(bare) && !(pool->metadata && is_metadata(bare)))
        status = shoal_fail(
            SHOAL_USAGE, "http://%s: unencrypted http is for this machine only (127.0.0.1, ::1, localhost); use https",
            host);
done:
    curl_free(scheme);
    curl_free(host);
    return status;
}

/* ---- what libcurl calls ------------------------------------------------------------------------------------------ */

/* The server can't have done what it did not receive completely. */
static bool sent_whole(const transfer *t)
{
    return t->sends > 0 && (!t->request->sends_body || t->handed_out >= store_body_size(&t->request->body));
}

/* There is a connection and the request is about to be sent, for the first time or again. */
static int before_sending(void *context, char *address, char *local, int port, int local_port)
{
    transfer *t = context;
    (void)address;
    (void)local;
    (void)port;
    (void)local_port;
    if (!t->reads && sent_whole(t)) {
        t->refused = true;
        return CURL_PREREQFUNC_ABORT;
    }
    t->sends++;
    t->handed_out = 0;
    t->moved_at = base_now();
    return CURL_PREREQFUNC_OK;
}

static size_t send_some(char *out, size_t size, size_t count, void *context)
{
    transfer *t = context;
    size_t most = size * count, given = 0, skip = t->handed_out;
    for (int i = 0; i < 2 && given < most; i++) {
        const struct iovec *part = &t->request->body.part[i];
        if (skip >= part->iov_len) {
            skip -= part->iov_len;
            continue;
        }
        size_t left = part->iov_len - skip, now = left < most - given ? left : most - given;
        memcpy(out + given, (const char *)part->iov_base + skip, now);
        given += now;
        skip = 0;
    }
    t->handed_out += given;
    return given;
}

static int seek_body(void *context, curl_off_t offset, int origin)
{
    transfer *t = context;
    if (origin != SEEK_SET || offset < 0 || (size_t)offset > store_body_size(&t->request->body))
        return CURL_SEEKFUNC_FAIL;
    /* libcurl rewinds before it sends again; what was handed out before must be kept until then. */
    if (!t->reads && sent_whole(t)) {
        t->refused = true;
        return CURL_SEEKFUNC_FAIL;
    }
    t->handed_out = (size_t)offset;
    return CURL_SEEKFUNC_OK;
}

static size_t take_header(char *line, size_t size, size_t count, void *context)
{
    transfer *t = context;
    size_t bytes = size * count;
    if (bytes >= 5 && memcmp(line, "HTTP/", 5) == 0) {
        t->headers_size = 0; /* what came before was an interim answer, or an attempt that libcurl repeats */
        t->head_whole = false;
    }
    t->head_whole |= bytes <= 2;
    if (bytes > HEADERS_MOST - t->headers_size) {
        t->overrun = true;
        return 0;
    }
    size_t wanted = t->headers_size + bytes;
    if (wanted > t->headers_room) {
        wanted = wanted < 2048 ? 2048 : HEADERS_MOST;
        t->failure = t->headers_room
                         ? base_grow(&t->request->headers, t->headers_room + 1, wanted + 1, 1, "headers of an answer")
                         : base_alloc(&t->request->headers, wanted + 1, 1, "headers of an answer");
        t->headers_room = t->failure < 0 ? t->headers_room : wanted;
    }
    if (t->failure < 0)
        return 0;
    memcpy(t->request->headers + t->headers_size, line, bytes);
    t->headers_size += bytes;
    t->request->headers[t->headers_size] = 0;
    return bytes;
}

/* Makes room for `size` bytes of a body and a NUL: for all of it when the server said how long it is. */
static int make_body_room(transfer *t, size_t size)
{
    http_request *request = t->request;
    size_t wanted = t->room;
    curl_off_t told = -1;
    if (request->answer && size <= t->room)
        return SHOAL_OK;
    curl_easy_getinfo(t->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &told);
    if (wanted == 0 && size > 0)
        wanted = told > 0 && told < MOST_BELIEVED ? (size_t)told : 4096;
    while (wanted < size)
        wanted *= 2;
    int status = request->answer ? base_grow(&request->answer, t->room + 1, wanted + 1, 1, "an answer")
                                 : base_alloc(&request->answer, wanted + 1, 1, "an answer");
    if (status == SHOAL_OK)
        t->room = wanted;
    return status;
}

static size_t take_body(char *bytes, size_t size, size_t count, void *context)
{
    transfer *t = context;
    http_request *request = t->request;
    long code = 0;
    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &code);
    bool well = code >= 200 && code < 300;
    size_t fresh = size * count, most = HTTP_ANSWER_MOST;
    if (well && request->place && !t->placed) {
        t->placed = true;
        t->failure = request->place(request, request->place_context);
        if (t->failure < 0)
            return 0;
    }
    if (!well)
        most = HTTP_ERROR_MOST;
    else if (request->room > 0 || request->buffer)
        most = request->room;
    if (fresh > most - request->size) {
        if (!well) { /* the start of an error's text is enough */
            fresh = most - request->size;
        } else {
            t->overrun = true;
            return 0;
        }
    }
    char *where = request->buffer;
    if (!well || !where) {
        t->failure = make_body_room(t, request->size + fresh);
        if (t->failure < 0)
            return 0;
        where = request->answer;
    }
    memcpy(where + request->size, bytes, fresh);
    request->size += fresh;
    return size * count;
}

/* ---- starting and ending a transfer ------------------------------------------------------------------------------ */

static void set_method(transfer *t)
{
    http_request *request = t->request;
    if (strcmp(request->method, "HEAD") == 0) {
        curl_easy_setopt(t->easy, CURLOPT_NOBODY, 1L);
    } else if (request->sends_body) {
        curl_easy_setopt(t->easy, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(t->easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)store_body_size(&request->body));
        curl_easy_setopt(t->easy, CURLOPT_READFUNCTION, send_some);
        curl_easy_setopt(t->easy, CURLOPT_READDATA, t);
        curl_easy_setopt(t->easy, CURLOPT_SEEKFUNCTION, seek_body);
        curl_easy_setopt(t->easy, CURLOPT_SEEKDATA, t);
        curl_easy_setopt(t->easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)UPLOAD_BUFFER);
    }
    if (strcmp(request->method, "HEAD") != 0 && (strcmp(request->method, "GET") != 0 || request->sends_body))
        curl_easy_setopt(t->easy, CURLOPT_CUSTOMREQUEST, request->method);
}

static void set_connection(transfer *t, const http_pool *pool, bool plain)
{
    curl_easy_setopt(t->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(t->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(t->easy, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(t->easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(t->easy, CURLOPT_CONNECTTIMEOUT, (long)pool->connect_seconds);
    curl_easy_setopt(t->easy, CURLOPT_FOLLOWLOCATION, 0L);
#if LIBCURL_VERSION_NUM >= 0x075700 /* 7.87: so that a silent name server can't hold up a deadline */
    curl_easy_setopt(t->easy, CURLOPT_QUICK_EXIT, 1L);
#endif
    curl_easy_setopt(t->easy, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(t->easy, CURLOPT_SSL_VERIFYHOST, 2L);
    curl_easy_setopt(t->easy, CURLOPT_SHARE, pool->share);
    if (plain)
        curl_easy_setopt(t->easy, CURLOPT_NOPROXY, "*"); /* what is not encrypted stays on this machine */
    if (pool->certificates)
        curl_easy_setopt(t->easy, CURLOPT_CAINFO, pool->certificates);
    if (pool->certificate_folder)
        curl_easy_setopt(t->easy, CURLOPT_CAPATH, pool->certificate_folder);
}

static void set_answer(transfer *t)
{
    curl_easy_setopt(t->easy, CURLOPT_BUFFERSIZE, (long)DOWNLOAD_BUFFER);
    curl_easy_setopt(t->easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(t->easy, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(t->easy, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(t->easy, CURLOPT_PREREQFUNCTION, before_sending);
    curl_easy_setopt(t->easy, CURLOPT_PREREQDATA, t);
    curl_easy_setopt(t->easy, CURLOPT_ERRORBUFFER, t->error);
    curl_easy_setopt(t->easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
}

/* No waiting for "100 Continue", which would cost half a second or more. */
static int refuse_expect(http_request *request)
{
    for (struct curl_slist *header = request->headers_sent; header; header = header->next)
        if (strncasecmp(header->data, "Expect:", 7) == 0)
            return SHOAL_OK;
    return http_add_header(request, "Expect:");
}

static int start_transfer(http_pool *pool, client *user, transfer *t, http_request *request)
{
    bool plain = false;
    forget_answer(request);
    if (!t->easy)
        t->easy = curl_easy_init();
    else
        curl_easy_reset(t->easy);
    if (!t->url)
        t->url = curl_url();
    if (!t->easy || !t->url)
        return shoal_fail(SHOAL_MEMORY, "out of memory for a request");
    int status = check_url(pool, t->url, request->url, &plain);
    if (status == SHOAL_OK)
        status = refuse_expect(request);
    if (status < 0)
        return status;
    /* A PUT or POST has a body, be it empty: servers want its length. */
    if (strcmp(request->method, "PUT") == 0 || strcmp(request->method, "POST") == 0)
        request->sends_body = true;
    *t = (transfer){.easy = t->easy, .url = t->url, .request = request, .began = base_now()};
    t->moved_at = t->began;
    t->reads = strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0;
    set_connection(t, pool, plain);
    set_answer(t);
    set_method(t);
    curl_easy_setopt(t->easy, CURLOPT_PRIVATE, t);
    curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, request->headers_sent);
    if (curl_easy_setopt(t->easy, CURLOPT_CURLU, t->url) != CURLE_OK ||
        curl_multi_add_handle(user->multi, t->easy) != CURLM_OK) {
        t->request = NULL;
        return shoal_fail(SHOAL_MEMORY, "out of memory for a request");
    }
    return SHOAL_OK;
}

static shoal_cause cause_of(CURLcode code, const transfer *t)
{
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT: return SHOAL_CAUSE_UNREACHABLE;
    case CURLE_OPERATION_TIMEDOUT: /* by libcurl's own clock, which is that of connecting, or by ours */
        return t->sends == 0 ? SHOAL_CAUSE_UNREACHABLE : SHOAL_CAUSE_TIMEOUT;
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL: /* an answer that is not HTTP */ return SHOAL_CAUSE_SERVER;
    default: return SHOAL_CAUSE_CUT;
    }
}

static void describe_failure(http_request *request, const char *text)
{
    snprintf(request->trouble, sizeof request->trouble, "%.*s", (int)strcspn(text, "?"), text); /* no query, ever */
}

/* Failures that must not be retried: http_perform ends with the message. */
static int lasting_failure(const http_pool *pool, const transfer *t, CURLcode code)
{
    char *host = NULL;
    int status = t->failure;
    curl_url_get(t->url, CURLUPART_HOST, &host, 0);
    const char *server = host ? host : "the server";
    if (t->overrun)
        status = shoal_fail(SHOAL_BROKEN, "%s sent more than was requested", server);
    else if (code == CURLE_OUT_OF_MEMORY)
        status = shoal_fail(SHOAL_MEMORY, "out of memory for a request to %s", server);
    else if (code == CURLE_PEER_FAILED_VERIFICATION)
        status = shoal_fail(SHOAL_INVALID,
                            "the certificate of %s is not trusted (%s); %s can name a file of trusted authorities",
                            server, t->error[0] ? t->error : curl_easy_strerror(code), pool->certificates_by);
    else if (code == CURLE_SSL_CONNECT_ERROR && strstr(t->error, "wrong version number"))
        status = shoal_fail(SHOAL_INVALID, "%s does not speak TLS on this port, which may be an http port", server);
    else if (code == CURLE_SSL_CACERT_BADFILE)
        status = shoal_fail(SHOAL_SYSTEM, "can't read the file of trusted certificate authorities: %s",
                            t->error[0] ? t->error : curl_easy_strerror(code));
    curl_free(host);
    return status;
}

/* Removes the transfer and fills in the answer.  A negative code: we gave it up, for the reason in t->error. */
static int end_transfer(http_pool *pool, client *user, transfer *t, int code)
{
    http_request *request = t->request;
    curl_off_t sent = 0;
    long http = 0;
    int status = SHOAL_OK;
    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &http);
    curl_easy_getinfo(t->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
    curl_multi_remove_handle(user->multi, t->easy);
    request->seconds = (double)(base_now() - t->began) * 1e-9;
    if (pool->store)
        for (int i = 0; i < t->sends; i++)
            store_count(pool->store, request->kind, i == 0 ? sent : 0, i == 0 ? (int64_t)request->size : 0);
    if (code == CURLE_OK && (!t->head_whole || http < 200)) /* or nothing came after an interim answer */
        code = CURLE_RECV_ERROR;
    if (code == CURLE_OK) {
        request->status = (int)http;
        if (!request->answer && (!request->buffer || http < 200 || http >= 300))
            status = make_body_room(t, 0); /* an empty answer is also a text */
    } else {
        if (code > 0)
            status = lasting_failure(pool, t, (CURLcode)code);
        request->cause = cause_of(code < 0 ? CURLE_OPERATION_TIMEDOUT : (CURLcode)code, t);
        request->maybe_done = sent_whole(t) || t->refused;
        if (t->refused)
            describe_failure(request, "the server closed the connection without answering");
        else
            describe_failure(request, t->error[0] || code < 0 ? t->error : curl_easy_strerror((CURLcode)code));
        base_free(&request->answer);
        request->size = 0;
    }
    t->request = NULL;
    return status;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static int collect_done(http_pool *pool, client *user, size_t *done)
{
    int status = SHOAL_OK, left;
    for (CURLMsg *message; (message = curl_multi_info_read(user->multi, &left));) {
        transfer *t = NULL;
        CURLcode code = message->data.result;
        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &t);
        int ended = end_transfer(pool, user, t, (int)code);
        status = status < 0 ? status : ended;
        (*done)++;
    }
    return status;
}

/* Gives up stalled transfers, or all of them after the deadline. */
static void give_up_stuck(http_pool *pool, client *user, int64_t deadline, size_t *done)
{
    int64_t now = base_now();
    for (int i = 0; i < HTTP_PARALLEL_MOST; i++) {
        transfer *t = &user->transfers[i];
        curl_off_t up = 0, down = 0;
        if (!t->request)
            continue;
        curl_easy_getinfo(t->easy, CURLINFO_SIZE_UPLOAD_T, &up);
        curl_easy_getinfo(t->easy, CURLINFO_SIZE_DOWNLOAD_T, &down);
        curl_off_t moved = up + down + (curl_off_t)t->headers_size;
        if (moved != t->moved)
            t->moved_at = now;
        t->moved = moved;
        if (now < deadline && (t->sends == 0 || now - t->moved_at < pool->attempt_ns))
            continue;
        snprintf(t->error, sizeof t->error, "%s",
                 now < deadline ? "nothing was sent or received for too long"
                 : t->sends     ? "timed out before an answer came"
                                : "timed out before a connection was made");
        end_transfer(pool, user, t, -1);
        (*done)++;
    }
}

static int perform_all(http_pool *pool, client *user, http_request *requests, size_t count, int64_t deadline)
{
    size_t next = 0, done = 0;
    int running = 0, status = SHOAL_OK;
    while (status == SHOAL_OK && done < count) {
        for (int i = 0; i < pool->parallel && next < count && status == SHOAL_OK; i++)
            if (!user->transfers[i].request)
                status = start_transfer(pool, user, &user->transfers[i], &requests[next++]);
        CURLMcode code = curl_multi_perform(user->multi, &running);
        if (status == SHOAL_OK && code != CURLM_OK)
            status = shoal_fail(SHOAL_SYSTEM, "libcurl: %s", curl_multi_strerror(code));
        size_t before = done;
        int collected = collect_done(pool, user, &done);
        status = status < 0 ? status : collected;
        if (status < 0 || done > before)
            continue;
        give_up_stuck(pool, user, deadline, &done);
        if (done > before)
            continue;
        double seconds = fmin(fmax(base_seconds_until(deadline), 0), POLL_MOST_MS / 1000.0);
        code = curl_multi_poll(user->multi, NULL, 0, (int)ceil(seconds * 1000), NULL);
        if (code != CURLM_OK)
            status = shoal_fail(SHOAL_SYSTEM, "libcurl: %s", curl_multi_strerror(code));
    }
    if (status < 0)
        give_up_stuck(pool, user, INT64_MIN, &done); /* whatever still runs; it sets no message */
    return status;
}

/* A connection that was closed must not end the program that uses this library. libcurl leaves SIGPIPE alone once it is
 * told to (CURLOPT_NOSIGNAL), so it is blocked in this thread and discarded if it came. */
int http_perform(http_pool *pool, http_request *requests, size_t count, int64_t deadline)
{
    client *user = NULL;
    sigset_t pipe, before, pending;
    int status = take_client(pool, &user);
    if (status < 0)
        return status;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    status = perform_all(pool, user, requests, count, deadline);
    while (!sigismember(&pending, SIGPIPE) && sigtimedwait(&pipe, NULL, &(struct timespec){0}) == SIGPIPE)
        ;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    give_client(pool, user);
    return status;
}
