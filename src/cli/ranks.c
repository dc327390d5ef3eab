/* Being one of several ranks.  See ranks.h. */
#include "ranks.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/in_step.h"
#include "ranks_data.h"

static const char *const engines[] = {"auto", "threads", "mpi", NULL};
static const char engine_help[] =
    "auto: ranks when mpirun or srun started this, otherwise threads; threads: this process alone; mpi: ranks; never "
    "changes the result";

#define ENGINE_ROW                                                                                                     \
    {                                                                                                                  \
        "engine", 0, SHOAL_OPTION_CHOICE, offsetof(cli_ranks_settings, engine), "NAME",                                \
            .help = engine_help, .fallback = "auto", .choices = engines                                                \
    }

static const shoal_option engine_rows[] = {ENGINE_ROW, {0}};
static const shoal_option rows[] = {
    ENGINE_ROW,
    {"verify", 0, SHOAL_OPTION_COUNT, offsetof(cli_ranks_settings, verify), "N",
     .help = "ranks: compare the models that all have every N rounds, by a hash, and stop when one differs; 0: never",
     .fallback = "16"},
    {"checkpoint", 0, SHOAL_OPTION_REAL, offsetof(cli_ranks_settings, checkpoint), "SECONDS",
     .help =
         "keep the round that comes next every so many seconds, so that --resume can go on after a crash; 0: never"},
    {"checkpoint-file", 0, SHOAL_OPTION_TEXT, offsetof(cli_ranks_settings, file), "FILE|URL",
     .help = "where: a file, or a blob of a store; LEARNER.checkpoint when left out; gone when all is done"},
    {"resume", 0, SHOAL_OPTION_FLAG, offsetof(cli_ranks_settings, resume), NULL,
     .help = "go on with the checkpoint, with any number of threads or ranks, if there is one; the result has the "
             "same bits"},
    {0},
};
const shoal_option *const cli_ranks_options = rows, *const cli_engine_options = engine_rows;

/* How this process was started, and with whom it runs. */
static struct {
    bool expected;        /* the verb is one that ranks can run */
    bool looked, started; /* started: as one of several */
    shoal_ranks_started how;
    shoal_ranks *ranks;
    bool alone;   /* asked to be */
    bool failed;  /* the others could not be met */
    bool settled; /* a failure is known to all */
} self;

static bool was_started(void)
{
    if (!self.looked)
        self.started = shoal_ranks_find(&self.how);
    self.looked = true;
    return self.started;
}

void cli_ranks_expect(void)
{
    self.expected = true;
}

shoal_ranks *cli_ranks(void)
{
    return self.ranks;
}

bool cli_is_first(void)
{
    if (self.ranks)
        return self.ranks->rank == 0;
    return !self.expected || self.alone || !was_started() || self.how.rank == 0;
}

int cli_ranks_settled(int status)
{
    self.settled |= self.ranks && status < 0;
    return status;
}

int cli_ranks_agree(void)
{
    return self.ranks ? cli_ranks_settled(engine_agree(self.ranks, SHOAL_OK)) : SHOAL_OK;
}

int cli_ranks_follow(bool *wish)
{
    int status = cli_ranks_agree();
    if (status == SHOAL_OK && self.ranks)
        self.ranks->share(self.ranks, wish, sizeof *wish, 0);
    return status;
}

int cli_ranks_can_read(const char *name, const char *path)
{
    if (!path || !self.ranks || self.ranks->size == 1 || !cli_is_read_once(path))
        return SHOAL_OK;
    return shoal_fail(SHOAL_USAGE,
                      "%s %s: every rank reads it, and a pipe can be read only once: write it to a file first", name,
                      path);
}

/* ---- the beginning ----------------------------------------------------------------------------------------------- */

