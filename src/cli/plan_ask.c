/* From what `shoal plan` was asked to what it answers: the job, the machines, the crew, and the constants of the
 * model.  See plan_verb.h. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/pool.h"
#include "plan/measure/measure_learner.h"
#include "plan/measure/measure_probe.h"
#include "plan/units.h"
#include "plan_verb.h"

/* ---- the question ------------------------------------------------------------------------------------------------ */

/* Everything that lives as long as one plan. */
typedef struct plan {
    const cli_plan_asked *asked;
    const cli_plan_settings *set;
    const shoal_algorithm *algorithm;
    const void *config;
    shoal_data *data; /* NULL without DATA */
    shoal_shape shape;
    shoal_cost cost;
    cli_plan_workers workers;
    plan_prices *prices;
    plan_selection machines;
    plan_calibration calibration;
    bool calibrated;
    shoal_pace pace[PLAN_PACES_MOST];
    cli_plan_answer answer;
} plan;

static void assume(plan *plan, const char *what)
{
    char *text = plan->answer.assumed;
    size_t used = strlen(text);
    snprintf(text + used, sizeof plan->answer.assumed - used, "%s%s", used ? "; " : "", what);
}

/* The shape, from DATA, which stays open, or from --rows and --cols. */
static int find_shape(plan *plan)
{
    const cli_plan_settings *set = plan->set;
    const char *path = plan->asked->path;
    shoal_shape *out = &plan->shape;
    static const shoal_type by_choice[] = {SHOAL_FLOAT32, SHOAL_FLOAT32, SHOAL_FLOAT64, SHOAL_UINT8};
    *out = (shoal_shape){.rows = set->rows, .columns = set->columns, .type = by_choice[set->type]};
    if (!path) {
        if (set->rows > 0 && set->columns > 0)
            return SHOAL_OK;
        return shoal_fail(SHOAL_USAGE, "say how large the data are: DATA, or --rows and --cols");
    }
    if (set->rows > 0 || set->columns > 0)
        return shoal_fail(SHOAL_USAGE, "%s says how large it is: --rows and --cols are for data that are not here",
                          path);
    int status = shoal_data_open(&plan->data, path, NULL);
    if (status == SHOAL_OK)
        *out = (shoal_shape){.rows = shoal_data_rows(plan->data),
                             .columns = shoal_data_columns(plan->data),
                             .type = shoal_data_type(plan->data)};
    return status;
}

/* A learner that ends when it likes does not say how many rounds that takes. */
static int check_rounds(plan *plan)
{
    double rounds = (double)plan->cost.rounds;
    for (int i = 0; i < plan->cost.phases; i++)
        rounds += plan->cost.phase[i].rounds;
    if (rounds > 0 || plan->cost.phases == 0)
        return SHOAL_OK; /* the estimate refuses what says nothing at all */
    if (plan->asked->rounds <= 0)
        return shoal_fail(SHOAL_USAGE, "%s ends when it likes: --rounds says after how many rounds that will be",
                          plan->algorithm->name);
    plan->cost.rounds = plan->asked->rounds;
    plan->cost.phase[plan->cost.phases - 1].rounds = (double)plan->asked->rounds;
    return SHOAL_OK;
}

static shoal_plan_source source_of(const plan *plan)
{
    if (plan->set->source > 0)
        return (shoal_plan_source)(plan->set->source - 1);
    return plan->workers.local ? SHOAL_PLAN_FILE : SHOAL_PLAN_STORED;
}

/* What the learner itself would refuse: a wrong option, or one that is missing. */
static int check_learner(const plan *plan)
{
    static const double LARGE = 1e9; /* models that are not made for this alone */
    shoal_shape whole = plan->shape;
    shoal_round *round = NULL;
    whole.rows_per_grain = 1024;
    whole.grains = (whole.rows - 1) / whole.rows_per_grain + 1;
    int status = plan->cost.model_bytes < LARGE ? plan->algorithm->start(&round, plan->config, &whole) : SHOAL_OK;
    shoal_round_free(&round);
    return status;
}

