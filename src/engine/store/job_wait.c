/* When to look again.  A store that wakes is waited for; another is asked at the moment the answer should be there by the last rounds of
 * the same phase, and then every one and a half round trips or 2% of the elapsed time, whichever is longer.  See job_run.h. */
#include <stdio.h>
#include <string.h>

#include "base/world.h"
#include "engine/store/job_run.h"

/* Seconds between looks at least and at most, and how long a waiter sleeps without asking whether it is to leave. */
static const double poll_most = 2, poll_least = 1e-3, nap = 0.5;

job_habit *job_pace_habit(job_pace *pace, const char *phase)
{
    for (int i = 0; i < pace->habits; i++)
        if (strcmp(pace->habit[i].phase, phase) == 0)
            return &pace->habit[i];
    int place = pace->habits < JOB_HABITS ? pace->habits++ : JOB_HABITS - 1;
    job_habit *habit = &pace->habit[place];
    *habit = (job_habit){0};
    snprintf(habit->phase, sizeof habit->phase, "%s", phase);
    return habit;
}

static double elapsed(const job_run *run)
{
    return -base_seconds_until(run->pace.began);
}

static bool wakes(const job_run *run)
{
    return shoal_store_describe(run->store).wakes;
}

/* A number in [0, 1) that differs from worker to worker and round to round: all would help at one moment otherwise. */
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

/* The moments at which a round is slow and late.  What the last round of the phase took is the measure, or what one's own slices took, and
 * what requests take now.  One after the other the idle ones find it late, not all at once: if they did, many would do the same work
 * while whoever it belongs to waits for a processor. */
static void set_moments(job_run *run)
{
    job_pace *pace = &run->pace;
    double round = job_pace_habit(pace, run->model->round->phase)->round;
    double slack = (wakes(run) ? 0.3 : 2) + 20 * pace->trip;
    if (round < pace->own)
        round = 2 * pace->own;
    if (round <= 0)
        slack = 5 * slack + 0.02 * crowd(run);
    pace->flush_at = base_time_after(pace->began, 1.5 * round + slack);
    pace->late_at = base_time_after(pace->began, 3 * round + slack * (2 + stagger(run)) +
                                                     stagger(run) * crowd(run) * (round + slack) / 4);
    /* Who has just come can't tell the dead from the living, and must not be the next to die of a slice that kills. */
    int64_t knows = base_time_after(run->watches_from ? run->watches_from : base_now(), 1.01 * run->spec->lease);
    if (pace->late_at < knows)
        pace->late_at = knows;
}

void job_pace_begin(job_run *run)
{
    run->pace.began = base_now();
    run->pace.put = run->pace.next_put ? run->pace.next_put : run->pace.began;
    run->pace.next_put = 0;
    run->pace.own = 0;
    set_moments(run);
    run->pace.look_pause = wakes(run) ? 0.05 : 2;
    double usual = 8 * job_pace_habit(&run->pace, run->model->round->phase)->round;
    run->pace.look_pause = run->pace.look_pause > usual ? run->pace.look_pause : usual;
    job_pace_looked(run);
}

void job_pace_mapped(job_run *run, double seconds)
{
    run->pace.own += seconds;
    set_moments(run);
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
    double waited = elapsed(run), most = 0.5 + 2 * run->pace.trip;
    double pause = 0.05 * waited < most ? 0.05 * waited : most;
    if (is_alone(run))
        return;
    int64_t next = base_time_after(base_now(), pause * (1 + stagger(run)) + run->pace.trip);
    if (run->pace.late_at < next)
        run->pace.late_at = next;
}

/* The first look comes soon after a round should have ended, for who fell behind may wait for a model that has been removed; the others
 * ever later, up to a third of a lease, at which the dead are found. */
void job_pace_looked(job_run *run)
{
    double most = run->spec->lease / 3, pause = run->pace.look_pause < most ? run->pace.look_pause : most;
    run->pace.look_pause *= 2;
    run->pace.look_at = base_time_after(base_now(), pause);
}

