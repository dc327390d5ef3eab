/* A worker: finds a job, joins it, goes from round to round, leaves.  See shoal/job.h and job_run.h. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/world.h"
#include "engine/engine_internal.h"
#include "engine/store/job_run.h"
#include "engine/store/job_setup.h"
#include "engine/tasks/task_serve.h"
#include "kernel/kernel.h"
#include "learn/check.h"

struct shoal_worker {
    shoal_store *store;
    shoal_worker_options options;
    const kernel_set *kernel;
    uint64_t id;
    _Atomic uint32_t leave;
    pthread_mutex_t lock; /* of `why` */
    char why[64];
    char **refused; /* jobs it can't serve, or that are done */
    int64_t refusals;
    uint64_t searches;   /* for a job, so far */
    bool took_part;      /* in the job it served last, which had not ended */
    bool is_done;        /* that one is now, forever */
    bool had_tasks;      /* it was a client with tasks (shoal/task.h) */
    bool idle;           /* and there was nothing to do */
    int64_t open, idles; /* jobs that were open; clients without work in a row */
};

static const double patience_usual = 300;

/* ---- what the other files ask ------------------------------------------------------------------------------------ */

static double patience_of(const shoal_worker *worker)
{
    return worker->options.patience > 0 ? worker->options.patience : patience_usual;
}

int64_t job_deadline(const job_run *run)
{
    return base_time_after(base_now(), patience_of(run->worker));
}

bool job_leaving(const job_run *run)
{
    return atomic_load(&run->worker->leave);
}

const _Atomic uint32_t *job_leave_word(const job_run *run)
{
    return &run->worker->leave;
}

static void tell_line(shoal_worker *worker, const char *line)
{
    if (worker->options.log)
        worker->options.log(worker->options.log_context, line);
}

/* Appends to the record's log, of which only the end is kept. */
static void keep_line(job_record *record, const char *line)
{
    size_t have = strlen(record->log), more = strlen(line) + 1, room = sizeof record->log - 1;
    if (have + more > room) {
        size_t drop = have + more - room;
        const char *end = drop < have ? strchr(record->log + drop, '\n') : NULL;
        drop = end ? (size_t)(end + 1 - record->log) : have;
        memmove(record->log, record->log + drop, have - drop + 1);
        have -= drop;
    }
    snprintf(record->log + have, sizeof record->log - have, "%s\n", line);
}

void job_log(job_run *run, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    keep_line(&run->record, line);
    tell_line(run->worker, line);
}

/* One that is larger than may be held here.  An end ends the job for this worker as well as any: others read what is in
 * it.  Any other this worker can't follow, and it leaves it to those that can: only a worker that has made that model
 * itself knows that one too large to be held is a stranger's. */
static int meet_large(job_model **out, job_run *run, int64_t number)
{
    char why[512];
    shoal_job_state state = SHOAL_JOB_RUNNING;
    int64_t whole = 0;
    snprintf(why, sizeof why, "%s", shoal_error());
    int status = job_model_peek(&state, &whole, run->store, run->spec->id, number, job_deadline(run));
    if (status < 0 && status != SHOAL_BROKEN)
        return status;
    if (status == SHOAL_OK && state != SHOAL_JOB_RUNNING) {
        status = base_alloc(out, 1, sizeof **out, "a model");
        if (status == SHOAL_OK)
            **out = (job_model){.number = number, .state = state, .unread = true};
        return status;
    }
    bool is_large = whole > job_memory_blob(run->worker->options.memory);
    return shoal_fail(is_large && run->has_its_own ? SHOAL_BROKEN : SHOAL_MEMORY, "%s", why);
}

/* A broken model is removed, and then counts as absent. */
static int remove_broken(job_model **out, job_run *run, int64_t number, int status)
{
    if (status == SHOAL_MEMORY)
        status = meet_large(out, run, number);
    if (status == SHOAL_OK && (*out)->unread)
        return SHOAL_OK;
    if (status == SHOAL_OK && (status = job_model_check(*out, run->spec, run->algorithm)) < 0) {
        job_model_free(out);
        if (status == SHOAL_BROKEN)
            shoal_fail(status, "%s: %s", job_key_model(run->spec->id, number).text, shoal_error());
    }
    if (status != SHOAL_BROKEN)
        return status;
    job_log(run, "%s: removed", shoal_error());
    status = shoal_store_remove(run->store, job_key_model(run->spec->id, number).text, job_deadline(run));
    return status < 0 ? status : shoal_fail(SHOAL_ABSENT, "the model of round %lld was damaged", (long long)number);
}

