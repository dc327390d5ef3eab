/* See runner.h.
 *
 * Each worker is a thread that takes an order, claims it in the store, has its trial go as far as the order says, puts
 * the result, and makes the log's next entry with it, which gives the next order.  All of that but the trial itself is
 * done under one lock.  A trial that goes on at once keeps its process. */
#include "runner.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <shoal/error.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/world.h"
#include "adopt.h"
#include "crew.h"
#include "keep.h"
#include "process.h"
#include "repeats.h"
#include "spending.h"

static const double BEAT = 5, DEAD = 30;              /* seconds between two signs of life; without one */
static const double KEEP = 30, KEEP_LOOK = 2;         /* between two times that a folder is kept; between looks at it */
static const double LOOK = 0.05, LOOK_LESS_OFTEN = 1; /* seconds between looks at what others do */
enum { CLAIMS_MOST = 1000, TURNS_MOST = 100 };

typedef enum hold {
    HOLD_FREE,   /* nobody of this process has it */
    HOLD_OURS,   /* a worker has it, or its result waits to be logged */
    HOLD_THEIRS, /* another process has claimed it */
} hold;

typedef struct runner {
    const sweep_run *run;
    sweep_log *log;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    char name[SWEEP_RUNNER_BYTES];
    base_guard guard;
    unsigned char *hold; /* of each order */
    int64_t holds;
    bool *busy; /* of each trial: a process of ours is in its folder */
    int64_t busies;
    int64_t first_open;    /* orders before it have ended */
    sweep_result *pending; /* results that the log does not have */
    int64_t pendings, pendings_room;
    bool idle;  /* the last entry asked for gave nothing, and nothing has come since */
    bool over;  /* no more is to be done */
    int status; /* of what ended it */
    char why[512];
    volatile int halt; /* processes are to be ended */
    int64_t began;     /* when it did */
    double others;     /* seconds of workers of other processes, as far as they were told */
    double price, budget;
    char *holder; /* of folders of trials (keep.h) */
    sweep_crew *crew;
} runner;

typedef struct worker {
    runner *runner;
    base_thread *thread;
    sweep_repeats running; /* commands of the trial that it had last, or none */
    int64_t trial;
    int attempt;         /* of the order that it claimed last: how many have died over it */
    char *folder;        /* of the trial, and */
    sweep_keeper keeper; /* what the store has of it */
    int64_t kept;        /* when it was last put, or the process began */
    bool whole;          /* the trial has ended: nobody takes it up again */
} worker;

static void give_up(runner *self, int status)
{
    if (self->status == SHOAL_OK) {
        self->status = status;
        snprintf(self->why, sizeof self->why, "%s", shoal_error());
    }
    self->over = true;
    self->halt = 1;
    pthread_cond_broadcast(&self->changed);
}

/* ---- what is known of orders ------------------------------------------------------------------------------------- */

static int follow_orders(runner *self)
{
    const sweep_course *course = &self->log->course;
    int status = SHOAL_OK;
    if (course->orders > self->holds) {
        const int64_t room = 2 * course->orders + 64;
        status = base_grow(&self->hold, (size_t)self->holds, (size_t)room, 1, "orders");
        self->holds = status == SHOAL_OK ? room : self->holds;
    }
    if (status == SHOAL_OK && course->trials > self->busies) {
        const int64_t room = 2 * course->trials + 64;
        status = base_grow(&self->busy, (size_t)self->busies, (size_t)room, sizeof(bool), "trials");
        self->busies = status == SHOAL_OK ? room : self->busies;
    }
    return status;
}

static int add_pending(runner *self, const sweep_result *result)
{
    if (self->pendings == self->pendings_room) {
        const int64_t room = 2 * self->pendings_room + 16;
        int status =
            base_grow(&self->pending, (size_t)self->pendings_room, (size_t)room, sizeof *self->pending, "results");
        if (status < 0)
            return status;
        self->pendings_room = room;
    }
    self->pending[self->pendings++] = *result;
    self->hold[result->order] = HOLD_OURS;
    self->idle = false;
    return SHOAL_OK;
}