void job_pace_note_trip(job_run *run, int64_t sent)
{
    double trip = -base_seconds_until(sent);
    run->pace.trip = run->pace.trip > 0 ? 0.8 * run->pace.trip + 0.2 * trip : trip;
}

static void learn_guess(job_guess *guess, double at)
{
    guess->last[guess->count++ % JOB_GUESS_ROUNDS] = at > 1e-6 ? at : 1e-6;
    guess->at = guess->last[0];
    for (int64_t i = 1; i < JOB_GUESS_ROUNDS && i < guess->count; i++)
        guess->at = guess->last[i] < guess->at ? guess->last[i] : guess->at;
}

/* Moments are counted from when the round's model was put, which is the same for all workers, not from when this one saw it: who was late
 * once would be late for ever.  The first look is at the earliest moment of the last rounds, for a round is as slow as its slowest
 * worker, and if each looked when the last round ended none would ever be shorter than the one before.  A first look that finds something only
 * tells that it was not asked too early: next time it is asked earlier still, the more so with every such success. */
void job_pace_note_answer(job_run *run, job_guess *guess, int64_t sent, bool there)
{
    enum { DOUBLINGS = 3 };
    job_pace *pace = &run->pace;
    double at = (double)(sent - pace->put) * 1e-9 + pace->trip / 2;
    if (!there) {
        pace->asked = sent;
        guess->early = 0;
    } else if (pace->asked) {
        learn_guess(guess, at - (double)(sent - pace->asked) * 0.5e-9);
    } else {
        double step = pace->trip / 2 > 0.02 * at ? pace->trip / 2 : 0.02 * at;
        at = guess->at > 0 && guess->at < at ? guess->at : at;
        learn_guess(guess, at - step * (double)(1 << guess->early));
        guess->early += guess->early < DOUBLINGS;
    }
}

void job_pace_note_put(job_run *run, const job_guess *guess)
{
    run->pace.next_put = base_time_after(run->pace.put, guess->last[(guess->count - 1) % JOB_GUESS_ROUNDS]);
}

void job_pace_note_round(job_run *run)
{
    job_pace_habit(&run->pace, run->model->round->phase)->round = elapsed(run);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The next of the round's moments that has not passed. */
static int64_t next_moment(const job_pace *pace, int64_t now)
{
    int64_t next = pace->look_at;
    if (pace->flush_at > now)
        next = earlier(next, pace->flush_at);
    if (pace->late_at > now)
        next = earlier(next, pace->late_at);
    return next;
}

/* When to ask next: at the moment that was guessed, so that the request arrives just then; after that, every round trip or so. */
static int64_t ask_at(const job_run *run, const job_guess *guess, int64_t now)
{
    const job_pace *pace = &run->pace;
    double pause = 0.02 * elapsed(run);
    pause = pause > 1.5 * pace->trip ? pause : 1.5 * pace->trip;
    pause = pause > poll_least ? pause : poll_least;
    pause = pause < poll_most ? pause : poll_most;
    if (pace->asked)
        return base_time_after(pace->asked, pause);
    return guess->at > 0 ? base_time_after(pace->put, guess->at - pace->trip / 2) : base_time_after(now, pause);
}

int64_t job_pace_until(const job_run *run)
{
    int64_t now = base_now();
    return earlier(next_moment(&run->pace, now), base_time_after(now, nap));
}

void job_pace_wait(job_run *run, const char *name, uint32_t *seen, const job_guess *guess)
{
    int64_t now = base_now(), until = next_moment(&run->pace, now);
    if (job_leaving(run))
        return;
    if (wakes(run)) {
        shoal_store_wait(run->store, name, seen, earlier(until, base_time_after(now, nap)));
        return;
    }
    int64_t ask = earlier(ask_at(run, guess, now), until);
    if (ask > now)
        base_wait_word(job_leave_word(run), 0, ask);
}
