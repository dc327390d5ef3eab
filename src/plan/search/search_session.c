/* See search_session.h. */
#include "search_session.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "search_command.h"
#include "search_results.h"
#include "search_run.h"

__attribute__((format(printf, 2, 3))) static void note(const plan_session *session, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    session->request->listener.note(session->request->listener.context, text);
}

/* ---- what was tried before --------------------------------------------------------------------------------------- */

/* Lets the search and the session have a trial.  The paths are those of the listener. */
static int add_trial(plan_session *session, const plan_trial_record *trial, const char *stdout_path,
                     const char *stderr_path)
{
    const plan_session_listener *listener = &session->request->listener;
    plan_trial told = {.candidate = trial->candidate,
                       .outcome = trial->outcome,
                       .seconds = trial->seconds,
                       .dollars = isnan(trial->told_dollars) ? 0 : trial->told_dollars};
    int status = base_grow(&session->trial, (size_t)session->trials, (size_t)session->trials + 1,
                           sizeof *session->trial, "trials");
    if (status == SHOAL_OK)
        status = plan_search_tell(session->search, &told);
    if (status < 0)
        return status;
    session->trial[session->trials++] = *trial;
    listener->tried(listener->context, session, session->trials - 1, stdout_path, stderr_path);
    return SHOAL_OK;
}

static int take_results(plan_session *session)
{
    plan_trial_record *trial = NULL;
    int64_t count = 0;
    char ignored[256];
    int status = plan_search_results_read(&trial, &count, ignored, session->request->results, session->space);
    if (status == SHOAL_OK && ignored[0])
        note(session, "%s: columns that are ignored: %s", session->request->results, ignored);
    for (int64_t i = 0; i < count && status == SHOAL_OK; i++)
        status = add_trial(session, &trial[i], NULL, NULL);
    base_free(&trial);
    return status;
}

static bool is_tried(const plan_session *session, int64_t candidate)
{
    for (int64_t i = 0; i < session->trials; i++)
        if (session->trial[i].candidate == candidate)
            return true;
    return false;
}

static int take_journal(plan_session *session)
{
    const plan_search_journal *journal = session->journal;
    int64_t taken = 0;
    int status = SHOAL_OK;
    if (journal->cut)
        note(session, "%s: the last line was incomplete and is dropped", journal->path);
    for (int64_t i = 0; i < journal->trials && status == SHOAL_OK; i++) {
        if (is_tried(session, journal->trial[i].candidate))
            continue;
        status = add_trial(session, &journal->trial[i], NULL, NULL);
        taken++;
    }
    if (taken > 0)
        note(session, "resumed with %" PRId64 " trial%s from %s", taken, taken == 1 ? "" : "s", journal->path);
    return status;
}

int plan_session_take_over(plan_session *session)
{
    int status = session->request->results ? take_results(session) : SHOAL_OK;
    return status == SHOAL_OK && session->journal ? take_journal(session) : status;
}

/* ---- trying ------------------------------------------------------------------------------------------------------ */

typedef struct waiting {
    const plan_session *session;
    int64_t candidate;
} waiting;

static void tell_waiting(void *context, double seconds)
{
    const waiting *of = context;
    const plan_session_listener *listener = &of->session->request->listener;
    listener->waiting(listener->context, of->session, of->candidate, seconds);
}

static int make_session_folder(const char *path)
{
    if (mkdir(path, 0777) < 0 && errno != EEXIST)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't create the folder for the output of commands", path);
    return SHOAL_OK;
}

