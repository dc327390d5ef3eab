/* Every trial of a search, one line of JSON each, so that the same command resumes where it was stopped.
 *
 *     {"journal":"shoal plan search","version":1,"space":"0f3a...","objective":"cost","command":"./job {machine}",...}
 *     {"trial":1,"machine":"c7i.large","count":4,"outcome":"done","seconds":812.4,"cost":0.0806,"why":"start 1 of 3"}
 *
 * A line is written in one piece and is on the disk before the next trial starts.  A last line that is not whole was
 * cut off by a crash, and is dropped; one that only lacks its newline, as some editors leave it, is whole. */
#ifndef PLAN_SEARCH_JOURNAL_H
#define PLAN_SEARCH_JOURNAL_H

#include "search_trial.h"

typedef struct plan_search_journal {
    char *path;
    int descriptor;
    int64_t bytes; /* of the lines that are whole */
    plan_trial_record *trial;
    int64_t trials;
    int64_t last; /* the greatest number that a trial has */
    bool cut;     /* a last line was dropped */
    bool open;    /* the last line is whole but for its newline */
} plan_search_journal;

/* What a journal is of. */
typedef struct plan_search_purpose {
    const plan_search_space *space;
    const char *objective, *command;
} plan_search_purpose;

/* Opens or starts it, and reads its trials.  Nobody else can have it open.  SHOAL_USAGE when it is of another space,
 * objective or command, SHOAL_INVALID, with the line, when it is damaged or no journal at all. */
int plan_search_journal_open(plan_search_journal **out, const char *path, const plan_search_purpose *purpose);
/* The number that the next trial gets: no other has it, also where lines were removed. */
int64_t plan_search_journal_next(const plan_search_journal *journal);
int plan_search_journal_add(plan_search_journal *journal, const plan_search_space *space,
                            const plan_trial_record *trial);
void plan_search_journal_close(plan_search_journal **journal);

/* "space.trials.jsonl" for "space.json"; the caller frees it. */
int plan_search_journal_path(char **out, const char *space_path);
/* The folder with what the commands print: "space.trials.output" for "space.trials.jsonl". */
int plan_search_output_folder(char **out, const char *journal_path);

/* A trial as its line has it, and as --json shows it; NULL when out of memory. */
json_t *plan_search_trial_json(const plan_trial_record *trial, const plan_search_space *space, int64_t number);

#endif
