/* Holding a running job to its deadline and its budget.  See hold.h. */
#include "hold.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/pool.h"
#include "base/world.h"
#include "control/picture.h"
#include "hold_model.h"
#include "launch/launch.h"
#include "plan/units.h"

static const double BETWEEN = 0.25;     /* seconds of rounds that make one observation: shorter ones are added up */
static const double PUT_EVERY = 2;      /* seconds */
static const double AFTER_ROUNDS = 0.5; /* seconds from the last round to the end of the job */
static const double STOPPING = 5;       /* seconds that workers may still cost once they are told to leave */
enum { POINTS_MOST = 512 };
enum { TELL_AFTER = 3 }; /* observations that agree that something can't be met */

struct run_hold {
    shoal_outcome *outcome;
    bool active; /* held to something */
    control_aim aim;
    control_held held;
    hold_model model;
    control_option option[HOLD_OPTIONS_MOST];
    /* What was seen last. */
    bool begun;
    double seconds; /* of the job's rounds */
    int64_t number; /* of the round that came next then */
    char phase[24];
    int64_t steps_left;               /* of that phase; -1: not known */
    int64_t ran, running;             /* workers then, and now; -1: they changed meanwhile */
    double ticked, looked, put;       /* moments */
    int unmet;                        /* observations in a row */
    int told;                         /* that it may not hold: 1, that it can't: 2 */
    double average, began;            /* worker seconds of this process */
    control_point point[POINTS_MOST]; /* how it went, for the picture: every second one goes when it is full */
    int64_t points;
};

static double wall(void)
{
    return (double)base_wall_now() / 1e9;
}

/* ---- what is asked for ------------------------------------------------------------------------------------------- */

int run_hold_aim(control_aim *out, bool *asked, const run_workers_options *options, double started)
{
    double seconds = 0;
    int status = SHOAL_OK;
    *out = (control_aim){.or_stop = options->or_stop};
    *asked = options->hold_deadline || options->budget;
    if (options->held_picture && !*asked && !options->aimed)
        return shoal_fail(SHOAL_USAGE, "--held-picture needs --deadline or --budget");
    if (options->or_stop && !*asked)
        return shoal_fail(SHOAL_USAGE, "--or-stop needs --deadline or --budget: what can't be met otherwise?");
    if (options->price && !*asked && !options->aimed)
        return shoal_fail(SHOAL_USAGE, "--price needs --budget or --deadline: money is counted where a job is held");
    if (options->budget && !options->price)
        return shoal_fail(SHOAL_USAGE, "--budget needs --price MONEY: what an hour of one worker costs");
    if (*asked && options->workers.count == 0)
        return shoal_fail(SHOAL_USAGE, "--deadline and --budget need --workers, such as local:1..8: they hold by "
                                       "starting and ending workers");
    if (*asked && options->roles && strcmp(options->roles, "split") == 0)
        return shoal_fail(SHOAL_USAGE, "--deadline and --budget work with --roles all only");
    if (options->hold_deadline)
        status = plan_parse_duration(&seconds, "--deadline", options->hold_deadline);
    if (status == SHOAL_OK && options->hold_deadline)
        out->deadline = wall() - (started > 0 ? base_seconds() - started : 0) + seconds;
    if (status == SHOAL_OK && options->price)
        status = plan_parse_money(&out->price, "--price", options->price);
    if (status == SHOAL_OK && options->budget)
        status = plan_parse_money(&out->budget, "--budget", options->budget);
    if (status == SHOAL_OK && options->budget && out->budget < out->price / 60)
        status = shoal_fail(SHOAL_USAGE, "--budget %s is less than the first minute of one worker costs at --price %s",
                            options->budget, options->price);
    return status;
}

/* ---- beginning --------------------------------------------------------------------------------------------------- */

