/* Jobs of `shoal map`.  See map.h.
 *
 * Only so many jobs are handed over at a time, so that memory does not grow with their number and a halt is soon felt.
 * What a job writes to standard error goes into a file beside it, which comes back with the result. */
#include "map.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <shoal/run.h>

#include "base/file.h"
#include "base/io.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/pool.h"
#include "base/spawn.h"
#include "base/world.h"

enum { UNDER_WAY_MOST = 4096, AHEAD = 4, FILES_MOST = 2 * SHOAL_TEXTS_MOST + 64 };
enum { LEAVE_SECONDS = 5 }; /* in which workers end, should this process be killed */
static const double LOOK_EVERY = 0.1;
static const char said_file[] = ".shoal-stderr";

/* A file of this machine that jobs find, mapped. */
typedef struct brought {
    const char *name;
    void *bytes;
    size_t size;
} brought;

typedef struct job {
    int tries;
    bool over; /* nothing more is to be done about it */
    struct kept *kept;
} job;

/* The result of a job that waits for those before it. */
typedef struct kept {
    shoal_task_result *result;
    bool failed;
} kept;

typedef struct mapping {
    const map_options *options;
    map_counts *counts;
    map_template *command, *returned[SHOAL_TEXTS_MOST];
    char *url, *folder, *here;
    shoal_store *store;
    shoal_tasks *tasks;
    shoal_task_workers *workers;
    bool apart; /* jobs have folders of their own */
    job *job;
    int64_t *row_of; /* of tasks, by number */
    int64_t submitted, room, next, told, under_way, most;
    brought common[SHOAL_TEXTS_MOST];
    FILE *log;
    base_guard guard; /* of `folder` */
    bool halting;
    pthread_mutex_t lock;
    char *said; /* by the threads that look after workers, lines */
} mapping;

/* ---- files ------------------------------------------------------------------------------------------------------- */

static int read_brought(brought *out, const char *name)
{
    struct stat about;
    size_t got = 0;
    if (!base_path_stays_below(name))
        return shoal_fail(SHOAL_USAGE,
                          "'%s' can't be brought to a job: files are named by paths below the current folder", name);
    *out = (brought){.name = name};
    int file = open(name, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &about) < 0) {
        int error = errno;
        base_close(&file);
        return shoal_fail_errno(SHOAL_INVALID, error, "%s", name);
    }
    int status = S_ISREG(about.st_mode) ? base_alloc_unset(&out->bytes, (size_t)about.st_size + 1, 1, "a job's file")
                                        : shoal_fail(SHOAL_INVALID, "%s is not a plain file", name);
    if (status == SHOAL_OK && base_read_all(file, out->bytes, (size_t)about.st_size, &got) != 0)
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s", name);
    out->size = got;
    base_close(&file);
    return status;
}

static int write_returned(const shoal_task_file *file)
{
    base_output *output = NULL;
    int error = base_make_folders_above(file->name, 0777, NULL);
    int status =
        error ? shoal_fail_errno(SHOAL_SYSTEM, error, "%s", file->name) : base_output_open(&output, file->name);
    if (status == SHOAL_OK)
        status = base_output_write(output, file->bytes, file->size);
    if (status == SHOAL_OK)
        status = base_output_commit(&output);
    base_output_discard(&output);
    return status;
}

/* ---- the log ----------------------------------------------------------------------------------------------------- */

static const char log_head[] = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n";

/* A line of a log; false for one that is none. */
static bool read_line(int64_t *row, bool *failed, const char *line)
{
    long long number, exit_code, signal;
    if (sscanf(line, "%lld\t%*[^\t]\t%*[^\t]\t%*[^\t]\t%*[^\t]\t%*[^\t]\t%lld\t%lld\t", &number, &exit_code, &signal) !=
        3)
        return false;
    *row = number - 1;
    *failed = exit_code != 0 || signal != 0;
    return true;
}

