/* A server of a test's own on loopback: every connection has a thread, which reads requests and has the test's function
 * answer them. */
#ifndef HTTP_SUPPORT_H
#define HTTP_SUPPORT_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { CONNECTIONS_MOST = 256 };

typedef struct asked {
    char method[16], path[1024], head[8192];
    char *body;
    size_t size;
    int number;   /* on this connection */
    bool skipped; /* its body was not read */
} asked;

static struct {
    bool (*_Atomic answer)(int socket, asked *request); /* false: close the connection */
    bool (*_Atomic skips_body)(const asked *request);   /* the connection is to end before it is read; may be NULL */
    int listener, port;
    pthread_t acceptor;
    struct connection {
        pthread_t servant;
        int socket;
        bool used;
        _Atomic bool done;
    } connections[CONNECTIONS_MOST];
    _Atomic int accepted, requests;
} server;

static void reply(int socket, const char *head, const char *body, size_t size)
{
    char text[16384];
    int length = snprintf(text, sizeof text, "HTTP/1.1 %s\r\n\r\n", head);
    if (write(socket, text, (size_t)length) != length)
        return;
    for (size_t done = 0; done < size;) {
        ssize_t now = write(socket, body + done, size - done);
        if (now <= 0)
            return;
        done += (size_t)now;
    }
}

static inline void text_reply(int socket, const char *text, bool head_only)
{
    char head[256];
    snprintf(head, sizeof head, "200 OK\r\nETag: \"one\"\r\nContent-Length: %zu", strlen(text));
    reply(socket, head, text, head_only ? 0 : strlen(text));
}

/* Reads a request; false when the connection ends or is to end. */
static bool read_request(int socket, asked *request)
{
    size_t have = 0;
    char *end = NULL;
    while (!end) {
        if (have == sizeof request->head - 1)
            return false;
        ssize_t now = read(socket, request->head + have, 1); /* slow and simple: never beyond the empty line */
        if (now <= 0)
            return false;
        have += (size_t)now;
        request->head[have] = 0;
        end = strstr(request->head, "\r\n\r\n");
    }
    if (sscanf(request->head, "%15s %1023s", request->method, request->path) != 2)
        return false;
    const char *length = strcasestr(request->head, "\r\nContent-Length:");
    request->size = length ? strtoul(length + 17, NULL, 10) : 0;
    bool (*skips_body)(const asked *) = server.skips_body;
    request->skipped = skips_body && skips_body(request);
    if (request->skipped)
        return true;
    request->body = malloc(request->size + 1);
    for (have = 0; have < request->size;) {
        ssize_t now = read(socket, request->body + have, request->size - have);
        if (now <= 0)
            return false;
        have += (size_t)now;
    }
    request->body[have] = 0;
    return true;
}

static void *serve(void *context)
{
    struct connection *own = context;
    for (int number = 1; number > 0; number++) {
        asked request = {.number = number};
        bool on = read_request(own->socket, &request);
        if (on) {
            server.requests++;
            on = server.answer(own->socket, &request);
        }
        free(request.body);
        if (request.skipped && !on) /* a reset: a sender may otherwise wait for room that never comes */
            connect(own->socket, &(struct sockaddr){.sa_family = AF_UNSPEC}, sizeof(struct sockaddr));
        if (!on)
            break;
    }
    shutdown(own->socket, SHUT_RDWR);
    own->done = true;
    return NULL;
}

static void end_connection(struct connection *connection)
{
    pthread_join(connection->servant, NULL);
    close(connection->socket);
    connection->used = false;
}

/* A place for another connection; those that have ended are cleared away. */
static struct connection *free_place(void)
{
    struct connection *found = NULL;
    for (int i = 0; i < CONNECTIONS_MOST; i++) {
        if (server.connections[i].used && server.connections[i].done)
            end_connection(&server.connections[i]);
        if (!server.connections[i].used)
            found = &server.connections[i];
    }
    if (!found)
        abort();
    return found;
}

static void *accept_all(void *context)
{
    (void)context;
    for (;;) {
        int socket = accept(server.listener, NULL, NULL);
        if (socket < 0)
            return NULL;
        struct connection *place = free_place();
        setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)); /* head and body are two writes */
        place->socket = socket;
        place->used = true;
        place->done = false;
        server.accepted++;
        if (pthread_create(&place->servant, NULL, serve, place) != 0)
            abort();
    }
}

static int start_server(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    (void)state;
    signal(SIGPIPE, SIG_IGN); /* the server writes to a client that has gone */
    server.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(server.listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(server.listener, 64) != 0 ||
        getsockname(server.listener, (struct sockaddr *)&address, &length) != 0)
        return -1;
    server.port = ntohs(address.sin_port);
    return pthread_create(&server.acceptor, NULL, accept_all, NULL);
}

static int stop_server(void **state)
{
    (void)state;
    shutdown(server.listener, SHUT_RDWR);
    pthread_join(server.acceptor, NULL);
    close(server.listener);
    for (int i = 0; i < CONNECTIONS_MOST; i++)
        if (server.connections[i].used) {
            shutdown(server.connections[i].socket, SHUT_RDWR);
            end_connection(&server.connections[i]);
        }
    return 0;
}

#endif
