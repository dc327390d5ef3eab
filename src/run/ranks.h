/* Being one of several ranks: mpirun and srun start the same command line many times, and it runs once.
 *
 *     run_ranks_expect();                                           // main, for a verb that ranks can run
 *     status = run_ranks_begin(&request->ranks, on_workers);       // first thing in a verb that ranks can run
 *     ...                                                           // stages; each may fail on one rank alone
 *     return status;                                                // main ends with run_ranks_end
 *
 * A rank that fails goes straight to the end, where it tells the others.  They hear of it where they next agree: every
 * stage in which ranks meet (run_ranks_begin, run_load, run_here) begins by agreeing that all are fine, and is
 * followed by run_ranks_settled when it failed, which is then known to all. */
#ifndef RUN_RANKS_H
#define RUN_RANKS_H

#include "request.h"

/* From here on other ranks may be there; without it this process is alone, whoever started it. */
void run_ranks_expect(void);
/* Finds out how this process was started and meets the others, if there are any.  SHOAL_USAGE when workers or
 * checkpoints were asked for in ways that do not go together. */
int run_ranks_begin(const run_ranks_options *options, bool on_workers);
/* The ranks, or NULL when this process is alone. */
shoal_ranks *run_ranks(void);
/* Whether this process prints and writes: it is alone, or rank 0. */
bool run_is_first(void);

/* That all ranks are fine so far; SHOAL_OK at once when this process is alone. */
int run_ranks_agree(void);
/* The same, and *flag becomes that of rank 0, for what all make together and rank 0 alone writes. */
int run_ranks_follow(bool *flag);
/* Notes that a failure is known to all ranks; returns it. */
int run_ranks_settled(int status);

/* SHOAL_USAGE when several ranks would have to read what can be read once, as a pipe.  `name` is what the command
 * line calls it; the path may be NULL. */
int run_ranks_can_read(const char *name, const char *path);
/* What shoal_request_run returns, on every rank, in a process that did not say run_ranks_expect: the same failure
 * everywhere, and ranks stay met for the next request. */
int run_ranks_finish(int status);
/* What the program returns: tells the others of a failure that only this rank has, hears of theirs, and leaves.  On all
 * but rank 0 the status is SHOAL_OK, unless this one could not even meet the others. */
int run_ranks_end(int status);
/* After a failure was told: ends the others if they could not be met. */
void run_ranks_give_up(void);

#endif
