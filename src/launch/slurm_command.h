/* A command of Slurm that runs beside this process: sbatch, squeue, salloc.
 *
 *     slurm_command command = SLURM_COMMAND_NONE;
 *     int status = slurm_command_start(&command, words, script, 60);
 *     ... now and then: if (slurm_command_is_over(&command)) status = slurm_command_finish(&command, &text);
 *     slurm_command_release(&command);
 *
 * Nothing here blocks: a busy controller may take half a minute to answer, and a job must not stand still meanwhile. */
#ifndef SLURM_COMMAND_H
#define SLURM_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct slurm_command {
    const char *name;
    pid_t process;  /* leads its own session; 0 when none runs */
    int input;      /* the end of a pipe that the command reads; -1 for none */
    int text, said; /* files in memory with its standard output and standard error; -1 */
    int64_t until;  /* when it is killed */
    bool late;      /* it was */
    int end;        /* how it ended, as waitpid reports it */
} slurm_command;

#define SLURM_COMMAND_NONE                                                                                             \
    (slurm_command)                                                                                                    \
    {                                                                                                                  \
        .input = -1, .text = -1, .said = -1                                                                            \
    }

/* The words end with NULL; words[0] is looked for in PATH and must last.  `input` is what it reads, NULL for
 * nothing. */
int slurm_command_start(slurm_command *self, const char *const *words, const char *input, double seconds);
/* The same for one that reads a pipe, to which nothing is written: it sees the pipe end with this process at the
 * latest. */
int slurm_command_hold(slurm_command *self, const char *const *words);
static inline bool slurm_command_runs(const slurm_command *self)
{
    return self->process != 0;
}
/* Whether it has ended. */
bool slurm_command_is_over(slurm_command *self);
/* For one that has: its output, or a failure with its message: SHOAL_AGAIN if the controller can't be reached, which
 * may be temporary, SHOAL_INVALID for anything else. */
int slurm_command_finish(slurm_command *self, char **text);
/* What it has written so far to standard output, or with `said` to standard error. */
int slurm_command_read(const slurm_command *self, bool said, char **text);
/* Closes its pipe if it has one, waits that long for its end, kills it if it is still there, and forgets it. */
void slurm_command_release(slurm_command *self, double seconds);

#endif
