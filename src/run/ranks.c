/* Being one of several ranks.  See ranks.h. */
#include "ranks.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/in_step.h"
#include "load.h"
#include "ranks_data.h"

/* How this process was started, and with whom it runs. */
static struct {
    bool expected; /* the verb is one that ranks can run */
    bool started;  /* as one of several */
    shoal_ranks_started how;
    shoal_ranks *ranks;
    bool alone;   /* asked to be */
    bool failed;  /* the other ranks could not be reached */
    bool settled; /* a failure is known to all */
} self;

static void find_start(void)
{
    self.started = shoal_ranks_find(&self.how);
}

/* Several threads may ask at the same time, in a process that runs alone. */
static bool was_started(void)
{
    static pthread_once_t looked = PTHREAD_ONCE_INIT;
    pthread_once(&looked, find_start);
    return self.started;
}

void run_ranks_expect(void)
{
    self.expected = true;
}

shoal_ranks *run_ranks(void)
{
    return self.ranks;
}

bool run_is_first(void)
{
    if (self.ranks)
        return self.ranks->rank == 0;
    return !self.expected || self.alone || !was_started() || self.how.rank == 0;
}

int run_ranks_settled(int status)
{
    if (self.ranks && status < 0)
        self.settled = true;
    return status;
}

int run_ranks_agree(void)
{
    return self.ranks ? run_ranks_settled(engine_agree(self.ranks, SHOAL_OK)) : SHOAL_OK;
}

int run_ranks_follow(bool *flag)
{
    int status = run_ranks_agree();
    if (status == SHOAL_OK && self.ranks)
        self.ranks->share(self.ranks, flag, sizeof *flag, 0);
    return status;
}

int run_ranks_can_read(const char *name, const char *path)
{
    if (!path || !self.ranks || self.ranks->size == 1 || !run_is_read_once(path))
        return SHOAL_OK;
    return shoal_fail(SHOAL_USAGE,
                      "%s %s: every rank reads it, and a pipe can be read only once: write it to a file first", name,
                      path);
}

/* ---- the beginning ----------------------------------------------------------------------------------------------- */

static int check_ranks_options(const run_ranks_options *options, bool on_workers)
{
    bool saves = options->checkpoint > 0 || options->resume;
    if (on_workers && options->engine != RUN_ENGINE_AUTO)
        return shoal_fail(SHOAL_USAGE,
                          "--engine is for runs without workers: leave out --engine, or --workers and --store");
    if (on_workers && (saves || options->file))
        return shoal_fail(SHOAL_USAGE,
                          "checkpoints are for runs without workers: a job on workers keeps its rounds in its store, "
                          "and continues by itself or by shoal job resume");
    if (options->file && strncmp(options->file, "mem:", 4) == 0)
        return shoal_fail(SHOAL_USAGE,
                          "--checkpoint-file %s would be gone with this process: name a file, or a blob of another "
                          "store",
                          options->file);
    if (options->file && !saves)
        return shoal_fail(SHOAL_USAGE, "--checkpoint-file needs --checkpoint SECONDS or --resume");
    return SHOAL_OK;
}

/* Connects to the other ranks, whatever has happened to this one so far. */
static int meet(int status)
{
    char why[512];
    if (status < 0)
        snprintf(why, sizeof why, "%s", shoal_error());
    int opened = self.ranks ? SHOAL_OK : shoal_ranks_open(&self.ranks, NULL);
    if (opened < 0) {
        self.failed = true;
        return status < 0 ? shoal_fail(status, "%s", why) : opened;
    }
    if (status < 0)
        shoal_fail(status, "%s", why);
    return run_ranks_settled(engine_agree(self.ranks, status));
}

int run_ranks_begin(const run_ranks_options *options, bool on_workers)
{
    bool started = self.expected && was_started(), asked = options->engine == RUN_ENGINE_MPI;
    int status = check_ranks_options(options, on_workers);
    bool alone = options->engine == RUN_ENGINE_THREADS || (!started && !asked);
    if (self.expected) /* nobody else asks */
        self.alone = alone;
    if (alone)
        return status;
    if (status == SHOAL_OK && on_workers)
        status =
            shoal_fail(SHOAL_USAGE, "started by %s, but --workers is given too: use one of them", self.how.launcher);
    return meet(status);
}

int run_load(shoal_outcome *outcome)
{
    int status = run_ranks_agree();
    return status == SHOAL_OK ? run_ranks_settled(run_ranks_load(outcome, self.ranks)) : status;
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

/* A rank that could not reach the others does not know whether it is the only one.  If all failed alike, rank 0 reports
 * it and ends the rest, which wait here.  Otherwise the others wait for this one until it ends them.  srun ends nobody:
 * so one rank of every host reports it. */
static int fail_unmet(int status)
{
    const struct timespec a_while = {.tv_sec = 10};
    const char *here = getenv("SLURM_LOCALID");
    char host[ENGINE_HOST_BYTES];
    if (strcmp(self.how.launcher, "srun") == 0 && here && strcmp(here, "0") != 0)
        exit(1);
    nanosleep(&a_while, NULL);
    engine_host(host);
    return shoal_fail(status, "rank %d on %s: %s", self.how.rank, host, shoal_error());
}

void run_ranks_give_up(void)
{
    if (self.failed && self.started)
        shoal_ranks_give_up(&self.how);
}

/* Tells the others of a failure that only this rank has, and learns of theirs. */
static int share_end(int status)
{
    char why[1024];
    if (!self.ranks || self.settled)
        return status;
    if (status < 0)
        snprintf(why, sizeof why, "%s", shoal_error());
    int agreed = engine_agree(self.ranks, status < 0 ? status : SHOAL_OK);
    return status < 0 && run_is_first() ? shoal_fail(status, "%s", why) : agreed < 0 ? agreed : status;
}

static void close_ranks(void)
{
    shoal_ranks_close(&self.ranks);
}

int run_ranks_finish(int status)
{
    static bool closes;
    if (!self.ranks || self.expected)
        return status;
    status = share_end(status);
    self.settled = false;
    if (!closes) /* MPI can be used once in a process: others may run on the same ranks yet */
        closes = atexit(close_ranks) == 0;
    return status;
}

int run_ranks_end(int status)
{
    if (self.expected && !self.ranks && !self.failed && !self.alone && status < 0 && was_started())
        status = meet(status);
    bool first = run_is_first();
    status = share_end(status);
    close_ranks();
    if (self.failed && !first && !self.how.bare) /* which all can see that they are */
        return fail_unmet(status);
    return first ? status : SHOAL_OK;
}