/* Jobs that a log has are left out. */
static int read_log(mapping *self)
{
    const map_options *options = self->options;
    FILE *stream = fopen(options->log, "re");
    char *line = NULL;
    size_t room = 0;
    int64_t number = 0;
    int status = SHOAL_OK;
    if (!stream)
        return errno == ENOENT ? SHOAL_OK : shoal_fail_errno(SHOAL_SYSTEM, errno, "--joblog: %s", options->log);
    while (status == SHOAL_OK && getline(&line, &room, stream) >= 0) {
        int64_t row;
        bool failed;
        if (number++ == 0) {
            if (strcmp(line, log_head) != 0)
                status = shoal_fail(SHOAL_INVALID, "--joblog: %s is not a log of jobs", options->log);
            continue;
        }
        if (!read_line(&row, &failed, line) || row < 0 || row >= options->table->rows)
            continue; /* a command may have more lines than one */
        self->job[row].over = !(failed && options->resume_failed);
    }
    if (status == SHOAL_OK && ferror(stream))
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "--joblog: %s", options->log);
    free(line);
    fclose(stream);
    for (int64_t row = 0; row < options->table->rows; row++)
        self->counts->left_out += self->job[row].over;
    return status;
}

static int open_log(mapping *self)
{
    const map_options *options = self->options;
    bool resume = options->resume || options->resume_failed;
    struct stat about;
    if (!options->log)
        return SHOAL_OK;
    int status = resume ? read_log(self) : SHOAL_OK;
    if (status < 0)
        return status;
    self->log = fopen(options->log, resume ? "ae" : "we");
    if (!self->log)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "--joblog: %s", options->log);
    if (!resume || fstat(fileno(self->log), &about) < 0 || about.st_size == 0)
        fputs(log_head, self->log);
    return SHOAL_OK;
}

static int log_job(mapping *self, int64_t row, const shoal_task_result *result, const char *command)
{
    struct timeval now;
    if (!self->log)
        return SHOAL_OK;
    bool by_signal = strstr(result->message, "was ended by signal") != NULL;
    bool local = self->options->workers->count == 0;
    gettimeofday(&now, NULL);
    fprintf(self->log, "%lld\t%s\t%.3f\t%10.3f\t%d\t%zu\t%d\t%d\t%s\n", (long long)row + 1,
            local || !result->host[0] ? ":" : result->host,
            (double)now.tv_sec + (double)now.tv_usec / 1e6 - result->seconds, result->seconds, 0, result->size,
            by_signal ? 0 : result->exit_code, by_signal ? result->exit_code - 128 : 0, command);
    return fflush(self->log) == 0
               ? SHOAL_OK
               : shoal_fail_errno(SHOAL_SYSTEM, errno, "--joblog: can't write %s", self->options->log);
}

/* ---- handing over ------------------------------------------------------------------------------------------------ */

/* The shell that runs the job, with its standard error in a file of the task. */
static const char in_place_script[] = "e=$PWD/$1; cd -- \"$2\" && exec \"$3\" -c \"$4\" 2>\"$e\"";
static const char apart_script[] = "exec \"$3\" -c \"$4\" 2>\"$1\"";

static int note_number(mapping *self, int64_t number, int64_t row)
{
    if (number >= self->room) {
        int64_t room = self->room ? 2 * self->room : 256;
        int status = base_grow(&self->row_of, (size_t)self->room, (size_t)room, sizeof *self->row_of, "jobs");
        if (status < 0)
            return status;
        self->room = room;
    }
    self->row_of[number] = row;
    return SHOAL_OK;
}

