/* How jobs are shown. */
#ifndef CLI_JOB_PRINT_H
#define CLI_JOB_PRINT_H

#include "cli.h"
#include "control/aim.h"

/* "3 s", "12 min", "4 h", "9 days". */
void cli_format_age(char *out, size_t size, double seconds);
/* The learner's name, as a terminal may have it. */
void cli_format_learner(char *out, size_t size, const shoal_job *job);
/* "run 7/100", "round 0" */
void cli_format_place(char *out, size_t size, const shoal_job *job);
/* What a job is held to, and how that stands. */
typedef struct cli_job_held {
    bool aimed, known;
    control_aim aim;
    control_held held;
} cli_job_held;

/* All there is to say of a job, with its workers when their records were read.  `start` is the command that starts a
 * worker, for one that waits; NULL otherwise. */
void cli_job_show_text(FILE *stream, const shoal_job *job, const cli_job_held *held, const char *start);
/* `held` is NULL where that was not looked at. */
json_t *cli_job_show_json(const shoal_job *job, const cli_job_held *held);
#endif
