/* Programs of the user's that are called again and again over the same rows: the learner "calls".
 *
 *     round 0    nothing is asked: programs are started, and rows are loaded
 *     round n    every grain is answered with the params of call n, and the answers are joined
 *
 * Programs get the params of a call as an array of bytes with one dimension, before the first rows of that call, and
 * answer rows, which have two, with an array of bytes.  What the next call is only the process knows that makes it, so
 * the job is led by a worker of that process alone, in a thread that has called exec_calls_lead; all others map and
 * reduce.  The config is that of exec, of which only the timeout is used. */
#ifndef EXEC_CALLS_H
#define EXEC_CALLS_H

#include <shoal/exec.h>

typedef struct exec_caller {
    void *context;
    /* All answers to a call, in the order of the rows; they belong to it from then on. */
    void (*answered)(void *context, int64_t call, void *answers, size_t bytes);
    /* Waits for the next call.  The params are copied at once.  SHOAL_STOPPED when it is not to be waited for any
     * more; SHOAL_ABSENT when there will be none, which is the end of the job. */
    int (*await)(void *context, int64_t call, const void **params, size_t *bytes);
} exec_caller;

/* Makes this thread one that leads such a job; NULL: no more. */
void exec_calls_lead(const exec_caller *caller);

extern const shoal_algorithm exec_calls;

#endif