/* 0 where the engine chooses them. */
static double grains_of(const plan *plan)
{
    int64_t each = plan->algorithm->rows_per_grain ? plan->algorithm->rows_per_grain(plan->config, &plan->shape) : 0;
    return each > 0 ? ceil((double)plan->shape.rows / (double)each) : 0;
}

static int find_job(plan *plan)
{
    const cli_plan_settings *set = plan->set;
    const shoal_shape *shape = &plan->shape;
    int status = find_shape(plan);
    if (status == SHOAL_OK && !plan->algorithm->cost)
        status =
            shoal_fail(SHOAL_USAGE, "%s does not say what it costs, so nothing can be planned", plan->algorithm->name);
    if (status == SHOAL_OK)
        status = plan->algorithm->cost(&plan->cost, plan->config, shape);
    if (status == SHOAL_OK)
        status = check_learner(plan);
    if (plan->asked->classes > 0) {
        char text[64];
        snprintf(text, sizeof text, "%lld classes (--classes)", (long long)plan->asked->classes);
        assume(plan, text);
    }
    if (status == SHOAL_OK)
        status = check_rounds(plan);
    plan->answer.question.job = (shoal_plan_job){.cost = &plan->cost,
                                                 .learner = plan->algorithm->name,
                                                 .rows = (double)shape->rows,
                                                 .columns = (double)shape->columns,
                                                 .value_bytes = (double)shoal_type_size(shape->type),
                                                 .source = source_of(plan),
                                                 .reduce = set->reduce,
                                                 .grains = status == SHOAL_OK ? grains_of(plan) : 0,
                                                 .split_roles = set->roles == CLI_PLAN_SPLIT};
    return status;
}

/* ---- machines ---------------------------------------------------------------------------------------------------- */

/* A file, rather than a pattern: "prices.csv", "../prices.csv". */
static bool is_table(const char *text)
{
    size_t length = strlen(text);
    bool pattern = strchr(text, '/') && strchr(text, ':');
    return length > 4 && strcmp(text + length - 4, ".csv") == 0 && !pattern;
}

static int find_machines(plan *plan)
{
    const cli_plan_settings *set = plan->set;
    const char *pattern = set->machines, *table = set->prices;
    if (!pattern && !table)
        return SHOAL_OK;
    if (pattern && is_table(pattern)) {
        if (table)
            return shoal_fail(SHOAL_USAGE, "--machines %s and --prices %s are two price tables", pattern, table);
        table = pattern;
        pattern = NULL;
    }
    int status = table ? plan_prices_read(&plan->prices, table) : plan_prices_shipped(&plan->prices);
    if (status == SHOAL_OK)
        status = plan_prices_select(&plan->machines, plan->prices, pattern ? pattern : "*", set->spot);
    plan->answer.question.machines = &plan->machines;
    plan->answer.prices = plan->prices;
    return status;
}

/* ---- crew -------------------------------------------------------------------------------------------------------- */

static int find_times(plan *plan)
{
    const cli_plan_settings *set = plan->set;
    plan_question *question = &plan->answer.question;
    shoal_plan_crew *crew = &question->crew;
    int status = SHOAL_OK;
    if (set->start)
        status = plan_parse_pause(&crew->start, "--start", set->start);
    else if (question->machines) {
        crew->start = 60;
        assume(plan, "a machine is there after 60 s (--start)");
    } else if (plan->workers.local)
        crew->start = question->site.start;
    if (status == SHOAL_OK)
        status = plan_parse_pause(&crew->replace, "--replace", set->replace);
    if (status == SHOAL_OK)
        status = plan_parse_duration(&crew->billed, "--billed", set->billed);
    if (status == SHOAL_OK && set->deadline)
        status = plan_parse_duration(&question->deadline, "--deadline", set->deadline);
    if (status == SHOAL_OK && set->budget)
        status = plan_parse_money(&question->budget, "--budget", set->budget);
    return status;
}

/* A number whose 0 means something, so that one that was not given is no number. */
static int read_real(double *out, const char *name, const char *text, double most)
{
    double value = 0;
    if (!text)
        return SHOAL_OK;
    if (!base_parse_real(&value, text) || !(value >= 0 && value <= most))
        return shoal_fail(SHOAL_USAGE, "%s: must be a number from 0 to %g, not '%s'", name, most, text);
    *out = value;
    return SHOAL_OK;
}