int job_take_model(job_model **out, job_run *run, int64_t number)
{
    return remove_broken(out, run, number, job_model_get(out, run->store, run->spec->id, number, job_deadline(run)));
}

int job_await_model(job_model **out, job_run *run, int64_t number, int64_t until)
{
    return remove_broken(out, run, number,
                         job_model_await(out, run->store, run->spec->id, number, until, job_deadline(run)));
}

/* ---- joining ----------------------------------------------------------------------------------------------------- */

static bool is_hash(const char *hex, const unsigned char hash[BASE_HASH_SIZE])
{
    char text[BASE_HASH_HEX];
    base_hex_write(text, hash, BASE_HASH_SIZE);
    return strcasecmp(hex, text) == 0;
}

/* Whether this worker was started for this very job, and so trusts what it brings. */
static int check_spec(const shoal_worker *worker, const job_spec *spec)
{
    if (worker->options.spec && !is_hash(worker->options.spec, spec->sha256))
        return shoal_fail(SHOAL_INVALID, "job %s is not the one this worker was started for: its spec is another",
                          spec->id);
    if (strcmp(spec->version, SHOAL_VERSION) != 0)
        return shoal_fail(SHOAL_INVALID,
                          "job %s was made by shoal %s, but this is %s: workers must have the same version", spec->id,
                          spec->version, SHOAL_VERSION);
    return job_code_check(spec, &worker->options);
}

/* The built-in learner, or the module that the job brings; and whether it would give the job's bits here. */
static int choose_algorithm(job_run *run)
{
    const shoal_worker *worker = run->worker;
    const job_spec *spec = run->spec;
    if (run->code.module >= 0 && worker->options.load) {
        int status = worker->options.load(&run->algorithm, run->code.module);
        if (status < 0)
            return shoal_fail(status, "job %s: %s", spec->id, shoal_error());
    } else {
        run->algorithm = job_find_algorithm(worker->options.algorithms, spec->algorithm);
    }
    if (!run->algorithm || strcmp(run->algorithm->name, spec->algorithm) != 0)
        return shoal_fail(SHOAL_INVALID, "job %s is for the learner '%s', which this worker does not have", spec->id,
                          spec->algorithm);
    if (run->algorithm->runs_code && !run->code.folder)
        return shoal_fail(SHOAL_INVALID, "job %s brings nothing that the learner '%s' could run", spec->id,
                          spec->algorithm);
    if (kernel_fingerprint(worker->kernel, run->algorithm->kernel_free) != spec->fingerprint)
        return shoal_fail(
            SHOAL_INVALID,
            "job %s: the arithmetic of this machine (kernel set %s) gives other bits than that of the job", spec->id,
            worker->kernel->name);
    if (learn_round_check(run->algorithm, spec->first, &spec->shape) < 0)
        return shoal_fail(SHOAL_INVALID, "job %s: %s", spec->id, shoal_error());
    return SHOAL_OK;
}

static void fill_record(job_record *record, const shoal_worker *worker)
{
    record->worker = worker->id;
    record->pid = getpid();
    record->slots = (uint32_t)worker->options.slots;
    record->roles = worker->options.roles;
    record->rescuing = -1;
    if (gethostname(record->host, sizeof record->host - 1) != 0)
        record->host[0] = 0;
    snprintf(record->kernel, sizeof record->kernel, "%s", worker->kernel->name);
    snprintf(record->version, sizeof record->version, "%s", SHOAL_VERSION);
    snprintf(record->state, sizeof record->state, "working");
}