static int submit_job(mapping *self, int64_t row)
{
    const map_options *options = self->options;
    const map_table *table = options->table;
    char *command = NULL, *name[SHOAL_TEXTS_MOST] = {NULL};
    const char *outputs[SHOAL_TEXTS_MOST + 2] = {said_file};
    shoal_task_file file[FILES_MOST];
    brought own[FILES_MOST] = {{0}};
    int files = 0, owned = 0;
    int64_t number = 0;
    int status = map_template_fill(&command, self->command, table, row, true);
    for (int i = 0; i < options->returned->count && status == SHOAL_OK; i++) {
        status = map_template_fill(&name[i], self->returned[i], table, row, false);
        outputs[i + 1] = name[i];
    }
    for (int i = 0; i < options->send->count; i++)
        file[files++] = (shoal_task_file){self->common[i].name, self->common[i].bytes, self->common[i].size};
    for (int i = 0; options->transfer && i < table->columns && status == SHOAL_OK; i++) {
        if (files == FILES_MOST)
            status = shoal_fail(SHOAL_USAGE, "a job has at most %d files", FILES_MOST);
        if (status == SHOAL_OK &&
            (status = read_brought(&own[owned++], table->cell[row * table->columns + i])) == SHOAL_OK)
            file[files++] = (shoal_task_file){own[owned - 1].name, own[owned - 1].bytes, own[owned - 1].size};
    }
    if (status == SHOAL_OK) {
        const char *words[] = {"/bin/sh",      "-c",      self->apart ? apart_script : in_place_script,
                               "sh",           said_file, self->here,
                               options->shell, command,   NULL};
        const shoal_task task = {
            .command = words, .timeout = options->timeout, .files = file, .file_count = files, .outputs = outputs};
        status = shoal_task_submit(&number, self->tasks, &task);
    }
    if (status == SHOAL_OK)
        status = note_number(self, number, row);
    if (status == SHOAL_OK) {
        self->job[row].tries++;
        self->under_way++;
    }
    for (int i = 0; i < owned; i++)
        base_free(&own[i].bytes);
    for (int i = 0; i < SHOAL_TEXTS_MOST; i++)
        base_free(&name[i]);
    base_free(&command);
    return status;
}

static int submit_more(mapping *self)
{
    int status = SHOAL_OK;
    while (status == SHOAL_OK && !self->halting && self->under_way < self->most &&
           self->next < self->options->table->rows) {
        int64_t row = self->next++;
        if (!self->job[row].over)
            status = submit_job(self, row);
    }
    return status;
}

/* ---- what comes back --------------------------------------------------------------------------------------------- */

static void describe_failure(char *why, size_t size, const shoal_task_result *result)
{
    why[0] = '\0';
    if (result->state == SHOAL_TASK_DONE)
        return;
    bool exited = strncmp(result->message, "the command exited", 18) == 0;
    if (!exited)
        snprintf(why, size, "%s", result->message);
}

/* Tells of a job; its files are written now, so that whoever reads the output finds them. */
static int tell_job(mapping *self, int64_t row, const shoal_task_result *result, bool failed)
{
    char *command = NULL, why[512];
    map_done done = {.row = row, .result = result, .failed = failed, .said = "", .why = why};
    int status = map_template_fill(&command, self->command, self->options->table, row, true);
    describe_failure(why, sizeof why, result);
    for (int i = 0; i < result->file_count && status == SHOAL_OK; i++) {
        if (strcmp(result->files[i].name, said_file) == 0) {
            done.said = result->files[i].bytes;
            done.said_size = result->files[i].size;
        } else {
            status = write_returned(&result->files[i]);
        }
    }
    done.command = command;
    if (status == SHOAL_OK && self->options->done)
        status = self->options->done(self->options->context, &done);
    base_free(&command);
    return status;
}

static int keep_result(mapping *self, int64_t row, shoal_task_result **result, bool failed)
{
    int status = base_alloc(&self->job[row].kept, 1, sizeof *self->job[row].kept, "a job's result");
    if (status < 0)
        return status;
    *self->job[row].kept = (kept){*result, failed};
    *result = NULL;
    return SHOAL_OK;
}

static void release_kept(job *job)
{
    if (job->kept)
        shoal_task_result_free(&job->kept->result);
    base_free(&job->kept);
}

/* Those whose turn it is. */
static int tell_kept(mapping *self)
{
    int status = SHOAL_OK;
    while (status == SHOAL_OK && self->told < self->options->table->rows &&
           (self->job[self->told].over || self->job[self->told].kept)) {
        job *job = &self->job[self->told];
        if (job->kept)
            status = tell_job(self, self->told, job->kept->result, job->kept->failed);
        release_kept(job);
        self->told++;
    }
    return status;
}

