/* Conformance over a pipe: a process that serves a store to others, as the two ends of a link do that workers of
 * another machine use.  The ends are joined by pipes, as ssh's standard streams are. */
#ifndef CONFORM_STORE_PIPED_H
#define CONFORM_STORE_PIPED_H

#include "store_support.h"
#include "store/pipe/pipe.h"

/* The socket whose link is cut again and again. */
#define CUT_OFTEN "pipe-cut"
#define PIPE_NONCE "0123456789abcdef0123456789abcdef"

/* Both ends of a link. */
typedef struct piped_link {
    pipe_server *server;
    pipe_hub *hub;
} piped_link;

static int open_link(piped_link *out, shoal_store *store, const char *socket)
{
    int down[2], up[2];
    if (pipe2(down, O_CLOEXEC) < 0 || pipe2(up, O_CLOEXEC) < 0)
        return shoal_fail(SHOAL_SYSTEM, "there can be no more pipes");
    int status =
        pipe_server_new(&out->server, up[0], down[1], &(pipe_server_options){.store = store, .nonce = PIPE_NONCE});
    if (status == SHOAL_OK)
        status = pipe_hub_new(&out->hub, down[0], up[1], &(pipe_hub_options){.socket = socket, .nonce = PIPE_NONCE});
    return status;
}

/* By turns the far end goes first and the near end does. */
static void cut_link(piped_link *link, int times)
{
    if (times % 2)
        pipe_hub_free(&link->hub);
    pipe_server_free(&link->server);
    pipe_hub_free(&link->hub);
}

/* Another link in the place of this one, on the same socket: it is never missing, but may be dead for a moment. */
static int change_link(piped_link *link, shoal_store *store, const char *socket, int times)
{
    char fresh[URL_MOST];
    piped_link next = {0};
    snprintf(fresh, sizeof fresh, "%s.%d", socket, times);
    int status = open_link(&next, store, fresh);
    if (status == SHOAL_OK && rename(fresh, socket) < 0)
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s", socket);
    cut_link(link, times);
    *link = next;
    return status;
}

/* Serves `url` on the socket until standard input ends.  With `every`, milliseconds, the link is cut so often, whatever
 * is under way, and another one is made. */
static int serve_piped(const char *url, const char *socket, int every)
{
    shoal_store *store = NULL;
    piped_link link = {0};
    struct pollfd input = {.fd = 0, .events = POLLIN};
    int status = shoal_store_open(&store, url, &(shoal_store_options){.create = true}, SOON);
    if (status == SHOAL_OK)
        status = open_link(&link, store, socket);
    bool ready = status == SHOAL_OK && write(1, "r", 1) == 1;
    for (int times = 0; ready && status == SHOAL_OK && poll(&input, 1, every ? every : -1) == 0; times++)
        status = change_link(&link, store, socket, times);
    if (status < 0)
        fprintf(stderr, "%s\n", shoal_error());
    cut_link(&link, 0);
    shoal_store_close(&store);
    return status < 0;
}

/* A process that does so. */
typedef struct piped {
    pid_t process;
    int input; /* closing it ends the process */
} piped;

static bool start_piped(piped *out, const char *url, const char *socket, const char *every)
{
    int input[2], output[2];
    char *words[] = {(char *)program, "--serve", (char *)url, (char *)socket, (char *)every, NULL}, ready = 0;
    posix_spawn_file_actions_t files;
    out->process = -1;
    if (pipe2(input, O_CLOEXEC) < 0 || pipe2(output, O_CLOEXEC) < 0)
        return false;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, input[0], 0);
    posix_spawn_file_actions_adddup2(&files, output[1], 1);
    if (posix_spawn(&out->process, program, &files, NULL, words, environ) != 0)
        out->process = -1;
    posix_spawn_file_actions_destroy(&files);
    close(input[0]);
    close(output[1]);
    out->input = input[1];
    bool served = out->process > 0 && read(output[0], &ready, 1) == 1;
    close(output[0]);
    return served;
}

/* Whether it ended well. */
static bool stop_piped(piped *self)
{
    int status = 1;
    if (self->process < 0)
        return false;
    close(self->input);
    waitpid(self->process, &status, 0);
    return status == 0;
}

#endif