static int make_job_room(job_run *run)
{
    const job_tree *whole = &run->spec->tree, *ranged = &run->spec->ranged;
    size_t pieces = (size_t)(ranged->pieces > whole->pieces ? ranged->pieces : whole->pieces);
    size_t slices = (size_t)run->spec->slices, sums = (size_t)job_tree_sums(ranged->ranges ? ranged : whole);
    int status = base_alloc(&run->flag, pieces, 1, "pieces");
    if (status == SHOAL_OK)
        status = base_alloc(&run->added, pieces, sizeof *run->added, "pieces");
    if (status == SHOAL_OK)
        status = base_alloc(&run->counter, pieces, sizeof *run->counter, "pieces");
    if (status == SHOAL_OK)
        status = base_alloc(&run->sum, sums, sizeof *run->sum, "sums");
    if (status == SHOAL_OK)
        status = base_alloc(&run->held, slices, sizeof *run->held, "slices");
    if (status == SHOAL_OK)
        status = base_alloc(&run->maker, slices, sizeof *run->maker, "slices");
    return status;
}

int job_find_model(job_model **out, job_run *run)
{
    for (int tries = 0; tries < 100; tries++) {
        int64_t head = 0;
        int status = job_head(&head, run->store, run->spec->id, job_deadline(run));
        if (status < 0)
            return status;
        if (head == 0)
            return job_model_first(out, run->spec);
        status = job_take_model(out, run, head);
        if (status != SHOAL_ABSENT)
            return status;
    }
    return shoal_fail(SHOAL_BROKEN, "the models of job %s are broken, one after another", run->spec->id);
}

/* What a round needs is known before anything is allocated for it, and may be more than this worker has: a round's
 * model may come from anyone, and ask for more than the first did. */
static int plan_memory(job_run *run, const shoal_round *round)
{
    const shoal_worker_options *options = &run->worker->options;
    job_means means = {.threads = options->slots,
                       .roles = options->roles,
                       .limit = options->memory,
                       .spares_memo = run->algorithm->spares_memo};
    int status = job_memory_plan(&run->memory, run->spec, round, &means);
    if (status == SHOAL_OK && run->mapper) {
        engine_mapper_limit(run->mapper, run->memory.spare > 0 ? run->memory.spare : 1);
        engine_mapper_memo(run->mapper, run->memory.spared ? 0 : -1);
        job_memory_scratch(&run->memory, engine_mapper_scratch(run->mapper)); /* it stays from round to round */
    }
    return status;
}

/* A worker serves jobs of any learner; those that have no use for a device do without. */
static int choose_device(job_run *run)
{
    kernel_device *device = NULL;
    if (!run->algorithm->map_many)
        return SHOAL_OK;
    int status = engine_choose_device(&device, run->algorithm, &run->spec->shape, run->worker->options.device);
    engine_mapper_device(run->mapper, device);
    return status;
}

static int join(job_run *run)
{
    const shoal_worker_options *options = &run->worker->options;
    job_loader_options loading = {.cache = options->cache,
                                  .cache_bytes = options->cache_bytes,
                                  .data_url = options->data_url,
                                  .data_root = options->data_root,
                                  .trusted = options->spec != NULL,
                                  .kept_rows = job_memory_kept_rows(options->memory),
                                  .threads = options->slots};
    int status = plan_memory(run, run->spec->first);
    if (status == SHOAL_OK)
        status = make_job_room(run);
    if (status == SHOAL_OK)
        status =
            engine_mapper_new(&run->mapper, run->algorithm, &run->spec->shape, options->slots, run->worker->kernel);
    if (status == SHOAL_OK)
        status = job_loader_new(&run->loader, run->spec, run->store, &loading);
    if (status == SHOAL_OK && (options->roles & SHOAL_ROLE_MAP))
        status = job_loader_check(run->loader);
    if (status == SHOAL_OK && (options->roles & SHOAL_ROLE_MAP))
        status = job_blobs_open(&run->blobs, run->spec, run->store, options, patience_of(run->worker));
    if (status == SHOAL_OK)
        status = job_find_model(&run->model, run);
    if (status < 0 || run->model->state != SHOAL_JOB_RUNNING)
        return status;
    engine_mapper_watch(run->mapper, &run->worker->leave);
    if ((status = choose_device(run)) < 0)
        return status;
    engine_mapper_bring(run->mapper, run->code.folder);
    engine_mapper_blobs(run->mapper, engine_blobs_table(run->blobs.from), engine_blobs_table(run->blobs.to));
    fill_record(&run->record, run->worker);
    run->known_at = base_now();
    job_log(run, "joins job %s at round %lld with %d slot%s", run->spec->id, (long long)run->model->number,
            options->slots, options->slots == 1 ? "" : "s");
    return job_beat_start(&run->beat, run->store, run->spec->id, run->spec->lease, &run->record, job_deadline(run));
}

