/* Requests.  See request.h and shoal/run.h. */
#include "request.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <shoal/run.h>

#include "base/memory.h"
#include "blobs.h"
#include "engine/store/job_setup.h"
#include "engine/store/job_tree.h"
#include "hold.h"
#include "launch/launch.h"

/* ---- making ------------------------------------------------------------------------------------------------------ */

size_t run_request_size(const learn_face *face)
{
    return sizeof(shoal_request) + face->algorithm->config_size;
}

enum { FACES_MOST = 32 };

/* The outputs of each learner as a table of options: made once, since several threads may ask for them. */
static shoal_option output_rows[FACES_MOST][LEARN_OUTPUTS_MOST + 2];
static const shoal_option *output_tables[FACES_MOST];
static pthread_once_t output_tables_made = PTHREAD_ONCE_INIT;

static void make_output_tables(void)
{
    for (int at = 0; learn_faces[at]; at++) {
        const learn_output *outputs = learn_faces[at]->outputs;
        if (at >= FACES_MOST)
            SHOAL_BUG("there are more learners than tables of outputs");
        int i = 0;
        for (; outputs[i].name; i++) {
            if (i >= LEARN_OUTPUTS_MOST)
                SHOAL_BUG("%s has too many outputs", learn_faces[at]->algorithm->name);
            output_rows[at][i] = (shoal_option){.name = outputs[i].name,
                                                .letter = outputs[i].letter,
                                                .kind = SHOAL_OPTION_TEXT,
                                                .offset = (size_t)i * sizeof(char *),
                                                .argument = outputs[i].argument,
                                                .help = outputs[i].help};
        }
        output_rows[at][i] = *run_force_options;
        output_rows[at][i].offset = offsetof(shoal_request, force) - offsetof(shoal_request, output);
        output_tables[at] = output_rows[at];
    }
}

static const shoal_option *const *output_options(const learn_face *face)
{
    int at = 0;
    pthread_once(&output_tables_made, make_output_tables);
    while (learn_faces[at] != face)
        at++;
    return &output_tables[at];
}

static bool has_output(const learn_face *face, learn_output_kind kind)
{
    for (const learn_output *output = face->outputs; output->name; output++)
        if (output->kind == kind)
            return true;
    return false;
}

int run_request_groups(base_option_group groups[RUN_GROUPS_MOST], const learn_face *face, size_t offset)
{
    int count = 0;
#define GROUP(title, table, member)                                                                                    \
    groups[count++] = (base_option_group)                                                                              \
    {                                                                                                                  \
        title, table, offset + offsetof(shoal_request, member)                                                         \
    }
    if (face->runs_code)
        GROUP("Your function", &run_function_options, function);
    if (run_has_blobs(face))
        GROUP("Blobs", &run_blobs_options, blobs);
    if (face->algorithm->options)
        GROUP(face->options_title, &face->algorithm->options, config);
    if (face->inputs)
        GROUP(face->inputs_title, &face->inputs, inputs);
    for (int i = 0; i < count; i++)
        if (!groups[i].title)
            SHOAL_BUG("%s has options without a title", face->algorithm->name);
    GROUP("Output", output_options(face), output);
    if (has_output(face, LEARN_PICTURE))
        GROUP("Picture", &data_picture_options, picture);
    if (has_output(face, LEARN_PLOT))
        GROUP("Plot", &run_plot_options, plot);
    GROUP("Following the run", &run_trace_options_table, trace);
    GROUP("Reading the data", &run_data_options, reading);
    GROUP("Running", &run_place_options, place);
    GROUP("Ranks and checkpoints", &run_ranks_options_table, ranks);
    GROUP("Running on workers", &run_workers_options_table, workers);
#undef GROUP
    groups[count] = (base_option_group){0};
    return count;
}

int run_request_init(shoal_request *request, const learn_face *face)
{
    base_option_group groups[RUN_GROUPS_MOST];
    request->face = face;
    request->algorithm = face->algorithm;
    run_request_groups(groups, face, 0);
    return base_options_default(request, groups);
}

/* ---- by name ----------------------------------------------------------------------------------------------------- */

