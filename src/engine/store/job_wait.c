/* When to look again.  A store that wakes is waited for; another is asked as job_guess.h says.  See job_run.h. */
#include <stdio.h>
#include <string.h>

#include "base/world.h"
#include "engine/store/job_run.h"

/* Seconds that a waiter sleeps at most without asking whether it should leave. */
static const double nap = 0.5;

job_guess *job_pace_children(job_run *run, int level)
{
    job_pace *pace = &run->pace;
    const char *phase = run->model->round->phase;
    for (int i = 0; i < pace->habits; i++)
        if (strcmp(pace->habit[i].phase, phase) == 0)
            return &pace->habit[i].children[level];
    int place = pace->habits < JOB_HABITS ? pace->habits++ : JOB_HABITS - 1;
    job_habit *habit = &pace->habit[place];
    *habit = (job_habit){0};
    snprintf(habit->phase, sizeof habit->phase, "%s", phase);
    return &habit->children[level];
}

static double round_elapsed(const job_run *run)
{
    return -base_seconds_until(run->pace.began);
}

static bool wakes(const job_run *run)
{
    return shoal_store_describe(run->store).wakes;
}

/* A number in [0, 1) that differs from worker to worker and round to round: otherwise all would help at the same
 * moment. */
static double stagger(const job_run *run)
{
    uint64_t x = run->record.worker + (uint64_t)run->model->number * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9u;
    return (double)(x >> 40) / (double)(1 << 24);
}

/* Workers that may be idle at the same time. */
static double crowd(const job_run *run)
{
    int64_t members = run->model->trailer.members > 0 ? run->model->trailer.members : run->spec->workers;
    return members > 1 ? (double)members : 1;
}

static double slack_least(const job_run *run)
{
    return wakes(run) ? 0.3 : 2;
}

static double slack_of(const job_run *run)
{
    return slack_least(run) + 20 * run->pace.trip;
}

/* The moments at which a round is slow and late.  What the last rounds of the phase took is the measure, or what one's
 * own slices took, and what requests take now.  The idle ones find it late one after another, not all at once: if they
 * did, many would do the same work while whoever it belongs to waits for a processor. */
static void set_moments(job_run *run)
{
    job_pace *pace = &run->pace;
    double round = pace->length.usual;
    double slack = slack_of(run);
    if (round < pace->own)
        round = 2 * pace->own;
    if (round <= 0) /* slices may take long, but requests take what they take */
        slack += 4 * slack_least(run) + 0.02 * crowd(run);
    pace->flush_at = base_time_after(pace->began, 1.5 * round + slack);
    pace->late_at = base_time_after(pace->began, 3 * round + slack * (2 + stagger(run)) +
                                                     stagger(run) * crowd(run) * (round + slack) / 4);
    /* A worker that has just joined can't tell the dead from the living, and must not be the next to die of a slice
     * that kills. */
    int64_t knows = base_time_after(run->watches_from ? run->watches_from : base_now(), 1.01 * run->spec->lease);
    if (pace->late_at < knows)
        pace->late_at = knows;
}

void job_pace_begin(job_run *run)
{
    run->pace.began = base_now();
    run->pace.in_step &= run->pace.next_put != 0;
    run->pace.put = run->pace.next_put ? run->pace.next_put : run->pace.began;
    run->pace.next_put = run->pace.found = 0;
    run->pace.own = 0;
    run->pace.quiet_from = 0;
    run->pace.length = job_guess_rounds(&run->model->trailer, run->model->round->phase);
    job_pace_wait_anew(run);
    set_moments(run);
    run->pace.look_pause = wakes(run) ? 0.05 : 2;
    double usual = 8 * run->pace.length.usual;
    run->pace.look_pause = run->pace.look_pause > usual ? run->pace.look_pause : usual;
    job_pace_looked(run);
}

void job_pace_mapped(job_run *run, double seconds)
{
    run->pace.own += seconds;
    set_moments(run);
}

/* One idle worker after the other, as when a round is late. */
static double quiet_seconds(const job_run *run)
{
    return 2 * (run->spec->lease + run->pace.own) + stagger(run) * crowd(run) * slack_of(run) / 4;
}

bool job_pace_is_quiet(const job_run *run)
{
    const job_pace *pace = &run->pace;
    bool assigned = run->model->trailer.pieces == job_tree_units(run->tree);
    return !assigned && pace->quiet_from && base_now() >= base_time_after(pace->quiet_from, quiet_seconds(run));
}

/* What comes after all was quiet is more likely another helper's than the work of one who was only slow: either gets
 * half a lease for the next piece. */
void job_pace_counted(job_run *run, int64_t stored)
{
    job_pace *pace = &run->pace;
    double passed = job_pace_is_quiet(run) ? quiet_seconds(run) - run->spec->lease / 2 : 0;
    if (!pace->quiet_from || pace->stored != stored)
        pace->quiet_from = base_time_after(base_now(), -passed);
    pace->stored = stored;
}

static bool is_alone(const job_run *run)
{
    for (int64_t i = 0; i < run->members.peers; i++) {
        uint64_t worker = run->members.peer[i].worker;
        if (worker != run->record.worker && job_members_alive(&run->members, worker, run->spec->lease))
            return false;
    }
    return true;
}