/* ---- leaving ----------------------------------------------------------------------------------------------------- */

static void leave_job(job_run *run, int status)
{
    char state[400], error[512];
    double seconds = status == SHOAL_STOPPED ? 0.7 : 5;
    snprintf(error, sizeof error, "%s", shoal_error());
    if (status == SHOAL_STOPPED) {
        pthread_mutex_lock(&run->worker->lock);
        snprintf(state, sizeof state, "left: %s", run->worker->why);
        pthread_mutex_unlock(&run->worker->lock);
    } else if (status < 0) {
        snprintf(state, sizeof state, "failed: %.390s", error);
    } else {
        bool failed = run->model && run->model->state == SHOAL_JOB_FAILED;
        bool cancelled = run->model && run->model->state == SHOAL_JOB_CANCELLED;
        snprintf(state, sizeof state, "%s",
                 failed      ? "ended: the job failed"
                 : cancelled ? "ended: the job was cancelled"
                             : "done");
    }
    if (run->beat) {
        job_log(run, "%s", state);
        job_beat_set(run->beat, &run->record);
    }
    job_beat_stop(&run->beat, status == SHOAL_ABSENT ? NULL : state, base_time_after(base_now(), seconds));
    if (status < 0)
        shoal_fail(status, "%s", error); /* failures while leaving do not matter */
}

static void release_run(job_run *run)
{
    job_model_free(&run->next);
    job_model_free(&run->model);
    job_round_release(run);
    job_members_release(&run->members);
    base_free(&run->drop);
    engine_mapper_free(&run->mapper);
    job_blobs_release(&run->blobs);
    job_loader_free(&run->loader);
    job_code_release(&run->code);
}

/* ---- a job ------------------------------------------------------------------------------------------------------- */

/* How often in a row this worker goes back before it gives up.  Each time costs the others a round, and it would never
 * end if a stranger wrote faster than workers compute, or if a learner rejected what it made itself.  A forged model
 * costs one, and one more for every worker that had read it before and puts it back. */
enum { DISTRUSTS_MOST = 5 };

/* Removes the model that this worker holds, unless another has replaced it meanwhile. */
static int remove_model(bool *removed, job_run *run)
{
    job_model *there = NULL;
    int64_t number = run->model->number;
    *removed = false;
    if (number == 0)
        return SHOAL_OK;
    int status = job_take_model(&there, run, number);
    if (status == SHOAL_OK && !there->unread && there->check == run->model->check) {
        status = shoal_store_remove(run->store, job_key_model(run->spec->id, number).text, job_deadline(run));
        *removed = status == SHOAL_OK;
    }
    job_model_free(&there);
    return status == SHOAL_ABSENT ? SHOAL_OK : status;
}

/* Removes the pieces that were computed from the model that this worker holds, and what that model kept if the model is
 * gone too. */
static int remove_pieces(job_run *run, bool kept_too)
{
    shoal_listing page = {0};
    job_key prefix = job_key_round(run->spec->id, run->model->number);
    int status;
    do {
        status = shoal_store_list(run->store, prefix.text, NULL, &page, job_deadline(run));
        for (size_t i = 0; status == SHOAL_OK && i < page.count; i++) {
            const char *key = page.entries[i].key;
            int64_t round, piece;
            bool goes = false;
            if (!job_key_read_round(&round, &piece, run->spec->id, run->tree, key))
                continue;
            if (piece >= 0)
                status = job_piece_is_of_model(&goes, run, key);
            else
                goes = piece == JOB_KEY_KEPT && kept_too;
            if (status == SHOAL_OK && goes)
                status = shoal_store_remove(run->store, key, job_deadline(run));
        }
    } while (status == SHOAL_OK && page.more);
    shoal_listing_release(&page);
    return status;
}

/* The learner can't continue from what the store has of this round, which therefore is not what workers put there: the
 * model and the pieces made from it go, and are computed again from an older model.  Of round 0, which is the spec's,
 * that is the pieces alone.  What others have made again meanwhile stays. */