static int find_crew(plan *plan)
{
    const cli_plan_settings *set = plan->set;
    plan_question *question = &plan->answer.question;
    question->crew = (shoal_plan_crew){.cores = base_cores(), .speed = set->speed};
    question->crew.machines = plan->workers.local ? 1 : 0;
    question->threads = (double)set->threads;
    question->workers = plan->workers.number;
    question->workers_count = plan->workers.count;
    question->spot = set->spot;
    question->wish = (plan_wish)set->objective;
    plan->answer.priced = cli_plan_is_priced(set);
    if (!plan->answer.priced) {
        if (question->wish == PLAN_WISH_NONE)
            question->wish = PLAN_WISH_TIME;
        if (!plan->workers.local)
            assume(plan, "each worker has a machine like this one, of unknown price (--machines, --price)");
    }
    question->crew.losses = set->spot ? 0.05 : 0;
    if (set->spot && !set->losses)
        assume(plan, "a spot machine is lost 0.05 times an hour (--losses)");
    int status = read_real(&question->crew.losses, "--losses", set->losses, 1e6);
    if (status == SHOAL_OK)
        status = read_real(&question->crew.dollars_per_hour, "--price", set->price, 1e9);
    return status == SHOAL_OK ? find_times(plan) : status;
}

/* ---- constants --------------------------------------------------------------------------------------------------- */

static void choose_store(plan *plan)
{
    const char *store = plan->set->store;
    if (!store && plan->workers.local)
        store = "dir";
    if (!store && plan->machines.machines > 0)
        store = strcmp(plan->machines.machine[0]->cloud, "azure") == 0 ? "az" : "s3";
    plan->answer.store = store ? store : "s3";
    bool several = false;
    for (int64_t i = 1; i < plan->machines.machines && !plan->set->store; i++)
        several |= strcmp(plan->machines.machine[i]->cloud, plan->machines.machine[0]->cloud) != 0;
    if (several)
        assume(plan, "the same store for machines of every cloud (--store)");
}

static void set_if(double *constant, double value)
{
    if (value > 0)
        *constant = value;
}

static void assume_store(plan *plan)
{
    const cli_plan_settings *set = plan->set;
    char text[200];
    snprintf(text, sizeof text, "%s of store %.64s as published (shoal calibrate --store URL)",
             set->bandwidth > 0 || set->latency > 0 ? "what else is known" : "rates and latencies", plan->answer.store);
    assume(plan, text);
}

/* Estimates for machines that nobody measured are that much less sure. */
static const double OTHER_MACHINES = 0.25;

static int find_site(plan *plan)
{
    const cli_plan_settings *set = plan->set;
    shoal_site *site = &plan->answer.question.site;
    choose_store(plan);
    plan_calibration_site(site, &plan->answer.site_measured, plan->calibrated ? &plan->calibration : NULL,
                          plan->answer.store);
    if (!plan->answer.site_measured)
        assume_store(plan);
    if (set->latency > 0)
        site->get = site->put = site->wait = set->latency;
    set_if(&site->read, set->bandwidth);
    set_if(&site->write, set->write_bandwidth > 0 ? set->write_bandwidth : set->bandwidth);
    set_if(&site->account, set->account_bandwidth);
    set_if(&site->account_write, set->account_bandwidth);
    set_if(&site->connections, set->connections);
    int status = read_real(&site->straggle, "--straggle", set->straggle, 5);
    if (plan->answer.question.machines) {
        site->error = hypot(site->error, OTHER_MACHINES);
        assume(plan, "a core of these machines is as fast as one of this (--speed)");
    }
    return status;
}

static bool has_paces(const plan *plan)
{
    for (int i = 0; plan->calibrated && i < plan->calibration.paces; i++)
        if (strcmp(plan->calibration.pace[i].learner, plan->algorithm->name) == 0)
            return true;
    return false;
}