/* Results that the log has by now. */
static void drop_logged(runner *self)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < self->pendings; i++)
        if (self->pending[i].order >= self->log->course.orders ||
            !self->log->course.order[self->pending[i].order].ended)
            self->pending[kept++] = self->pending[i];
    self->pendings = kept;
}

/* Of workers elsewhere: trials that have failed since the last look. */
static int tell_failures(runner *self)
{
    const sweep_course *course = &self->log->course;
    int status = SHOAL_OK;
    for (int64_t i = 0; i < course->orders && status == SHOAL_OK; i++) {
        const sweep_order *order = &course->order[i];
        sweep_ended ended;
        if (!order->ended || self->hold[i] == HOLD_OURS)
            continue;
        self->hold[i] = HOLD_OURS;
        if (course->trial[order->trial].state != SWEEP_FAILED)
            continue;
        status = sweep_place_get_result(&ended, &self->run->place, order, i);
        base_free(&ended.curve);
        if (status == SHOAL_OK && ended.result.failed && self->run->told)
            self->run->told(self->run->context, self->log, &ended);
    }
    return status;
}

/* Reads what others have decided. */
static int catch_up(runner *self)
{
    const int64_t entries = self->log->entries;
    int status = sweep_place_pull(self->log, &self->run->place, false);
    if (self->log->entries > entries) {
        drop_logged(self);
        self->idle = false;
        pthread_cond_broadcast(&self->changed);
        if (self->run->told)
            self->run->told(self->run->context, self->log, NULL);
    }
    if (status == SHOAL_OK)
        status = follow_orders(self);
    return status == SHOAL_OK && self->crew ? tell_failures(self) : status;
}

/* ---- decisions --------------------------------------------------------------------------------------------------- */

/* In strict order an entry takes one certain result, which may be another process's. */
static int find_awaited(const sweep_result **out, runner *self)
{
    const int64_t order = sweep_log_awaits(self->log);
    *out = NULL;
    for (int64_t i = 0; i < self->pendings; i++)
        if (self->pending[i].order == order)
            *out = &self->pending[i];
    if (*out || order < 0 || self->hold[order] == HOLD_OURS)
        return SHOAL_OK;
    sweep_ended ended;
    int status = sweep_place_get_result(&ended, &self->run->place, &self->log->course.order[order], order);
    base_free(&ended.curve);
    if (status == SHOAL_OK)
        status = add_pending(self, &ended.result);
    if (status == SHOAL_OK)
        *out = &self->pending[self->pendings - 1];
    return status == SHOAL_ABSENT ? SHOAL_OK : status;
}

/* Makes the next entry of the log and puts it.  When somebody else was first, theirs is read instead. */
static int put_entry(runner *self, const sweep_taken *taken)
{
    sweep_log *log = self->log;
    const int64_t entries = log->entries, orders = log->course.orders;
    const bool counts = taken->results > 0 || taken->why || taken->adopted || taken->trials > 0 || log->ahead > 0;
    char *text = NULL;
    int status = sweep_log_make(&text, log, taken);
    base_free(&text);
    if (status == SHOAL_OK && !counts && log->course.orders == orders) {
        sweep_log_drop_idle(log);
        self->idle = true;
        return SHOAL_OK;
    }
    if (status == SHOAL_OK)
        status = sweep_place_push(log, &self->run->place);
    if (status < 0) {
        const int restarted = sweep_log_restart(log, entries);
        return status != SHOAL_CONFLICT ? status : restarted < 0 ? restarted : catch_up(self);
    }
    drop_logged(self);
    self->idle = log->course.orders == orders && log->ahead == 0 && taken->trials == 0 && !taken->adopted;
    pthread_cond_broadcast(&self->changed);
    return follow_orders(self);
}

/* Takes in what has come, and asks for an order. */
static int decide(runner *self)
{
    sweep_taken taken = {.asks = 1, .goal = INFINITY};
    if (self->log->ahead > 0) {
        int status = find_awaited(&taken.result, self);
        if (status < 0)
            return status;
        taken.results = taken.result != NULL;
        if (!taken.result && sweep_log_awaits(self->log) >= 0) {
            self->idle = true; /* until that result is here */
            return SHOAL_OK;
        }
    } else {
        taken.result = self->pending;
        taken.results = self->pendings;
    }
    return put_entry(self, &taken);
}

