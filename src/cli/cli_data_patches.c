/* shoal data patches: random squares of images as rows, whitened where wanted. */
#include "cli.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/pool.h"
#include "data/image_list.h"
#include "data/patches.h"
#include "data/whitening.h"

typedef struct cutting {
    int64_t size, count, seed, threads;
    bool colour, grey, skip_broken;
    int type;
} cutting;

typedef struct preparing {
    bool centre, normalise, whiten, whiten_pca;
    const char *epsilon, *range, *save, *use;
} preparing;

typedef struct settings {
    cli_common common;
    cutting cutting;
    preparing preparing;
    cli_print_settings print;
} settings;

static const char *const type_names[] = {"float32", "float64", NULL};

static const shoal_option cutting_rows[] = {
    {"size", 's', SHOAL_OPTION_COUNT, offsetof(cutting, size), "N", .help = "pixels of a side of a patch",
     .fallback = "8", .least = 1, .most = 4096},
    {"count", 'n', SHOAL_OPTION_COUNT, offsetof(cutting, count), "N", .help = "how many patches to cut",
     .fallback = "10000", .least = 1},
    {"seed", 0, SHOAL_OPTION_COUNT, offsetof(cutting, seed), "N",
     .help = "where random numbers start; the same seed and images give the same file", .fallback = "0"},
    {"grey", 0, SHOAL_OPTION_FLAG, offsetof(cutting, grey), NULL, .help = "one value a pixel, its grey: the default"},
    {"colour", 0, SHOAL_OPTION_FLAG, offsetof(cutting, colour), NULL,
     .help = "three values a pixel: red, green and blue"},
    {"type", 0, SHOAL_OPTION_CHOICE, offsetof(cutting, type), "TYPE", .help = "type of the values: float32 or float64",
     .fallback = "float32", .choices = type_names},
    {"skip-broken", 0, SHOAL_OPTION_FLAG, offsetof(cutting, skip_broken), NULL,
     .help = "leave out files that can't be read, and say which, instead of failing"},
    {"threads", 't', SHOAL_OPTION_COUNT, offsetof(cutting, threads), "N",
     .help = "threads to decode with; all cores this process may use when left out; never changes the result",
     .least = 1, .most = SHOAL_THREADS_MOST},
    {0},
};
static const shoal_option preparing_rows[] = {
    {"normalise", 0, SHOAL_OPTION_FLAG, offsetof(preparing, normalise), NULL,
     .help = "short for --centre --range 0.1:0.9, which an autoencoder with logistic units needs"},
    {"centre", 0, SHOAL_OPTION_FLAG, offsetof(preparing, centre), NULL, .help = "take its own mean from every patch"},
    {"range", 0, SHOAL_OPTION_TEXT, offsetof(preparing, range), "LOW:HIGH",
     .help = "clip all values at three standard deviations and map them to this range, after all else"},
    {"whiten", 0, SHOAL_OPTION_FLAG, offsetof(preparing, whiten), NULL,
     .help = "whiten by ZCA: neighbouring pixels lose what they have in common, and patches still look like patches"},
    {"whiten-pca", 0, SHOAL_OPTION_FLAG, offsetof(preparing, whiten_pca), NULL,
     .help = "whiten, and leave the columns as principal components, the strongest first"},
    {"epsilon", 0, SHOAL_OPTION_TEXT, offsetof(preparing, epsilon), "E",
     .help = "added to the variances when whitening, so that faint noise is not made strong; 0.1 when left out"},
    {"save-whitening", 0, SHOAL_OPTION_TEXT, offsetof(preparing, save), "FILE.safetensors",
     .help = "write the mean and the matrix of the whitening, and all that --use-whitening needs"},
    {"use-whitening", 0, SHOAL_OPTION_TEXT, offsetof(preparing, use), "FILE.safetensors",
     .help = "do to the patches just what was done to those that the file was saved with"},
    {0},
};
static const shoal_option *const cutting_options = cutting_rows, *const preparing_options = preparing_rows;

