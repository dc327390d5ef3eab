/* The programs that answer grains.  See exec_pool.h. */
#include "learn/exec/exec_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/spawn.h"
#include "base/world.h"

enum { COMMAND_BYTES_MOST = 64 * 1024, HOST_BYTES = 65, SAID_ROOM = 3000, SHOWN_COMMAND = 120 };
static const double END_SECONDS = 1;

extern char **environ;

struct exec_pool {
    char *text, *folder, *params, *host_variable;
    char *started_as; /* the same for a shell that first tells the guard of itself */
    char **environment;
    char host[HOST_BYTES];
    double timeout;
    int64_t call; /* what exec_pool_tell said */
    const void *call_params;
    size_t call_bytes;
    base_guard guard;
    pthread_mutex_t lock; /* of what follows */
    exec_program **idle;
    int idle_count, idle_room, started;
};

/* ---- what programs run in ---------------------------------------------------------------------------------------- */

static int read_command(char **out, const char *code)
{
    char *path = NULL;
    size_t length = 0;
    int status = base_format(&path, "%s/command", code);
    int file = status == SHOAL_OK ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (status == SHOAL_OK && file < 0)
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read the command", path);
    if (status == SHOAL_OK) {
        status = base_read_whole(out, &length, file, COMMAND_BYTES_MOST - 1, "the command");
        bool is_line = status == SHOAL_OK && length > 0 && strlen(*out) == length;
        if (status != SHOAL_MEMORY && !is_line)
            status = shoal_fail(SHOAL_INVALID, "%s: no command line", path);
    }
    if (file >= 0)
        close(file);
    base_free(&path);
    return status;
}

/* Whether PATH has such a program, or the folder that it is to run in. */
static bool is_program(const char *name, const char *folder)
{
    const char *path = getenv("PATH");
    char whole[4096];
    if (strchr(name, '/')) {
        snprintf(whole, sizeof whole, "%s%s%s", name[0] == '/' ? "" : folder, name[0] == '/' ? "" : "/", name);
        return access(whole, X_OK) == 0;
    }
    for (path = path ? path : ""; *path;
         path += path[strcspn(path, ":")] == ':' ? strcspn(path, ":") + 1 : strlen(path)) {
        snprintf(whole, sizeof whole, "%.*s/%s", (int)strcspn(path, ":"), path, name);
        if (access(whole, X_OK) == 0)
            return true;
    }
    return false;
}

/* A command that is one program needs no shell that waits for it; what ends the one then ends the other. */
static bool needs_shell(const exec_pool *pool)
{
    char name[256];
    size_t length = strcspn(pool->text, " \t");
    if (strpbrk(pool->text, ";|&<>()$`{}!=\n") || length == 0 || length >= sizeof name)
        return true;
    snprintf(name, sizeof name, "%.*s", (int)length, pool->text);
    return strpbrk(name, "'\"\\~*?[#") || !is_program(name, pool->folder);
}

/* It tells the guard before anything of the user's runs, so that nothing runs that the guard does not know.  The
 * command has lines of its own: one that is no shell script is its own failure. */
static int make_start(exec_pool *pool)
{
    return base_format(&pool->started_as, "echo $$ >&%d; exec %d>&-\n%s%s", BASE_SPAWN_EXTRA, BASE_SPAWN_EXTRA,
                       needs_shell(pool) ? "" : "exec ", pool->text);
}

static bool is_variable(const char *entry, const char *name)
{
    size_t length = strlen(name);
    return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

/* This process's variables and our two. */
static int make_environment(exec_pool *pool, const char *params)
{
    size_t count = 0, used = 0;
    while (environ && environ[count])
        count++;
    int status = base_alloc(&pool->environment, count + 3, sizeof *pool->environment, "variables");
    if (status == SHOAL_OK)
        status = base_format(&pool->params, "SHOAL_PARAMS=%s", params);
    if (status == SHOAL_OK)
        status = base_format(&pool->host_variable, "SHOAL_HOST=%s", pool->host);
    if (status < 0)
        return status;
    for (size_t i = 0; i < count; i++)
        if (!is_variable(environ[i], "SHOAL_PARAMS") && !is_variable(environ[i], "SHOAL_HOST"))
            pool->environment[used++] = environ[i];
    pool->environment[used++] = pool->params;
    pool->environment[used] = pool->host_variable;
    return SHOAL_OK;
}

static int start_program(exec_program **out, const exec_pool *pool)
{
    const exec_command command = {
        .text = pool->started_as, .folder = pool->folder, .environment = pool->environment, .extra = pool->guard.pipe};
    return exec_program_start(out, &command);
}

/* ---- the pool ---------------------------------------------------------------------------------------------------- */

int exec_pool_new(exec_pool **out, const exec_pool_options *options)
{
    exec_pool *pool = NULL;
    int status = base_alloc(&pool, 1, sizeof *pool, "programs");
    if (status < 0)
        return status;
    pthread_mutex_init(&pool->lock, NULL);
    pool->guard.pipe = -1;
    pool->timeout = options->timeout;
    if (gethostname(pool->host, sizeof pool->host - 1) < 0 || !pool->host[0])
        strcpy(pool->host, "this machine");
    status = read_command(&pool->text, options->code);
    if (status == SHOAL_OK)
        status = base_format(&pool->folder, "%s/files", options->code);
    if (status == SHOAL_OK && mkdir(pool->folder, 0700) < 0 && errno != EEXIST) /* nothing may have been sent along */
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't make a folder for programs", pool->folder);
    if (status == SHOAL_OK)
        status = make_start(pool);
    if (status == SHOAL_OK)
        status = make_environment(pool, options->params);
    if (status == SHOAL_OK && (errno = base_guard_start(&pool->guard, 0)) != 0)
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "can't start /bin/sh");
    if (status < 0)
        exec_pool_free(&pool);
    *out = pool;
    return status;
}