/* ---- claims ------------------------------------------------------------------------------------------------------ */

static bool has_died(runner *self, const char *name)
{
    char key[SWEEP_RUNNER_BYTES + 16];
    if (sweep_runner_is_dead(name))
        return true;
    snprintf(key, sizeof key, "runner/%s", name);
    return sweep_place_age(&self->run->place, key) > DEAD;
}

/* SHOAL_CONFLICT when somebody has it who lives. */
static int claim_order(int *out, runner *self, int64_t order)
{
    for (int attempt = 0; attempt < CLAIMS_MOST; attempt++) {
        *out = attempt;
        char key[64], *owner = NULL;
        snprintf(key, sizeof key, "claim/%lld/%d", (long long)order, attempt);
        int status = sweep_place_put_once(&self->run->place, key, self->name);
        if (status != SHOAL_CONFLICT)
            return status;
        status = sweep_place_get(&owner, &self->run->place, key);
        const bool dead = status == SHOAL_OK && strcmp(owner, self->name) != 0 && has_died(self, owner);
        base_free(&owner);
        if (status < 0)
            return status;
        if (!dead)
            return shoal_fail(SHOAL_CONFLICT, "another process has it");
    }
    return shoal_fail(SHOAL_CONFLICT, "too many have died over it");
}

/* The result that a process which has died may have put without logging it. */
static int take_over_result(runner *self, int64_t order)
{
    sweep_ended ended;
    int status = sweep_place_get_result(&ended, &self->run->place, &self->log->course.order[order], order);
    base_free(&ended.curve);
    return status == SHOAL_OK ? add_pending(self, &ended.result) : status;
}

/* An open order that this worker may do, its own trial's first: -1 when there is none. */
static int find_order(int64_t *out, runner *self, worker *who, bool theirs_too)
{
    const sweep_course *course = &self->log->course;
    int64_t own = -1, other = -1;
    *out = -1;
    while (self->first_open < course->orders && course->order[self->first_open].ended)
        self->first_open++;
    for (int64_t i = self->first_open; i < course->orders; i++) {
        const sweep_order *order = &course->order[i];
        if (order->ended || self->hold[i] == HOLD_OURS || (self->hold[i] == HOLD_THEIRS && !theirs_too))
            continue;
        if (who->running.count > 0 && order->trial == who->trial)
            own = own < 0 ? i : own;
        else if (!self->busy[order->trial])
            other = other < 0 ? i : other;
    }
    const int64_t order = own >= 0 ? own : other;
    if (order < 0)
        return SHOAL_OK;
    int status = claim_order(&who->attempt, self, order);
    self->hold[order] = status == SHOAL_CONFLICT ? HOLD_THEIRS : HOLD_OURS;
    if (status == SHOAL_CONFLICT)
        return SHOAL_OK;
    if (status == SHOAL_OK)
        *out = order;
    return status;
}

/* ---- one order --------------------------------------------------------------------------------------------------- */

enum { VARIABLES = 4 };

