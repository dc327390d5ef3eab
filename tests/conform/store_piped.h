/* Conformance over a pipe: a process that serves a store to others, as the two ends of a link do that workers of another machine
 * use.  The ends are joined by pipes, as ssh's standard streams are. */
#ifndef CONFORM_STORE_PIPED_H
#define CONFORM_STORE_PIPED_H

#include "store_support.h"
#include "store/pipe/pipe.h"

#define PIPE_NONCE "0123456789abcdef0123456789abcdef"

/* Serves `url` on the socket until standard input ends. */
static int serve_piped(const char *url, const char *socket)
{
    shoal_store *store = NULL;
    pipe_server *server = NULL;
    pipe_hub *hub = NULL;
    int down[2], up[2];
    char end;
    if (pipe2(down, O_CLOEXEC) < 0 || pipe2(up, O_CLOEXEC) < 0)
        return 1;
    int status = shoal_store_open(&store, url, &(shoal_store_options){.create = true}, SOON);
    if (status == SHOAL_OK)
        status = pipe_server_new(&server, up[0], down[1], &(pipe_server_options){.store = store, .nonce = PIPE_NONCE});
    if (status == SHOAL_OK)
        status = pipe_hub_new(&hub, down[0], up[1], &(pipe_hub_options){.socket = socket, .nonce = PIPE_NONCE});
    if (status < 0)
        fprintf(stderr, "%s\n", shoal_error());
    else if (write(1, "r", 1) == 1) /* ready */
        while (read(0, &end, 1) > 0)
            ;
    pipe_hub_free(&hub);
    pipe_server_free(&server);
    shoal_store_close(&store);
    return status < 0;
}

/* A process that does so. */
typedef struct piped {
    pid_t process;
    int input; /* closing it ends the process */
} piped;

static bool start_piped(piped *out, const char *url, const char *socket)
{
    int input[2], output[2];
    char *words[] = {(char *)program, "--serve", (char *)url, (char *)socket, NULL}, ready = 0;
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
