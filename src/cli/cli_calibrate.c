/* shoal calibrate: measures what plans need of this machine and of stores, and keeps it.
 *
 * Stores come first, so that one that can't be reached is told at once; then learners; then jobs through each store,
 * whose fit uses the learners' paces.  What was measured anew takes the place of what was there, and the rest stays. */
#include "calibrate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/path.h"
#include "base/pool.h"
#include "run/jobs.h"
#include "kernel/kernel.h"
#include "plan/history.h"
#include "plan/measure/measure_engine.h"
#include "plan/measure/measure_learner.h"
#include "measure_store.h"
#include "store/store_internal.h"

enum { LEARNERS_MOST = 8, STORES_MOST = 8, BLOB_BYTES = 4 << 20, FETCHED_AT_ONCE = 8 };

/* Shares of the time. */
static const double LEARNERS_SHARE = 0.45, STORES_SHARE = 0.22, ENGINE_SHARE = 0.18;
/* How far a fresh calibration may be trusted: what a deviation of the logarithm is taken for until history tells. */
static const double USUAL_ERROR = 0.12;

typedef struct settings {
    cli_common common;
    shoal_texts stores, learners;
    int64_t workers;
    double seconds;
    const char *out;
    bool fresh, history, refit;
    cli_print_settings print;
} settings;

static const shoal_option rows[] = {
    {"store", 's', SHOAL_OPTION_LIST, offsetof(settings, stores), "URL",
     .help = "a store to measure: a folder, az://ACCOUNT/CONTAINER or s3://BUCKET; may be given several times; a "
             "folder of this user, where jobs usually are, when left out"},
    {"learner", 'l', SHOAL_OPTION_LIST, offsetof(settings, learners), "NAME",
     .help =
         "a learner to measure, such as kmeans; may be given several times; all that can be measured when left out"},
    {"workers", 'w', SHOAL_OPTION_COUNT, offsetof(settings, workers), "N",
     .help = "the most workers that are started to see what a round takes; 1, 2 and 4 are tried in any case",
     .fallback = "4", .least = 1, .most = 256},
    {"seconds", 0, SHOAL_OPTION_REAL, offsetof(settings, seconds), "N",
     .help = "how long all measurements may take, about", .fallback = "45", .least = 1, .most = 86400},
    {"out", 'o', SHOAL_OPTION_TEXT, offsetof(settings, out), "FILE",
     .help = "where measurements are kept; $XDG_CONFIG_HOME/shoal/calibration.json, or below ~/.config, when left out"},
    {"fresh", 0, SHOAL_OPTION_FLAG, offsetof(settings, fresh), NULL, .help = "forget what was measured before"},
    {0},
};
static const shoal_option history_rows[] = {
    {"history", 0, SHOAL_OPTION_FLAG, offsetof(settings, history), NULL,
     .help = "measure nothing; list what was predicted of runs and what happened"},
    {"refit", 0, SHOAL_OPTION_FLAG, offsetof(settings, refit), NULL,
     .help = "measure nothing; fit what is kept to the runs that happened"},
    {0},
};
static const shoal_option *const options = rows, *const history_options = history_rows;

