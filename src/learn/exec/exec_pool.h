/* The programs of one process of ours: as many as ask at once, each kept for the next grain.
 *
 *     exec_program *program = NULL;
 *     exec_answer answer;
 *     int status = exec_pool_ask(&answer, &program, pool, grain);     // from any thread
 *     ... what is in answer, until
 *     exec_pool_give_back(pool, &program);
 *
 * Messages name the program, the rows, the machine, what happened, and what the program last said.  Should this process
 * be killed, a guard ends all its programs: a shell at the end of a pipe that has learnt their process groups. */
#ifndef EXEC_POOL_H
#define EXEC_POOL_H

#include <shoal/learn.h>

#include "learn/exec/exec_program.h"

typedef struct exec_pool exec_pool;

typedef struct exec_pool_options {
    const char *code;   /* the folder that has `command` and `files` */
    const char *params; /* JSON */
    double timeout;     /* seconds a grain; 0: no limit */
} exec_pool_options;

int exec_pool_new(exec_pool **out, const exec_pool_options *options);
/* From now on grains are answered with these params, which must last until the next: number `call`, from 1 on. */
void exec_pool_tell(exec_pool *pool, int64_t call, const void *params, size_t bytes);
/* Starts programs ahead of time until there are this many, so that they get ready meanwhile. */
int exec_pool_ready(exec_pool *pool, int programs);
int exec_pool_ask(exec_answer *out, exec_program **by, exec_pool *pool, const shoal_grain *grain);
/* The whole life of a separate program: one grain, one answer, the end of its input, its end. */
int exec_pool_probe(exec_answer *out, exec_program **by, exec_pool *pool, const shoal_grain *grain);
/* For callers that find fault with an answer: fails with a message like the others. */
int exec_pool_fail(const exec_pool *pool, const exec_program *by, const shoal_grain *grain, const char *what);
void exec_pool_give_back(exec_pool *pool, exec_program **program);
/* Ends all programs; those that have not ended a second after their input did are killed. */
void exec_pool_free(exec_pool **pool);

#endif