static int distrust_round(job_run *run, int status)
{
    bool removed = false;
    if (status != SHOAL_BROKEN || !run->is_blamed || run->distrusts++ == DISTRUSTS_MOST)
        return status;
    run->is_blamed = run->next_is_mine = false;
    if (run->model->number > run->distrusted)
        run->distrusted = run->model->number;
    job_log(run, "round %lld: %s; removed, goes back to an earlier round", (long long)run->model->number,
            shoal_error());
    status = remove_model(&removed, run);
    if (status == SHOAL_OK)
        status = remove_pieces(run, removed);
    job_model_free(&run->next);
    job_round_drop_slices(run); /* their memos may be based on what was removed, and must not be carried over */
    if (status == SHOAL_OK)
        status = job_find_model(&run->next, run);
    if (status == SHOAL_OK && run->next->number == 0) /* whose work the queues hand out, and they have been emptied */
        status = job_setup_open(run->store, run->spec, job_deadline(run));
    return status;
}

static int do_rounds(job_run *run)
{
    int status = SHOAL_OK;
    while (status == SHOAL_OK && run->model->state == SHOAL_JOB_RUNNING) {
        run->next_is_mine = false;
        status = plan_memory(run, run->model->round);
        if (status == SHOAL_OK)
            status = distrust_round(run, job_round_do(run));
        if (status == SHOAL_OK && run->next->number > run->distrusted)
            run->distrusts = 0; /* a good one has come */
        if (status == SHOAL_OK)
            status = job_kept_pass(run);
        if (status == SHOAL_OK) {
            job_model_free(&run->model);
            run->model = run->next;
            run->next = NULL;
        }
    }
    if (status == SHOAL_OK && run->model->state == SHOAL_JOB_DONE)
        status = job_sweep_late(run); /* what is put after the finisher has tidied up would stay */
    return status;
}

/* The worker that finished the job may have died before it had tidied up.  Only a job that is done stays ended
 * forever. */
static void tidy_ended(job_run *run)
{
    if (run->model && run->model->state == SHOAL_JOB_DONE && !run->model->unread)
        job_sweep_all(run, run->model->number);
}

static int serve_spec(shoal_worker *worker, const job_spec *spec, const void *bytes, size_t size)
{
    job_run run = {.worker = worker, .store = worker->store, .spec = spec, .spec_bytes = bytes, .spec_size = size};
    int status = check_spec(worker, spec);
    if (status == SHOAL_OK)
        status = job_code_bring(&run.code, spec, worker->store, &worker->options, job_deadline(&run));
    else
        run.code.module = -1;
    if (status == SHOAL_OK)
        status = choose_algorithm(&run);
    if (status < 0) {
        job_code_release(&run.code);
        return status;
    }
    base_default_arithmetic();
    status = join(&run);
    worker->took_part = run.beat != NULL;
    if (status == SHOAL_OK && run.beat)
        status = do_rounds(&run);
    else if (status == SHOAL_OK)
        tidy_ended(&run);
    worker->is_done =
        status == SHOAL_OK && run.model->state == SHOAL_JOB_DONE && !(shoal_store_describe(run.store).forgets > 0);
    leave_job(&run, status);
    release_run(&run);
    return status;
}

/* A client whose tasks are to be run (shoal/task.h) is found where jobs are, by a description instead of a spec. */
static int serve_tasks(shoal_worker *worker, const char *id)
{
    job_run asking = {.worker = worker};
    shoal_blob blob = {0};
    job_key key = job_key_of(id, "tasks");
    const task_server server = {.store = worker->store,
                                .options = &worker->options,
                                .worker = worker->id,
                                .id = id,
                                .leave = &worker->leave,
                                .stays = worker->options.job != NULL,
                                .patience = patience_of(worker),
                                .kernel = worker->kernel->name,
                                .log = worker->options.log,
                                .log_context = worker->options.log_context};
    unsigned char hash[BASE_HASH_SIZE];
    int status = shoal_store_get_framed(worker->store, key.text, TASK_KIND_SPEC, &blob, job_deadline(&asking));
    worker->had_tasks = status != SHOAL_ABSENT;
    if (status == SHOAL_ABSENT)
        return shoal_fail(SHOAL_ABSENT, "there is no job %s", id);
    if (status == SHOAL_OK) {
        base_hash_of(hash, blob.data, blob.size);
        if (worker->options.spec && !is_hash(worker->options.spec, hash))
            status = shoal_fail(SHOAL_INVALID, "the tasks of %s are not those this worker was started for", id);
    }
    if (status == SHOAL_OK)
        status = task_serve(&worker->idle, &server, blob.data, blob.size, blob.age);
    shoal_blob_release(&blob);
    return status;
}

