/* See crew.h. */
#include "crew.h"

#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <shoal/run.h>

#include "base/file.h"
#include "base/io.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/world.h"

enum { PATH_BYTES = 4096 };
static const double LEAVE_SECONDS = 20; /* in which workers of a sweep that is over keep what they have */
static const double REST_SECONDS = 2;
static const size_t FILE_MOST = (size_t)4 << 30;

/* ---- whoever starts them ----------------------------------------------------------------------------------------- */

struct sweep_crew {
    const sweep_run *run;
    shoal_tasks *tasks;
    shoal_task_workers *workers;
    char *shared, *bytes; /* keys that workers see; what each task is told */
    shoal_task_file file[SHOAL_TEXTS_MOST];
    char *read[SHOAL_TEXTS_MOST];
    int files;
    int64_t open, failed; /* tasks without a result; failed ones since the last that did not */
    int64_t rests;        /* until this moment no more are needed: one has found the sweep to be over */
};

static int open_sent(int *out, const char *name)
{
    struct stat about;
    *out = -1;
    if (!base_path_stays_below(name))
        return shoal_fail(SHOAL_USAGE, "--send %s: files are named by paths below the current folder", name);
    *out = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (*out >= 0 && fstat(*out, &about) == 0 && S_ISREG(about.st_mode))
        return SHOAL_OK;
    base_close(out);
    return shoal_fail(SHOAL_INVALID, "--send %s: there is no such file", name);
}

int sweep_crew_check(const sweep_crew_options *options)
{
    int status = SHOAL_OK;
    for (int i = 0; i < options->send->count && status == SHOAL_OK; i++) {
        int file = -1;
        status = open_sent(&file, options->send->text[i]);
        base_close(&file);
    }
    return status;
}

static int read_sent(sweep_crew *self, const char *name)
{
    size_t size = 0;
    int file = -1, status = open_sent(&file, name);
    if (status < 0)
        return status;
    status = base_read_whole(&self->read[self->files], &size, file, FILE_MOST, name);
    close(file);
    if (status == SHOAL_INVALID || status == SHOAL_SYSTEM)
        status = shoal_fail(status, "--send %s: can't be read, or is larger than 4 GB", name);
    self->file[self->files] = (shoal_task_file){.bytes = self->read[self->files], .size = size};
    self->files++;
    return status;
}

/* What workers are told: which sweep, and where this machine's keep its trials. */
static int describe(sweep_crew *self)
{
    char machine[SWEEP_MACHINE_BYTES], here[PATH_BYTES];
    const sweep_run *run = self->run;
    json_t *object = json_object(), *names = json_array();
    sweep_machine_name(machine);
    for (int i = 0; i < run->crew->send->count; i++)
        json_array_append_new(names, base_json_text(run->crew->send->text[i]));
    base_json_put(&object, "sweep", base_json_text(run->place.name));
    base_json_put(&object, "patience", json_real(run->place.patience));
    base_json_put(&object, "threads", json_integer(run->threads));
    base_json_put(&object, "machine", base_json_text(machine));
    base_json_put(&object, "here", base_json_text(getcwd(here, sizeof here) ? here : "."));
    base_json_put(&object, "folder", base_json_text(run->folder));
    base_json_put(&object, "send", names);
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    int status = text ? base_copy_text(&self->bytes, text) : shoal_fail(SHOAL_MEMORY, "out of memory for a sweep");
    json_decref(object);
    free(text);
    return status;
}

int sweep_crew_start(sweep_crew **out, const sweep_run *run)
{
    const sweep_crew_options *options = run->crew;
    const char *where[SHOAL_TEXTS_MOST + 1] = {NULL};
    sweep_crew *self = NULL;
    int status = base_alloc(&self, 1, sizeof *self, "workers");
    if (status < 0)
        return status;
    *out = self;
    self->run = run;
    for (int i = 0; i < options->workers->count; i++)
        where[i] = options->workers->text[i];
    for (int i = 0; i < options->send->count && status == SHOAL_OK; i++)
        status = read_sent(self, options->send->text[i]);
    if (status == SHOAL_OK)
        status = describe(self);
    if (status == SHOAL_OK)
        status = base_format(&self->shared, "sweeps/%s/", run->place.name);
    if (status == SHOAL_OK)
        status = shoal_tasks_open(
            &self->tasks, run->place.store,
            &(shoal_tasks_options){.name = "sweep", .warn = options->say, .warn_context = options->context});
    if (status == SHOAL_OK)
        status = shoal_task_workers_start(&self->workers, self->tasks, options->url,
                                          &(shoal_task_workers_options){.workers = where,
                                                                        .ssh = options->ssh,
                                                                        .threads = 1,
                                                                        .shared = self->shared,
                                                                        .say = options->say,
                                                                        .context = options->context});
    return status;
}

