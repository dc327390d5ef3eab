/* Following a job: reporting each of its rounds, and waiting for its end.  See job.h.
 *
 * A follower only reads, except that it restores a spec that the store forgot.  It waits for the model after the newest
 * it has seen.  Rounds that pass between two looks are reported from the newest model's history, so looking less often
 * than rounds end loses nothing; and since rounds may be swept before they are seen, it lists to find the newest
 * whenever something changed that it did not find, or nothing came when something should have. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/world.h"
#include "engine/store/job_admin.h"
#include "engine/store/job_keys.h"
#include "engine/store/job_run.h"
#include "engine/store/job_setup.h"
#include "kernel/kernel.h"

static const double USUAL_PATIENCE = 60, ATTEND_EVERY = 0.2;
static const double LOOK_SHARE = 0.02; /* of the elapsed time between two looks */
static const double LOOK_LONGEST = 2;  /* seconds between two looks */
static const double LOOK_AHEAD = 10;   /* the same while nothing is expected */
static const double WAKE_SHORTEST =
    0.2; /* least seconds between two looks on a store that wakes: models may be large */
enum { ROUNDS_A_LOOK = JOB_HISTORY_MOST / 2 };

typedef struct follower {
    shoal_store *store;
    const char *id;
    shoal_follow_options options;
    shoal_store_traits traits;
    job_spec *spec;
    job_model *model;     /* the newest that was seen */
    int64_t told;         /* rounds reported to progress */
    double round_seconds; /* seconds per round lately; 0 if unknown */
    double trip;          /* seconds that a look takes */
    double call_seconds;  /* that a call may take */
    uint32_t seen;        /* of the model after the newest; 0 if that is another one than before */
    uint32_t seen_marker; /* of the job's marker */
    bool woken, jump;     /* something changed; the next look lists for the newest */
    int64_t began, found, looked, reached, alive, spec_looked;
    job_members members;
} follower;

static double seconds_since(int64_t moment)
{
    return -base_seconds_until(moment);
}

static int64_t deadline_of(const follower *self)
{
    return base_time_after(base_now(), self->call_seconds);
}

/* ---- telling ----------------------------------------------------------------------------------------------------- */

static shoal_round round_of(const job_step *step)
{
    shoal_round round = {.number = step->number,
                         .step = step->step,
                         .steps = step->steps,
                         .k = step->k,
                         .objective = step->objective,
                         .change = step->change};
    memcpy(round.phase, step->phase, sizeof round.phase);
    return round;
}

/* What a round led to is recorded in the next one. */
static void tell_step(follower *self, const job_trailer *trailer, int64_t index)
{
    const shoal_round *newest = self->model->round;
    bool last = index + 1 == trailer->steps;
    shoal_round done = round_of(&trailer->step[index]), next = {.objective = NAN, .change = NAN};
    if (!last)
        next = round_of(&trailer->step[index + 1]);
    else if (newest)
        next = *newest;
    self->options.progress(self->options.progress_context, &done, last && !newest ? NULL : &next,
                           self->spec->shape.rows, trailer->step[index].seconds);
}

static void tell_followed(follower *self)
{
    const job_trailer *trailer = &self->model->trailer;
    for (int64_t i = 0; i < trailer->steps; i++) {
        if (trailer->step[i].number < self->told)
            continue;
        if (self->options.progress)
            tell_step(self, trailer, i);
        self->told = trailer->step[i].number + 1;
    }
    int64_t some = trailer->steps > 4 ? 4 : trailer->steps - 1;
    if (some > 0)
        self->round_seconds =
            (trailer->step[trailer->steps - 1].seconds - trailer->step[trailer->steps - 1 - some].seconds) /
            (double)some;
}

/* ---- looking ----------------------------------------------------------------------------------------------------- */

/* Whether a failure may be temporary: then calls get more time; a store that is away for longer than `patience` is
 * given up. */
static int judge_failure(follower *self, int status)
{
    if (status != SHOAL_AGAIN && status != SHOAL_UNKNOWN)
        return status;
    double away = seconds_since(self->reached);
    if (away > self->options.patience)
        return shoal_fail(SHOAL_STOPPED, "the store has been out of reach for %.0f s: %s", away, shoal_error());
    self->call_seconds = fmin(2 * self->call_seconds, fmax(self->options.patience, 5));
    return SHOAL_OK;
}

static void take_model(follower *self, job_model *model)
{
    job_model_free(&self->model);
    self->model = model;
    self->seen = 0;
    self->found = self->looked;
    self->alive = self->looked; /* someone has put it */
    tell_followed(self);
}

/* A result that does not fit the learner is SHOAL_BROKEN, like a damaged model. */
static int get_model(job_model **out, follower *self, int64_t number)
{
    int status = job_model_get(out, self->store, self->id, number, deadline_of(self));
    if (status == SHOAL_OK && (status = job_model_check_end(*out, self->spec, self->options.algorithms)) < 0)
        job_model_free(out);
    return status;
}

