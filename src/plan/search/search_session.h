/* A search over a space.json with a command, a journal and trials that were made elsewhere.
 *
 *     plan_session_request request = {.space = "space.json", .command = "./job {machine} {count}", .stop = &stop, ...};
 *     plan_session *session = NULL;
 *     int status = plan_session_open(&session, &request);
 *     if (status == SHOAL_OK)
 *         status = plan_session_take_over(session);
 *     if (status == SHOAL_OK)
 *         status = plan_session_run(session);
 *     plan_session_close(&session);
 *
 * What was tried is in the journal before anything else is tried, and what to try next follows from that alone: so a
 * search resumes after any end of the program as if nothing had happened. */
#ifndef PLAN_SEARCH_SESSION_H
#define PLAN_SEARCH_SESSION_H

#include "search_journal.h"

typedef struct plan_session plan_session;

/* Who is told what happens. */
typedef struct plan_session_listener {
    void *context;
    /* Something that people should know, without a full stop. */
    void (*note)(void *context, const char *text);
    /* Trial `index` is there; the paths have what its command printed, and are NULL for one that was made before. */
    void (*tried)(void *context, const plan_session *session, int64_t index, const char *stdout_path,
                  const char *stderr_path);
    /* Now and then while a command runs. */
    void (*waiting)(void *context, const plan_session *session, int64_t candidate, double seconds);
} plan_session_listener;

typedef struct plan_session_request {
    const char *space;   /* file */
    const char *command; /* NULL: nothing is run, and only said what to try next */
    const char *results; /* a table of trials that were made elsewhere; NULL for none */
    const char *journal; /* NULL: beside the space */
    const char *prices;  /* NULL: the table that the program has */
    bool spot;
    double timeout; /* of the command; 0: none */
    plan_search_options options;
    const volatile int *stop; /* set by whoever wants an end of it */
    plan_session_listener listener;
} plan_session_request;

struct plan_session {
    const plan_session_request *request;
    plan_search_space *space;
    plan_search *search;
    plan_trial_record *trial; /* all that was told to the search */
    int64_t trials;
    plan_search_journal *journal; /* NULL without a command */
    char *journal_path, *folder;  /* of the commands' output */
    char stopped[192];            /* why it is over */
    int64_t next;                 /* what to try, where nothing is run; -1 otherwise */
};

/* Reads the space, checks the command and opens the journal.  `request` must outlive the session. */
int plan_session_open(plan_session **out, const plan_session_request *request);
/* Takes over the trials of the table and of the journal; what both have is taken from the former. */
int plan_session_take_over(plan_session *session);
/* Tries until the search is over, or, without a command, says what it would try.  SHOAL_STOPPED when *stop was set: all
 * that is done is in the journal; what was running is not. */
int plan_session_run(plan_session *session);
void plan_session_close(plan_session **session);

#endif