static void take_up(run_hold *self)
{
    const launch_ask *ask = self->outcome->away.ask;
    int64_t least = ask->least > 0 ? ask->least : 1;
    const char *roles = self->outcome->request->workers.roles;
    self->active = self->aim.deadline > 0 || self->aim.budget > 0;
    if (self->active && roles && strcmp(roles, "split") == 0) { /* by `shoal job deadline` */
        self->active = false;
        run_warn(self->outcome, "a job with --roles split can't be held to a deadline or a budget, and is not");
    }
    if (!self->active || self->model.options > 0)
        return;
    hold_model_fill(&self->model, self->outcome, least, ask->workers);
    if (self->held.trend.seen == 0 || self->held.blind != self->model.blind) {
        if (self->model.blind)
            control_trend_init_blind(&self->held.trend);
        else
            control_trend_init(&self->held.trend, self->model.error);
    }
    self->held.blind = self->model.blind;
    self->held.least = least;
    self->held.most = ask->workers;
}

static void tell_what_ranges_mean(const run_hold *self)
{
    const launch_ask *ask = self->outcome->away.ask;
    char line[256];
    int64_t each = ask->workers > 0 && ask->slots > ask->workers ? ask->slots / ask->workers : 1;
    if (!self->active || !ask->local || ask->workers * each <= base_cores())
        return;
    snprintf(line, sizeof line,
             "local: this machine has %lld cores, so more than %lld of the %lld workers share them: they help only "
             "against other programs",
             (long long)base_cores(), (long long)(base_cores() / each > 1 ? base_cores() / each : 1),
             (long long)ask->workers);
    run_warn(self->outcome, line);
}

/* What a resumed job is held to, and what was learnt and spent before.  A budget of which nobody can say how much is
 * left is no budget: then the job is not resumed. */
static int recall(run_hold *self, bool aim_too, int64_t deadline)
{
    const shoal_outcome *outcome = self->outcome;
    int status = aim_too ? control_aim_get(&self->aim, outcome->jobs.store, outcome->away.id, deadline) : SHOAL_OK;
    if (status < 0 && status != SHOAL_ABSENT)
        return status;
    status = control_held_get(&self->held, outcome->jobs.store, outcome->away.id, deadline);
    if (status == SHOAL_OK || status == SHOAL_ABSENT)
        return SHOAL_OK;
    if (self->aim.budget > 0)
        return status;
    run_warn(self->outcome, shoal_error());
    return SHOAL_OK;
}

int run_hold_new(run_hold **out, shoal_outcome *outcome)
{
    run_hold *self = NULL;
    bool asked = false;
    int64_t deadline = run_jobs_deadline(&outcome->jobs);
    int status = base_alloc(&self, 1, sizeof *self, "a job's deadline");
    if (status < 0)
        return status;
    *self = (run_hold){.outcome = outcome, .looked = base_seconds(), .ticked = base_seconds(), .began = base_seconds()};
    status = run_hold_aim(&self->aim, &asked, &outcome->request->workers, outcome->started);
    if (status == SHOAL_OK && asked)
        status = control_aim_put(outcome->jobs.store, outcome->away.id, &self->aim, deadline);
    if (status == SHOAL_OK && outcome->away.resumed)
        status = recall(self, !asked, deadline);
    control_held_price(&self->held, self->aim.price);
    if (status < 0) {
        base_free(&self);
        return status;
    }
    take_up(self);
    tell_what_ranges_mean(self);
    *out = self;
    return SHOAL_OK;
}

void run_hold_free(run_hold **hold)
{
    base_free(hold);
}

/* ---- how it went ------------------------------------------------------------------------------------------------- */

static void add_point(run_hold *self)
{
    const control_held *held = &self->held;
    const double start = wall() - (base_seconds() - self->outcome->started);
    if (self->points == POINTS_MOST) {
        for (int64_t i = 0; i < POINTS_MOST / 2; i++)
            self->point[i] = self->point[2 * i];
        self->points = POINTS_MOST / 2;
    }
    self->point[self->points++] = (control_point){.at = base_seconds() - self->outcome->started,
                                                  .workers = self->running,
                                                  .end = held->end > 0 ? held->end - start : 0,
                                                  .low = held->end > 0 ? held->low - start : 0,
                                                  .high = held->end > 0 ? held->high - start : 0,
                                                  .spent = held->spent,
                                                  .cost = held->cost};
}

