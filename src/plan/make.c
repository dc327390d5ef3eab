/* From what is asked to what is answered: the job, the machines, the crew, and the constants of the model. */
#include "plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/pool.h"
#include "data/grain.h"

/* ---- the question ------------------------------------------------------------------------------------------------ */

static void note_assumed(plan *plan, const char *what)
{
    char *text = plan->assumed;
    size_t used = strlen(text);
    snprintf(text + used, sizeof plan->assumed - used, "%s%s", used ? "; " : "", what);
}

/* The shape, from DATA, which stays open, or as it was given. */
static int find_shape(plan *plan)
{
    const plan_request *request = plan->request;
    const char *path = request->path;
    plan->shape = request->shape;
    if (!path) {
        if (request->shape.rows > 0 && request->shape.columns > 0)
            return SHOAL_OK;
        return shoal_fail(SHOAL_USAGE, "the size of the data is unknown: give DATA, or --rows and --cols");
    }
    if (request->shape.rows > 0 || request->shape.columns > 0)
        return shoal_fail(SHOAL_USAGE, "--rows and --cols: %s has its own size; they are for data that are not here",
                          path);
    double began = base_seconds();
    int status = request->data ? SHOAL_OK : shoal_data_open(&plan->own, path, NULL);
    plan->open = request->data ? request->open : base_seconds() - began;
    plan->data = request->data ? request->data : plan->own;
    if (status == SHOAL_OK)
        plan->shape = (shoal_shape){.rows = shoal_data_rows(plan->data),
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
    if (plan->request->rounds <= 0)
        return shoal_fail(SHOAL_USAGE, "%s decides itself when to end: use --rounds N to say after how many rounds",
                          plan->request->algorithm->name);
    plan->cost.rounds = plan->request->rounds;
    plan->cost.phase[plan->cost.phases - 1].rounds = (double)plan->request->rounds;
    return SHOAL_OK;
}

static shoal_plan_source source_of(const plan *plan)
{
    if (plan->request->source >= 0)
        return (shoal_plan_source)plan->request->source;
    if (plan->request->path && strncmp(plan->request->path, "gen:", 4) == 0)
        return SHOAL_PLAN_GENERATED;
    return plan->request->workers.local ? SHOAL_PLAN_FILE : SHOAL_PLAN_STORED;
}

/* The shape as engines cut it, without a grain that was asked for. */
static int cut_shape(shoal_shape *out, const plan *plan)
{
    const shoal_algorithm *algorithm = plan->request->algorithm;
    *out = plan->shape;
    out->rows_per_grain = algorithm->rows_per_grain ? algorithm->rows_per_grain(plan->request->config, out) : 0;
    if (out->rows_per_grain < 1)
        out->rows_per_grain = data_rows_per_grain(out->rows, out->columns * (int64_t)shoal_type_size(out->type));
    out->grains = (out->rows - 1) / out->rows_per_grain + 1;
    int status = algorithm->strata ? algorithm->strata(plan->request->config, out) : SHOAL_OK;
    out->strata = out->strata < out->grains ? out->strata : out->grains;
    return status;
}

/* What the learner itself would refuse: a wrong option, or one that is missing. */
static int check_learner(const plan *plan)
{
    static const double LARGE = 1e9; /* models that are not made for this alone */
    shoal_shape whole;
    shoal_round *round = NULL;
    int status = cut_shape(&whole, plan);
    if (status == SHOAL_OK && plan->cost.model_bytes < LARGE)
        status = plan->request->algorithm->start(&round, plan->request->config, &whole);
    shoal_round_free(&round);
    return status;
}

/* What workers may share: strata, or grains; 0 where the engine chooses them. */
static double grains_of(const plan *plan)
{
    shoal_shape whole;
    if (cut_shape(&whole, plan) < 0)
        return 0;
    return whole.strata ? (double)whole.strata : plan->request->algorithm->rows_per_grain ? (double)whole.grains : 0;
}

static int find_job(plan *plan)
{
    const plan_request *request = plan->request;
    const shoal_shape *shape = &plan->shape;
    int status = find_shape(plan);
    if (status == SHOAL_OK && !plan->request->algorithm->cost)
        status = shoal_fail(SHOAL_USAGE, "%s does not report its cost, so it cannot be planned",
                            plan->request->algorithm->name);
    if (status == SHOAL_OK)
        status = plan->request->algorithm->cost(&plan->cost, plan->request->config, shape);
    if (status == SHOAL_OK)
        status = check_learner(plan);
    if (plan->request->classes > 0 && !plan->data) {
        char text[64];
        snprintf(text, sizeof text, "%lld classes (--classes)", (long long)plan->request->classes);
        note_assumed(plan, text);
    }
    if (status == SHOAL_OK)
        status = check_rounds(plan);
    plan->question.job = (shoal_plan_job){.cost = &plan->cost,
                                          .learner = plan->request->algorithm->name,
                                          .rows = (double)shape->rows,
                                          .columns = (double)shape->columns,
                                          .value_bytes = (double)shoal_type_size(shape->type),
                                          .source = source_of(plan),
                                          .reduce = request->reduce,
                                          .open = plan->open,
                                          .grains = status == SHOAL_OK ? grains_of(plan) : 0,
                                          .split_roles = request->split_roles};
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
    const plan_request *request = plan->request;
    const char *pattern = request->machines, *table = request->prices;
    if (!pattern && !table)
        return SHOAL_OK;
    if (pattern && is_table(pattern)) {
        if (table)
            return shoal_fail(SHOAL_USAGE, "--machines %s and --prices %s are both price tables: use one", pattern,
                              table);
        table = pattern;
        pattern = NULL;
    }
    int status = table ? plan_prices_read(&plan->prices, table) : plan_prices_shipped(&plan->prices);
    if (status == SHOAL_OK)
        status = plan_prices_select(&plan->machines, plan->prices, pattern ? pattern : "*", request->spot);
    plan->question.machines = &plan->machines;
    return status;
}

/* ---- crew -------------------------------------------------------------------------------------------------------- */

static void find_start(plan *plan)
{
    shoal_plan_crew *crew = &plan->question.crew;
    if (!isnan(plan->request->start))
        crew->start = plan->request->start;
    else if (plan->question.machines) {
        crew->start = 60;
        note_assumed(plan, "a machine starts within 60 s (--start)");
    } else if (plan->request->workers.local)
        crew->start = plan->question.site.start;
}

/* What the program takes to start and to end; and how far off estimates may be where nothing was measured. */
static const double PROGRAM_START = 0.01, UNMEASURED = 0.4;

/* first, 2 first, 4 first, ..., last, and `also` where that is not 0: ascending, none twice. */
static int64_t list_doubling(int64_t out[PLAN_HERE_MOST], int64_t first, int64_t last, int64_t also)
{
    int64_t count = 0;
    for (int64_t next = first; count < PLAN_HERE_MOST - 2; next = 2 * next < last ? 2 * next : last) {
        if (also > 0 && also < next && (count == 0 || out[count - 1] < also))
            out[count++] = also;
        out[count++] = next;
        if (next >= last)
            break;
    }
    if (also > out[count - 1])
        out[count++] = also;
    return count;
}

/* Threads in one process, and processes that meet in a folder. */
static void list_here(plan *plan)
{
    plan_question *question = &plan->question;
    const int64_t cores = base_cores();
    question->alone.threads = plan->here_threads;
    question->alone.count = list_doubling(plan->here_threads, 1, cores, (int64_t)plan->request->threads);
    question->workers = plan->here_processes;
    question->workers_count = list_doubling(plan->here_processes, 2, cores > 2 ? cores : 2, 0);
}

static void find_crew(plan *plan)
{
    const plan_request *request = plan->request;
    plan_question *question = &plan->question;
    question->crew = (shoal_plan_crew){.cores = base_cores(),
                                       .speed = request->speed,
                                       .machines = request->workers.local ? 1 : 0,
                                       .replace = request->replace,
                                       .billed = request->billed,
                                       .losses = request->spot ? 0.05 : 0,
                                       .dollars_per_hour = isnan(request->price) ? 0 : request->price};
    question->threads = request->threads;
    question->workers = request->workers.number;
    question->workers_count = request->workers.count;
    plan->usual = request->threads > 0 ? (int64_t)request->threads : base_cores();
    question->alone.start = PROGRAM_START;
    question->alone.error = plan->calibration && plan->calibration->error > 0 ? plan->calibration->error : UNMEASURED;
    if (request->here)
        list_here(plan);
    question->spot = request->spot;
    question->goal = request->goal;
    question->deadline = request->deadline;
    question->budget = request->budget;
    plan->priced = request->by_paper || request->machines || request->prices || !isnan(request->price);
    if (!plan->priced) {
        if (question->goal == PLAN_GOAL_NONE)
            question->goal = PLAN_GOAL_TIME;
        if (!request->workers.local)
            note_assumed(plan, "each worker has a machine like this one, of unknown price (--machines, --price)");
    }
    if (!isnan(request->losses))
        question->crew.losses = request->losses;
    else if (request->spot)
        note_assumed(plan, "a spot machine is lost 0.05 times an hour (--losses)");
    find_start(plan);
}

/* ---- constants --------------------------------------------------------------------------------------------------- */

static void choose_store(plan *plan)
{
    const char *store = plan->request->store;
    if (!store && plan->request->workers.local)
        store = "dir";
    if (!store && plan->machines.machines > 0)
        store = strcmp(plan->machines.machine[0]->cloud, "azure") == 0 ? "az" : "s3";
    plan->store = store ? store : "s3";
    bool several = false;
    for (int64_t i = 1; i < plan->machines.machines && !plan->request->store; i++)
        several |= strcmp(plan->machines.machine[i]->cloud, plan->machines.machine[0]->cloud) != 0;
    if (several)
        note_assumed(plan, "the same store for machines of every cloud (--store)");
}

static void set_if(double *constant, double value)
{
    if (value > 0)
        *constant = value;
}

static void assume_store(plan *plan)
{
    const plan_request *request = plan->request;
    char text[200];
    const char *what = request->bandwidth > 0 || request->latency > 0 ? "other figures" : "rates and latencies";
    if (request->workers.local && !request->store)
        snprintf(text, sizeof text,
                 "typical %s of a folder shared by processes; `shoal calibrate` measures "
                 "yours",
                 what);
    else
        snprintf(text, sizeof text, "published %s of store %.64s (measure yours: shoal calibrate --store URL)", what,
                 plan->store);
    note_assumed(plan, text);
}

/* Estimates for machines that nobody measured are that much less sure. */
static const double OTHER_MACHINES = 0.25;

static void find_site(plan *plan)
{
    const plan_request *request = plan->request;
    shoal_site *site = &plan->question.site;
    choose_store(plan);
    plan_calibration_site(site, &plan->site_measured, plan->calibration, plan->store);
    if (!plan->site_measured)
        assume_store(plan);
    if (request->latency > 0)
        site->get = site->put = site->wait = request->latency;
    set_if(&site->read, request->bandwidth);
    set_if(&site->write, request->write_bandwidth > 0 ? request->write_bandwidth : request->bandwidth);
    set_if(&site->account, request->account_bandwidth);
    set_if(&site->account_write, request->account_bandwidth);
    set_if(&site->connections, request->connections);
    if (!isnan(request->straggle))
        site->straggle = request->straggle;
    if (plan->question.machines) {
        site->error = hypot(site->error, OTHER_MACHINES);
        note_assumed(plan, "a core of these machines is as fast as one of this machine (--speed)");
    }
}

static bool has_paces(const plan *plan)
{
    for (int i = 0; plan->calibration && i < plan->calibration->paces; i++)
        if (strcmp(plan->calibration->pace[i].learner, plan->request->algorithm->name) == 0)
            return true;
    return false;
}

static void take_flops(plan *plan)
{
    plan_question *question = &plan->question;
    int phases = plan->cost.phases > 0 ? plan->cost.phases : 1;
    for (int i = 0; i < phases; i++) {
        shoal_pace *pace = &plan->pace[question->paces++];
        *pace = (shoal_pace){.operation = 1 / plan->request->flops};
        snprintf(pace->learner, sizeof pace->learner, "%s", plan->request->algorithm->name);
        snprintf(pace->phase, sizeof pace->phase, "%s", plan->cost.phases > 0 ? plan->cost.phase[i].name : "run");
    }
}

/* How many of the rounds it expects a learner made so far: that only runs can tell. */
static void take_rounds(plan *plan)
{
    for (int i = 0; i < plan->question.paces; i++)
        for (int j = 0; plan->calibration && j < plan->calibration->paces; j++) {
            const shoal_pace *kept = &plan->calibration->pace[j];
            if (strcmp(kept->learner, plan->pace[i].learner) == 0 && strcmp(kept->phase, plan->pace[i].phase) == 0)
                plan->pace[i].rounds = kept->rounds;
        }
}

/* What a learner takes by the calibration is no surer than it was for earlier runs here. */
static void doubt_by_history(plan *plan)
{
    enum { EARLIER_MOST = 200 };
    plan_run like = {0}, *earlier = NULL;
    plan_trust trust;
    char *path = NULL;
    int64_t count = 0, damaged = 0;
    snprintf(like.learner, sizeof like.learner, "%s", plan->request->algorithm->name);
    snprintf(like.host, sizeof like.host, "%s", plan->calibration->host);
    snprintf(like.kernel, sizeof like.kernel, "%s", plan->calibration->kernel);
    if (plan_history_path(&path) == SHOAL_OK)
        (void)plan_history_read(&earlier, &count, &damaged, path, EARLIER_MOST);
    plan_history_trust(&trust, plan->calibration, &like, earlier, count);
    plan->question.alone.error = fmax(plan->question.alone.error, trust.error);
    plan->question.site.error = fmax(plan->question.site.error, trust.error);
    if (!trust.reliable)
        plan_trust_describe(plan->caution, &trust);
    base_free(&earlier);
    base_free(&path);
}

/* From --flops, by trying it, from the calibration, or, where there is none, from what calibrate would find. */
static int find_paces(plan *plan)
{
    static const double PROBE = 2, MEASURE = 4; /* seconds */
    plan_question *question = &plan->question;
    const plan_meter *meter = &plan->request->meter;
    double loss = NAN;
    int status = SHOAL_ABSENT;
    question->pace = plan->pace;
    if (plan->request->flops > 0) {
        take_flops(plan);
        return SHOAL_OK;
    }
    if (!plan->request->no_probe) {
        status = meter->probe(plan->pace, &question->paces, &loss,
                              &(plan_probe){.algorithm = plan->request->algorithm,
                                            .config = plan->request->config,
                                            .data = plan->data,
                                            .shape = plan->shape,
                                            .classes = plan->request->classes,
                                            .seconds = PROBE,
                                            .stop = meter->stop});
        if (status == SHOAL_INVALID && plan->data)
            status = shoal_fail(status, "%s: in the rows that were tried: %s", plan->request->path, shoal_error());
        plan->probed = status == SHOAL_OK;
        for (int i = 0; i < question->paces; i++)
            plan->tried_whole |= plan->pace[i].rounds > 0;
        if (!plan->tried_whole)
            take_rounds(plan);
    }
    if (status == SHOAL_ABSENT && has_paces(plan)) {
        question->paces = plan->calibration->paces;
        memcpy(plan->pace, plan->calibration->pace, sizeof plan->pace);
        loss = plan->calibration->thread_loss;
        doubt_by_history(plan);
        status = SHOAL_OK;
    }
    if (status == SHOAL_ABSENT) {
        char text[160];
        snprintf(text, sizeof text,
                 "measuring %s on this machine for a few seconds; `shoal calibrate` does it once for all plans",
                 plan->request->algorithm->name);
        meter->note(text);
        plan->measured_now = true;
        status = meter->learner(plan->pace, &question->paces, &loss, plan->request->algorithm, MEASURE, meter->stop);
    }
    if (isfinite(loss))
        question->site.thread_loss = loss, question->site.loss_threads = base_cores();
    return status;
}

/* How busy this machine is, where it is this machine that is planned. */
static void find_busy(plan *plan)
{
    static const double LOOK = 0.2; /* seconds: several turns of the processor */
    const plan_request *request = plan->request;
    if (!request->workers.local || !request->meter.busy)
        return;
    double busy = request->meter.busy(LOOK);
    plan->busy = plan->question.busy = busy > PLAN_BUSY_LEAST ? busy : 0;
}

/* What speed-ups of this machine compare with. */
static int find_one_thread(plan *plan)
{
    plan_option one;
    if (!plan->request->workers.local)
        return SHOAL_OK;
    int status = plan_estimate_alone(&one, &plan->question, 1);
    plan->question.alone.one_thread = one.estimate.seconds;
    return status;
}

/* None is there before the first `shoal calibrate`, nor where there is no place for one. */
static int read_plan_calibration(plan *plan)
{
    char *path = NULL;
    int status = plan_calibration_path(&path);
    if (status == SHOAL_USAGE)
        return SHOAL_OK;
    if (status == SHOAL_OK)
        status = plan_calibration_read(&plan->kept, path);
    if (status == SHOAL_INVALID)
        status = shoal_fail(status, "%s; run `shoal calibrate --fresh` to replace it", shoal_error());
    plan->calibration = status == SHOAL_OK ? &plan->kept : NULL;
    base_free(&path);
    return status == SHOAL_ABSENT ? SHOAL_OK : status;
}

/* ---- the paper's model ------------------------------------------------------------------------------------------- */

static int find_paper(plan *plan)
{
    const plan_request *request = plan->request;
    plan_question *question = &plan->question;
    plan->paper = (shoal_paper){.rows = question->job.rows,
                                .columns = question->job.columns,
                                .clusters = request->clusters,
                                .iterations = request->iterations,
                                .flops = request->flops > 0 ? request->flops : 669e6,
                                .read = request->bandwidth > 0 ? request->bandwidth : 8e6,
                                .write = request->write_bandwidth,
                                .dollars_per_hour = isnan(request->price) ? 0.1 : request->price,
                                .dollars_per_request = 1e-6,
                                .billed = question->crew.billed};
    question->paper = &plan->paper;
    question->job.value_bytes = 8; /* doubles, whatever DATA has */
    plan->formula = shoal_paper_best(&plan->paper);
    plan->optimum = (plan_option){.workers = (int64_t)fmax(1, fmin(round(plan->formula), PLAN_WORKERS_MOST)),
                                  .fits = true,
                                  .in_time = true,
                                  .in_budget = true};
    return shoal_paper_estimate(&plan->optimum.estimate, &plan->paper, plan->optimum.workers);
}

/* The paper's own best number of mappers, which need not be among those that were asked for, unless something else is
 * wanted of it. */
static bool wants_formula(const plan *plan)
{
    const plan_question *question = &plan->question;
    return question->paper && question->goal == PLAN_GOAL_NONE && question->deadline <= 0 && question->budget <= 0;
}

/* ---- together ---------------------------------------------------------------------------------------------------- */

static int find_question(plan *plan)
{
    enum { OPTIONS_MOST = 2000000 };
    const bool by_paper = plan->request->by_paper;
    int status = find_job(plan);
    if (status == SHOAL_OK)
        status = find_machines(plan);
    if (status == SHOAL_OK && !by_paper)
        status = read_plan_calibration(plan);
    if (status < 0)
        return status;
    if (!by_paper)
        find_site(plan);
    find_crew(plan);
    if (by_paper)
        return find_paper(plan);
    if (plan->machines.machines * plan->question.workers_count > OPTIONS_MOST)
        return shoal_fail(
            SHOAL_USAGE,
            "%lld machines times %lld numbers of workers are too many to compare: use fewer --machines or --workers",
            (long long)plan->machines.machines, (long long)plan->question.workers_count);
    find_busy(plan);
    status = find_paces(plan);
    return status == SHOAL_OK ? find_one_thread(plan) : status;
}

/* The command as it stands is best unless something else is faster by more than runs differ anyway. */
static void prefer_usual(plan *plan)
{
    static const double SAME = 1.05;
    plan_choice *choice = &plan->choice;
    for (int64_t i = 0; i < plan->question.alone.count && choice->best >= 0; i++) {
        const plan_option *option = &choice->option[i];
        if (option->threads == plan->usual && option->in_time &&
            option->estimate.seconds <= SAME * choice->option[choice->best].estimate.seconds)
            choice->best = i;
    }
}

/* Who asks for workers is told when none would be faster: small work is done before they have started. */
static int compare_alone(plan *plan)
{
    static const double GIB = 1073741824.0;
    const plan_question *question = &plan->question;
    plan_option alone;
    if (question->paper || question->machines)
        return SHOAL_OK;
    int status = plan_estimate_alone(&alone, question, plan->usual);
    bool fits = status == SHOAL_OK && alone.memory <= PLAN_MEMORY_USABLE * (double)base_memory_limit();
    if (plan->request->here && !fits) {
        char text[160];
        snprintf(text, sizeof text, "%.3g GiB of memory, though this machine has %.3g", alone.memory / GIB,
                 (double)base_memory_limit() / GIB);
        note_assumed(plan, text);
    }
    if (!plan->request->here && fits &&
        alone.estimate.seconds < plan->choice.option[plan->choice.fastest].estimate.seconds)
        plan->alone = alone;
    return status;
}

int plan_make(plan **out, const plan_request *request)
{
    plan *plan = NULL;
    *out = NULL;
    int status = base_alloc(&plan, 1, sizeof *plan, "a plan");
    if (status < 0)
        return status;
    plan->request = request;
    status = find_question(plan);
    if (status == SHOAL_OK)
        status = plan_choose(&plan->choice, &plan->question);
    if (status == SHOAL_OK)
        prefer_usual(plan);
    if (status == SHOAL_OK && plan->choice.best < 0)
        status = plan_nothing_meets(plan);
    if (status == SHOAL_OK)
        status = compare_alone(plan);
    if (status == SHOAL_OK) {
        plan->best = wants_formula(plan) ? &plan->optimum : &plan->choice.option[plan->choice.best];
        *out = plan;
        plan = NULL;
    }
    plan_free(&plan);
    return status;
}

void plan_free(plan **inout)
{
    plan *plan = *inout;
    if (!plan)
        return;
    shoal_data_free(&plan->own);
    plan_choice_free(&plan->choice);
    plan_selection_free(&plan->machines);
    plan_prices_free(&plan->prices);
    base_free(inout);
}