static const base_option_group groups[] = {
    {"Cutting", &cutting_options, offsetof(settings, cutting)},
    {"Preparing", &preparing_options, offsetof(settings, preparing)},
    {"Printing", &cli_print_options, offsetof(settings, print)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

/* One run of the verb. */
typedef struct run {
    const settings *settings;
    const char *out;
    data_patch_options options;
    data_whitening how;
    data_image_list images;
    data_buffer rows;
    data_patch_report report;
    base_pool *pool;
    cli_progress progress;
    double started;
} run;

/* ---- what was asked for ------------------------------------------------------------------------------------------ */

/* The option is a text so that one that would do nothing can be told from one that was left out. */
static int parse_epsilon(double *out, const preparing *wanted)
{
    *out = 0.1;
    if (!wanted->epsilon)
        return SHOAL_OK;
    if (!wanted->whiten && !wanted->whiten_pca)
        return shoal_fail(SHOAL_USAGE, "--epsilon: nothing is whitened by it without --whiten or --whiten-pca");
    if (base_parse_real(out, wanted->epsilon) && isfinite(*out) && *out >= 0)
        return SHOAL_OK;
    return shoal_fail(SHOAL_USAGE, "--epsilon: '%s' is not a number of 0 or more", wanted->epsilon);
}

static int read_preparation(run *run, const preparing *wanted)
{
    data_whitening *how = &run->how;
    if (wanted->whiten && wanted->whiten_pca)
        return shoal_fail(SHOAL_USAGE, "--whiten and --whiten-pca: only one of them");
    how->whiten = wanted->whiten ? DATA_WHITEN_ZCA : wanted->whiten_pca ? DATA_WHITEN_PCA : DATA_WHITEN_NOT;
    if (wanted->use &&
        (how->whiten || wanted->centre || wanted->normalise || wanted->range || wanted->save || wanted->epsilon))
        return shoal_fail(SHOAL_USAGE,
                          "--use-whitening says all that is done to the patches: leave out --whiten, --whiten-pca, "
                          "--epsilon, --centre, --normalise, --range and --save-whitening");
    if (wanted->use)
        return data_whitening_load(how, wanted->use);
    if (wanted->save && !how->whiten)
        return shoal_fail(SHOAL_USAGE, "--save-whitening: nothing is whitened without --whiten or --whiten-pca");
    if (wanted->normalise && wanted->range)
        return shoal_fail(SHOAL_USAGE,
                          "--normalise and --range: --normalise means 0.1:0.9; for another range say --centre --range");
    how->centre = wanted->centre || wanted->normalise;
    how->range = wanted->range || wanted->normalise;
    how->low = 0.1;
    how->high = 0.9;
    if (wanted->range && !base_parse_range(&how->low, &how->high, wanted->range))
        return shoal_fail(SHOAL_USAGE, "--range: '%s' is no range LOW:HIGH, such as 0.1:0.9", wanted->range);
    return parse_epsilon(&how->epsilon, wanted);
}

static int check_shape(run *run)
{
    const int64_t size = run->options.size, channels = run->options.colour ? 3 : 1;
    data_whitening *how = &run->how;
    if (run->settings->preparing.use && (how->size != size || how->channels != channels))
        return shoal_fail(SHOAL_USAGE,
                          "%s is for %s patches of %" PRId64 " x %" PRId64 ": say --size %" PRId64 " and --%s",
                          run->settings->preparing.use, how->channels == 3 ? "coloured" : "grey", how->size, how->size,
                          how->size, how->channels == 3 ? "colour" : "grey");
    how->size = size;
    how->channels = channels;
    if (how->whiten && data_patch_columns(&run->options) > DATA_WHITEN_COLUMNS_MOST)
        return shoal_fail(SHOAL_USAGE, "--whiten: patches of %" PRId64 " values are too long: %d are possible",
                          data_patch_columns(&run->options), DATA_WHITEN_COLUMNS_MOST);
    return SHOAL_OK;
}

/* The last word is written to: it must not be an image that was meant to be read. */
static int check_target(const char *path)
{
    struct stat info;
    size_t length = strlen(path);
    bool special = stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
    if (special || (length > 4 && strcmp(path + length - 4, ".npy") == 0))
        return SHOAL_OK;
    return shoal_fail(SHOAL_USAGE, "%s: the last name is the file to write, and must end with .npy", path);
}

static int check_files(const run *run, const char *const *word, int count)
{
    const preparing *wanted = &run->settings->preparing;
    const run_file outputs[] = {{"OUT", run->out}, {"--save-whitening", wanted->save}, {NULL, NULL}};
    run_file *inputs = NULL;
    int status = base_alloc(&inputs, (size_t)count + 2, sizeof *inputs, "a list of files");
    if (status < 0)
        return status;
    for (int i = 0; i < count; i++)
        inputs[i] = (run_file){"IMAGES", word[i]};
    inputs[count] = (run_file){"--use-whitening", wanted->use};
    status = run_files_check(outputs, inputs, run->settings->print.json);
    base_free(&inputs);
    return status;
}

/* ---- the work ---------------------------------------------------------------------------------------------------- */

static void on_progress(void *context, const char *doing, int64_t done, int64_t files)
{
    run *run = context;
    char text[80];
    if (!run->progress.stream || base_seconds() - run->progress.shown < 0.1)
        return;
    snprintf(text, sizeof text, "%s: %" PRId64 " of %" PRId64 " files", doing, done, files);
    cli_progress_say(&run->progress, text);
}

/* Says which files were left out; the caller hears of that even when it asked for quiet. */
static void tell_broken(const run *run)
{
    for (int64_t i = 0; i < run->report.why_count; i++)
        if (run->report.why[i]) {
            fputs("shoal: left out: ", stderr);
            cli_put_text(stderr, run->report.why[i]);
            fputc('\n', stderr);
        }
}

static int cut_patches(run *run)
{
    int status = data_patches_cut(&run->rows, &run->report, (const char *const *)run->images.paths, run->images.count,
                                  &run->options, run->pool);
    cli_progress_clear(&run->progress);
    if (run->options.skip_broken)
        tell_broken(run);
    else if (status < 0 && run->report.broken)
        return shoal_fail(status, "%s; --skip-broken leaves such files out", shoal_error());
    return status;
}

static int prepare_patches(run *run)
{
    const data_rows rows = {run->rows.bytes, run->options.type, run->options.count, data_patch_columns(&run->options)};
    if (run->how.whiten)
        cli_progress_say(&run->progress, "whitening");
    int status = run->settings->preparing.use ? data_whitening_apply(&run->how, &rows, run->pool)
                                              : data_whitening_learn(&run->how, &rows, run->pool);
    cli_progress_clear(&run->progress);
    return status;
}

static int write_patches(const run *run)
{
    const int64_t shape[] = {run->options.count, data_patch_columns(&run->options)};
    int status = shoal_npy_write(run->out, run->rows.bytes, run->options.type, 2, shape);
    if (status == SHOAL_OK && run->settings->preparing.save)
        status = data_whitening_save(&run->how, run->settings->preparing.save);
    return status;
}

/* ---- what is told ------------------------------------------------------------------------------------------------ */

static int print_patches_json(const run *run)
{
    json_t *object = json_object(), *why = json_array();
    for (int64_t i = 0; i < run->report.why_count; i++)
        if (run->report.why[i] && json_array_append_new(why, base_json_text(run->report.why[i])) < 0)
            break;
    base_json_put(&object, "out", base_json_text(run->out));
    base_json_put(&object, "patches", json_integer(run->options.count));
    base_json_put(&object, "columns", json_integer(data_patch_columns(&run->options)));
    base_json_put(&object, "size", json_integer(run->options.size));
    base_json_put(&object, "channels", json_integer(run->options.colour ? 3 : 1));
    base_json_put(&object, "type", json_string(shoal_type_name(run->options.type)));
    base_json_put(&object, "seed", json_integer((json_int_t)run->options.seed));
    base_json_put(&object, "files", json_integer(run->report.files));
    base_json_put(&object, "images", json_integer(run->report.images));
    base_json_put(&object, "skipped", json_integer(run->report.small));
    base_json_put(&object, "broken", json_integer(run->report.broken));
    base_json_put(&object, "broken_files", why);
    base_json_put(&object, "seconds", base_json_real(base_seconds() - run->started));
    return cli_print_json(object);
}

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

static int print_patches_summary(const run *run)
{
    const run_file outputs[] = {{"OUT", run->out}, {NULL, NULL}};
    FILE *stream = cli_summary_stream(outputs);
    char patches[32], images[32];
    if (run->settings->print.json)
        return print_patches_json(run);
    if (run->settings->print.quiet)
        return SHOAL_OK;
    base_format_count(patches, sizeof patches, run->options.count);
    base_format_count(images, sizeof images, run->report.images);
    fprintf(stream,
            "%s %s patch%s of %" PRId64 " x %" PRId64 " pixels from %s image%s: %" PRId64 " columns of %s, %.2f s\n",
            patches, run->options.colour ? "coloured" : "grey", run->options.count == 1 ? "" : "es", run->options.size,
            run->options.size, images, plural(run->report.images), data_patch_columns(&run->options),
            shoal_type_name(run->options.type), base_seconds() - run->started);
    if (run->report.small)
        fprintf(stream, "%" PRId64 " smaller image%s left out\n", run->report.small, plural(run->report.small));
    if (run->report.broken)
        fprintf(stream, "%" PRId64 " broken file%s left out\n", run->report.broken, plural(run->report.broken));
    return SHOAL_OK;
}

/* ---- the verb ---------------------------------------------------------------------------------------------------- */

static void release_patches(run *run)
{
    data_patch_report_release(&run->report);
    data_buffer_release(&run->rows);
    data_image_list_release(&run->images);
    data_whitening_release(&run->how);
    base_pool_free(&run->pool);
}

static int run_patches(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    const cutting *wanted = &settings->cutting;
    run run = {.settings = settings, .out = word[words - 1], .started = base_seconds()};
    run.options = (data_patch_options){.size = wanted->size,
                                       .count = wanted->count,
                                       .seed = (uint64_t)wanted->seed,
                                       .colour = wanted->colour,
                                       .type = wanted->type == 1 ? SHOAL_FLOAT64 : SHOAL_FLOAT32,
                                       .skip_broken = wanted->skip_broken,
                                       .progress = on_progress,
                                       .context = &run};
    data_buffer_init(&run.rows, run.out, 0);
    cli_progress_start(&run.progress, settings->print.quiet);
    int status = wanted->colour && wanted->grey ? shoal_fail(SHOAL_USAGE, "--grey and --colour: only one of them")
                                                : check_target(run.out);
    if (status == SHOAL_OK)
        status = read_preparation(&run, &settings->preparing);
    if (status == SHOAL_OK)
        status = check_shape(&run);
    if (status == SHOAL_OK)
        status = check_files(&run, word, words - 1);
    for (int i = 0; status == SHOAL_OK && i < words - 1; i++)
        status = data_image_list_add(&run.images, word[i]);
    if (status == SHOAL_OK)
        status = base_pool_new(&run.pool, wanted->threads ? (int)wanted->threads : base_cores());
    if (status == SHOAL_OK)
        status = cut_patches(&run);
    if (status == SHOAL_OK)
        status = prepare_patches(&run);
    if (status == SHOAL_OK)
        status = write_patches(&run);
    if (status == SHOAL_OK)
        status = print_patches_summary(&run);
    release_patches(&run);
    return status;
}

static const char *const description[] = {
    "Cuts random square patches from images and writes them as rows of OUT.npy, ready for shoal autoencoder and shoal "
    "kmeans. IMAGES are PNG and JPEG files, folders of them with all folders below, and .npy arrays: images x height x "
    "width, height x width, or one of these x 3 for colours, of uint8, uint16 or floats.",
    "A patch is drawn from any image with the same chance, whatever its size, and from any place in it with the same "
    "chance. Images with a side shorter than a patch are left out and counted. The same seed, options and images give "
    "the same file on every machine, with any number of threads.",
    "Values are shares of white, from 0 to 1; those of float arrays stay as they are. A row holds the patch line by "
    "line, colours of a pixel together. What is transparent is laid over white; grey is 0.299 red + 0.587 green + "
    "0.114 blue, and a JPEG's own luminance.",
    "Before they are written, patches can lose their own mean (--centre), be whitened (--whiten) and be mapped to a "
    "range (--range), in this order. --whiten takes the mean of all patches from each and makes all directions equally "
    "strong but for --epsilon: with covariance U S U', x becomes U (S + epsilon)^-1/2 U' (x - mean).",
    "A file that can't be read, or only in part, fails the command before anything is written; with --skip-broken "
    "such files are left out and named. In folders only files that end with .png, .jpg or .jpeg are taken. Links to "
    "files are followed there, links to folders are not.",
    NULL,
};
static const learn_example examples[] = {
    {"shoal data patches photos patches.npy --normalise", "10,000 patches of 8 x 8 for a sparse autoencoder"},
    {"shoal data patches photos patches.npy --colour --count 100e3 --whiten --save-whitening w.safetensors",
     "coloured and whitened"},
    {"shoal data patches new.png more.npy --colour --use-whitening w.safetensors", "others, whitened the same way"},
    {NULL, NULL},
};
const cli_verb cli_data_patches = {
    .name = "data patches",
    .summary = "cut random patches from images",
    .word = {"IMAGES...", "OUT.npy"},
    .words_least = 2,
    .synopsis = "[options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .run = run_patches,
};