static int try_candidate(plan_session *session, int64_t candidate, const char *why)
{
    char *command = NULL, *stdout_path = NULL, *stderr_path = NULL;
    plan_trial_record trial = {.candidate = candidate, .told_dollars = NAN};
    int64_t number = plan_search_journal_next(session->journal);
    waiting of = {session, candidate};
    snprintf(trial.why, sizeof trial.why, "%s", why);
    int status = plan_search_command_fill(&command, session->space, session->request->command, candidate);
    if (status == SHOAL_OK)
        status = base_format(&stdout_path, "%s/%" PRId64 ".stdout.txt", session->folder, number);
    if (status == SHOAL_OK)
        status = base_format(&stderr_path, "%s/%" PRId64 ".stderr.txt", session->folder, number);
    if (status == SHOAL_OK)
        status = make_session_folder(session->folder);
    if (status == SHOAL_OK)
        status = plan_search_run_trial(&trial, &(plan_search_run){.command = command,
                                                                  .stdout_path = stdout_path,
                                                                  .stderr_path = stderr_path,
                                                                  .timeout = session->request->timeout,
                                                                  .stop = session->request->stop,
                                                                  .waiting = tell_waiting,
                                                                  .context = &of});
    if (status == SHOAL_OK)
        status = plan_search_journal_add(session->journal, session->space, &trial);
    if (status == SHOAL_OK)
        status = add_trial(session, &trial, stdout_path, stderr_path);
    base_free(&stderr_path);
    base_free(&stdout_path);
    base_free(&command);
    return status;
}

int plan_session_run(plan_session *session)
{
    static const char prefix[] = "stop: ";
    for (;;) {
        const char *why = "";
        int64_t next = -1;
        int status = plan_search_next(&next, &why, session->search);
        if (status < 0)
            return status;
        if (next < 0 || !session->request->command) {
            bool prefixed = strncmp(why, prefix, sizeof prefix - 1) == 0;
            snprintf(session->stopped, sizeof session->stopped, "%s", why + (prefixed ? sizeof prefix - 1 : 0));
            session->next = next;
            return SHOAL_OK;
        }
        if (*session->request->stop)
            return shoal_fail(SHOAL_STOPPED, "stopped");
        status = try_candidate(session, next, why);
        if (status < 0)
            return status;
    }
}

/* ---- before and after -------------------------------------------------------------------------------------------- */

static int open_journal(plan_session *session)
{
    const plan_session_request *request = session->request;
    int status = request->journal ? base_copy_text(&session->journal_path, request->journal)
                                  : plan_search_journal_path(&session->journal_path, request->space);
    if (status == SHOAL_OK)
        status = plan_search_output_folder(&session->folder, session->journal_path);
    if (status == SHOAL_OK)
        status = plan_search_journal_open(
            &session->journal, session->journal_path,
            &(plan_search_purpose){.space = session->space,
                                   .objective = plan_objective_name(request->options.objective),
                                   .command = request->command});
    return status;
}

int plan_session_open(plan_session **out, const plan_session_request *request)
{
    plan_session *session = NULL;
    const plan_search_terms terms = {.prices = request->prices,
                                     .spot = request->spot,
                                     .need_prices =
                                         request->options.objective != PLAN_TIME || request->options.budget > 0};
    int status = base_alloc(&session, 1, sizeof *session, "a search");
    if (status < 0)
        return status;
    session->request = request;
    session->next = -1;
    status = plan_search_space_read(&session->space, request->space, &terms);
    if (status == SHOAL_OK && request->command)
        status = plan_search_command_check(session->space, request->command);
    if (status == SHOAL_OK)
        status = plan_search_new(&session->search, &session->space->list, &request->options);
    if (status == SHOAL_OK && request->command)
        status = open_journal(session);
    if (status == SHOAL_OK && session->space->alike > 0)
        note(session, "%s: %" PRId64 " machines have the same figures as another: the model can't tell them apart",
             session->space->path, session->space->alike);
    if (status < 0)
        plan_session_close(&session);
    *out = session;
    return status;
}

void plan_session_close(plan_session **inout)
{
    plan_session *session = *inout;
    if (!session)
        return;
    base_free(&session->folder);
    base_free(&session->journal_path);
    base_free(&session->trial);
    plan_search_journal_close(&session->journal);
    plan_search_free(&session->search);
    plan_search_space_free(&session->space);
    base_free(inout);
}
