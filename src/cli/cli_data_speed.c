/* shoal data speed: how fast images are read, and what that depends on.  run/speed/speed.h measures; this prints. */
#include "cli.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "learn/pack/pack_internal.h"
#include "run/speed/speed.h"

typedef struct settings {
    cli_common common;
    base_option_counts batch_sizes, batches;
    int64_t repeat, threads, seed;
    const char *size, *csv, *picture;
    int cached;
    bool cold, skip_broken, force;
    cli_print_settings print;
} settings;

enum { CACHED_YES, CACHED_NO, COUNT_MOST = 1000000 };
static const char *const cached_choices[] = {"yes", "no", NULL};

static const shoal_option run_rows[] = {
    {"batch-sizes", 0, SHOAL_OPTION_COUNTS, offsetof(settings, batch_sizes), "LIST",
     .help = "numbers of images in a batch: 5,10,20 or 5..40..5", .least = 1, .most = COUNT_MOST,
     .default_text = "5,10,20,40"},
    {"batches", 0, SHOAL_OPTION_COUNTS, offsetof(settings, batches), "LIST", .help = "numbers of batches in a run",
     .least = 1, .most = COUNT_MOST, .default_text = "5,10,20,30"},
    {"repeat", 0, SHOAL_OPTION_COUNT, offsetof(settings, repeat), "N",
     .help = "runs of each batch size and number of batches", .fallback = "3", .least = 1, .most = 1000},
    {"size", 0, SHOAL_OPTION_TEXT, offsetof(settings, size), "HxW",
     .help = "height and width of an image in a batch; images of another size are brought to it as data pack does",
     .fallback = "192x192"},
    {"cold", 0, SHOAL_OPTION_FLAG, offsetof(settings, cold),
     .help = "drop the files from memory before each run, and tell how much of them stayed there"},
    {"cached", 0, SHOAL_OPTION_CHOICE, offsetof(settings, cached), "yes|no",
     .help = "whether all regressions share the same runs; no: make the runs again for each of the five, and tell what "
             "that takes",
     .fallback = "yes", .choices = cached_choices},
    {"threads", 't', SHOAL_OPTION_COUNT, offsetof(settings, threads), "N",
     .help = "threads that read and decode the images of a batch", .fallback = "1", .least = 1,
     .most = SHOAL_THREADS_MOST},
    {"seed", 0, SHOAL_OPTION_COUNT, offsetof(settings, seed), "N",
     .help = "where random numbers start: the order of the runs, and where in the source each begins", .fallback = "0"},
    {"skip-broken", 0, SHOAL_OPTION_FLAG, offsetof(settings, skip_broken),
     .help = "pass over images and records that can't be read instead of ending with the first one"},
    {0},
};
static const shoal_option *const run_options = run_rows;

static const shoal_option output_rows[] = {
    {"csv", 0, SHOAL_OPTION_TEXT, offsetof(settings, csv), "FILE",
     .help = "write a row for each run (.csv); '-' is standard output"},
    {"picture", 0, SHOAL_OPTION_TEXT, offsetof(settings, picture), "FILE",
     .help = "draw images a second by each factor, and what processor and files did meanwhile (.svg or .png)"},
    {"force", 0, SHOAL_OPTION_FLAG, offsetof(settings, force),
     .help = "replace the files of --csv and --picture whatever they hold"},
    {0},
};
static const shoal_option *const output_options = output_rows;