struct run_texts {
    struct run_texts *before;
    char text[];
};

int run_texts_keep(const char **out, run_texts **texts, const char *text)
{
    run_texts *kept = NULL;
    int status = base_alloc(&kept, 1, sizeof *kept + strlen(text) + 1, "a request");
    if (status < 0)
        return status;
    strcpy(kept->text, text);
    kept->before = *texts;
    *texts = kept;
    *out = kept->text;
    return SHOAL_OK;
}

void run_texts_free(run_texts **texts)
{
    for (run_texts *text = *texts, *before; text; text = before) {
        before = text->before;
        base_free(&text);
    }
    *texts = NULL;
}

int shoal_request_new(shoal_request **out, const char *learner)
{
    const learn_face *face = learn_face_find(learner);
    *out = NULL;
    if (!face) {
        const char *names[32];
        int count = 0;
        for (const learn_face *const *at = learn_faces; *at && count < 32; at++)
            if ((*at)->summary)
                names[count++] = (*at)->algorithm->name;
        const char *near = base_nearest(learner, names, count);
        return shoal_fail(SHOAL_USAGE, "unknown learner '%s'%s%s%s", learner, near ? "; did you mean '" : "",
                          near ? near : "", near ? "'?" : "");
    }
    int status = base_alloc(out, 1, run_request_size(face), "a request");
    if (status == SHOAL_OK)
        status = run_request_init(*out, face);
    if (status < 0)
        shoal_request_free(out);
    return status;
}

void shoal_request_free(shoal_request **request)
{
    if (!*request)
        return;
    run_texts_free(&(*request)->texts);
    base_free(request);
}

int run_fail_no_option(const char *whose, const base_option_group *groups, const char *name)
{
    const char *near = base_options_nearest(groups, name);
    return shoal_fail(SHOAL_USAGE, "%s has no option '%s'%s%s%s", whose, name, near ? "; did you mean '" : "",
                      near ? near : "", near ? "'?" : "");
}

int shoal_request_set(shoal_request *request, const char *name, const char *text)
{
    base_option_group groups[RUN_GROUPS_MOST + 1];
    const char *kept = NULL;
    int count = run_request_groups(groups, request->face, 0);
    groups[count++] =
        (base_option_group){"Going on", &run_foreign_options, offsetof(shoal_request, workers)}; /* for resuming */
    groups[count] = (base_option_group){0};
    bool data = strcmp(name, "data") == 0, module = request->face->runs_code && strcmp(name, "module") == 0;
    if (!data && !module && !base_options_find(groups, name, strlen(name)))
        return run_fail_no_option(request->algorithm->name, groups, name);
    int status = text ? run_texts_keep(&kept, &request->texts, text) : SHOAL_OK;
    if (status < 0)
        return status;
    if (data || module) {
        *(data ? &request->data : &request->function.module) = kept;
        return SHOAL_OK;
    }
    return base_options_set(request, groups, name, kept);
}

int shoal_request_rows(shoal_request *request, shoal_data *rows, const double *weights)
{
    request->rows = rows;
    request->weights = weights;
    return SHOAL_OK;
}

int shoal_request_target(shoal_request *request, shoal_data *target)
{
    if (request->face->classes_most == 0)
        return shoal_fail(SHOAL_USAGE, "%s needs no target", request->algorithm->name);
    if (target && shoal_data_columns(target) != 1)
        return shoal_fail(SHOAL_USAGE, "the target has %lld columns; one is needed",
                          (long long)shoal_data_columns(target));
    request->target = target;
    return SHOAL_OK;
}

int shoal_request_start(shoal_request *request, const double *values, int64_t rows, int64_t columns)
{
    if (!request->face->start_from)
        return shoal_fail(SHOAL_USAGE, "%s does not start from values in memory", request->algorithm->name);
    if (values && (rows < 1 || columns < 1))
        return shoal_fail(SHOAL_USAGE, "a start of %lld rows and %lld columns", (long long)rows, (long long)columns);
    request->start = values;
    request->start_rows = rows;
    request->start_columns = columns;
    return SHOAL_OK;
}