static void take_flops(plan *plan)
{
    plan_question *question = &plan->answer.question;
    int phases = plan->cost.phases > 0 ? plan->cost.phases : 1;
    for (int i = 0; i < phases; i++) {
        shoal_pace *pace = &plan->pace[question->paces++];
        *pace = (shoal_pace){.operation = 1 / plan->set->flops};
        snprintf(pace->learner, sizeof pace->learner, "%s", plan->algorithm->name);
        snprintf(pace->phase, sizeof pace->phase, "%s", plan->cost.phases > 0 ? plan->cost.phase[i].name : "run");
    }
}

/* How many of the rounds it expects a learner made so far: that only runs can tell. */
static void take_rounds(plan *plan)
{
    for (int i = 0; i < plan->answer.question.paces; i++)
        for (int j = 0; plan->calibrated && j < plan->calibration.paces; j++) {
            const shoal_pace *kept = &plan->calibration.pace[j];
            if (strcmp(kept->learner, plan->pace[i].learner) == 0 && strcmp(kept->phase, plan->pace[i].phase) == 0)
                plan->pace[i].rounds = kept->rounds;
        }
}

/* From --flops, by trying it, from the calibration, or, where there is none, from what calibrate would find. */
static int find_paces(plan *plan)
{
    static const double PROBE = 2, MEASURE = 4; /* seconds */
    plan_question *question = &plan->answer.question;
    double loss = NAN;
    int status = SHOAL_ABSENT;
    question->pace = plan->pace;
    if (plan->set->flops > 0) {
        take_flops(plan);
        return SHOAL_OK;
    }
    if (!plan->set->no_probe) {
        status = plan_measure_probe(plan->pace, &question->paces, &loss,
                                    &(plan_probe){.algorithm = plan->algorithm,
                                                  .config = plan->config,
                                                  .data = plan->data,
                                                  .shape = plan->shape,
                                                  .classes = plan->asked->classes,
                                                  .seconds = PROBE,
                                                  .stop = cli_signals_stop()});
        if (status == SHOAL_INVALID && plan->data)
            status = shoal_fail(status, "%s: of the rows that were tried: %s", plan->asked->path, shoal_error());
        plan->answer.probed = status == SHOAL_OK;
        take_rounds(plan);
    }
    if (status == SHOAL_ABSENT && has_paces(plan)) {
        question->paces = plan->calibration.paces;
        memcpy(plan->pace, plan->calibration.pace, sizeof plan->pace);
        loss = plan->calibration.thread_loss;
        status = SHOAL_OK;
    }
    if (status == SHOAL_ABSENT) {
        fprintf(stderr,
                "shoal: measuring %s on this machine for some seconds; shoal calibrate does it once and for all\n",
                plan->algorithm->name);
        plan->answer.measured_now = true;
        status =
            plan_measure_learner(plan->pace, &question->paces, &loss, plan->algorithm, MEASURE, cli_signals_stop());
    }
    if (isfinite(loss))
        question->site.thread_loss = loss, question->site.loss_threads = base_cores();
    return status;
}

/* None is there before the first `shoal calibrate`, nor where there is no place for one. */
static int read_calibration(plan *plan)
{
    char *path = NULL;
    int status = plan_calibration_path(&path);
    if (status == SHOAL_USAGE)
        return SHOAL_OK;
    if (status == SHOAL_OK)
        status = plan_calibration_read(&plan->calibration, path);
    if (status == SHOAL_INVALID)
        status = shoal_fail(status, "%s; shoal calibrate --fresh makes a new one", shoal_error());
    plan->calibrated = status == SHOAL_OK;
    if (plan->calibrated)
        plan->answer.calibration = &plan->calibration;
    base_free(&path);
    return status == SHOAL_ABSENT ? SHOAL_OK : status;
}

/* ---- the paper's model ------------------------------------------------------------------------------------------- */