static int check_settings(const cli_ranks_settings *settings, bool on_workers)
{
    bool saves = settings->checkpoint > 0 || settings->resume;
    if (on_workers && settings->engine != CLI_ENGINE_AUTO)
        return shoal_fail(SHOAL_USAGE,
                          "--engine is for runs without workers: leave out --engine, or --workers and --store");
    if (on_workers && (saves || settings->file))
        return shoal_fail(SHOAL_USAGE,
                          "checkpoints are for runs without workers: a job on workers keeps its rounds in its store, "
                          "and goes on by itself or by shoal job resume");
    if (settings->file && strncmp(settings->file, "mem:", 4) == 0)
        return shoal_fail(SHOAL_USAGE,
                          "--checkpoint-file %s would be gone with this process: name a file, or a blob of another "
                          "store",
                          settings->file);
    if (settings->file && !saves)
        return shoal_fail(SHOAL_USAGE, "--checkpoint-file needs --checkpoint SECONDS or --resume");
    return SHOAL_OK;
}

/* Meets the others, whatever has happened to this rank so far. */
static int meet(int status)
{
    char why[512];
    if (status < 0)
        snprintf(why, sizeof why, "%s", shoal_error());
    int opened = shoal_ranks_open(&self.ranks, NULL);
    if (opened < 0) {
        self.failed = true;
        return status < 0 ? shoal_fail(status, "%s", why) : opened;
    }
    if (status < 0)
        shoal_fail(status, "%s", why);
    return cli_ranks_settled(engine_agree(self.ranks, status));
}

int cli_ranks_begin(const cli_ranks_settings *settings, bool on_workers)
{
    bool started = was_started(), asked = settings->engine == CLI_ENGINE_MPI;
    int status = check_settings(settings, on_workers);
    self.alone = settings->engine == CLI_ENGINE_THREADS || (!started && !asked);
    if (self.alone)
        return status;
    if (status == SHOAL_OK && on_workers)
        status =
            shoal_fail(SHOAL_USAGE, "started by %s, and asked for workers: do without one of them", self.how.launcher);
    return meet(status);
}

int cli_load(cli_job *job, int (*load)(cli_job *job, void *context), void *context)
{
    int status = cli_ranks_agree();
    return status == SHOAL_OK ? cli_ranks_settled(cli_ranks_load(job, self.ranks, load, context)) : status;
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

/* A rank that could not meet the others does not know whether it is the only one.  When all are alike, rank 0 tells it
 * and ends the rest, which wait here.  Otherwise the others wait for this one, until it ends them.  srun ends nobody:
 * so of every host one rank tells it. */
static int fail_unmet(int status)
{
    const struct timespec a_while = {.tv_sec = 10};
    const char *here = getenv("SLURM_LOCALID");
    char host[ENGINE_HOST_BYTES];
    if (strcmp(self.how.launcher, "srun") == 0 && here && strcmp(here, "0") != 0)
        exit(CLI_FAILED);
    nanosleep(&a_while, NULL);
    engine_host(host);
    return shoal_fail(status, "rank %d on %s: %s", self.how.rank, host, shoal_error());
}

void cli_ranks_give_up(void)
{
    if (self.failed && self.started)
        shoal_ranks_give_up(&self.how);
}

int cli_ranks_end(int status)
{
    bool first;
    if (self.expected && !self.ranks && !self.failed && !self.alone && status < 0 && was_started())
        status = meet(status);
    first = cli_is_first();
    if (self.ranks && !self.settled) {
        char why[1024];
        int own = status;
        if (own < 0)
            snprintf(why, sizeof why, "%s", shoal_error());
        int agreed = engine_agree(self.ranks, own < 0 ? own : SHOAL_OK);
        status = own < 0 && first ? shoal_fail(own, "%s", why) : agreed < 0 ? agreed : own;
    }
    shoal_ranks_close(&self.ranks);
    if (self.failed && !first && !self.how.bare) /* which all can see that they are */
        return fail_unmet(status);
    return first ? status : SHOAL_OK;
}