static const base_option_group groups[] = {
    {"Measuring", &options, 0},
    {"Runs that happened", &history_options, 0},
    {"Output", &cli_print_options, offsetof(settings, print)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

/* ---- what is measured -------------------------------------------------------------------------------------------- */

typedef struct calibrating {
    const settings *settings;
    plan_calibration *kept;
    char *path;
    const shoal_algorithm *learner[LEARNERS_MOST];
    int learners;
    const char *url[STORES_MOST];
    shoal_site site[STORES_MOST];
    int stores;
    char *folder; /* made for this, removed at the end; NULL when stores were named */
    cli_progress progress;
} calibrating;

/* Those whose faces say how: "kmeans, logistic, autoencoder" into `out`, and each to `name`. */
static int list_learners(const char *name[LEARNERS_MOST], char *out, size_t size)
{
    int count = 0;
    size_t used = 0;
    for (int i = 0; learn_faces[i] && count < LEARNERS_MOST; i++) {
        if (!learn_faces[i]->probe)
            continue;
        name[count++] = learn_faces[i]->algorithm->name;
        used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "", name[count - 1]);
    }
    return count;
}

static int find_learner(const shoal_algorithm **out, const char *name)
{
    const char *names[LEARNERS_MOST];
    char list[256] = "";
    const int count = list_learners(names, list, sizeof list);
    const learn_face *face = learn_face_find(name);
    if (face && face->probe && strcmp(face->algorithm->name, name) == 0) {
        *out = face->algorithm;
        return SHOAL_OK;
    }
    if (learn_algorithm_find(name))
        return shoal_fail(SHOAL_USAGE, "--learner %s: it can't be measured by itself; those that can are %s", name,
                          list);
    const char *near = base_nearest(name, names, count);
    if (near)
        return shoal_fail(SHOAL_USAGE, "--learner: there is no learner '%s'; did you mean '%s'?", name, near);
    return shoal_fail(SHOAL_USAGE, "--learner: there is no learner '%s'; those that can be measured are %s", name,
                      list);
}

static int choose_learners(calibrating *self)
{
    const shoal_texts *named = &self->settings->learners;
    const char *all[LEARNERS_MOST];
    char list[256] = "";
    const int count = list_learners(all, list, sizeof list);
    int status = SHOAL_OK;
    for (int i = 0; status == SHOAL_OK && i < (named->count ? named->count : count); i++) {
        const shoal_algorithm *found = NULL;
        status = find_learner(&found, named->count ? named->text[i] : all[i]);
        bool twice = false;
        for (int j = 0; j < self->learners; j++)
            twice |= self->learner[j] == found;
        if (status == SHOAL_OK && !twice && self->learners < LEARNERS_MOST)
            self->learner[self->learners++] = found;
    }
    return status;
}

/* A folder beside the jobs of this user, which may lie on another disk than temporary files; or among those. */
static int make_folder(calibrating *self)
{
    int status = run_jobs_state_path(&self->folder, "calibrate-XXXXXX");
    if (status < 0 || !mkdtemp(self->folder)) {
        base_free(&self->folder);
        status = base_make_temporary_folder(&self->folder, "shoal-calibrate");
    }
    self->url[0] = self->folder;
    self->stores = 1;
    return status;
}

static int choose_stores(calibrating *self)
{
    const shoal_texts *named = &self->settings->stores;
    if (named->count == 0)
        return make_folder(self);
    if (named->count > STORES_MOST)
        return shoal_fail(SHOAL_USAGE, "--store: %d at a time are the most", STORES_MOST);
    for (int i = 0; i < named->count; i++) {
        char name[sizeof self->kept->site->store];
        plan_calibration_name(name, sizeof name, named->text[i]);
        if (!*named->text[i])
            return shoal_fail(SHOAL_USAGE, "--store needs the URL of a store");
        if (strcmp(name, "mem") == 0 || strcmp(name, "pipe") == 0)
            return shoal_fail(SHOAL_USAGE, "--store %s: workers of their own processes can't meet in such a store",
                              named->text[i]);
        self->url[self->stores++] = named->text[i];
    }
    return SHOAL_OK;
}

/* ---- what was there before --------------------------------------------------------------------------------------- */

static void forget_paces(plan_calibration *kept)
{
    int left = 0;
    for (int i = 0; i < kept->sites; i++)
        if (strcmp(kept->site[i].store, "dir") != 0)
            kept->site[left++] = kept->site[i];
    kept->sites = left;
    kept->paces = 0;
    kept->thread_loss = kept->error = 0;
}

/* Notes whose measurements these are.  What another machine or another kernel set took says nothing of this one. */
static int claim(calibrating *self)
{
    plan_calibration *kept = self->kept;
    const kernel_set *kernel = NULL;
    char host[sizeof kept->host] = "";
    int status = kernel_choose(&kernel, NULL);
    if (status < 0)
        return status;
    (void)gethostname(host, sizeof host - 1);
    bool same =
        strcmp(kept->host, host) == 0 && strcmp(kept->kernel, kernel->name) == 0 && kept->threads == base_cores();
    if (!same && kept->paces > 0 && !self->settings->print.quiet)
        fprintf(stderr, "what was measured on %s (%d threads, kernel %s) is forgotten: this is another machine\n",
                kept->host, kept->threads, kept->kernel);
    if (!same)
        forget_paces(kept);
    snprintf(kept->host, sizeof kept->host, "%s", host);
    snprintf(kept->kernel, sizeof kept->kernel, "%s", kernel->name);
    kept->threads = base_cores();
    return SHOAL_OK;
}

static int find_path(calibrating *self)
{
    const char *out = self->settings->out;
    if (out && !*out)
        return shoal_fail(SHOAL_USAGE, "--out needs a file");
    int status = out ? base_copy_text(&self->path, out) : plan_calibration_path(&self->path);
    if (status == SHOAL_USAGE && !out)
        status = shoal_fail(SHOAL_USAGE, "%s; --out names a file", shoal_error());
    return status;
}

static int read_kept(calibrating *self)
{
    int status = self->settings->fresh ? SHOAL_ABSENT : plan_calibration_read(self->kept, self->path);
    if (status == SHOAL_INVALID)
        status = shoal_fail(status, "%s; --fresh begins anew", shoal_error());
    return status == SHOAL_ABSENT ? SHOAL_OK : status;
}

static int prepare(calibrating *self)
{
    int status = choose_learners(self);
    if (status == SHOAL_OK)
        status = find_path(self);
    if (status == SHOAL_OK)
        status = read_kept(self);
    if (status == SHOAL_OK)
        status = base_output_folders(self->path);
    if (status == SHOAL_OK)
        status = base_output_check(self->path);
    if (status == SHOAL_OK)
        status = claim(self);
    return status == SHOAL_OK ? choose_stores(self) : status;
}

/* ---- measuring --------------------------------------------------------------------------------------------------- */

/* What one of many does, where each also waits for an answer. */
static double without_latency(double rate, double latency)
{
    double seconds = rate > 0 ? BLOB_BYTES / rate : 0;
    return seconds > 0 ? BLOB_BYTES / fmax(seconds - latency, seconds / 2) : 0;
}

static double best_of(const double *rates)
{
    double best = 0;
    for (int i = 0; i < CLI_MEASURED_LEVELS; i++)
        best = fmax(best, rates[i]);
    return best;
}

static double price_of(const char *scheme, shoal_request_kind kind)
{
    shoal_store_counts one = {0};
    one.requests[kind] = 1;
    return store_price(scheme, &one);
}

/* What was measured as the model has it. */
static void fill_site(shoal_site *site, const cli_store_measured *measured)
{
    shoal_store_traits traits = shoal_store_describe(measured->store.store);
    double reads = best_of(measured->read), writes = best_of(measured->write);
    site->get = measured->get.count ? measured->get.median : site->get;
    site->put = measured->put.count ? measured->put.median : site->put;
    if (measured->seen.count)
        site->wait = fmax((traits.wakes ? measured->seen.median : measured->seen.mean) - site->put - site->get, 1e-6);
    if (measured->read[0] > 0)
        site->read = without_latency(measured->read[0], site->get);
    if (measured->write[0] > 0)
        site->write = without_latency(measured->write[0], site->put);
    site->account = reads > 0 ? fmax(reads, site->read) : site->account;
    site->account_write = writes > 0 ? fmax(writes, site->write) : site->account_write;
    site->connections = traits.wakes && !traits.far ? 1 : FETCHED_AT_ONCE;
    site->worker = 0;
    site->requests_per_second = traits.wakes ? 0 : 1;
    site->get_price = price_of(traits.scheme, SHOAL_REQUEST_GET);
    site->put_price = price_of(traits.scheme, SHOAL_REQUEST_PUT);
}

static int measure_store(calibrating *self, int store)
{
    char name[sizeof self->kept->site->store];
    plan_calibration_name(name, sizeof name, self->url[store]);
    const cli_measure_settings settings = {.store = {.patience = fmin(fmax(self->settings->seconds, 2), 20)},
                                           .seconds = fmax(self->settings->seconds * STORES_SHARE / self->stores, 0.5),
                                           .size = BLOB_BYTES,
                                           .create =
                                               strcmp(name, "dir") == 0}; /* as a job's is: a folder costs nothing */
    cli_store_measured measured = {0};
    bool known;
    plan_calibration_site(&self->site[store], &known, NULL, self->url[store]);
    int status = cli_measure_store(&measured, self->url[store], &settings, &self->progress);
    if (status == SHOAL_OK)
        fill_site(&self->site[store], &measured);
    cli_store_measured_release(&measured);
    return status;
}

static int measure_learner(calibrating *self, int learner, double *loss)
{
    plan_calibration *kept = self->kept;
    shoal_pace pace[SHOAL_COST_PHASES];
    int paces = 0;
    char text[64];
    snprintf(text, sizeof text, "how fast %s is", self->learner[learner]->name);
    cli_progress_say(&self->progress, text);
    int status = plan_measure_learner(pace, &paces, loss, self->learner[learner],
                                      self->settings->seconds * LEARNERS_SHARE / self->learners, cli_signals_stop());
    for (int i = 0; i < paces && status == SHOAL_OK; i++)
        status = plan_calibration_set_pace(kept, &pace[i]);
    return status;
}

static int measure_learners(calibrating *self)
{
    double sum = 0, loss = NAN;
    int known = 0, status = SHOAL_OK;
    for (int i = 0; i < self->learners && status == SHOAL_OK; i++) {
        status = measure_learner(self, i, &loss);
        sum += isfinite(loss) ? loss : 0;
        known += isfinite(loss) != 0;
    }
    if (status == SHOAL_OK && known > 0)
        self->kept->thread_loss = sum / known;
    if (status == SHOAL_OK && self->kept->error == 0)
        self->kept->error = USUAL_ERROR;
    return status;
}

static int measure_engine(calibrating *self, int store)
{
    plan_calibration *kept = self->kept;
    plan_calibrated_site entry = {.date = (int64_t)time(NULL), .site = self->site[store]};
    plan_engine_measured measured = {0};
    cli_progress_say(&self->progress, "what a round of workers takes");
    plan_calibration_name(entry.store, sizeof entry.store, self->url[store]);
    int status = plan_measure_engine(&measured, self->url[store], self->settings->workers,
                                     self->settings->seconds * ENGINE_SHARE / self->stores, cli_signals_stop());
    if (status == SHOAL_OK) {
        entry.site.thread_loss = kept->thread_loss;
        entry.site.error = USUAL_ERROR;
        entry.site.hash = cli_measure_hash();
        status = plan_fit_engine(&entry.site, &measured);
    }
    return status == SHOAL_OK ? plan_calibration_set_site(kept, &entry) : status;
}

/* While it is not known yet whether a store can be reached, and there is nothing to remove, a signal ends the program
 * at once. */
static int measure(calibrating *self)
{
    int status = SHOAL_OK;
    cli_signals_hold_stop(self->folder != NULL);
    for (int i = 0; i < self->stores && status == SHOAL_OK; i++)
        status = measure_store(self, i);
    cli_signals_hold_stop(true);
    if (status == SHOAL_OK)
        status = measure_learners(self);
    for (int i = 0; i < self->stores && status == SHOAL_OK; i++)
        status = measure_engine(self, i);
    return status;
}

/* ---- the verb ---------------------------------------------------------------------------------------------------- */

static int print_kept(const calibrating *self)
{
    if (self->settings->print.json)
        return cli_calibration_print_json(self->kept, self->path);
    cli_calibration_print(stdout, self->kept, self->path);
    return SHOAL_OK;
}

static int measure_all(calibrating *self)
{
    cli_progress_start(&self->progress, self->settings->print.quiet);
    (void)setenv("SHOAL_HISTORY", "off", 1); /* runs that only measure are none to learn from */
    int status = prepare(self);
    if (status == SHOAL_OK)
        status = measure(self);
    cli_progress_clear(&self->progress);
    if (self->folder)
        base_remove_folder(self->folder);
    if (status == SHOAL_OK && cli_signals_stopped())
        status = shoal_fail(SHOAL_STOPPED, "stopped");
    cli_signals_hold_stop(false);
    self->kept->date = (int64_t)time(NULL);
    if (status == SHOAL_OK)
        status = plan_calibration_write(self->path, self->kept);
    return status == SHOAL_OK ? print_kept(self) : status;
}

static int refit(calibrating *self)
{
    int64_t used = 0, count = 0;
    int status = find_path(self);
    if (status == SHOAL_OK)
        status = plan_calibration_read(self->kept, self->path);
    if (status == SHOAL_ABSENT)
        status = shoal_fail(SHOAL_INVALID, "%s: there is no calibration to refit yet: shoal calibrate makes one",
                            self->path);
    if (status == SHOAL_OK)
        status = plan_history_learn(self->kept, &used, &count);
    if (status == SHOAL_OK)
        status = plan_calibration_write(self->path, self->kept);
    if (status == SHOAL_OK)
        status = print_kept(self);
    if (status == SHOAL_OK && !self->settings->print.quiet)
        fprintf(stderr, "refitted from %lld of %lld runs\n", (long long)used, (long long)count);
    return status;
}

static int check(const settings *settings)
{
    const char *which = settings->history ? "--history" : "--refit";
    if (!settings->history && !settings->refit)
        return SHOAL_OK;
    if (settings->history && settings->refit)
        return shoal_fail(SHOAL_USAGE, "--history and --refit: one at a time");
    if (settings->history && settings->out)
        return shoal_fail(SHOAL_USAGE, "--history writes nothing: leave out --out");
    if (settings->stores.count || settings->learners.count || settings->fresh)
        return shoal_fail(SHOAL_USAGE, "%s measures nothing: leave out %s", which,
                          settings->stores.count     ? "--store"
                          : settings->learners.count ? "--learner"
                                                     : "--fresh");
    return SHOAL_OK;
}

static int run_calibrate(void *from_main, const char *const *word, int words)
{
    calibrating self = {.settings = from_main};
    (void)word, (void)words;
    int status = check(self.settings);
    if (status < 0 || self.settings->history)
        return status < 0 ? status : cli_history_print(self.settings->print.json);
    status = base_alloc(&self.kept, 1, sizeof *self.kept, "the calibration");
    if (status == SHOAL_OK)
        status = (self.settings->refit ? refit : measure_all)(&self);
    base_free(&self.kept);
    base_free(&self.folder);
    base_free(&self.path);
    return status;
}

static const char *const description[] = {
    "Measures in under a minute what shoal plan needs to know of this machine and of a store: how fast learners are, "
    "with one thread and with all; latency and bandwidth of the store; and what a round of workers that meet there "
    "takes besides its work. What was measured anew takes the place of what was there, in "
    "~/.config/shoal/calibration.json; the rest stays.",
    "The machine should have nothing else to do. What is written to a store lies below a random name, and is removed "
    "at the end. A folder is made when it is not there; a container or bucket is not.",
    "Every run of a learner tells what was predicted and what happened. --history lists both, with the median and the "
    "worst error; --refit fits what is kept to the runs that happened, whose data may be easier or harder than "
    "generated ones.",
    NULL,
};
static const learn_example examples[] = {
    {"shoal calibrate", "this machine, and a folder as the store"},
    {"shoal calibrate --store az://acct/box --learner kmeans", "another store, and one learner"},
    {"shoal calibrate --history", "how good predictions were"},
    {NULL, NULL},
};
const cli_verb cli_calibrate = {
    .name = "calibrate",
    .summary = "measure what plans need to know of this machine and its stores",
    .synopsis = "[options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .run = run_calibrate,
};