static int serve_job(shoal_worker *worker, const char *id)
{
    job_run asking = {.worker = worker};
    worker->took_part = worker->is_done = worker->had_tasks = worker->idle = false;
    job_key key = job_key_of(id, "spec");
    shoal_blob blob = {0};
    job_spec *spec = NULL;
    int status = shoal_store_get_framed(worker->store, key.text, JOB_KIND_SPEC, &blob, job_deadline(&asking));
    if (status == SHOAL_ABSENT)
        return serve_tasks(worker, id);
    if (status == SHOAL_OK)
        status = job_spec_decode(&spec, id, blob.data, blob.size);
    if (status == SHOAL_OK)
        status = serve_spec(worker, spec, blob.data, blob.size);
    job_spec_free(&spec);
    shoal_blob_release(&blob);
    return status;
}

/* ---- any job ----------------------------------------------------------------------------------------------------- */

static bool is_refused(const shoal_worker *worker, const char *id)
{
    for (int64_t i = 0; i < worker->refusals; i++)
        if (strcmp(worker->refused[i], id) == 0)
            return true;
    return false;
}

static int refuse_job(shoal_worker *worker, const char *id)
{
    size_t have = (size_t)worker->refusals;
    int status = base_grow(&worker->refused, have, have + 1, sizeof *worker->refused, "jobs");
    if (status == SHOAL_OK)
        status = base_copy_text(&worker->refused[have], id);
    if (status == SHOAL_OK)
        worker->refusals++;
    return status;
}

/* One of the open jobs, chosen differently by every worker and every time, since the marker of a failed job may have
 * stayed. */
static int find_job(shoal_worker *worker, char id[SHOAL_JOB_ID_BYTES], int64_t deadline)
{
    shoal_listing page = {0};
    uint64_t found = 0, choice = (worker->id ^ worker->id >> 32) + worker->searches++;
    int status;
    do {
        status = shoal_store_list(worker->store, "open/", NULL, &page, deadline);
        for (size_t i = 0; status == SHOAL_OK && i < page.count; i++) {
            const char *name = page.entries[i].key + strlen("open/");
            if (job_id_check(name) < 0 || is_refused(worker, name))
                continue;
            if (choice % ++found == 0)
                snprintf(id, SHOAL_JOB_ID_BYTES, "%s", name);
        }
    } while (status == SHOAL_OK && page.more);
    shoal_listing_release(&page);
    worker->open = (int64_t)found;
    return status < 0 ? status : found > 0 ? SHOAL_OK : SHOAL_ABSENT;
}

/* Waits for a job to appear; false if the worker has been idle for too long. */
static bool wait_for_job(shoal_worker *worker, int64_t since, uint32_t *seen)
{
    int64_t now = base_now();
    int64_t until = worker->options.idle > 0 ? base_time_after(since, worker->options.idle) : INT64_MAX;
    if (now >= until)
        return false;
    if (shoal_store_describe(worker->store).wakes) {
        int64_t nap = base_time_after(now, 0.5);
        shoal_store_wait(worker->store, "open/", seen, nap < until ? nap : until);
    } else {
        double pause = -base_seconds_until(since) * 0.02;
        int64_t next = base_time_after(now, pause < 0.2 ? 0.2 : pause > 5 ? 5 : pause);
        base_wait_word(&worker->leave, 0, next < until ? next : until);
    }
    return true;
}

/* A job that fails is refused from then on, whatever the reason, and its reason told: anyone who can write to the store
 * can submit a job, and must not keep the others from being served.  If it is the store that refuses or is out of
 * reach, the next search for a job says so.  A job that can't be done yet (its code is still on its way, say) gets a
 * second chance. */
