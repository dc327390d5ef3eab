/* Running a sweep's trials on this machine: any number of processes may do so for one sweep, here and elsewhere, begin
 * and die at any moment, and meet only in its store.  On other machines workers of jobs do it as a task (crew.h). */
#ifndef SWEEP_RUNNER_H
#define SWEEP_RUNNER_H

#include "place.h"

typedef struct sweep_run {
    const sweep_spec *spec;
    sweep_place place;
    const char *folder;  /* that trials keep files in, one folder each */
    const char *program; /* shoal itself, for learners */
    const char *here;    /* the folder that commands run in; NULL: this process's */
    bool leaves;         /* `folder` goes with this process: what whole trials have made goes to the store, too */
    int64_t workers;     /* trials at once here */
    int64_t threads;     /* of a learner's trial */
    const struct sweep_crew_options *crew; /* workers elsewhere; NULL: none */
    double seconds;                        /* after which it stops; 0: never */
    int64_t trials; /* limits; when they are not those of the log it is told so; 0: all are as the log has them */
    double goal;    /* infinite: none */
    double price;   /* dollars an hour of a worker costs; 0: nobody said */
    double budget;  /* dollars that all of it may cost; 0: any */
    bool (*stops)(void *context); /* whether it is to stop; may be asked often */
    /* Called whenever something was taken in, by one thread at a time: the order of this process that has ended, or
     * NULL.  May be NULL. */
    void (*told)(void *context, const sweep_log *log, const sweep_ended *ended);
    void *context;
} sweep_run;

/* Puts the spec where there is none, or compares it with the one that is there: SHOAL_USAGE when it is another, or when
 * there is one and the sweep is not to be `resumed`. */
int sweep_run_open(const sweep_run *run, bool resumed);
/* Runs it to its end; the log is the caller's, made of the spec, and says what came of it.  SHOAL_STOPPED when it
 * stops. */
int sweep_run_trials(sweep_log *log, const sweep_run *run);

/* The command of a trial, or of one of its repeats (command.c), which the caller frees. */
int sweep_command(char **out, const sweep_run *run, const sweep_point *point, int repeat);
/* SHOAL_USAGE for a command that does not fit the space, or a learner that has no such options. */
int sweep_command_check(const sweep_spec *spec, const char *source);
/* A name for a runner of this process, and whether one of this machine is known to have died; what is the same for all
 * processes that see each other's numbers (runner_name.c). */
enum { SWEEP_MACHINE_BYTES = 64, SWEEP_RUNNER_BYTES = 96 };
void sweep_runner_name(char out[SWEEP_RUNNER_BYTES]);
bool sweep_runner_is_dead(const char *name);
void sweep_machine_name(char out[SWEEP_MACHINE_BYTES]);

#endif