void exec_pool_free(exec_pool **inout)
{
    exec_pool *pool = *inout;
    if (!pool)
        return;
    for (int i = 0; i < pool->idle_count; i++)
        exec_program_close(pool->idle[i]);
    int64_t until = base_time_after(base_now(), END_SECONDS);
    for (int i = 0; i < pool->idle_count; i++)
        exec_program_end(&pool->idle[i], until);
    base_guard_stop(&pool->guard); /* what it has learnt is over, and its numbers may be someone else's */
    pthread_mutex_destroy(&pool->lock);
    base_free(&pool->idle);
    base_free(&pool->environment);
    base_free(&pool->host_variable);
    base_free(&pool->params);
    base_free(&pool->folder);
    base_free(&pool->started_as);
    base_free(&pool->text);
    base_free(inout);
}

/* Takes one that is idle; NULL inside when none is. */
static void take_idle(exec_program **out, exec_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    *out = pool->idle_count > 0 ? pool->idle[--pool->idle_count] : NULL;
    pthread_mutex_unlock(&pool->lock);
}

void exec_pool_give_back(exec_pool *pool, exec_program **program)
{
    int status = SHOAL_OK;
    if (!*program)
        return;
    pthread_mutex_lock(&pool->lock);
    if (pool->idle_count == pool->idle_room) {
        int room = pool->idle_room ? pool->idle_room * 2 : 8;
        status = base_grow(&pool->idle, (size_t)pool->idle_count, (size_t)room, sizeof *pool->idle, "programs");
        pool->idle_room = status == SHOAL_OK ? room : pool->idle_room;
    }
    if (status == SHOAL_OK) {
        pool->idle[pool->idle_count++] = *program;
        *program = NULL;
    }
    pthread_mutex_unlock(&pool->lock);
    exec_program_end(program, 0); /* without room for it another is started later */
}

void exec_pool_tell(exec_pool *pool, int64_t call, const void *params, size_t bytes)
{
    pool->call = call;
    pool->call_params = params;
    pool->call_bytes = bytes;
}

int exec_pool_ready(exec_pool *pool, int programs)
{
    int status = SHOAL_OK;
    while (status == SHOAL_OK && pool->started < programs) {
        exec_program *program = NULL;
        status = start_program(&program, pool);
        exec_pool_give_back(pool, &program);
        pool->started++;
    }
    return status;
}

int exec_pool_fail(const exec_pool *pool, const exec_program *by, const shoal_grain *grain, const char *what)
{
    char said[SAID_ROOM];
    bool is_long = strlen(pool->text) > SHOWN_COMMAND;
    exec_program_said(by, said, sizeof said);
    return shoal_fail(SHOAL_INVALID, "'%.*s%s' failed on rows %lld to %lld on %s: %s%s%s", SHOWN_COMMAND, pool->text,
                      is_long ? "..." : "", (long long)grain->first_row + 1,
                      (long long)(grain->first_row + grain->rows), pool->host, what,
                      said[0] ? "; its last lines on stderr: " : "", said);
}

static int64_t deadline(const exec_pool *pool)
{
    return pool->timeout > 0 ? base_time_after(base_now(), pool->timeout) : INT64_MAX;
}

/* Its own failures become sentences; a lack of memory is nobody's fault. */
static int explain_failure(int status, const exec_pool *pool, const exec_program *by, const shoal_grain *grain)
{
    char what[256];
    if (status != SHOAL_INVALID)
        return status;
    snprintf(what, sizeof what, "%s", shoal_error());
    return exec_pool_fail(pool, by, grain, what);
}

static int ask(exec_answer *out, exec_program *program, const exec_pool *pool, const shoal_grain *grain)
{
    const exec_question question = {.values = grain->values,
                                    .rows = grain->rows,
                                    .columns = grain->shape->columns,
                                    .type = grain->shape->type,
                                    .call = pool->call,
                                    .params = pool->call_params,
                                    .params_bytes = pool->call_bytes};
    return exec_program_ask(out, program, &question, deadline(pool));
}

int exec_pool_ask(exec_answer *out, exec_program **by, exec_pool *pool, const shoal_grain *grain)
{
    take_idle(by, pool);
    int status = *by ? SHOAL_OK : start_program(by, pool);
    if (status == SHOAL_OK)
        status = explain_failure(ask(out, *by, pool, grain), pool, *by, grain);
    if (status < 0)
        exec_program_end(by, 0);
    return status;
}

int exec_pool_probe(exec_answer *out, exec_program **by, exec_pool *pool, const shoal_grain *grain)
{
    int status = start_program(by, pool);
    if (status < 0)
        return status;
    status = ask(out, *by, pool, grain);
    exec_program_close(*by);
    if (status == SHOAL_OK)
        status = exec_program_finish(*by, deadline(pool));
    status = explain_failure(status, pool, *by, grain);
    if (status < 0)
        exec_program_end(by, 0);
    return status;
}
