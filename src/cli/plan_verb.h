/* What `shoal plan LEARNER` is asked, and how its answer is printed. */
#ifndef CLI_PLAN_VERB_H
#define CLI_PLAN_VERB_H

#include "cli.h"
#include "plan/plan.h"

/* Of the choices in cli_plan.c. */
enum { CLI_PLAN_PAPER = 1, CLI_PLAN_SPLIT = 1 };

typedef struct cli_plan_settings {
    /* The job. */
    int64_t rows, columns;
    int type, source, model; /* choices */
    const char *reduce;
    int roles; /* choice */
    /* The workers. */
    const char *workers, *machines, *prices;
    int64_t threads;
    bool spot;
    double speed;
    const char *start, *replace, *billed;
    const char *price, *losses; /* numbers, of which 0 is one; NULL: not given */
    /* What is wanted. */
    const char *deadline, *budget;
    int objective; /* choice: plan_goal */
    /* Constants that replace measured ones; 0: as measured. */
    double flops, bandwidth, write_bandwidth, account_bandwidth, latency, connections;
    const char *straggle, *store;
    bool no_probe;
    /* Output. */
    const char *picture;
    bool json, all, force;
} cli_plan_settings;

/* What the learner of a plan is. */
typedef struct cli_plan_asked {
    const shoal_algorithm *algorithm;
    const void *config; /* of the learner */
    const cli_plan_settings *settings;
    const char *path; /* DATA, or NULL */
    shoal_data *data; /* read from there as the command would; NULL: not yet */
    double open;      /* seconds that this took */
    int64_t classes;  /* labels in the last column of rows that are made up for a probe; 0: none */
    int64_t rounds;   /* of a learner that ends when it likes; 0: not told */
} cli_plan_asked;

/* SHOAL_USAGE names an option that would have no effect beside the others, so that nobody believes it had
 * one.  `local`: the workers are processes of this machine. */
int cli_plan_check(const cli_plan_asked *asked, bool local);
/* The request that the options spell; workers.number of it is the caller's.  SHOAL_USAGE names the option. */
int cli_plan_read(plan_request *out, const cli_plan_asked *asked);

/* With `all` every option is in the table, otherwise the most telling ones when these are many. */
int cli_plan_print(FILE *stream, const plan *plan, bool all);
int cli_plan_print_table(FILE *stream, const plan *plan, bool all);
int cli_plan_print_json(const plan *plan);

#endif