static void draw_picture(run_hold *self)
{
    const char *path = self->outcome->request->workers.held_picture;
    const double start = wall() - (base_seconds() - self->outcome->started);
    const control_limits limits = {.deadline = self->aim.deadline > 0 ? self->aim.deadline - start : 0,
                                   .budget = self->aim.budget,
                                   .price = self->aim.price};
    if (path && control_draw(path, self->point, self->points, &limits) < 0)
        run_warn(self->outcome, shoal_error());
}

/* ---- deciding ---------------------------------------------------------------------------------------------------- */

/* Fills the table with rounds of what is left, of all phases to come; how many rounds that are, 0 when nobody knows. */
static double fill_options(run_hold *self)
{
    const hold_model *model = &self->model;
    const hold_phase *phase = hold_model_phase(model, self->phase);
    const hold_phase *end = model->phase + model->phases;
    double now = self->steps_left >= 0 ? (double)self->steps_left : phase && phase->rounds > 0 ? phase->rounds : 0;
    double rounds = now;
    phase = phase ? phase : model->phase;
    for (const hold_phase *p = phase + 1; p < end; p++)
        rounds += fmax(p->rounds, 1);
    for (int64_t i = 0; i < model->options; i++) {
        double work = now * phase->work[i], fixed = now * phase->fixed[i];
        for (const hold_phase *p = phase + 1; p < end; p++) {
            work += fmax(p->rounds, 1) * p->work[i];
            fixed += fmax(p->rounds, 1) * p->fixed[i];
        }
        self->option[i] = (control_option){.machines = model->machines[i],
                                           .work = rounds > 0 ? work / rounds : phase->work[i],
                                           .fixed = rounds > 0 ? fixed / rounds : phase->fixed[i],
                                           .price = self->aim.price * (double)model->machines[i]};
    }
    return now > 0 ? rounds : 0;
}

static double start_seconds(const run_hold *self)
{
    const launch_ask *ask = self->outcome->away.ask;
    const bool queues = ask->patience > 3600 && !ask->through; /* for each; nodes of an allocation are there already */
    return ask->local ? 0.5 : queues ? 60 : 5;
}

/* Where nothing can be foretold, a deadline is best served by what is fastest, and a budget by what is cheapest. */
static void choose_blindly(run_hold *self)
{
    const hold_model *model = &self->model;
    const hold_phase *phase = model->phase;
    int64_t best = 0;
    for (int64_t i = 1; i < model->options && self->aim.deadline > 0; i++)
        if ((double)model->machines[i] <= model->room &&
            phase->work[i] + phase->fixed[i] < phase->work[best] + phase->fixed[best])
            best = i;
    self->held.workers = model->machines[best];
    self->held.end = self->held.low = self->held.high = 0;
}

static void note_band(run_hold *self, const control_answer *answer)
{
    control_held *held = &self->held;
    held->verdict = answer->verdict;
    held->end = held->at + AFTER_ROUNDS + answer->band.seconds;
    held->low = held->at + AFTER_ROUNDS + answer->band.low;
    held->high = held->at + AFTER_ROUNDS + answer->band.high;
    held->cost = held->spent + answer->band.cost;
    held->cost_high = held->spent + answer->band.cost_high;
    self->unmet = answer->verdict == CONTROL_KEPT ? 0 : self->unmet + 1;
}

static void decide(run_hold *self)
{
    double rounds = fill_options(self);
    self->held.at = wall();
    bool unknown = self->model.blind && self->held.trend.rounds == 0;
    if (rounds == 0 || unknown) {
        choose_blindly(self);
        return;
    }
    const control_question question = {
        .option = self->option,
        .options = self->model.options,
        .trend = &self->held.trend,
        .course = {.rounds = rounds, .start = start_seconds(self)},
        .running = self->begun ? self->held.workers : 0,
        .deadline = self->aim.deadline > 0 ? fmax(self->aim.deadline - self->held.at - AFTER_ROUNDS, 0) : INFINITY,
        .budget = self->aim.budget > 0 ? fmax(self->aim.budget - self->held.spent, 0) : INFINITY};
    control_answer answer = control_choose(&self->held.state, &question);
    self->held.workers = answer.machines;
    note_band(self, &answer);
    add_point(self);
    run_trace_held(&self->outcome->trace, self->number, &self->point[self->points - 1]);
}

