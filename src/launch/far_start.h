/* Getting an agent to run on a machine that has nothing but a shell.
 *
 * A command such as "ssh corn10" is run with one more word: a script that any login shell hands on to sh.  It prints
 * lines that begin with a nonce; anything else (a banner, the output of a .bashrc) is skipped, and shown only if no
 * such line comes.
 *
 *     far    NONCE system Linux x86_64 glibc 2.36
 *     near   SHA256 SIZE                               of the build that suits
 *     far    NONCE skip FOLDER: why                    can't be used; the next one is tried
 *     far    NONCE copy FOLDER                         the program is not there, or is damaged
 *     near   SIZE bytes
 *     far    NONCE skip FOLDER: why                    a full disk, say, or one that nothing is run from
 *     far    NONCE unfit why                           it is there and does not start: a library is missing
 *     far    NONCE start 0|1 FOLDER                    0: it was copied now; from here on the agent has the streams
 *     far    NONCE none                                no folder is left
 * */
#ifndef FAR_START_H
#define FAR_START_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "launch/far_host.h"

enum { FAR_SAID_BYTES = 4096, FAR_REASON_BYTES = 1024 };

/* A command that runs, and what is known of the machine at its other end. */
typedef struct far_command {
    const char *name; /* of the machine, for messages */
    pid_t process;    /* leads its own session; 0 when none runs */
    int in, out;      /* its standard output and input; -1 */
    int said;         /* file in memory with its standard error; -1 */
    char nonce[PIPE_NONCE_BYTES];
    char system[64], folder[256];
    bool cached;     /* the program was there before */
    char junk[1024]; /* the last output that was not one of our lines */
    size_t junk_size;
} far_command;

typedef struct far_start_options {
    const char *name;
    const char *const *words;
    const char *program;     /* what is copied there; NULL: this very program */
    double patience;         /* seconds until a shell answers, and without any progress from then on */
    bool no_libraries;       /* the build that needs none */
    far_gate *gate;          /* or NULL */
    const atomic_bool *stop; /* when true, give up */
    int bell;                /* descriptor that becomes readable when `stop` may have changed */
    far_verdict (*judge)(char *reason, size_t size, const char *said, int exit_code);
} far_start_options;

/* Runs the command up to the moment when the agent starts.  Fails with a sentence that names the host: SHOAL_AGAIN for
 * what may be temporary, SHOAL_INVALID for what is not, SHOAL_ABSENT if the program does not start there and the build
 * without libraries was not tried, SHOAL_STOPPED.  The command has ended then. */
int far_start(far_command *out, const far_start_options *options);

/* The last words of the command on standard error, without control characters; "" for nothing. */
void far_command_said(const far_command *command, char *out, size_t size);
/* Fails with a sentence for a command that ended, or whose link is dead: `why`, or what it said. */
int far_command_fail(far_command *command, const char *what, const char *why, const far_start_options *options);
/* Ends it: waits for up to this many seconds for it to end by itself, then kills it and all it started.  Its exit code,
 * 128 more than the number of a signal that ended it, or -1. */
int far_command_end(far_command *command, double seconds);

/* Waits for a place at the gate, which may be NULL; SHOAL_STOPPED. */
int far_gate_pass(far_gate *gate, const atomic_bool *stop, int bell);
void far_gate_leave(far_gate *gate);

/* The last line that is not empty; "" for none.  Points into the text, which is cut after it. */
char *far_last_line(char *text);

#endif
