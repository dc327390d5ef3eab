/* The verb of every learner, made from its face: `shoal kmeans`, `shoal logistic`, ... */
#include "cli.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "kernel/device/kernel_device.h"
#include "kernel/kernel.h"
#include "run/ranks.h"
#include "run/run.h"

/* The settings: this, followed by the request, which is as large as the learner's options make it. */
typedef struct settings {
    cli_common common;
    cli_print_settings print;
    bool describe; /* of faces that can */
    _Alignas(16) char request[];
} settings;

/* What is the same for all learners. */
static const char on_workers[] =
    "With --workers or --store, worker processes that communicate only through a store do the work, and the result has "
    "the same bits. Any of them may die or leave at any moment, the others continue, and more may join (shoal worker). "
    "shoal job shows, stops, resumes and removes jobs. A signal ends the workers that were started here; nothing is "
    "written, a sentence says how to resume the job, and the exit code is 3.";
static const char on_ranks[] =
    "Started by mpirun or srun, all ranks run it together, each on its own part of the rows, and the result has the "
    "same bits; rank 0 alone prints and writes. With --checkpoint, the same command with --resume continues after a "
    "crash, with any number of ranks or threads.";

static const shoal_option describe_rows[] = {
    {"describe", 0, SHOAL_OPTION_FLAG, offsetof(settings, describe),
     .help =
         "print what the options make of the rows of DATA, such as the layers of a net, and run nothing; --shape is "
         "enough, without DATA"},
    {0},
};
static const shoal_option *const describe_options = describe_rows;

/* Without DATA, as options alone have it. */
static int describe_options_alone(const shoal_request *request)
{
    char *text = NULL;
    int status = request->face->check ? request->face->check(request->config, &request->inputs) : SHOAL_OK;
    if (status == SHOAL_OK)
        status = request->face->describe(&text, request->config, &(learn_rows){0});
    if (status == SHOAL_OK)
        fputs(text, stdout);
    base_free(&text);
    return status;
}

/* Ranks all read the rows, and the first one prints. */
static int describe_run(const shoal_request *request)
{
    shoal_outcome *outcome = NULL;
    char *text = NULL;
    int status = run_check(request);
    if (status == SHOAL_OK)
        status = run_prepare(&outcome, request);
    if (status == SHOAL_OK) {
        const learn_rows rows = run_rows_of(outcome);
        status = request->face->describe(&text, outcome->config, &rows);
    }
    if (status == SHOAL_OK && run_is_first())
        fputs(text, stdout);
    base_free(&text);
    shoal_outcome_free(&outcome);
    return status;
}

/* What --kernel and --device choose among. */
static int list_kernels(void)
{
    const kernel_set *sets[8];
    kernel_device *device = NULL;
    int count = kernel_list(sets);
    for (int i = 0; i < count; i++)
        printf("--kernel %-9s  %s\n", sets[i]->name, i + 1 == count ? "what auto chooses" : "");
    printf("--device %-9s  %s\n", "cpu", "the kernels above");
    if (kernel_device_choose(&device, "cuda") == SHOAL_OK)
        printf("--device %-9s  %s\n", device->name, device->about);
    else
        printf("--device %-9s  not here: %s\n", "cuda", shoal_error());
    return SHOAL_OK;
}

static bool asks_for_list(const shoal_request *request)
{
    return request->place.kernel && strcmp(request->place.kernel, "list") == 0;
}

static bool needs_no_data(const void *from_main)
{
    const settings *settings = from_main;
    return settings->describe || asks_for_list((const shoal_request *)(const void *)settings->request);
}

static int run_learner(void *from_main, const char *const *word, int words)
{
    settings *settings = from_main;
    shoal_request *request = (shoal_request *)settings->request;
    const learn_face *face = settings->common.verb->face;
    shoal_outcome *outcome = NULL;
    cli_watch watch;
    if (asks_for_list(request))
        return list_kernels();
    cli_watch_start(&watch, settings->print.quiet);
    watch.progress.face = face;
    request->face = face;
    request->algorithm = face->algorithm;
    request->data = words > 0 ? word[0] : NULL;
    request->json = settings->print.json;
    request->watch = cli_watcher(&watch);
    if (settings->describe) {
        int described = words > 0 ? describe_run(request) : describe_options_alone(request);
        cli_progress_clear(&watch.progress);
        return described;
    }
    int status = run_request(&outcome, request);
    cli_progress_clear(&watch.progress);
    status = cli_outcome_tell(outcome, &settings->print, status);
    shoal_outcome_free(&outcome);
    return status;
}

/* ---- making verbs ------------------------------------------------------------------------------------------------ */

enum { FACES_MOST = 32, PARAGRAPHS_MOST = 12 };

/* A verb and what it points to. */
typedef struct made_verb {
    cli_verb verb;
    base_option_group groups[RUN_GROUPS_MOST + 4];
    const char *description[PARAGRAPHS_MOST + 3];
} made_verb;

static void make_learner_verb(made_verb *out, const learn_face *face)
{
    int groups = run_request_groups(out->groups, face, offsetof(settings, request)), paragraphs = 0;
    if (face->describe)
        out->groups[groups++] = (base_option_group){"Describing", &describe_options, 0};
    out->groups[groups++] = (base_option_group){"Printing", &cli_print_options, offsetof(settings, print)};
    out->groups[groups] = (base_option_group){"Help", &cli_common_options, offsetof(settings, common)};
    while (face->description[paragraphs] && paragraphs < PARAGRAPHS_MOST) {
        out->description[paragraphs] = face->description[paragraphs];
        paragraphs++;
    }
    out->description[paragraphs++] = on_workers;
    out->description[paragraphs] = on_ranks;
    out->verb = (cli_verb){.name = face->algorithm->name,
                           .summary = face->summary,
                           .word = {"DATA"},
                           .words_least = 1,
                           .stands_alone = needs_no_data,
                           .synopsis = face->synopsis,
                           .description = out->description,
                           .examples = face->examples,
                           .options = out->groups,
                           .settings_size = sizeof(settings) + run_request_size(face),
                           .of_ranks = true,
                           .face = face,
                           .run = run_learner};
}

const cli_verb *cli_learner_verb(const learn_face *face)
{
    static made_verb verbs[FACES_MOST];
    int at = 0;
    while (learn_faces[at] != face)
        at++;
    if (!face->summary || at >= FACES_MOST)
        return NULL;
    if (!verbs[at].verb.name)
        make_learner_verb(&verbs[at], face);
    return &verbs[at].verb;
}
