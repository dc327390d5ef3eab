/* shoal sweep plot: pictures of a sweep (sweep/picture.h). */
#include "cli.h"

#include "base/memory.h"
#include "plan/units.h"
#include "sweep/picture.h"
#include "sweep_map.h"
#include "sweep_verb.h"

typedef struct settings {
    cli_common common;
    run_jobs_settings jobs;
    int kind;
    const char *x, *y, *price, *machines, *prices, *start;
    bool spot, json;
    int64_t most, work;
} settings;

enum { KIND_PROGRESS, KIND_TIME, KIND_MONEY, KIND_PARALLEL, KIND_CONTOUR, KIND_CURVES, KIND_MAP };
static const char *const kinds[] = {"progress", "time", "money", "parallel", "contour", "curves", "map", NULL};

static const shoal_option plot_rows[] = {
    {"kind", 0, SHOAL_OPTION_CHOICE, offsetof(settings, kind), "KIND",
     .help = "the best value so far by trials (progress), by time or by money; a line for each trial through all "
             "parameters (parallel); where good trials are in two of them (contour); learning curves; or cost against "
             "time on machines that can be rented (map)",
     .fallback = "progress", .choices = kinds},
    {"x", 0, SHOAL_OPTION_TEXT, offsetof(settings, x), "NAME",
     .help = "contour: parameter of the x axis (default: the first that varies)"},
    {"y", 0, SHOAL_OPTION_TEXT, offsetof(settings, y), "NAME",
     .help = "contour: parameter of the y axis (default: the next that varies)"},
    {"price", 0, SHOAL_OPTION_TEXT, offsetof(settings, price), "MONEY",
     .help = "money: what an hour of one worker costs (default: as the sweep was told)"},
    {0},
};
static const shoal_option map_rows[] = {
    {"machines", 'M', SHOAL_OPTION_TEXT, offsetof(settings, machines), "PATTERN",
     .help = "machines to compare, such as 'aws:us-east-1/c7i.*'", .default_text = "all of the table"},
    {"prices", 0, SHOAL_OPTION_TEXT, offsetof(settings, prices), "FILE.csv",
     .help = "price table that --machines chooses from (default: a small one in this program)"},
    {"spot", 0, SHOAL_OPTION_FLAG, offsetof(settings, spot), NULL, .help = "use spot prices"},
    {"most", 0, SHOAL_OPTION_COUNT, offsetof(settings, most), "N", .help = "up to N machines", .fallback = "16",
     .least = 1, .most = 4096},
    {"work", 0, SHOAL_OPTION_COUNT, offsetof(settings, work), "STEPS",
     .help = "for so many steps in all, by trials like those of the sweep", .default_text = "what the sweep did",
     .least = 1, .most = 1e12},
    {"start", 0, SHOAL_OPTION_TEXT, offsetof(settings, start), "TIME", .help = "until a machine works",
     .fallback = "60s"},
    {"json", 0, SHOAL_OPTION_FLAG, offsetof(settings, json), NULL,
     .help = "print the front as lines of JSON instead of a table"},
    {0},
};
static const shoal_option *const plot_options = plot_rows, *const map_options = map_rows;
static const base_option_group groups[] = {
    {"Picture", &plot_options, 0},
    {"Map", &map_options, 0},
    {"Store", &run_jobs_options, offsetof(settings, jobs)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

/* The parameter of an axis: as named, or the first that varies and is not the other. */
static int find_axis(int *out, const sweep_space *space, const char *name, int other)
{
    *out = -1;
    if (name) {
        *out = sweep_space_find(space, name);
        return *out >= 0 ? SHOAL_OK : shoal_fail(SHOAL_USAGE, "the sweep has no parameter \"%s\"", name);
    }
    for (int i = 0; i < space->parameters && *out < 0; i++)
        if (i != other && sweep_values_of(&space->parameter[i]) > 1)
            *out = i;
    return *out >= 0 ? SHOAL_OK : shoal_fail(SHOAL_USAGE, "a picture of two parameters needs two that vary");
}

/* What was reported of every order. */
static int read_curves(sweep_ended **out, sweep_picture *picture, const sweep_place *place)
{
    const sweep_course *course = &picture->log->course;
    int status = base_alloc(out, (size_t)course->orders, sizeof **out, "learning curves");
    for (int64_t i = 0; i < course->orders && status == SHOAL_OK; i++) {
        if (course->order[i].ended)
            status = sweep_place_get_result(&(*out)[i], place, &course->order[i], i);
        picture->orders = i + 1;
    }
    picture->ended = *out;
    return status;
}

/* Pictures of what was reported, and when. */
static int draw_ended(const char *path, const settings *from, sweep_picture *picture)
{
    cli_sweep_map map = {.machines = from->machines,
                         .prices = from->prices,
                         .spot = from->spot,
                         .json = from->json,
                         .most = from->most,
                         .steps = from->work};
    picture->price = picture->log->price;
    int status = from->price ? plan_parse_money(&picture->price, "--price", from->price) : SHOAL_OK;
    if (status < 0)
        return status;
    switch (from->kind) {
    case KIND_TIME: return sweep_picture_time(path, picture);
    case KIND_CURVES: return sweep_picture_curves(path, picture);
    case KIND_MONEY:
        return picture->price > 0 ? sweep_picture_money(path, picture)
                                  : shoal_fail(SHOAL_USAGE, "--kind money needs --price: the sweep was told none");
    default:
        status = plan_parse_pause(&map.start, "--start", from->start);
        return status == SHOAL_OK ? cli_sweep_draw_map(path, picture, &map) : status;
    }
}

static int draw(const char *path, const settings *from, const sweep_log *log, const sweep_spec *spec,
                const sweep_place *place)
{
    sweep_picture picture = {.log = log, .title = place->name, .objective = spec->objective};
    sweep_ended *ended = NULL;
    int status = SHOAL_OK;
    switch (from->kind) {
    case KIND_PROGRESS: return sweep_picture_progress(path, &picture);
    case KIND_PARALLEL: return sweep_picture_parallel(path, &picture);
    case KIND_CONTOUR:
        picture.y = from->y ? sweep_space_find(spec->space, from->y) : -1;
        status = find_axis(&picture.x, spec->space, from->x, picture.y);
        if (status == SHOAL_OK)
            status = find_axis(&picture.y, spec->space, from->y, picture.x);
        return status == SHOAL_OK ? sweep_picture_contour(path, &picture) : status;
    }
    status = read_curves(&ended, &picture, place);
    if (status == SHOAL_OK)
        status = draw_ended(path, from, &picture);
    for (int64_t i = 0; i < picture.orders; i++)
        base_free(&ended[i].curve);
    base_free(&ended);
    return status;
}

static int run_plot(void *from_main, const char *const *word, int words)
{
    const settings *from = from_main;
    cli_sweep_place at = {0};
    sweep_spec *spec = NULL;
    sweep_log log;
    (void)words;
    if (!base_text_ends(word[1], ".svg") && !base_text_ends(word[1], ".png"))
        return shoal_fail(SHOAL_USAGE, "%s: must end in .svg or .png", word[1]);
    int status = cli_sweep_place_open(&at, &from->jobs, word[0], RUN_JOBS_READ);
    if (status == SHOAL_OK)
        status = sweep_place_spec(&spec, &at.place);
    if (status == SHOAL_OK) {
        sweep_log_init(&log, &spec->rules, spec->maximise, spec->ahead);
        status = sweep_place_pull(&log, &at.place, false);
        if (status == SHOAL_OK)
            status = draw(word[1], from, &log, spec, &at.place);
        sweep_log_release(&log);
    }
    sweep_spec_free(&spec);
    cli_sweep_place_close(&at);
    return status;
}

static const char *const description[] = {
    "Draws the trials of a sweep, as SVG or PNG by the ending of the file. Ranges that are searched along the "
    "logarithm are drawn along it.",
    NULL,
};
static const learn_example examples[] = {
    {"shoal sweep plot digits best.svg", "the value of each trial, and the best so far"},
    {"shoal sweep plot digits where.png --kind contour --x rate --y batch", "where good trials are"},
    {"shoal sweep plot digits map.svg --kind map --machines 'aws:*/c7i.*' --spot --work 1000",
     "money against time for 1,000 steps of such trials, with the Pareto front"},
    {NULL, NULL},
};
const cli_verb cli_sweep_plot = {
    .name = "sweep plot",
    .summary = "draw the trials of a sweep",
    .word = {"NAME", "FILE"},
    .words_least = 2,
    .synopsis = "[options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .run = run_plot,
};