int shoal_request_program(shoal_request *request, const char *path)
{
    return run_texts_keep(&request->program, &request->texts, path);
}

int shoal_request_file(shoal_request *request, const char *name, const void *bytes, size_t size)
{
    run_function *function = &request->function;
    const char *kept = NULL;
    if (!request->face->runs_code)
        return shoal_fail(SHOAL_USAGE, "%s takes no files along", request->algorithm->name);
    if (function->files == SHOAL_CODE_MOST)
        return shoal_fail(SHOAL_USAGE, "a run can bring at most %d files", SHOAL_CODE_MOST);
    int status = run_texts_keep(&kept, &request->texts, name);
    if (status == SHOAL_OK)
        function->file[function->files++] = (shoal_code){.name = kept, .bytes = bytes, .size = size};
    return status;
}

void shoal_request_bind(shoal_request *request)
{
    request->bound = request->workers.passing = true;
}

void shoal_request_watch(shoal_request *request, const shoal_watcher *watcher)
{
    request->watch = watcher ? *watcher : (shoal_watcher){0};
}

/* ---- checking ---------------------------------------------------------------------------------------------------- */

bool run_on_workers(const run_workers_options *options)
{
    return options->store || options->workers.count > 0;
}

int run_blame_option(int status)
{
    static const struct {
        const char *field, *option;
    } names[] = {{"name", "--job"},         {"slices", "--slices"},           {"reduce", "--reduce"},
                 {"lease", "--lease"},      {"keep_rounds", "--keep-rounds"}, {"rows_per_grain", "--grain"},
                 {"patience", "--patience"}};
    const char *message = shoal_error();
    size_t length = strcspn(message, " ");
    for (size_t i = 0; status == SHOAL_USAGE && i < sizeof names / sizeof *names; i++)
        if (strlen(names[i].field) == length && strncmp(message, names[i].field, length) == 0)
            return shoal_fail(status, "%s%s", names[i].option, message + length);
    return status;
}

/* Names the first option that is about workers, where there are none. */
static int check_unused(const run_workers_options *options)
{
    const char *given = options->detach          ? "--detach"
                        : options->ssh           ? "--ssh"
                        : options->name          ? "--job"
                        : options->slices        ? "--slices"
                        : options->reduce        ? "--reduce"
                        : options->roles         ? "--roles"
                        : options->lease > 0     ? "--lease"
                        : options->keep_rounds   ? "--keep-rounds"
                        : options->patience > 0  ? "--patience"
                        : options->worker_memory ? "--worker-memory"
                        : options->hold_deadline ? "--deadline"
                        : options->budget        ? "--budget"
                        : options->price         ? "--price"
                        : options->or_stop       ? "--or-stop"
                        : options->held_picture  ? "--held-picture"
                                                 : NULL;
    return given
               ? shoal_fail(SHOAL_USAGE, "%s needs --workers WHERE or --store URL: it is about runs on workers", given)
               : SHOAL_OK;
}

int run_workers_check(const run_workers_options *options)
{
    launch_ask ask;
    control_aim aim;
    bool held = false;
    job_tree tree;
    if (!run_on_workers(options) && check_unused(options) < 0)
        return SHOAL_USAGE;
    if (launch_ask_for(&ask, &options->workers, NULL, 0) < 0 || run_hold_aim(&aim, &held, options, 0) < 0)
        return SHOAL_USAGE;
    if (ask.least > 0 && !held && !options->aimed)
        return shoal_fail(SHOAL_USAGE, "--workers: a range of workers needs --deadline or --budget, which choose among "
                                       "them; without, it is one number");
    if (options->name && job_setup_check_name(options->name) < 0)
        return run_blame_option(SHOAL_USAGE);
    if (options->roles && strcmp(options->roles, "all") != 0 && strcmp(options->roles, "split") != 0)
        return shoal_fail(SHOAL_USAGE, "--roles is all or split, not '%s'", options->roles);
    if (options->reduce && job_tree_choose(&tree, options->reduce, 1) < 0)
        return run_blame_option(SHOAL_USAGE);
    return SHOAL_OK;
}