static int look_for_round(follower *self, int64_t number)
{
    job_model *model = NULL;
    int status = get_model(&model, self, number);
    if (status == SHOAL_OK)
        take_model(self, model);
    else if (status == SHOAL_ABSENT || status == SHOAL_BROKEN) /* which workers remove, and make again */
        self->jump = self->woken;
    else
        return status;
    return SHOAL_OK;
}

/* The newest model is older than what was seen: the store forgot some, or the job went back.  Its successors will come
 * again, unless it is an end: cancelling a job puts that after the newest model there is. */
static int look_at_older(follower *self, int64_t number)
{
    job_model *model = NULL;
    int status = number > 0 ? get_model(&model, self, number) : SHOAL_ABSENT;
    self->spec_looked = 0;
    if (status == SHOAL_OK && model->state != SHOAL_JOB_RUNNING)
        take_model(self, model);
    else
        job_model_free(&model);
    return status == SHOAL_ABSENT || status == SHOAL_BROKEN ? SHOAL_OK : status;
}

static int look_for_newest(follower *self)
{
    int64_t head = 0;
    int status = job_head(&head, self->store, self->id, deadline_of(self));
    self->jump = false;
    if (status == SHOAL_OK && head > self->model->number)
        status = look_for_round(self, head);
    else if (status == SHOAL_OK && head < self->model->number)
        status = look_at_older(self, head);
    return status;
}

static int look_at_job(follower *self)
{
    int64_t before = base_now();
    bool overdue =
        self->round_seconds > 0 && seconds_since(self->found) > fmax(3 * self->round_seconds, 3 * self->trip);
    bool fast = self->traits.wakes && self->round_seconds < WAKE_SHORTEST;
    self->looked = before;
    int status = self->jump || overdue || fast || seconds_since(self->found) > LOOK_AHEAD
                     ? look_for_newest(self)
                     : look_for_round(self, self->model->number + 1);
    if (status < 0)
        return judge_failure(self, status);
    double took = seconds_since(before);
    self->trip = self->trip > 0 ? 0.8 * self->trip + 0.2 * took : took;
    self->reached = base_now();
    self->call_seconds = fmax(5, 10 * self->trip);
    return SHOAL_OK;
}

/* ---- looking after ----------------------------------------------------------------------------------------------- */

/* Makes sure that the spec is there, putting it again if the store forgot it; SHOAL_ABSENT if someone removed the
 * job. */
static int mend_spec(follower *self)
{
    shoal_blob blob = {0};
    bool gone = false;
    self->spec_looked = base_now();
    int status = shoal_store_get(self->store, job_key_of(self->id, "spec").text, &blob, deadline_of(self));
    shoal_blob_release(&blob);
    if (status != SHOAL_ABSENT)
        return status;
    status = job_is_gone(&gone, self->store, self->id, deadline_of(self));
    if (status == SHOAL_OK && gone)
        return shoal_fail(SHOAL_ABSENT, "job %s was removed", self->id);
    if (status == SHOAL_OK)
        status = job_setup_announce(self->store, self->spec, deadline_of(self));
    if (status == SHOAL_OK && self->options.forgot)
        status = self->options.forgot(self->options.forgot_context);
    return status;
}

/* A spec can be forgotten only soon after it was put, and a removed job has neither rounds nor workers. */
static bool should_mend(const follower *self, bool deserted)
{
    double young = 2 * self->traits.forgets + 30, every = fmax(2, self->spec->lease / 3);
    if (self->spec_looked == 0)
        return true;
    bool may_forget = self->traits.forgets > 0 && seconds_since(self->began) < young;
    return (deserted || may_forget) && seconds_since(self->spec_looked) > every;
}