static const base_option_group groups[] = {
    {"Runs", &run_options, 0},
    {"Output", &output_options, 0},
    {"Printing", &cli_print_options, offsetof(settings, print)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

/* ---- for people -------------------------------------------------------------------------------------------------- */

/* "0.28", or "-" for what could not be found. */
static const char *show(char out[32], double value, const char *format)
{
    if (!isfinite(value))
        return "-";
    snprintf(out, 32, format, value);
    return out;
}

static const char *show_range(char out[72], const base_estimate *of, const char *format)
{
    char low[32], high[32];
    if (!isfinite(of->low))
        return "";
    snprintf(out, 72, "[%s, %s]", show(low, of->low, format), show(high, of->high, format));
    return out;
}

static const char *name_of_kind(speed_kind kind)
{
    return kind == SPEED_IMAGES ? "images" : "TFRecord";
}

static double slowest(const speed_outcome *outcome)
{
    double least = INFINITY;
    for (int i = 0; i < outcome->sources; i++)
        least = fmin(least, outcome->source[i].found.median);
    return least;
}

/* The share that was in memory before the cold runs of a source, on average; NAN when it is not known of all. */
static double mean_resident(const speed_outcome *outcome, int source)
{
    double sum = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < outcome->runs; i++)
        if (outcome->run[i].source == source) {
            sum += outcome->run[i].resident;
            count++;
        }
    return sum / (double)count;
}

static void print_sources(FILE *stream, const speed_outcome *outcome, bool cold)
{
    const int64_t each = outcome->runs / outcome->sources;
    fprintf(stream, "%-8s %9s %9s %10s %10s %8s %10s%s  source\n", "kind", "files", "size", "images/s", "median",
            "ratio", "ms of CPU", cold ? "  in memory" : "");
    for (int i = 0; i < outcome->sources; i++) {
        const speed_about *about = &outcome->source[i];
        char size[32], share[32];
        base_format_bytes(size, sizeof size, (double)about->bytes);
        fprintf(stream, "%-8s %9" PRId64 " %9s %10.1f %10.1f %8.2f %10.3f", name_of_kind(about->kind), about->files,
                size, about->found.mean, about->found.median, about->found.median / slowest(outcome),
                1e3 * about->found.processor);
        if (cold)
            fprintf(stream, " %9s%%", show(share, 100 * mean_resident(outcome, i), "%.1f"));
        fputs("  ", stream);
        cli_put_text(stream, about->name);
        fputc('\n', stream);
    }
    fprintf(stream, "\n%" PRId64 " run%s of each; ratio: of the medians; ms of CPU: an image\n", each,
            base_plural(each));
    if (cold)
        fputs("in memory: what the system kept there, before the runs, of the files that it was asked to drop\n",
              stream);
}

static void print_factors(FILE *stream, const speed_found *found)
{
    char value[32], range[72];
    fprintf(stream, "  %-11s %7s %-16s %10s %-20s %6s %8s %8s\n", "", "corr.", "95%", "images/s", "95%", "R2", "p",
            "of fit");
    for (int i = 0; i < SPEED_FACTORS; i++) {
        const speed_influence *of = &found->factor[i];
        fprintf(stream, "  %-11s %7s", speed_factor_names[i], show(value, of->correlation.value, "%.2f"));
        fprintf(stream, " %-16s", show_range(range, &of->correlation, "%.2f"));
        fprintf(stream, " %10s", show(value, of->line.of[1].value, "%.3g"));
        fprintf(stream, " %-20s", show_range(range, &of->line.of[1], "%.3g"));
        fprintf(stream, " %6s", show(value, of->line.r2, "%.3f"));
        fprintf(stream, " %8s", show(value, of->correlation.p, "%.2g"));
        fprintf(stream, " %8s\n", show(value, of->explained, "%.2f"));
    }
}

static void print_fit(FILE *stream, const char *called, const base_regression *fit)
{
    static const char *const names[] = {"setup", "a batch", "an image"};
    char value[32], range[72];
    fprintf(stream, "  %s:", called);
    for (int i = 0; i < 3; i++) {
        base_estimate in_ms = fit->of[i];
        in_ms.low *= 1e3;
        in_ms.high *= 1e3;
        fprintf(stream, "%s %s %s ms", i > 0 ? "," : "", names[i], show(value, 1e3 * in_ms.value, "%.3g"));
        if (isfinite(in_ms.low))
            fprintf(stream, " %s", show_range(range, &in_ms, "%.3g"));
    }
    fprintf(stream, ", R2 %s\n", show(value, fit->r2, "%.4f"));
}

static void print_fits(FILE *stream, const speed_found *found)
{
    if (!found->fit.known) {
        fputs("  seconds = setup + a batches + b images: needs runs of several batch sizes and numbers of batches\n",
              stream);
        return;
    }
    print_fit(stream, "seconds = setup + a batches + b images", &found->fit);
    print_fit(stream, "of these, the processor's", &found->work);
}

/* How long it takes to make the runs again for each regression. */
static void print_passes(FILE *stream, const speed_outcome *outcome)
{
    double all = 0;
    if (outcome->passes == 1)
        return;
    for (int i = 0; i < outcome->passes; i++)
        all += outcome->pass_seconds[i];
    fprintf(stream,
            "\nnot cached: %.2f s for runs of each of the %d regressions; cached, all share those of the first, "
            "which took %.2f s: %.2f times\n",
            all, outcome->passes, outcome->pass_seconds[0], all / outcome->pass_seconds[0]);
}

static void print_speed(FILE *stream, const speed_outcome *outcome, bool cold)
{
    print_sources(stream, outcome, cold);
    for (int i = 0; i < outcome->sources; i++) {
        const speed_about *about = &outcome->source[i];
        fputc('\n', stream);
        cli_put_text(stream, about->name);
        fputs(": images a second by\n", stream);
        print_factors(stream, &about->found);
        print_fits(stream, &about->found);
        if (about->broken) {
            fprintf(stream, "  passed over %" PRId64 " time%s what can't be read; the first was ", about->skipped,
                    base_plural(about->skipped));
            cli_put_text(stream, about->broken);
            fputc('\n', stream);
        }
    }
    print_passes(stream, outcome);
}

/* ---- for programs ------------------------------------------------------------------------------------------------ */

static json_t *json_estimate(const base_estimate *of)
{
    json_t *object = json_object();
    base_json_put(&object, "value", base_json_real(of->value));
    base_json_put(&object, "low", base_json_real(of->low));
    base_json_put(&object, "high", base_json_real(of->high));
    base_json_put(&object, "p", base_json_real(of->p));
    return object;
}

static json_t *json_factor(const speed_influence *of)
{
    json_t *object = json_object();
    base_json_put(&object, "correlation", json_estimate(&of->correlation));
    base_json_put(&object, "intercept", json_estimate(&of->line.of[0]));
    base_json_put(&object, "slope", json_estimate(&of->line.of[1]));
    base_json_put(&object, "r2", base_json_real(of->line.r2));
    base_json_put(&object, "correlation_of_fit", base_json_real(of->explained));
    return object;
}

static json_t *json_fit(const base_regression *fit)
{
    json_t *object = json_object();
    base_json_put(&object, "setup", json_estimate(&fit->of[0]));
    base_json_put(&object, "batch", json_estimate(&fit->of[1]));
    base_json_put(&object, "image", json_estimate(&fit->of[2]));
    base_json_put(&object, "r2", base_json_real(fit->r2));
    return object;
}

static json_t *json_source(const speed_outcome *outcome, int source, bool cold)
{
    static const char *const names[SPEED_FACTORS] = {"batch_size", "batches", "data_size", "repetition"};
    const speed_about *about = &outcome->source[source];
    json_t *object = json_object(), *factors = json_object();
    base_json_put(&object, "name", base_json_text(about->name));
    base_json_put(&object, "kind", json_string(about->kind == SPEED_IMAGES ? "images" : "tfrecord"));
    base_json_put(&object, "files", json_integer(about->files));
    base_json_put(&object, "bytes", json_integer(about->bytes));
    base_json_put(&object, "mean", base_json_real(about->found.mean));
    base_json_put(&object, "median", base_json_real(about->found.median));
    base_json_put(&object, "processor_seconds", base_json_real(about->found.processor));
    for (int i = 0; i < SPEED_FACTORS; i++)
        base_json_put(&factors, names[i], json_factor(&about->found.factor[i]));
    base_json_put(&object, "factors", factors);
    base_json_put(&object, "fit", json_fit(&about->found.fit));
    base_json_put(&object, "processor_fit", json_fit(&about->found.work));
    base_json_put(&object, "skipped", json_integer(about->skipped));
    if (about->broken)
        base_json_put(&object, "broken", base_json_text(about->broken));
    if (cold)
        base_json_put(&object, "resident", base_json_real(mean_resident(outcome, source)));
    return object;
}

static int print_speed_json(const speed_outcome *outcome, const speed_request *request)
{
    json_t *object = json_object(), *sources = json_array(), *seconds = json_array();
    char size[32];
    snprintf(size, sizeof size, "%dx%d", request->height, request->width);
    for (int i = 0; i < outcome->sources; i++)
        json_array_append_new(sources, json_source(outcome, i, request->cold));
    for (int i = 0; i < outcome->passes; i++)
        json_array_append_new(seconds, base_json_real(outcome->pass_seconds[i]));
    base_json_put(&object, "size", json_string(size));
    base_json_put(&object, "threads", json_integer(request->threads));
    base_json_put(&object, "seed", json_integer((json_int_t)request->seed));
    base_json_put(&object, "cold", json_boolean(request->cold));
    base_json_put(&object, "cached", json_boolean(!request->again));
    base_json_put(&object, "runs", json_integer(outcome->runs));
    base_json_put(&object, "seconds", seconds);
    base_json_put(&object, "sources", sources);
    return cli_print_json(object);
}

/* ---- the verb ---------------------------------------------------------------------------------------------------- */

/* The numbers of an option, or those that it has when nobody gives it. */
static int take_counts(base_counts *out, const base_option_counts *given, const char *called, const char *usual)
{
    char one[32];
    snprintf(one, sizeof one, "%" PRId64, given->one);
    return base_counts_read(out, called, given->several ? given->several : given->one ? one : usual, 1, COUNT_MOST);
}

static int make_request(speed_request *out, const settings *settings, const char *const *word, int words)
{
    data_image_recipe recipe = data_image_recipe_default;
    *out = (speed_request){.words = word,
                           .count = words,
                           .repeat = settings->repeat,
                           .threads = (int)settings->threads,
                           .seed = (uint64_t)settings->seed,
                           .cold = settings->cold,
                           .again = settings->cached == CACHED_NO,
                           .skip_broken = settings->skip_broken};
    int status = take_counts(&out->batch_sizes, &settings->batch_sizes, "batch-sizes", "5,10,20,40");
    if (status == SHOAL_OK)
        status = take_counts(&out->batches, &settings->batches, "batches", "5,10,20,30");
    if (status == SHOAL_OK)
        status = pack_read_size(&recipe.height, &recipe.width, settings->size);
    if (status == SHOAL_OK)
        status = data_image_recipe_check(&recipe);
    out->height = recipe.height;
    out->width = recipe.width;
    return status;
}

static int check_outputs(const settings *settings)
{
    const run_file outputs[] = {{"--csv", settings->csv, {.kind = DATA_CONTENT_ANY}},
                                {"--picture", settings->picture, {.kind = DATA_CONTENT_PICTURE}},
                                {0}},
                   none[] = {{0}};
    int status = run_files_check(outputs, none, settings->print.json);
    if (status == SHOAL_OK)
        status = run_files_check_old(outputs, settings->force);
    return status == SHOAL_OK && settings->csv ? speed_csv_check(settings->csv, settings->force) : status;
}

static int tell_speed(const settings *settings, const speed_outcome *outcome, const speed_request *request)
{
    const run_file outputs[] = {{.name = "--csv", .path = settings->csv}, {0}};
    int status = settings->csv ? speed_csv_write(settings->csv, outcome) : SHOAL_OK;
    if (status == SHOAL_OK && settings->picture)
        status = speed_draw(settings->picture, outcome);
    if (status == SHOAL_OK && settings->print.json)
        status = print_speed_json(outcome, request);
    else if (status == SHOAL_OK && !settings->print.quiet)
        print_speed(cli_summary_stream(outputs), outcome, settings->cold);
    return status;
}

static int run_data_speed(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    speed_request request;
    speed_outcome outcome = {0};
    cli_watch watch;
    cli_watch_start(&watch, settings->print.quiet);
    const shoal_watcher watcher = cli_watcher(&watch);
    int status = make_request(&request, settings, word, words);
    if (status == SHOAL_OK)
        status = check_outputs(settings);
    if (status == SHOAL_OK)
        status = speed_measure(&outcome, &request, &watcher);
    cli_progress_clear(&watch.progress);
    if (status == SHOAL_OK)
        status = tell_speed(settings, &outcome, &request);
    speed_outcome_release(&outcome);
    return status;
}

static const char *const description[] = {
    "Measures how many images a second are read from each SOURCE: a folder of PNG and JPEG files, a folder of TFRecord "
    "shards, or a place in a store, such as az://account/box/packed. Image files that are named one by one are one "
    "source together, and so are TFRecord files.",
    "A run lists the source, and reads some number of batches of some size to pixels: files are read, decoded, resized "
    "and cropped; records are read, their checksums compared, and their images decoded. Runs of each batch size, each "
    "number of batches and each repetition are made in random order, of all sources together. A run begins at a random "
    "image or shard, and after the last one the first follows.",
    "For each source: how images a second go with batch size, number of batches, data size (their product) and "
    "repetition, as correlations and as regressions with 95% intervals; and how long a run takes by seconds = setup + "
    "a batches + b images. The column 'of fit' has the correlations that such times would give by themselves. "
    "docs/images.md has an example.",
    NULL,
};
static const learn_example examples[] = {
    {"shoal data speed flowers packed", "a folder of photographs and the shards that data pack made of it"},
    {"shoal data speed packed --batch-sizes 5..40..5 --batches 5..30..5 --picture speed.svg --csv runs.csv",
     "more runs, drawn and written down"},
    {"shoal data speed flowers packed --cold --threads 8", "from the disk, with eight threads"},
    {"shoal data speed packed az://acct/box/packed", "here and in the cloud"},
    {NULL, NULL},
};
const cli_verb cli_data_speed = {
    .name = "data speed",
    .summary = "measure how fast images are read from files, TFRecords and stores",
    .word = {"SOURCE..."},
    .words_least = 1,
    .synopsis = "[options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .run = run_data_speed,
};