static bool is_ours(const char *variable)
{
    static const char *const names[VARIABLES] = {"SHOAL_TRIAL=", "SHOAL_STEPS=", "SHOAL_FOLDER=", "SHOAL_REPEAT="};
    for (int i = 0; i < VARIABLES; i++)
        if (strncmp(variable, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static int make_environment(char ***out, const runner *self, const char *folder, int64_t trial, int repeat)
{
    extern char **environ;
    char **old = environ, **made = NULL;
    size_t count = 0, kept = 0;
    while (old[count])
        count++;
    int status = base_alloc(&made, count + VARIABLES + 1, sizeof *made, "an environment");
    for (size_t i = 0; i < count && status == SHOAL_OK; i++)
        if (!is_ours(old[i]))
            made[VARIABLES + kept++] = old[i];
    if (status == SHOAL_OK)
        status = base_format(&made[0], "SHOAL_TRIAL=%lld", (long long)trial);
    if (status == SHOAL_OK)
        status = base_format(&made[1], "SHOAL_STEPS=%lld", (long long)self->run->spec->steps);
    if (status == SHOAL_OK)
        status = base_format(&made[2], "SHOAL_FOLDER=%s", folder);
    if (status == SHOAL_OK)
        status = base_format(&made[3], "SHOAL_REPEAT=%d", repeat);
    *out = made;
    return status;
}

static void free_environment(char ***environment)
{
    for (int i = 0; *environment && i < VARIABLES; i++)
        base_free(&(*environment)[i]);
    base_free(environment);
}

/* What its process listens for besides its objective. */
static void name_others(const char *other[SWEEP_OTHERS_MOST], const sweep_spec *spec)
{
    for (int i = 0; i < SWEEP_OTHERS_MOST; i++) {
        const sweep_objective *o = &spec->objectives[i + 1];
        other[i] = i + 1 < spec->objective_count && o->measure == SWEEP_REPORTED ? o->key : NULL;
    }
}

/* The folder of a trial: where another machine has gone on with it, with what that has kept. */
static int open_folder(worker *who, const sweep_order *order, bool measured)
{
    const runner *self = who->runner;
    sweep_keeper_release(&who->keeper);
    base_free(&who->folder);
    int status = base_format(&who->folder, "%s/%lld", self->run->folder, (long long)order->trial);
    if (status == SHOAL_OK && measured) /* what it did before it was killed would not be measured */
        base_remove_folder(who->folder);
    if (status == SHOAL_OK && mkdir(who->folder, 0777) < 0 && errno != EEXIST)
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't make the folder of a trial", who->folder);
    who->whole = measured;
    who->kept = base_now();
    who->keeper = (sweep_keeper){
        .place = &self->run->place, .trial = order->trial, .folder = who->folder, .holder = self->holder};
    if (status == SHOAL_OK && !measured && (order->from > 0 || who->attempt > 0))
        status = sweep_keeper_fetch(&who->keeper);
    return status;
}

/* What a trial that has ended, or is not gone on with here, leaves for others.  A store that can't take it has lost
 * nothing that counts. */
static void leave_folder(worker *who)
{
    const sweep_run *run = who->runner->run;
    if (run->leaves || !who->whole)
        (void)sweep_keeper_put(&who->keeper);
    else
        (void)sweep_keeper_drop(&who->keeper);
}

/* One of its commands, in a folder of its own where there are several. */
static int start_repeat(worker *who, sweep_starting *starting, int64_t number, const sweep_trial *trial, int repeat)
{
    runner *self = who->runner;
    char *command = NULL, *folder = NULL, *reports = NULL, **environment = NULL;
    int status = self->run->spec->repeat > 1 ? base_format(&folder, "%s/%d", who->folder, repeat)
                                             : base_copy_text(&folder, who->folder);
    if (status == SHOAL_OK && mkdir(folder, 0777) < 0 && errno != EEXIST)
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't make the folder of a trial", folder);
    if (status == SHOAL_OK)
        status = base_format(&reports, "%s/reports.jsonl", folder);
    if (status == SHOAL_OK)
        status = sweep_command(&command, self->run, &trial->point, repeat);
    if (status == SHOAL_OK)
        status = make_environment(&environment, self, folder, number, repeat);
    starting->command = command;
    starting->environment = environment;
    starting->reports = reports;
    if (status == SHOAL_OK)
        status = sweep_process_start(&who->running.process[repeat], starting);
    who->running.count += status == SHOAL_OK;
    free_environment(&environment);
    base_free(&reports);
    base_free(&folder);
    base_free(&command);
    return status;
}

static int start_trial(worker *who, const sweep_order *order, const sweep_trial *trial)
{
    runner *self = who->runner;
    const sweep_spec *spec = self->run->spec;
    const bool measured = spec->objectives[0].measure != SWEEP_REPORTED;
    sweep_starting starting = {.objective = measured ? NULL : spec->objective,
                               .sign = spec->maximise ? -1 : 1,
                               .from = order->from,
                               .value = self->log->sign * trial->value,
                               .counts = spec->steps > 0,
                               .traces = spec->learner != NULL,
                               .place = self->run->here,
                               .guard = &self->guard};
    name_others(starting.other, spec);
    who->running = (sweep_repeats){.sign = starting.sign, .value = starting.value, .step = order->from};
    who->trial = order->trial;
    int status = open_folder(who, order, measured);
    for (int i = 0; i < spec->repeat && status == SHOAL_OK; i++)
        status = start_repeat(who, &starting, order->trial, trial, i);
    return status;
}

/* The value of a trial whose time or money counts, which need not report a step. */
static void set_measured(sweep_result *result, const runner *self, double seconds)
{
    result->value = self->run->spec->objectives[0].measure == SWEEP_COST ? seconds / 3600 * self->price : seconds;
    result->step = result->step > 0 ? result->step : 1;
}

/* Follows it, and keeps its folder now and then meanwhile. */
static sweep_event follow_trial(worker *who, const sweep_order *order)
{
    runner *self = who->runner;
    for (;;) {
        const sweep_event event =
            sweep_repeats_follow(&who->running, order->until, self->run->spec->timeout,
                                 who->whole ? INT64_MAX : base_time_after(base_now(), KEEP_LOOK), &self->halt);
        if (event != SWEEP_RUNS)
            return event;
        if (base_now() < base_time_after(who->kept, KEEP))
            continue;
        (void)sweep_keeper_put(&who->keeper);
        who->kept = base_now();
    }
}

/* Has a trial go as far as its order says.  SHOAL_STOPPED when it was told to end before. */
static int do_order(sweep_ended *out, worker *who, int64_t number, const sweep_order *order, const sweep_trial *trial)
{
    runner *self = who->runner;
    const int64_t began = base_now();
    *out = (sweep_ended){.result = {.order = number}};
    if (who->running.count == 0) {
        int status = start_trial(who, order, trial);
        if (status < 0)
            return status;
    }
    const sweep_event event = follow_trial(who, order);
    if (event == SWEEP_STOPPED)
        return shoal_fail(SHOAL_STOPPED, "stopped");
    sweep_repeats_take(out, &who->running, order->until);
    if (event == SWEEP_REACHED && isnan(out->result.value)) { /* its first report is beyond */
        base_free(&out->curve);
        out->reports = 0;
        sweep_repeats_take(out, &who->running, INT64_MAX);
    }
    out->seconds = (double)(base_now() - began) * 1e-9;
    out->at = (double)base_wall_now() * 1e-9;
    out->cores = self->run->threads;
    if (self->run->spec->objectives[0].measure != SWEEP_REPORTED)
        set_measured(&out->result, self, out->seconds);
    out->result.failed = event == SWEEP_FAILS;
    if (event == SWEEP_REACHED)
        out->result.step = order->until;
    if (out->result.step > order->until)
        out->result.step = order->until;
    if (out->result.failed)
        snprintf(out->note, sizeof out->note, "%s", sweep_repeats_note(&who->running));
    if (!out->result.failed && isnan(out->result.value)) {
        out->result.failed = true;
        snprintf(out->note, sizeof out->note, "its repeats have no step in common");
    }
    who->whole = event != SWEEP_REACHED || (self->run->spec->steps > 0 && order->until >= self->run->spec->steps);
    if (event != SWEEP_REACHED) {
        sweep_repeats_end(&who->running);
        leave_folder(who);
    }
    return SHOAL_OK;
}

/* ---- workers ----------------------------------------------------------------------------------------------------- */

/* Ends the process that a worker has kept, with the lock open meanwhile: another's order for its trial waits. */
static void end_process(worker *who)
{
    runner *self = who->runner;
    if (who->running.count > 0) {
        const bool needed = !self->over || self->status < 0;
        pthread_mutex_unlock(&self->lock);
        sweep_repeats_end(&who->running);
        if (needed || self->run->leaves)
            leave_folder(who);
        pthread_mutex_lock(&self->lock);
    }
    if (who->trial >= 0)
        self->busy[who->trial] = false;
    who->trial = -1;
    pthread_cond_broadcast(&self->changed);
}

static void wait_a_moment(runner *self, double seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    const double at = (double)until.tv_nsec * 1e-9 + seconds;
    until.tv_sec += (time_t)at;
    until.tv_nsec = (long)((at - floor(at)) * 1e9);
    pthread_cond_timedwait(&self->changed, &self->lock, &until);
}

/* Does one order with the lock open, and keeps its result. */
static int perform(worker *who, int64_t number)
{
    runner *self = who->runner;
    const sweep_order order = self->log->course.order[number];
    const sweep_trial trial = self->log->course.trial[order.trial];
    sweep_ended ended = {0};
    if (who->running.count > 0 && who->trial != order.trial)
        end_process(who);
    int status = take_over_result(self, number);
    if (status != SHOAL_ABSENT)
        return status;
    self->busy[order.trial] = true;
    who->trial = order.trial;
    pthread_mutex_unlock(&self->lock);
    status = do_order(&ended, who, number, &order, &trial);
    if (status == SHOAL_OK) {
        status = sweep_place_put_result(&self->run->place, &order, &ended);
        if (status == SHOAL_CONFLICT) /* somebody who took us for dead was first: theirs counts */
            status = sweep_place_get_result(&ended, &self->run->place, &order, number);
    }
    pthread_mutex_lock(&self->lock);
    if (status == SHOAL_OK)
        status = add_pending(self, &ended.result);
    if (status == SHOAL_OK && self->run->told)
        self->run->told(self->run->context, self->log, &ended);
    base_free(&ended.curve);
    if (who->running.count == 0) {
        self->busy[order.trial] = false;
        who->trial = -1;
    }
    return status;
}

/* One turn of a worker: an order that is open, or the next decision, or a pause. */
static int take_turn(worker *who, double *pause)
{
    runner *self = who->runner;
    int64_t order = -1;
    int status = SHOAL_OK;
    if (self->pendings > 0 && (self->log->ahead == 0 || !self->idle))
        status = decide(self);
    if (status == SHOAL_OK)
        status = find_order(&order, self, who, false);
    if (status == SHOAL_OK && order < 0 && !self->idle && !sweep_log_is_over(self->log)) {
        status = decide(self);
        if (status == SHOAL_OK)
            status = find_order(&order, self, who, false);
    }
    if (status < 0)
        return status;
    if (order >= 0) {
        *pause = LOOK;
        return perform(who, order);
    }
    if (sweep_log_is_over(self->log)) {
        self->over = true;
        self->halt = 1; /* others may be at trials that nobody needs any more */
        pthread_cond_broadcast(&self->changed);
        return SHOAL_OK;
    }
    if (who->running.count > 0)
        end_process(who);
    if (!self->idle && self->log->ahead == 0)
        return SHOAL_OK;
    wait_a_moment(self, *pause);
    *pause = fmin(*pause * 1.5, LOOK_LESS_OFTEN);
    if (*pause >= LOOK_LESS_OFTEN) { /* whoever had an order may have died meanwhile */
        status = find_order(&order, self, who, true);
        return status < 0 || order < 0 ? status : perform(who, order);
    }
    if (self->log->ahead > 0)
        self->idle = false;
    return SHOAL_OK;
}

static void work(void *context)
{
    worker *who = context;
    runner *self = who->runner;
    double pause = LOOK;
    pthread_mutex_lock(&self->lock);
    while (!self->over) {
        int status = take_turn(who, &pause);
        if (status < 0 && status != SHOAL_STOPPED)
            give_up(self, status);
    }
    end_process(who);
    pthread_mutex_unlock(&self->lock);
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

static double worker_seconds(const runner *self)
{
    return (double)self->run->workers * (double)(base_now() - self->began) * 1e-9;
}

/* Tells that this process lives and what it has used, and reads what others have where that matters. */
static int beat(runner *self)
{
    int status = sweep_spending_put(&self->run->place, self->name, worker_seconds(self));
    if (status == SHOAL_OK && self->budget > 0)
        status = sweep_spending_sum(&self->others, &self->run->place, self->name);
    return status;
}

/* Whether the budget would not last until the next look at it, and what workers elsewhere have not told yet. */
static bool is_spent(const runner *self)
{
    const double ahead = (double)(self->run->workers + 2 * sweep_crew_slots(self->crew)) * BEAT;
    return self->budget > 0 && (self->others + worker_seconds(self) + ahead) / 3600 * self->price >= self->budget;
}

/* An entry of the log that ends the sweep, so that others end, too: put again while somebody else's is there first. */
static int stop_sweep(runner *self, const char *why)
{
    int status = SHOAL_OK;
    for (int turn = 0; turn < TURNS_MOST && status == SHOAL_OK && !self->log->why[0]; turn++)
        status = put_entry(self, &(sweep_taken){.why = why, .goal = INFINITY});
    self->over = true;
    return status;
}

/* Looks after the workers: signs of life, the time, what others decide. */
static void look_after(runner *self)
{
    const sweep_run *run = self->run;
    const int64_t end = run->seconds > 0 ? base_time_after(base_now(), run->seconds) : INT64_MAX;
    int64_t next = base_time_after(base_now(), BEAT), look = base_time_after(base_now(), LOOK_LESS_OFTEN);
    while (!self->over) {
        int status = SHOAL_OK;
        wait_a_moment(self, 0.1);
        if (run->stops(run->context)) {
            (void)shoal_fail(SHOAL_STOPPED, "stopped");
            give_up(self, SHOAL_STOPPED);
        } else if (base_now() > end) {
            status = stop_sweep(self, "the time is over");
        } else if (is_spent(self)) {
            status = stop_sweep(self, "the budget is spent");
        }
        if (status == SHOAL_OK && base_now() > next) {
            next = base_time_after(base_now(), BEAT);
            status = beat(self);
        }
        if (status == SHOAL_OK && base_now() > look) {
            look = base_time_after(base_now(), LOOK_LESS_OFTEN);
            status = catch_up(self);
            if (status == SHOAL_OK && self->crew && !self->over)
                status = sweep_log_has_ended(&self->over, self->log);
        }
        if (status == SHOAL_OK && self->crew && !self->over)
            status = sweep_crew_tend(self->crew);
        if (status < 0)
            give_up(self, status);
    }
    self->halt = 1;
    pthread_cond_broadcast(&self->changed);
}

/* Limits that are not those of the log, or a sweep that was stopped and goes on. */
static int set_limits(runner *self)
{
    const sweep_log *log = self->log;
    int status = catch_up(self);
    self->price = self->run->trials ? self->run->price : log->price;
    self->budget = self->run->trials ? self->run->budget : log->budget;
    for (int turn = 0; turn < TURNS_MOST && status == SHOAL_OK && self->run->trials > 0; turn++) {
        const double goal = isfinite(self->run->goal) ? log->sign * self->run->goal : -(double)INFINITY;
        if (log->entries > 0 && !log->why[0] && log->rules.trials == self->run->trials && log->rules.goal == goal &&
            log->price == self->run->price && log->budget == self->run->budget)
            break;
        status = put_entry(self, &(sweep_taken){.trials = self->run->trials,
                                                .goal = self->run->goal,
                                                .price = self->run->price,
                                                .budget = self->run->budget});
    }
    return status;
}

/* Takes over what another sweep has found, unless that was done, or this one has begun without it. */
static int adopt_trials(runner *self)
{
    const sweep_log *log = self->log;
    sweep_taken taken = {.goal = INFINITY};
    int status = SHOAL_OK;
    for (int turn = 0; turn < TURNS_MOST && status == SHOAL_OK && !log->has_adopted && log->course.orders == 0;
         turn++) {
        status = sweep_adopt(&taken.adopted, self->run->spec, &self->run->place);
        if (status == SHOAL_OK)
            status = put_entry(self, &taken);
        json_decref(taken.adopted);
    }
    return status;
}

/* This machine and where it keeps trials. */
static int name_holder(runner *self)
{
    char machine[SWEEP_MACHINE_BYTES];
    sweep_machine_name(machine);
    return base_format(&self->holder, "%s %s", machine, self->run->folder);
}

/* What workers elsewhere made of the best trial comes here: a model, say. */
static int bring_best(runner *self)
{
    const int64_t best = self->log->course.best;
    char *folder = NULL;
    int status = base_format(&folder, "%s/%lld", self->run->folder, (long long)best);
    sweep_keeper keeper = {.place = &self->run->place, .trial = best, .folder = folder, .holder = self->holder};
    if (status == SHOAL_OK)
        status = sweep_keeper_fetch(&keeper);
    sweep_keeper_release(&keeper);
    base_free(&folder);
    return status;
}

/* What failed before is known. */
static int start_crew(runner *self)
{
    for (int64_t i = 0; i < self->log->course.orders; i++)
        self->hold[i] = self->log->course.order[i].ended ? HOLD_OURS : HOLD_FREE;
    return sweep_crew_start(&self->crew, self->run);
}

int sweep_run_trials(sweep_log *log, const sweep_run *run)
{
    runner self = {.run = run, .log = log, .guard = {.pipe = -1}, .began = base_now()};
    worker *workers = NULL;
    pthread_mutex_init(&self.lock, NULL);
    pthread_cond_init(&self.changed, NULL);
    sweep_runner_name(self.name);
    int status = name_holder(&self);
    if (status == SHOAL_OK)
        status = base_alloc(&workers, (size_t)run->workers, sizeof *workers, "workers");
    (void)base_guard_start(&self.guard, 5);
    pthread_mutex_lock(&self.lock);
    if (status == SHOAL_OK)
        status = beat(&self);
    if (status == SHOAL_OK)
        status = set_limits(&self);
    if (status == SHOAL_OK && run->spec->from)
        status = adopt_trials(&self);
    if (status == SHOAL_OK && run->crew)
        status = start_crew(&self);
    for (int64_t i = 0; i < run->workers && status == SHOAL_OK; i++) {
        workers[i] = (worker){.runner = &self, .trial = -1};
        status = base_thread_start(&workers[i].thread, work, &workers[i]);
    }
    if (status < 0)
        give_up(&self, status);
    else
        look_after(&self);
    pthread_mutex_unlock(&self.lock);
    for (int64_t i = 0; workers && i < run->workers; i++) {
        base_thread_join(&workers[i].thread);
        sweep_keeper_release(&workers[i].keeper);
        base_free(&workers[i].folder);
    }
    sweep_crew_stop(&self.crew, self.status == SHOAL_OK);
    if (run->crew && self.status == SHOAL_OK && log->course.best >= log->course.adopted &&
        (status = bring_best(&self)) < 0)
        give_up(&self, status);
    base_guard_stop(&self.guard);
    status = sweep_spending_put(&run->place, self.name, worker_seconds(&self));
    if (status < 0)
        give_up(&self, status);
    base_free(&workers);
    base_free(&self.holder);
    base_free(&self.hold);
    base_free(&self.busy);
    base_free(&self.pending);
    pthread_cond_destroy(&self.changed);
    pthread_mutex_destroy(&self.lock);
    return self.status < 0 ? shoal_fail(self.status, "%s", self.why) : SHOAL_OK;
}

/* Whether the sweep whose trials are to be taken over is there. */
static int check_from(const sweep_run *run)
{
    const sweep_place its = {.store = run->place.store, .name = run->spec->from, .patience = run->place.patience};
    sweep_spec *other = NULL;
    int status = sweep_place_spec(&other, &its);
    sweep_spec_free(&other);
    return status;
}

int sweep_run_open(const sweep_run *run, bool resumed)
{
    sweep_spec *there = NULL;
    char *text = NULL;
    int status = run->spec->from && !resumed ? check_from(run) : SHOAL_OK;
    if (status < 0) /* a slip in --from would take this sweep's name */
        return status;
    text = json_dumps(run->spec->json, JSON_COMPACT);
    status =
        text ? sweep_place_put_once(&run->place, "spec", text) : shoal_fail(SHOAL_MEMORY, "out of memory for a sweep");
    free(text);
    if (status != SHOAL_CONFLICT)
        return status;
    status = sweep_place_spec(&there, &run->place);
    if (status == SHOAL_OK)
        status = sweep_spec_compare(there, run->spec, run->place.name);
    if (status == SHOAL_OK && !resumed)
        status = shoal_fail(SHOAL_USAGE,
                            "there is a sweep '%s' already: --resume goes on with it, and --name NAME gives "
                            "this one another name",
                            run->place.name);
    sweep_spec_free(&there);
    return status;
}
