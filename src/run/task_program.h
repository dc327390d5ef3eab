/* Programs that stay: the function "program" of workers, which asks a process that it keeps for the next task.
 *
 * A task's bytes say which, and what it is asked:
 *
 *     COMMAND '\0' QUESTION      COMMAND is a line for /bin/sh
 *
 * The program reads .npy arrays from its standard input and answers with one on its standard output, as those of
 * `shoal run --exec` do (include/shoal/run.h).  Bytes with two dimensions, one row, are a question, whose answer is
 * the task's result.  Bytes with one dimension tell it of the task's files, before the question, by their first byte:
 *
 *     '*' NAME '\n' ...      the files of the next question, in their order
 *     '+' NAME '\0' BYTES    a file that it has not been given yet, and is to keep
 *     '-' NAME               one that it need not keep any more
 *
 * A program that fails its answer, or is not wanted any more, is ended with all that it has started. */
#ifndef RUN_TASK_PROGRAM_H
#define RUN_TASK_PROGRAM_H

#include <shoal/task.h>

/* The functions that every worker has. */
extern const shoal_task_entry run_task_functions[];
/* Ends the programs that wait for tasks. */
void run_task_programs_end(void);

#endif
