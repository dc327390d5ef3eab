/* A program of the user's that answers arrays with arrays: one process, spoken to over its standard streams.
 *
 *     exec_program *program = NULL;
 *     int status = exec_program_start(&program, &command);
 *     if (status == SHOAL_OK) status = exec_program_ask(&answer, program, &question, until);    // as often as wanted
 *     exec_program_end(&program, until);
 *
 * Both sides may write at once: asking polls all three streams, so neither waits for the other forever.  When a
 * program fails, the message is what happened alone ("it exited with code 1"): whoever asked knows the rest, and
 * exec_program_said. */
#ifndef EXEC_PROGRAM_H
#define EXEC_PROGRAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <shoal/data.h>

enum { EXEC_RANK_MOST = 4, EXEC_NOTES_MOST = 256 };

typedef struct exec_command {
    const char *text;   /* for /bin/sh -c */
    const char *folder; /* where it runs */
    char **environment; /* ended by NULL */
    int extra;          /* a descriptor that it has as BASE_SPAWN_EXTRA; -1 for none */
} exec_command;

/* Bytes that a program is to have before it is asked: an array of bytes with one dimension, `head` and then `bytes`. */
typedef struct exec_note {
    const void *head, *bytes;
    size_t head_size, size;
} exec_note;

/* Rows to be sent. */
typedef struct exec_question {
    const void *values;
    int64_t rows, columns;
    shoal_type type;
    /* What they are to be answered with, if that changes: sent before the rows, as an array of bytes with one
     * dimension, to a program that has not got this number yet; 0 for none. */
    int64_t call;
    const void *params;
    size_t params_bytes;
    const exec_note *note; /* sent before all else, `notes` of them, at most EXEC_NOTES_MOST */
    int notes;
    const _Atomic uint32_t *stop; /* not 0: nobody wants the answer any more; may be NULL */
} exec_question;

/* What came back: in C order and this machine's byte order.  The values belong to the program until it is asked
 * again. */
typedef struct exec_answer {
    shoal_type type;
    int rank;
    int64_t shape[EXEC_RANK_MOST];
    size_t count; /* of the values */
    const void *values;
} exec_answer;

typedef struct exec_program exec_program;

int exec_program_start(exec_program **out, const exec_command *command);
/* Its process, which leads a process group of its own. */
pid_t exec_program_id(const exec_program *program);
/* SHOAL_INVALID with what happened; SHOAL_STOPPED when it is not wanted any more; the program is then of no more use.
 * `until` as base_now counts. */
int exec_program_ask(exec_answer *out, exec_program *program, const exec_question *question, int64_t until);
/* Whether it has ended by itself. */
bool exec_program_has_ended(const exec_program *program);
/* Its input ends; nothing may be asked any more. */
void exec_program_close(exec_program *program);
/* After close: waits for its end.  SHOAL_INVALID if it writes anything more, exits with anything but 0, or does not
 * end. */
int exec_program_finish(exec_program *program, int64_t until);
/* The last lines of its standard error, with " | " between, into `out`, which ends with NUL; "" when it said
 * nothing. */
void exec_program_said(const exec_program *program, char *out, size_t size);
/* Ends its input, waits for its end, kills what is left of its group, and frees. */
void exec_program_end(exec_program **program, int64_t until);

#endif