static int end_job(mapping *self, int64_t row, shoal_task_result **result, bool failed)
{
    const map_options *options = self->options;
    map_counts *counts = self->counts;
    char *command = NULL;
    int status = map_template_fill(&command, self->command, options->table, row, true);
    if (status == SHOAL_OK)
        status = log_job(self, row, *result, command);
    base_free(&command);
    counts->ended++;
    counts->failed += failed;
    if (failed && options->halt > 0 && counts->failed >= options->halt && !self->halting) {
        self->halting = true;
        counts->halted_by = (*result)->exit_code > 0 && (*result)->exit_code < 256 ? (*result)->exit_code : 1;
    }
    if (status == SHOAL_OK && options->in_order)
        status = keep_result(self, row, result, failed);
    else if (status == SHOAL_OK)
        status = tell_job(self, row, *result, failed);
    if (status == SHOAL_OK && options->in_order)
        status = tell_kept(self);
    self->job[row].over = true;
    return status;
}

static int take_result(mapping *self, shoal_task_result **result)
{
    int64_t row = self->row_of[(*result)->number];
    bool failed = (*result)->state != SHOAL_TASK_DONE;
    self->under_way--;
    if ((*result)->state == SHOAL_TASK_CANCELLED)
        return SHOAL_OK;
    if (failed && self->job[row].tries < self->options->tries && !self->halting)
        return submit_job(self, row);
    return end_job(self, row, result, failed);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static void hear_line(void *context, const char *line)
{
    mapping *self = context;
    char *longer = NULL;
    pthread_mutex_lock(&self->lock);
    if (base_format(&longer, "%s%s\n", self->said ? self->said : "", line) == SHOAL_OK) {
        base_free(&self->said);
        self->said = longer;
    }
    pthread_mutex_unlock(&self->lock);
}

static void tell_lines(mapping *self)
{
    pthread_mutex_lock(&self->lock);
    char *said = self->said;
    self->said = NULL;
    pthread_mutex_unlock(&self->lock);
    for (char *rest = said, *line; said && (line = strsep(&rest, "\n"));)
        if (*line && self->options->warn)
            self->options->warn(self->options->context, line);
    base_free(&said);
}

static int run_jobs_of(mapping *self)
{
    const map_options *options = self->options;
    int status = options->in_order ? tell_kept(self) : SHOAL_OK;
    while (status == SHOAL_OK && (status = submit_more(self)) == SHOAL_OK && self->under_way > 0) {
        shoal_task_result *result = NULL;
        if (options->stop && *options->stop)
            return shoal_fail(SHOAL_STOPPED, "stopped after %lld of %lld jobs", (long long)self->counts->ended,
                              (long long)self->counts->jobs);
        if (self->halting && options->halt_now)
            break; /* closing the client cancels them */
        tell_lines(self);
        status = shoal_task_next(&result, self->tasks, shoal_after(LOOK_EVERY));
        if (status == SHOAL_OK)
            status = take_result(self, &result);
        else if (status == SHOAL_AGAIN)
            status = SHOAL_OK;
        shoal_task_result_free(&result);
        if (options->progress)
            options->progress(options->context, self->counts->ended, self->counts->failed, self->counts->jobs);
    }
    tell_lines(self);
    return status;
}

static bool is_near(const char *spec)
{
    return strncmp(spec, "local:", 6) == 0 || !spec[strspn(spec, "0123456789")];
}

static int start_workers(mapping *self)
{
    const map_options *options = self->options;
    const char *where[SHOAL_TEXTS_MOST + 2] = {"local:1"};
    int64_t threads = options->jobs;
    for (int i = 0; i < options->workers->count; i++)
        where[i] = options->workers->text[i];
    if (options->workers->count == 0 && threads == 0)
        threads = base_cores();
    int status = options->store ? base_copy_text(&self->url, options->store)
                                : base_make_temporary_folder(&self->folder, "shoal-map-");
    if (status == SHOAL_OK && self->folder && base_guard_start(&self->guard, LEAVE_SECONDS) == 0)
        base_guard_folder(&self->guard, self->folder);
    if (status == SHOAL_OK && self->folder)
        status = base_format(&self->url, "dir:%s/store", self->folder);
    if (status == SHOAL_OK)
        status = shoal_store_open(&self->store, self->url, &(shoal_store_options){.create = true}, shoal_after(60));
    if (status == SHOAL_OK)
        status = shoal_tasks_open(&self->tasks, self->store,
                                  &(shoal_tasks_options){.name = "map", .warn = hear_line, .warn_context = self});
    if (status == SHOAL_OK)
        status = shoal_task_workers_start(
            &self->workers, self->tasks, self->url,
            &(shoal_task_workers_options){
                .workers = where, .ssh = options->ssh, .threads = threads, .say = hear_line, .context = self});
    /* Workers take what there is in any order.  People expect one job at a time to be one after another, and others to
     * begin about in the order of their arguments. */
    bool here = options->workers->count == 0;
    bool soon = options->halt > 0 && !options->halt_now;
    self->most = here && (soon || threads == 1) ? threads : here ? AHEAD * threads : UNDER_WAY_MOST;
    return status;
}

static int prepare(mapping *self)
{
    const map_options *options = self->options;
    const map_table *table = options->table;
    self->apart = options->transfer || options->send->count > 0 || options->returned->count > 0;
    for (int i = 0; i < options->workers->count; i++)
        self->apart |= !is_near(options->workers->text[i]);
    self->counts->jobs = table->rows;
    int status = base_alloc(&self->job, (size_t)table->rows + 1, sizeof *self->job, "jobs");
    if (status == SHOAL_OK)
        status = map_template_new(&self->command, options->command, table->columns, true);
    for (int i = 0; i < options->returned->count && status == SHOAL_OK; i++)
        status = map_template_new(&self->returned[i], options->returned->text[i], table->columns, false);
    for (int i = 0; i < options->send->count && status == SHOAL_OK; i++)
        status = read_brought(&self->common[i], options->send->text[i]);
    if (status == SHOAL_OK && !(self->here = realpath(".", NULL)))
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "the current folder");
    return status == SHOAL_OK ? open_log(self) : status;
}