static int find_paper(plan *plan)
{
    const cli_plan_settings *set = plan->set;
    cli_plan_answer *answer = &plan->answer;
    const shoal_kmeans_config *config = plan->config;
    answer->paper = (shoal_paper){.rows = answer->question.job.rows,
                                  .columns = answer->question.job.columns,
                                  .clusters = (double)config->k,
                                  .iterations = (double)config->iterations,
                                  .flops = set->flops > 0 ? set->flops : 669e6,
                                  .read = set->bandwidth > 0 ? set->bandwidth : 8e6,
                                  .write = set->write_bandwidth,
                                  .dollars_per_hour = set->price ? answer->question.crew.dollars_per_hour : 0.1,
                                  .dollars_per_request = 1e-6,
                                  .billed = answer->question.crew.billed};
    answer->question.paper = &answer->paper;
    answer->question.job.value_bytes = 8; /* doubles, whatever DATA has */
    answer->formula = shoal_paper_best(&answer->paper);
    answer->optimum = (plan_option){.workers = (int64_t)fmax(1, fmin(round(answer->formula), CLI_PLAN_WORKERS_MOST)),
                                    .fits = true,
                                    .in_time = true,
                                    .in_budget = true};
    return shoal_paper_estimate(&answer->optimum.estimate, &answer->paper, answer->optimum.workers);
}

/* The paper's own best number of mappers, which need not be among those that were asked for, unless something else is
 * wanted of it. */
static bool wants_formula(const cli_plan_answer *answer)
{
    const plan_question *question = &answer->question;
    return question->paper && question->wish == PLAN_WISH_NONE && question->deadline <= 0 && question->budget <= 0;
}

/* ---- the verb ---------------------------------------------------------------------------------------------------- */

static int ask(plan *plan)
{
    enum { OPTIONS_MOST = 2000000 };
    plan_question *question = &plan->answer.question;
    int status = cli_plan_workers_parse(&plan->workers, plan->set->workers);
    if (status == SHOAL_OK)
        status = cli_plan_check(plan->asked, plan->workers.local);
    if (status == SHOAL_OK)
        status = find_job(plan);
    if (status == SHOAL_OK)
        status = find_machines(plan);
    if (status == SHOAL_OK && plan->set->model != CLI_PLAN_PAPER)
        status = read_calibration(plan);
    if (status == SHOAL_OK && plan->set->model != CLI_PLAN_PAPER)
        status = find_site(plan);
    if (status == SHOAL_OK)
        status = find_crew(plan);
    if (status == SHOAL_OK && plan->set->model == CLI_PLAN_PAPER)
        return find_paper(plan);
    if (status == SHOAL_OK && plan->machines.machines * question->workers_count > OPTIONS_MOST)
        status = shoal_fail(
            SHOAL_USAGE,
            "%lld machines times %lld numbers of workers are too many to look at: fewer --machines or --workers",
            (long long)plan->machines.machines, (long long)question->workers_count);
    return status == SHOAL_OK ? find_paces(plan) : status;
}

static int tell(plan *plan)
{
    cli_plan_answer *answer = &plan->answer;
    if (answer->choice.best < 0)
        return cli_plan_nothing(answer);
    answer->best = wants_formula(answer) ? &answer->optimum : &answer->choice.option[answer->choice.best];
    int status = plan->set->picture ? cli_plan_draw(plan->set->picture, answer) : SHOAL_OK;
    if (status == SHOAL_OK)
        status = plan->set->json ? cli_plan_print_json(answer) : cli_plan_print(stdout, answer);
    return status;
}

int cli_plan_make(const cli_plan_asked *asked)
{
    plan *plan = NULL;
    const cli_plan_settings *set = asked->settings;
    const run_file outputs[] = {{"--picture", set->picture}, {0}}, inputs[] = {{"DATA", asked->path}, {0}};
    int status = run_files_check(outputs, inputs, set->json);
    if (status == SHOAL_OK)
        status = base_alloc(&plan, 1, sizeof *plan, "a plan");
    if (status < 0)
        return status;
    plan->asked = asked;
    plan->set = set;
    plan->algorithm = plan->answer.algorithm = asked->algorithm;
    plan->config = asked->config;
    plan->answer.settings = set;
    status = ask(plan);
    if (status == SHOAL_OK)
        status = plan_choose(&plan->answer.choice, &plan->answer.question);
    if (status == SHOAL_OK)
        status = tell(plan);
    shoal_data_free(&plan->data);
    plan_choice_free(&plan->answer.choice);
    plan_selection_free(&plan->machines);
    plan_prices_free(&plan->prices);
    cli_plan_workers_free(&plan->workers);
    base_free(&plan);
    return status;
}
