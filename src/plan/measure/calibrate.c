/* Measuring all that plans need.  See calibrate.h.
 *
 * Stores come first, so that one that can't be reached is told at once; then learners; then jobs through each store,
 * whose fit uses the learners' paces. */
#include "calibrate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/pool.h"
#include "base/text.h"
#include "base/world.h"
#include "kernel/kernel.h"
#include "learn/face.h"
#include "measure_busy.h"
#include "measure_engine.h"
#include "measure_learner.h"
#include "measure_store.h"
#include "plan/history.h"
#include "run/jobs.h"
#include "store/store_internal.h"

enum { LEARNERS_MOST = 8, STORES_MOST = 8, BLOB_BYTES = 4 << 20, FETCHED_AT_ONCE = 8 };

/* Shares of the time. */
static const double LEARNERS_SHARE = 0.45, STORES_SHARE = 0.22, ENGINE_SHARE = 0.18;
/* How far a fresh calibration may be trusted: what a deviation of the logarithm is taken for until history tells. */
static const double USUAL_ERROR = 0.12;
/* What threads lose to each other where others would be measured with them. */
static const double USUAL_LOSS = 0.03;
/* Seconds after which nothing further is measured, so that all ends within a minute; and how much more than it was
 * asked to take where that is longer. */
static const double LIMIT_LEAST = 52, LIMIT_MORE = 7;

typedef struct calibrating {
    const plan_calibrate_request *request;
    const shoal_watcher *watch;
    const volatile int *stop; /* the watcher's, or one that nobody sets */
    double until;             /* when measurements end, whatever else the machine does */
    double busy;              /* share of the processor that others had, the mean of what was found */
    int looks;                /* how often that was looked at */
    plan_calibration *kept;
    const shoal_algorithm *learner[LEARNERS_MOST];
    int learners;
    const char *url[STORES_MOST];
    shoal_site site[STORES_MOST];
    int stores;
    char *folder; /* made for this, removed at the end; NULL when stores were named */
} calibrating;

static void say_calibrating(const calibrating *self, const char *text)
{
    if (self->watch->doing)
        self->watch->doing(self->watch->context, text);
}

static void allow_stop_calibrating(const calibrating *self, bool may)
{
    if (self->watch->may_stop)
        self->watch->may_stop(self->watch->context, may);
}

static void note_calibrating(const calibrating *self, const char *line)
{
    if (self->watch->note)
        self->watch->note(self->watch->context, line);
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

/* Of the seconds that a measurement should take, those that are left; 0 and a note where it is too late for it. */
static double time_for(const calibrating *self, double seconds, const char *what)
{
    double left = self->until - base_seconds();
    char line[128];
    if (left > 0)
        return fmin(seconds, left);
    snprintf(line, sizeof line, "there was no time to measure %.64s; this machine is too busy", what);
    note_calibrating(self, line);
    return 0;
}

/* ---- others on this machine -------------------------------------------------------------------------------------- */

static double look_for_others(calibrating *self)
{
    static const double LOOK = 0.05;
    double busy = plan_measure_busy(LOOK);
    self->busy += (busy - self->busy) / ++self->looks;
    return busy;
}

/* Others may be done in a moment. */
static void wait_for_others(calibrating *self)
{
    static const double WAIT_MOST = 5, WAIT_SHARE = 0.1, PAUSE = 0.5;
    int64_t end = shoal_after(fmin(WAIT_MOST, WAIT_SHARE * self->request->seconds));
    double busy = plan_measure_busy(0.05);
    if (busy > PLAN_BUSY_LEAST)
        say_calibrating(self, "waiting for other programs");
    while (busy > PLAN_BUSY_LEAST && !*self->stop && shoal_now() < end) {
        base_sleep_until(base_time_first(shoal_after(PAUSE), end));
        busy = plan_measure_busy(0.05);
    }
}

/* Says that figures are not as good as they could be, and keeps that they are not. */
static void note_busy(calibrating *self)
{
    char line[256];
    plan_calibration *kept = self->kept;
    const bool was_busy = kept->busy > PLAN_BUSY_LEAST;
    const double error = plan_error_if_busy(USUAL_ERROR, self->busy);
    kept->busy = self->busy;
    kept->error = kept->error == 0 || was_busy ? error : fmax(kept->error, plan_error_if_busy(0, self->busy));
    if (self->busy <= PLAN_BUSY_LEAST)
        return;
    snprintf(line, sizeof line,
             "this machine is busy: %.0f%% of the processor went to other programs; times are scaled and intervals "
             "are wider; calibrate again when it is idle",
             100 * self->busy);
    note_calibrating(self, line);
}

/* ---- what is measured -------------------------------------------------------------------------------------------- */

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
        return shoal_fail(SHOAL_USAGE, "--learner %s cannot be measured; use one of %s", name, list);
    const char *near = base_nearest(name, names, count);
    if (near)
        return shoal_fail(SHOAL_USAGE, "--learner: unknown learner '%s'; did you mean '%s'?", name, near);
    return shoal_fail(SHOAL_USAGE, "--learner: unknown learner '%s'; use one of %s", name, list);
}