int64_t run_hold_begin(run_hold *self)
{
    if (!self->active)
        return 0;
    snprintf(self->phase, sizeof self->phase, "%s", self->model.phase[0].name);
    self->steps_left = -1;
    decide(self);
    self->running = self->held.workers;
    return self->held.workers;
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

static void remember(run_hold *self, const shoal_round *next, double seconds)
{
    self->begun = true;
    self->seconds = seconds;
    self->number = next->number;
    self->ran = self->running;
    self->steps_left = next->steps > 0 && next->k == 0 ? next->steps - next->step + 1 : -1;
    snprintf(self->phase, sizeof self->phase, "%s", next->phase);
}

/* The trend of a phase that the model does not know says nothing of another. */
static void enter_phase(run_hold *self, const char *name)
{
    control_trend *trend = &self->held.trend;
    if (strcmp(self->held.phase, name) == 0)
        return;
    snprintf(self->held.phase, sizeof self->held.phase, "%s", name);
    if (self->model.blind) {
        control_trend_init_blind(trend);
    } else {
        trend->aa += 0.04; /* the model's error differs from phase to phase */
        trend->bb += 0.04;
    }
}

static const control_option *option_that_ran(run_hold *self, control_option *room, const hold_phase *phase)
{
    int64_t best = 0;
    for (int64_t i = 0; i < self->model.options; i++)
        if (self->model.machines[i] <= self->ran)
            best = i;
    *room = (control_option){
        .machines = self->model.machines[best], .work = phase->work[best], .fixed = phase->fixed[best]};
    return room;
}

void run_hold_round(run_hold *self, const shoal_round *done, const shoal_round *next, double seconds)
{
    control_option room;
    if (!self->active || !next)
        return;
    const hold_phase *phase = hold_model_phase(&self->model, done->phase);
    bool same = self->begun && strcmp(self->phase, done->phase) == 0 && strcmp(next->phase, done->phase) == 0;
    int64_t rounds = next->number - self->number;
    if (!same || self->ran != self->running || rounds <= 0) {
        bool news = !self->begun || strcmp(self->phase, next->phase) != 0;
        remember(self, next, seconds);
        if (news && !self->model.blind)
            decide(self);
        return;
    }
    if (seconds - self->seconds < BETWEEN)
        return;
    enter_phase(self, done->phase);
    if (phase)
        control_trend_see(&self->held.trend, option_that_ran(self, &room, phase),
                          (seconds - self->seconds) / (double)rounds);
    remember(self, next, seconds);
    decide(self);
}

/* ---- while it runs ----------------------------------------------------------------------------------------------- */

/* What the job is held to may be changed by anyone who may write to the store. */
static void look_at_aim(run_hold *self)
{
    control_aim aim;
    double now = base_seconds(), every = shoal_store_describe(self->outcome->jobs.store).wakes ? 1 : 3;
    if (now - self->looked < every)
        return;
    self->looked = now;
    if (control_aim_get(&aim, self->outcome->jobs.store, self->outcome->away.id, shoal_after(5)) < 0 ||
        control_aim_same(&aim, &self->aim))
        return;
    self->aim = aim;
    control_held_price(&self->held, aim.price);
    self->unmet = 0;
    self->told = 0;
    self->held.state = (control_state){0};
    int64_t before = self->held.workers;
    take_up(self);
    if (!self->active)
        return;
    if (before == 0)
        self->held.workers = self->running;
    if (self->begun)
        decide(self);
}

static void put_held(run_hold *self)
{
    self->put = base_seconds();
    (void)control_held_put(self->outcome->jobs.store, self->outcome->away.id, &self->held, shoal_after(5));
}

static void describe_unmet(char out[CONTROL_LINE_BYTES + 128], const run_hold *self)
{
    const control_held *held = &self->held;
    char line[CONTROL_LINE_BYTES];
    bool dear = self->aim.budget > 0 && held->cost > self->aim.budget;
    const char *what = !control_is_hopeless(&self->aim, held, wall())
                           ? "this will probably hold, but not in 95% of cases"
                       : dear ? "the budget does not reach the end"
                              : "the deadline can't be met";
    control_describe(line, &self->aim, held, wall());
    snprintf(out, CONTROL_LINE_BYTES + 128, "%s: at best the job %s", what, line);
}

/* Said once when it is only uncertain, and once more when it is hopeless. */
static int tell_unmet(run_hold *self)
{
    char line[CONTROL_LINE_BYTES + 128];
    int told = control_is_hopeless(&self->aim, &self->held, wall()) ? 2 : 1;
    if (self->held.verdict == CONTROL_KEPT || self->unmet < TELL_AFTER || self->told >= told)
        return SHOAL_OK;
    self->told = told;
    describe_unmet(line, self);
    if (self->aim.or_stop && told == 2)
        return shoal_fail(SHOAL_STOPPED, "%s; --or-stop stops it", line);
    run_warn(self->outcome, line);
    return SHOAL_OK;
}

/* Also where no round has ended yet: a deadline may be shorter than one, and that of a resumed job be of yesterday. */
static int tell_passed(run_hold *self)
{
    if (self->aim.deadline <= 0 || wall() <= self->aim.deadline || self->told >= 2)
        return SHOAL_OK;
    self->told = 2;
    if (self->aim.or_stop)
        return shoal_fail(SHOAL_STOPPED, "the deadline has passed; --or-stop stops the job");
    run_warn(self->outcome, "the deadline has passed; the job goes on, as fast as it can");
    return SHOAL_OK;
}

static int check_spent(const run_hold *self)
{
    double soon = self->aim.price / 3600 * (double)self->running * STOPPING;
    if (self->aim.budget <= 0 || self->held.spent + soon < self->aim.budget)
        return SHOAL_OK;
    return shoal_fail(SHOAL_STOPPED, "the budget of $%.4g is spent, but for what its workers cost until they are gone",
                      self->aim.budget);
}

static void count_time(run_hold *self)
{
    double now = base_seconds(), worked = (double)self->running * (now - self->ticked);
    self->ticked = now;
    self->held.worker_seconds += worked;
    self->average += worked;
    self->held.spent += self->aim.price / 3600 * worked;
}

int run_hold_tick(int64_t *workers, run_hold *self, int64_t running)
{
    double now = base_seconds();
    count_time(self);
    bool changed = running != self->running;
    self->running = running;
    if (changed && self->active)
        add_point(self);
    *workers = -1;
    look_at_aim(self);
    if (!self->active)
        return SHOAL_OK;
    if (now - self->put >= PUT_EVERY)
        put_held(self);
    *workers = self->held.workers;
    int status = check_spent(self);
    if (status == SHOAL_OK)
        status = tell_passed(self);
    return status == SHOAL_OK ? tell_unmet(self) : status;
}

void run_hold_end(run_hold *self, bool done)
{
    char line[CONTROL_LINE_BYTES], spare[PLAN_UNITS_BYTES];
    double now = wall(), lasted = fmax(base_seconds() - self->began, 1e-3);
    if (!self->active)
        return;
    count_time(self);
    self->held.at = now;
    if (done)
        self->held.end = self->held.low = self->held.high = now;
    put_held(self);
    if (!done)
        return;
    add_point(self);
    draw_picture(self);
    plan_format_duration(spare, fabs(self->aim.deadline - now));
    int length = snprintf(line, sizeof line, "held with %.2f workers on average, %" PRId64 " change%s of their number",
                          self->average / lasted, self->held.state.changes, self->held.state.changes == 1 ? "" : "s");
    if (self->aim.deadline > 0)
        length += snprintf(line + length, sizeof line - (size_t)length, "; it ended %s %s its deadline", spare,
                           now <= self->aim.deadline ? "before" : "after");
    if (self->aim.price > 0)
        snprintf(line + length, sizeof line - (size_t)length, "; $%.4g spent", self->held.spent);
    if (self->outcome->request->watch.note)
        self->outcome->request->watch.note(self->outcome->request->watch.context, line);
}