/* The pause must not grow with every piece: the last of many workers may have to make them all. */
void job_pace_helped(job_run *run)
{
    double waited = round_elapsed(run), most = 0.5 + 2 * run->pace.trip;
    double pause = 0.05 * waited < most ? 0.05 * waited : most;
    if (is_alone(run))
        return;
    int64_t next = base_time_after(base_now(), pause * (1 + stagger(run)) + run->pace.trip);
    if (run->pace.late_at < next)
        run->pace.late_at = next;
}

/* The first look comes soon after a round should have ended, for a worker that fell behind may wait for a model that
 * has been removed; the others ever later, up to a third of a lease, at which the dead are found. */
void job_pace_looked(job_run *run)
{
    double most = run->spec->lease / 3, pause = run->pace.look_pause < most ? run->pace.look_pause : most;
    run->pace.look_pause *= 2;
    run->pace.look_at = base_time_after(base_now(), pause);
}

/* ---- what was asked for ------------------------------------------------------------------------------------------ */

void job_pace_wait_anew(job_run *run)
{
    run->pace.first = run->pace.asked = 0;
    run->pace.came = 0;
}

/* A moment in seconds after the round's model. */
static double after_put(const job_run *run, int64_t moment)
{
    return (double)(moment - run->pace.put) * 1e-9;
}

/* When a request that was sent at that moment came to the store, or -1 for none. */
static double arrived(const job_run *run, int64_t sent)
{
    return sent ? after_put(run, sent) + run->pace.trip / 2 : -1;
}

/* A worker that is not in step counts from when it saw the model: too little makes others ask too early, and too much
 * would make them late. */
double job_pace_put_after(const job_run *run)
{
    const job_pace *pace = &run->pace;
    return pace->in_step ? arrived(run, base_now()) : round_elapsed(run) + pace->trip / 2;
}

void job_pace_note_trip(job_run *run, int64_t sent, bool brought)
{
    run->pace.trip = job_guess_trip(run->pace.trip, -base_seconds_until(sent), brought);
}

void job_pace_note_answer(job_run *run, int64_t sent, int64_t came, bool all)
{
    job_pace *pace = &run->pace;
    job_pace_note_trip(run, sent, came > 0);
    if (all)
        return;
    pace->first = pace->first ? pace->first : sent;
    pace->asked = sent;
}

void job_pace_note_children(job_run *run, int64_t sent, job_guess *guess)
{
    const job_pace *pace = &run->pace;
    job_guess_learn(guess, job_guess_between(pace->came, arrived(run, pace->asked), arrived(run, sent)));
    job_pace_wait_anew(run);
}

/* The seconds between two models are in their histories, so a worker that knows when one was put knows it of all that
 * follow.  One that does not, since it has just joined, looks from early on, and takes the last look at which the model
 * was not there: too early costs a request, and too late would make everyone wait.  What is found at the first look may
 * have been there for longer than one thinks: so the moment is moved, the more the more often that happens, until a
 * look comes too early. */
void job_pace_note_round(job_run *run)
{
    enum { DOUBLINGS = 4 };
    job_pace *pace = &run->pace;
    double seconds = run->next->trailer.seconds - run->model->trailer.seconds;
    double step = pace->trip / 8 > 0.01 * pace->length.early ? pace->trip / 8 : 0.01 * pace->length.early;
    bool at_once = pace->found && !pace->asked;
    if (!pace->in_step)
        seconds = run->next_is_mine ? arrived(run, base_now()) : 0;
    else if (at_once)
        seconds -= step * (1 << pace->at_once);
    pace->at_once = !at_once ? 0 : pace->at_once < DOUBLINGS ? pace->at_once + 1 : DOUBLINGS;
    seconds =
        job_guess_between(seconds, arrived(run, pace->asked), arrived(run, pace->found ? pace->found : base_now()));
    pace->next_put = base_time_after(pace->put, seconds);
    pace->in_step |= pace->asked || run->next_is_mine;
}

double job_pace_early(const job_run *run)
{
    return run->pace.in_step ? run->pace.length.early : 0;
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

/* The next of the round's moments that has not passed. */
static int64_t next_moment(const job_pace *pace, int64_t now)
{
    int64_t next = pace->look_at;
    if (pace->flush_at > now)
        next = base_time_first(next, pace->flush_at);
    if (pace->late_at > now)
        next = base_time_first(next, pace->late_at);
    return next;
}

static int64_t ask_at(const job_run *run, double early, int64_t now)
{
    const job_pace *pace = &run->pace;
    job_asking asking = {.early = early,
                         .trip = pace->trip,
                         .now = after_put(run, now),
                         .elapsed = round_elapsed(run),
                         .first = pace->asked ? after_put(run, pace->first) : -1,
                         .asked = pace->asked ? after_put(run, pace->asked) : -1};
    return base_time_after(pace->put, job_guess_ask(&asking));
}

int64_t job_pace_until(const job_run *run)
{
    int64_t now = base_now();
    return base_time_first(next_moment(&run->pace, now), base_time_after(now, nap));
}

void job_pace_wait(job_run *run, const char *name, uint32_t *seen, double early)
{
    int64_t now = base_now(), until = next_moment(&run->pace, now);
    if (job_leaving(run))
        return;
    if (wakes(run)) {
        shoal_store_wait(run->store, name, seen, base_time_first(until, base_time_after(now, nap)));
        return;
    }
    int64_t ask = base_time_first(ask_at(run, early, now), until);
    if (ask > now)
        base_wait_word(job_leave_word(run), 0, ask);
}