int64_t sweep_crew_slots(const sweep_crew *self)
{
    return self && self->tasks ? shoal_tasks_count(self->tasks).slots : 0;
}

/* A worker that can't run trials at all says why; when all say so, that is the end. */
static int take_end(sweep_crew *self, const shoal_task_result *result, int64_t wanted)
{
    char *line = NULL;
    self->open--;
    self->failed = result->state == SHOAL_TASK_FAILED ? self->failed + 1 : 0;
    if (result->state == SHOAL_TASK_DONE)
        self->rests = base_time_after(base_now(), REST_SECONDS);
    if (result->state != SHOAL_TASK_FAILED)
        return SHOAL_OK;
    if (self->failed > 2 * wanted + 2)
        return shoal_fail(SHOAL_INVALID, "%s: %s", result->host[0] ? result->host : "a worker", result->message);
    if (self->run->crew->say &&
        base_format(&line, "%s: %s", result->host[0] ? result->host : "a worker", result->message) == SHOAL_OK)
        self->run->crew->say(self->run->crew->context, line);
    base_free(&line);
    return SHOAL_OK;
}

int sweep_crew_tend(sweep_crew *self)
{
    const int64_t slots = sweep_crew_slots(self), running = shoal_task_workers_running(self->workers);
    const int64_t wanted = slots > running ? slots : running;
    const shoal_task task = {.function = "sweep",
                             .bytes = self->bytes,
                             .size = strlen(self->bytes),
                             .files = self->file,
                             .file_count = self->files};
    int status = SHOAL_OK;
    while (self->open < wanted && base_now() >= self->rests && status == SHOAL_OK) {
        int64_t number;
        status = shoal_task_submit(&number, self->tasks, &task);
        self->open += status == SHOAL_OK;
    }
    while (status == SHOAL_OK) {
        shoal_task_result *result = NULL;
        status = shoal_task_next(&result, self->tasks, base_now());
        if (status == SHOAL_OK)
            status = take_end(self, result, wanted);
        shoal_task_result_free(&result);
    }
    return status == SHOAL_AGAIN || status == SHOAL_ABSENT ? SHOAL_OK : status;
}

void sweep_crew_stop(sweep_crew **inout, bool over)
{
    sweep_crew *self = *inout;
    const int64_t until = base_time_after(base_now(), LEAVE_SECONDS);
    if (!self)
        return;
    while (over && self->workers && self->open > 0) {
        shoal_task_result *result = NULL;
        if (shoal_task_next(&result, self->tasks, until) < 0)
            break;
        self->open--;
        shoal_task_result_free(&result);
    }
    shoal_task_workers_stop(&self->workers);
    (void)shoal_tasks_close(&self->tasks);
    for (int i = 0; i < self->files; i++)
        base_free(&self->read[i]);
    base_free(&self->shared);
    base_free(&self->bytes);
    base_free(inout);
}

/* ---- a worker ---------------------------------------------------------------------------------------------------- */

typedef struct serving {
    const shoal_task_call *call;
    const json_t *told;
    char *apart, *here, *folder; /* a temporary folder with what was sent and the trials; NULL for this machine's */
} serving;

static const char *text_of(const serving *self, const char *key)
{
    const char *text = json_string_value(json_object_get(self->told, key));
    return text ? text : "";
}