static int watch_workers(follower *self)
{
    double lease = self->spec->lease;
    bool deserted = true;
    if (self->members.listed_at != 0 &&
        seconds_since(self->members.listed_at) < fmin(lease / 3, self->options.patience / 2))
        return SHOAL_OK;
    int status = job_members_list(&self->members, self->store, self->id, deadline_of(self));
    for (int64_t i = 0; status == SHOAL_OK && i < self->members.peers && deserted; i++)
        deserted =
            !self->members.peer[i].listed || !job_members_alive(&self->members, self->members.peer[i].worker, lease);
    if (status == SHOAL_OK && !deserted)
        self->alive = base_now();
    if (status == SHOAL_OK && should_mend(self, deserted))
        status = mend_spec(self);
    if (status < 0)
        return judge_failure(self, status);
    if (seconds_since(self->alive) > self->options.patience)
        return shoal_fail(SHOAL_STOPPED, "no worker has been seen for %.*f s in %s",
                          self->options.patience < 10 ? 1 : 0, seconds_since(self->alive), self->traits.name);
    return SHOAL_OK;
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

/* Seconds from the last look until the next on a store that has to be asked. */
static double look_interval(const follower *self)
{
    double interval = fmax(self->trip, LOOK_SHARE * seconds_since(self->began));
    double expected = self->round_seconds - (double)(self->looked - self->found) * 1e-9 - self->trip / 2;
    interval = fmin(interval, LOOK_LONGEST);
    if (self->round_seconds > 0)
        interval = fmin(interval, fmax(ROUNDS_A_LOOK * self->round_seconds, self->trip));
    return fmin(fmax(interval, expected), LOOK_AHEAD);
}

/* Waits for the model after the newest.  The first wait for a key returns at once, so that it is looked for once
 * before. */
static bool wait_for_change(follower *self, int64_t until)
{
    job_key key = job_key_model(self->id, self->model->number + 1);
    bool first = self->seen == 0;
    bool over = shoal_store_wait(self->store, key.text, &self->seen, until) == SHOAL_OK;
    self->woken = over && !first;
    return over;
}

/* Sleeps until the job's marker is removed, which is the last thing that happens to a job.  It may wake for another
 * key. */
static bool wait_for_end(follower *self, int64_t until)
{
    shoal_blob blob = {0};
    job_key marker = job_key_open(self->id);
    if (shoal_store_wait(self->store, marker.text, &self->seen_marker, until) < 0)
        return false;
    self->jump |= shoal_store_get(self->store, marker.text, &blob, deadline_of(self)) == SHOAL_ABSENT;
    shoal_blob_release(&blob);
    return self->jump;
}

/* Least seconds between two looks: few enough that the history holds all rounds between them, if all are wanted. */
static double shortest_rest(const follower *self)
{
    double some_rounds = self->round_seconds * ROUNDS_A_LOOK / 2;
    if (self->options.sparse || !self->options.progress)
        return WAKE_SHORTEST;
    return fmin(WAKE_SHORTEST, some_rounds > 0 ? some_rounds : WAKE_SHORTEST / 10);
}

/* Waits until it is time to look again; meanwhile the caller's tick runs. */
static int rest(follower *self)
{
    const shoal_follow_options *options = &self->options;
    bool wakes = self->traits.wakes, over = false;
    double interval = wakes ? LOOK_LONGEST : look_interval(self);
    int64_t due = base_time_after(self->looked, fmin(interval, options->patience / 2));
    bool slow = self->seen == 0 && self->round_seconds >= WAKE_SHORTEST;
    int64_t soonest = base_time_after(self->looked, slow ? 0 : shortest_rest(self));
    self->woken = false;
    for (;;) {
        if (options->stop && *options->stop)
            return shoal_fail(SHOAL_STOPPED, "stopped while job %s was in round %lld", self->id,
                              (long long)self->model->number);
        int status = options->tick ? options->tick(options->tick_context) : SHOAL_OK;
        int64_t now = base_now(), until = base_time_after(now, ATTEND_EVERY);
        if (status < 0 || now >= due || over)
            return status;
        until = until < due ? until : due;
        if (!wakes)
            base_sleep_until(until);
        else if (now < soonest)
            over = wait_for_end(self, soonest);
        else
            over = wait_for_change(self, until);
    }
}

/* ---- the report -------------------------------------------------------------------------------------------------- */

/* Workers write their last record when they have seen the end, which is soon. */
static void await_leaving(follower *self)
{
    job_key key = job_key_of(self->id, "worker/");
    int64_t until = base_time_after(base_now(), 0.5);
    uint32_t seen = 0;
    while (base_now() < until) {
        bool present = false;
        if (job_members_list(&self->members, self->store, self->id, until) < 0)
            return;
        for (int64_t i = 0; i < self->members.peers; i++)
            present |= self->members.peer[i].listed &&
                       job_members_alive(&self->members, self->members.peer[i].worker, self->spec->lease);
        if (!present)
            return;
        if (self->traits.wakes)
            shoal_store_wait(self->store, key.text, &seen, until);
        else
            base_sleep_until(base_time_after(base_now(), 0.2));
    }
}

/* The name of a kernel set that lasts; sets of workers that this CPU does not have are told as "several". */
static const char *kernel_name(const shoal_job_worker *worker, int64_t count)
{
    const kernel_set *sets[8];
    int known = kernel_list(sets);
    for (int64_t i = 1; i < count; i++)
        if (strcmp(worker[i].kernel, worker[0].kernel) != 0)
            return "several";
    for (int i = 0; i < known && count > 0; i++)
        if (strcmp(sets[i]->name, worker[0].kernel) == 0)
            return sets[i]->name;
    return count > 0 ? "of another machine" : "";
}

/* Slots come from a store: their sum must not overflow an int. */
static void count_at_end(shoal_job_report *out, int slots)
{
    out->threads_each = out->at_end == 0 || out->threads_each == slots ? slots : 0;
    out->run.threads = slots < INT_MAX - out->run.threads ? out->run.threads + slots : INT_MAX;
    out->at_end++;
}

/* Fills in what is known; if the store is out of reach, it stays incomplete. */
static void fill_report(shoal_job_report *out, follower *self)
{
    shoal_job_worker *worker = NULL;
    int64_t count = 0;
    *out = (shoal_job_report){.run.kernel = ""};
    if (self->model) {
        const job_trailer *trailer = &self->model->trailer;
        out->run.rounds = self->model->number;
        out->run.phases = trailer->phases;
        memcpy(out->run.phase, trailer->phase, sizeof out->run.phase);
        memcpy(out->run.counter, trailer->counter, sizeof out->run.counter);
        out->doubled = trailer->doubled;
        if (self->model->state == SHOAL_JOB_DONE)
            await_leaving(self);
    }
    if (self->spec)
        job_workers_read(&worker, &count, self->store, self->id, self->spec->lease, deadline_of(self));
    out->requests = shoal_store_counted(self->store);
    out->workers = count;
    out->run.kernel = kernel_name(worker, count);
    for (int64_t i = 0; i < count; i++) {
        out->lost += job_worker_is_lost(&worker[i]);
        job_counts_add(&out->requests, &worker[i].requests);
        if (worker[i].alive || job_worker_saw_end(&worker[i]))
            count_at_end(out, worker[i].slots);
    }
    out->run.all_threads = out->run.threads;
    base_free(&worker);
}

/* ---- following --------------------------------------------------------------------------------------------------- */

static int start_following(follower *self)
{
    self->call_seconds = fmax(self->options.patience, 5);
    int status = self->options.spec
                     ? job_spec_decode(&self->spec, self->id, self->options.spec, self->options.spec_size)
                     : job_spec_get(&self->spec, self->store, self->id, deadline_of(self));
    if (status == SHOAL_OK)
        status = job_newest(&self->model, self->store, self->spec, deadline_of(self));
    if (status == SHOAL_BROKEN && self->spec) /* workers remove it, and compute it again from an older one */
        status = job_model_first(&self->model, self->spec);
    if (status == SHOAL_OK && (status = job_model_check_end(self->model, self->spec, self->options.algorithms)) < 0)
        status = shoal_fail(status, "job %s: %s", self->id, shoal_error());
    self->began = self->found = self->looked = self->reached = self->alive = self->spec_looked = base_now();
    self->call_seconds = 5;
    if (status == SHOAL_OK)
        tell_followed(self);
    return status;
}

int shoal_job_follow(shoal_result **out, shoal_job_report *report, shoal_store *store, const char *id,
                     const shoal_follow_options *options)
{
    follower self = {.store = store, .id = id, .traits = shoal_store_describe(store)};
    char *why = NULL;
    *out = NULL;
    if (options)
        self.options = *options;
    if (self.options.patience == 0)
        self.options.patience = USUAL_PATIENCE;
    if (!(self.options.patience >= SHOAL_JOB_PATIENCE_LEAST && self.options.patience <= SHOAL_JOB_PATIENCE_MOST))
        return shoal_fail(SHOAL_USAGE, "patience must be %.15g to %.15g seconds, not %.15g", SHOAL_JOB_PATIENCE_LEAST,
                          SHOAL_JOB_PATIENCE_MOST, self.options.patience);
    int status = start_following(&self);
    while (status == SHOAL_OK && self.model->state == SHOAL_JOB_RUNNING) {
        status = rest(&self);
        if (status == SHOAL_OK)
            status = look_at_job(&self);
        if (status == SHOAL_OK && self.model->state == SHOAL_JOB_RUNNING)
            status = watch_workers(&self);
    }
    if (status == SHOAL_OK && self.model->state == SHOAL_JOB_CANCELLED) {
        status = shoal_fail(SHOAL_STOPPED, "job %s was cancelled: %s", id, self.model->message);
    } else if (status == SHOAL_OK && self.model->state == SHOAL_JOB_FAILED) {
        status = shoal_fail(self.model->status, "%s", self.model->message);
    } else if (status == SHOAL_OK) {
        *out = self.model->result;
        self.model->result = NULL;
    }
    if (report) {
        if (status < 0)
            base_copy_text(&why, shoal_error());
        fill_report(report, &self);
        if (why)
            shoal_fail(status, "%s", why);
        base_free(&why);
    }
    job_model_free(&self.model);
    job_spec_free(&self.spec);
    job_members_release(&self.members);
    return status;
}