static int close_all(mapping *self, int status)
{
    char *why = NULL;
    if (status < 0)
        (void)base_copy_text(&why, shoal_error());
    shoal_task_workers_stop(&self->workers);
    int closed = shoal_tasks_close(&self->tasks);
    if (status == SHOAL_OK)
        status = closed;
    shoal_store_close(&self->store);
    if (self->folder)
        base_remove_folder(self->folder);
    base_guard_stop(&self->guard);
    if (self->log && fclose(self->log) != 0 && status == SHOAL_OK)
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "--joblog: can't write %s", self->options->log);
    for (int64_t row = 0; self->job && row < self->options->table->rows; row++)
        release_kept(&self->job[row]);
    for (int i = 0; i < SHOAL_TEXTS_MOST; i++) {
        map_template_free(&self->returned[i]);
        base_free(&self->common[i].bytes);
    }
    map_template_free(&self->command);
    base_free(&self->job);
    base_free(&self->row_of);
    base_free(&self->said);
    base_free(&self->url);
    base_free(&self->folder);
    free(self->here);
    if (why)
        shoal_fail(status, "%s", why);
    base_free(&why);
    return status;
}

int run_map(map_counts *out, const map_options *options)
{
    mapping self = {.options = options, .counts = out, .guard = {.pipe = -1}, .lock = PTHREAD_MUTEX_INITIALIZER};
    *out = (map_counts){0};
    int status = prepare(&self);
    if (status == SHOAL_OK && out->left_out < out->jobs)
        status = start_workers(&self);
    if (status == SHOAL_OK && out->left_out < out->jobs)
        status = run_jobs_of(&self);
    return close_all(&self, status);
}