static int choose_learners(calibrating *self)
{
    const shoal_texts *named = &self->request->learners;
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
static int make_store_folder(calibrating *self)
{
    allow_stop_calibrating(self, true); /* from now on there is something to remove */
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
    const shoal_texts *named = &self->request->stores;
    if (named->count == 0)
        return make_store_folder(self);
    if (named->count > STORES_MOST)
        return shoal_fail(SHOAL_USAGE, "--store: at most %d at a time", STORES_MOST);
    for (int i = 0; i < named->count; i++) {
        char name[sizeof self->kept->site->store];
        plan_calibration_name(name, sizeof name, named->text[i]);
        if (!*named->text[i])
            return shoal_fail(SHOAL_USAGE, "--store needs the URL of a store");
        if (strcmp(name, "mem") == 0 || strcmp(name, "pipe") == 0)
            return shoal_fail(SHOAL_USAGE, "--store %s: separate processes can't meet in such a store", named->text[i]);
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
    kept->thread_loss = kept->error = kept->busy = 0;
    kept->refitted = 0;
}

/* Notes whose measurements these are.  What another machine or another kernel set took says nothing of this one. */
static int claim_kept(calibrating *self)
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
    if (!same && kept->paces > 0) {
        char line[256];
        snprintf(line, sizeof line,
                 "discarded what was measured on %s (%d thread%s, kernel %s): this is another machine", kept->host,
                 kept->threads, base_plural(kept->threads), kept->kernel);
        note_calibrating(self, line);
    }
    if (!same)
        forget_paces(kept);
    snprintf(kept->host, sizeof kept->host, "%s", host);
    snprintf(kept->kernel, sizeof kept->kernel, "%s", kernel->name);
    kept->threads = base_cores();
    return SHOAL_OK;
}

/* Where it is kept; the caller frees it. */
static int find_path(char **path, const char *out)
{
    if (out && !*out)
        return shoal_fail(SHOAL_USAGE, "--out needs a file");
    int status = out ? base_copy_text(path, out) : plan_calibration_path(path);
    if (status == SHOAL_USAGE && !out)
        status = shoal_fail(SHOAL_USAGE, "%s; use --out FILE", shoal_error());
    return status;
}

/* A file that somebody named is replaced only where it holds a calibration, be it a damaged one. */
static int read_kept(plan_calibration *kept, const char *path, const plan_calibrate_request *request)
{
    int status = plan_calibration_read(kept, path);
    if (status == SHOAL_INVALID && request->out && !plan_calibration_is_begun(path))
        return shoal_fail(status, "%s: this is not a calibration, so it is not replaced: name another file", path);
    if (request->fresh) {
        *kept = (plan_calibration){0};
        return SHOAL_OK;
    }
    if (status == SHOAL_INVALID)
        status = shoal_fail(status, "%s; use --fresh to start anew", shoal_error());
    return status == SHOAL_ABSENT ? SHOAL_OK : status;
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
    for (int i = 0; i < PLAN_MEASURED_LEVELS; i++)
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
static void fill_site(shoal_site *site, const plan_store_measured *measured)
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
    const plan_store_settings settings = {.patience = fmin(fmax(self->request->seconds, 2), 20),
                                          .seconds = fmax(self->request->seconds * STORES_SHARE / self->stores, 0.5),
                                          .size = BLOB_BYTES,
                                          .create =
                                              strcmp(name, "dir") == 0}; /* as a job's is: a folder costs nothing */
    plan_store_measured measured = {0};
    shoal_watcher watch = *self->watch;
    bool known;
    if (self->folder) /* a stop is allowed until that is gone */
        watch.may_stop = NULL;
    plan_calibration_site(&self->site[store], &known, NULL, self->url[store]);
    int status = plan_measure_store(&measured, self->url[store], &settings, &watch);
    if (status == SHOAL_OK)
        fill_site(&self->site[store], &measured);
    plan_store_measured_release(&measured);
    return status;
}

static int measure_learner(calibrating *self, int learner, double *loss)
{
    plan_calibration *kept = self->kept;
    shoal_pace pace[SHOAL_COST_PHASES];
    int paces = 0;
    char text[64];
    snprintf(text, sizeof text, "how fast %s is", self->learner[learner]->name);
    double seconds = time_for(self, self->request->seconds * LEARNERS_SHARE / self->learners, text);
    if (seconds == 0)
        return SHOAL_OK;
    say_calibrating(self, text);
    look_for_others(self);
    int status = plan_measure_learner(pace, &paces, loss, self->learner[learner], seconds, self->stop);
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
    else if (status == SHOAL_OK && self->kept->thread_loss == 0 && base_cores() > 1)
        self->kept->thread_loss = USUAL_LOSS;
    return status;
}

/* Seconds in which one thread hashes a byte, as jobs do with rows of files. */
static double measure_hash(void)
{
    enum { BYTES = 1 << 20, TIMES = 8 };
    static unsigned char block[BYTES];
    unsigned char found[BASE_HASH_SIZE];
    double best = INFINITY;
    for (int i = 0; i < TIMES; i++) {
        base_hash hash = {0};
        double began = base_seconds();
        base_hash_add(&hash, block, BYTES);
        base_hash_end(&hash, found);
        best = fmin(best, base_seconds() - began);
    }
    return best / BYTES;
}

static int measure_engine(calibrating *self, int store)
{
    static const char what[] = "what a round of workers takes";
    plan_calibration *kept = self->kept;
    plan_calibrated_site entry = {.date = (int64_t)time(NULL), .site = self->site[store]};
    plan_engine_measured measured = {0};
    int status = SHOAL_ABSENT;
    double seconds = time_for(self, self->request->seconds * ENGINE_SHARE / self->stores, what);
    plan_calibration_name(entry.store, sizeof entry.store, self->url[store]);
    entry.site.thread_loss = kept->thread_loss;
    entry.site.hash = measure_hash();
    if (seconds > 0) {
        say_calibrating(self, what);
        look_for_others(self);
        status =
            plan_measure_engine(&measured, self->url[store], self->request->workers, seconds, self->until, self->stop);
    }
    if (seconds > 0 && look_for_others(self) > PLAN_BUSY_LEAST)
        measured.straggle = NAN; /* it is others that make times differ */
    if (status == SHOAL_OK) {
        entry.site.error = plan_error_if_busy(USUAL_ERROR, self->busy);
        status = plan_fit_engine(&entry.site, &measured);
    }
    if (status == SHOAL_ABSENT) /* usual figures are kept, with the error that they have */
        status = SHOAL_OK;
    return status == SHOAL_OK ? plan_calibration_set_site(kept, &entry) : status;
}

/* While it is not known yet whether a named store can be reached, and there is nothing to remove, a signal ends the
 * program at once. */
static int measure_stores_and_learners(calibrating *self)
{
    int status = SHOAL_OK;
    for (int i = 0; i < self->stores && status == SHOAL_OK; i++)
        status = measure_store(self, i);
    allow_stop_calibrating(self, true);
    if (status == SHOAL_OK)
        wait_for_others(self);
    if (status == SHOAL_OK)
        status = measure_learners(self);
    for (int i = 0; i < self->stores && status == SHOAL_OK; i++)
        status = measure_engine(self, i);
    if (status == SHOAL_OK)
        note_busy(self);
    return status;
}

int plan_calibrate(plan_calibration *kept, char **path, const plan_calibrate_request *request,
                   const shoal_watcher *watcher)
{
    static const volatile int never = 0;
    calibrating self = {
        .request = request, .watch = watcher, .stop = watcher->stop ? watcher->stop : &never, .kept = kept};
    int status = choose_learners(&self);
    if (status == SHOAL_OK)
        status = find_path(path, request->out);
    if (status == SHOAL_OK)
        status = read_kept(kept, *path, request);
    if (status == SHOAL_OK)
        status = base_output_folders(*path);
    if (status == SHOAL_OK)
        status = base_output_check(*path);
    if (status == SHOAL_OK)
        status = claim_kept(&self);
    if (status == SHOAL_OK)
        status = choose_stores(&self);
    self.until =
        base_seconds() + (request->limit > 0 ? request->limit : fmax(LIMIT_LEAST, request->seconds + LIMIT_MORE));
    if (status == SHOAL_OK)
        status = measure_stores_and_learners(&self);
    if (self.folder)
        base_remove_folder(self.folder);
    base_free(&self.folder);
    if (status == SHOAL_OK && *self.stop)
        status = shoal_fail(SHOAL_STOPPED, "stopped");
    allow_stop_calibrating(&self, false);
    kept->date = (int64_t)time(NULL);
    return status == SHOAL_OK ? plan_calibration_write(*path, kept) : status;
}

/* ---- what happened ----------------------------------------------------------------------------------------------- */

int plan_recalibrate(plan_calibration *kept, char **path, const char *out, int64_t *used, int64_t *count)
{
    int status = find_path(path, out);
    if (status == SHOAL_OK)
        status = plan_calibration_read(kept, *path);
    if (status == SHOAL_ABSENT)
        status = shoal_fail(SHOAL_INVALID, "%s: no calibration to refit: run `shoal calibrate` first", *path);
    if (status == SHOAL_OK)
        status = plan_history_learn(kept, used, count);
    kept->refitted = (int64_t)time(NULL);
    return status == SHOAL_OK ? plan_calibration_write(*path, kept) : status;
}