static int write_sent(serving *self, int file)
{
    const char *name = json_string_value(json_array_get(json_object_get(self->told, "send"), (size_t)file));
    char *path = NULL;
    base_output *output = NULL;
    struct stat about = {0};
    if (!name || !base_path_stays_below(name))
        return shoal_fail(SHOAL_INVALID, "a file that was sent has no name that makes sense");
    int status = self->call->open(self->call, file);
    if (status == SHOAL_OK)
        status = base_format(&path, "%s/%s", self->here, name);
    const int error = status == SHOAL_OK ? base_make_folders_above(path, 0777, NULL) : 0;
    if (error)
        status = shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't make its folder", path);
    if (status == SHOAL_OK)
        status = base_output_open(&output, path);
    if (status == SHOAL_OK)
        status = base_output_write(output, self->call->files[file].bytes, self->call->files[file].size);
    if (status == SHOAL_OK)
        status = base_output_commit(&output);
    base_output_discard(&output);
    if (status == SHOAL_OK && stat(path, &about) == 0) /* it may be a program */
        (void)chmod(path, about.st_mode | 0100);
    base_free(&path);
    return status;
}

/* Where trials run: as if here on the machine that started them, and elsewhere in a folder of this task. */
static int settle(serving *self)
{
    char machine[SWEEP_MACHINE_BYTES];
    sweep_machine_name(machine);
    const char *here = text_of(self, "here"), *folder = text_of(self, "folder");
    if (strcmp(machine, text_of(self, "machine")) == 0 && access(folder, W_OK) == 0 && access(here, X_OK) == 0) {
        int status = base_copy_text(&self->here, here);
        return status == SHOAL_OK ? base_copy_text(&self->folder, folder) : status;
    }
    int status = base_make_temporary_folder(&self->apart, "shoal-sweep-");
    if (status == SHOAL_OK)
        status = base_format(&self->here, "%s/here", self->apart);
    if (status == SHOAL_OK)
        status = base_format(&self->folder, "%s/trials", self->apart);
    if (status == SHOAL_OK && (mkdir(self->here, 0777) < 0 || mkdir(self->folder, 0777) < 0))
        status = shoal_fail(SHOAL_SYSTEM, "%s: can't make folders in it", self->apart);
    for (int i = 0; i < self->call->file_count && status == SHOAL_OK; i++)
        status = write_sent(self, i);
    return status;
}

static bool is_stopped(void *context)
{
    const serving *self = context;
    return atomic_load(self->call->stop) != 0;
}

static int run_trials(serving *self)
{
    char program[PATH_BYTES];
    sweep_spec *spec = NULL;
    sweep_log log;
    const sweep_place place = {.store = self->call->store,
                               .name = text_of(self, "sweep"),
                               .patience = json_number_value(json_object_get(self->told, "patience"))};
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0)
        return shoal_fail(SHOAL_SYSTEM, "can't find the program that runs");
    program[length] = '\0';
    int status = sweep_place_spec(&spec, &place);
    if (status < 0)
        return status;
    const sweep_run run = {.spec = spec,
                           .place = place,
                           .folder = self->folder,
                           .program = program,
                           .here = self->here,
                           .leaves = self->apart != NULL,
                           .workers = 1,
                           .threads = json_integer_value(json_object_get(self->told, "threads")),
                           .goal = INFINITY,
                           .stops = is_stopped,
                           .context = self};
    sweep_log_init(&log, &spec->rules, spec->maximise, spec->ahead);
    status = sweep_run_trials(&log, &run);
    sweep_log_release(&log);
    sweep_spec_free(&spec);
    return status;
}

int sweep_serve(void **bytes, size_t *size, const shoal_task_call *call)
{
    json_t *told = json_loadb(call->bytes, call->size, JSON_REJECT_DUPLICATES, NULL);
    serving self = {.call = call, .told = told};
    int status = told && text_of(&self, "sweep")[0] ? SHOAL_OK : shoal_fail(SHOAL_INVALID, "it names no sweep");
    *bytes = NULL;
    *size = 0;
    if (status == SHOAL_OK)
        status = settle(&self);
    if (status == SHOAL_OK)
        status = run_trials(&self);
    if (self.apart)
        base_remove_folder(self.apart);
    base_free(&self.apart);
    base_free(&self.here);
    base_free(&self.folder);
    json_decref(told);
    return status;
}
