/* What `shoal plan LEARNER` is asked, and how its answer is told. */
#ifndef CLI_PLAN_VERB_H
#define CLI_PLAN_VERB_H

#include "cli.h"
#include "plan/calibration.h"
#include "plan/choose.h"
#include "plan_workers.h"

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
    int objective; /* choice: plan_wish */
    /* Constants that replace measured ones; 0: as measured. */
    double flops, bandwidth, write_bandwidth, account_bandwidth, latency, connections;
    const char *straggle, *store;
    bool no_probe;
    /* Output. */
    const char *picture;
    bool json, all;
} cli_plan_settings;

/* One plan.  All pointers are the verb's. */
typedef struct cli_plan_asked {
    const shoal_algorithm *algorithm;
    const void *config; /* of the learner */
    const cli_plan_settings *settings;
    const char *path; /* DATA, or NULL */
    int64_t classes;  /* labels in the last column of rows that are made up for a probe; 0: none */
    int64_t rounds;   /* of a learner that ends when it likes; 0: not told */
} cli_plan_asked;

int cli_plan_make(const cli_plan_asked *asked);
/* SHOAL_USAGE names an option that would have no effect beside the others, so that nobody believes it had
 * one.  `local`: the workers are processes of this machine. */
int cli_plan_check(const cli_plan_asked *asked, bool local);
/* Whether it is said what a machine costs. */
bool cli_plan_is_priced(const cli_plan_settings *settings);

/* An answer, and what it was made from. */
typedef struct cli_plan_answer {
    const shoal_algorithm *algorithm;
    const cli_plan_settings *settings;
    plan_question question;
    plan_choice choice;
    const plan_option *best; /* one of the choice, or `optimum` */
    shoal_paper paper;
    double formula;                      /* P* of the paper; 0 with our model */
    plan_option optimum;                 /* at P*, rounded */
    const plan_prices *prices;           /* NULL without */
    const plan_calibration *calibration; /* NULL when there is none, or nothing of it was used */
    bool probed;                         /* the learner was tried with these very options */
    bool measured_now;                   /* the learner was measured for this plan alone */
    bool site_measured;
    const char *store;  /* the scheme or address whose constants were taken */
    bool priced;        /* it is known what a machine costs; if not, `cost` has requests alone */
    char assumed[1024]; /* what was neither measured nor given, for people */
} cli_plan_answer;

int cli_plan_print(FILE *stream, const cli_plan_answer *answer);
/* The table of it: every option, or the most telling ones when these are many. */
int cli_plan_print_table(FILE *stream, const cli_plan_answer *answer);
int cli_plan_print_json(const cli_plan_answer *answer);
int cli_plan_draw(const char *path, const cli_plan_answer *answer);
/* Whether all machines are of one cloud and region, so that their names alone tell them apart. */
bool cli_plan_is_one_place(const plan_choice *choice);
/* Fails with a sentence about a plan that nothing meets: what the cheapest and the fastest would be. */
int cli_plan_nothing(const cli_plan_answer *answer);

#endif