static int serve_any(shoal_worker *worker)
{
    job_run asking = {.worker = worker};
    int64_t since = base_now();
    uint32_t seen = 0;
    bool rests = false;
    char delayed[SHOAL_JOB_ID_BYTES] = "";
    while (!atomic_load(&worker->leave)) {
        char id[SHOAL_JOB_ID_BYTES], line[600];
        if (rests && !wait_for_job(worker, since, &seen))
            return SHOAL_OK;
        int status = find_job(worker, id, job_deadline(&asking));
        rests = true;
        if (status == SHOAL_ABSENT)
            continue;
        if (status < 0 || (status = serve_job(worker, id)) == SHOAL_STOPPED)
            return status;
        if (status == SHOAL_ABSENT && shoal_store_describe(worker->store).forgets > 0)
            continue; /* the store has forgotten it, and somebody may put it again */
        bool again = (status == SHOAL_AGAIN || status == SHOAL_ABSENT) && strcmp(delayed, id) != 0;
        if (again)
            snprintf(delayed, sizeof delayed, "%s", id);
        if (status < 0) {
            const char *why = shoal_error();
            size_t name = strlen(id); /* which the reason may begin with */
            if (strncmp(why, "job ", 4) == 0 && strncmp(why + 4, id, name) == 0 &&
                strncmp(why + 4 + name, ": ", 2) == 0)
                why += 4 + name + 2;
            snprintf(line, sizeof line, "does not serve job %s%s: %s", id, again ? " now" : "", why);
            tell_line(worker, line);
        }
        bool refused = (status < 0 && !again) || worker->is_done;
        if (refused && (status = refuse_job(worker, id)) < 0)
            return status;
        rests = !refused && !worker->took_part; /* it failed or was cancelled before, and its marker is still there */
        worker->idles = worker->had_tasks && worker->idle ? worker->idles + 1 : 0;
        if (worker->had_tasks && !refused) /* there may be others, which have work */
            rests = worker->idle && worker->idles >= worker->open;
        since = worker->took_part || (worker->had_tasks && !worker->idle) ? base_now() : since;
    }
    return shoal_fail(SHOAL_STOPPED, "told to leave");
}

/* ---- the worker -------------------------------------------------------------------------------------------------- */

int shoal_worker_new(shoal_worker **out, shoal_store *store, const shoal_worker_options *options)
{
    shoal_worker *worker = NULL;
    int status = base_alloc(&worker, 1, sizeof *worker, "a worker");
    if (status < 0)
        return status;
    worker->store = store;
    worker->options = *options;
    worker->id = options->id;
    while (!worker->id)
        base_entropy(&worker->id, sizeof worker->id);
    if (!worker->options.roles)
        worker->options.roles = SHOAL_ROLE_ALL;
    if (worker->options.slots <= 0)
        worker->options.slots = base_cores();
    if (worker->options.memory <= 0)
        worker->options.memory = base_memory_share(1);
    shoal_store_bound(store, job_memory_blob(worker->options.memory));
    status = kernel_choose(&worker->kernel, options->kernel);
    for (int i = 0; status == SHOAL_OK && options->algorithms && options->algorithms[i]; i++)
        status = learn_algorithm_check(options->algorithms[i]);
    if (status < 0) {
        base_free(&worker);
        return status;
    }
    pthread_mutex_init(&worker->lock, NULL);
    *out = worker;
    return SHOAL_OK;
}

int shoal_worker_run(shoal_worker *worker)
{
    if (!worker->options.job)
        return serve_any(worker);
    int status = job_id_check(worker->options.job);
    return status < 0 ? status : serve_job(worker, worker->options.job);
}

void shoal_worker_leave(shoal_worker *worker, const char *why)
{
    pthread_mutex_lock(&worker->lock);
    snprintf(worker->why, sizeof worker->why, "%s", why);
    pthread_mutex_unlock(&worker->lock);
    atomic_store(&worker->leave, 1);
    base_wake_word(&worker->leave, INT_MAX);
}

void shoal_worker_free(shoal_worker **inout)
{
    shoal_worker *worker = *inout;
    if (!worker)
        return;
    for (int64_t i = 0; i < worker->refusals; i++)
        base_free(&worker->refused[i]);
    base_free(&worker->refused);
    pthread_mutex_destroy(&worker->lock);
    base_free(inout);
}
