/* src/base/option.c and option_help.c: what the command line accepts, and what it says when it does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/option.h"

typedef struct inner {
    int64_t k, bytes, seed;
    double tolerance;
    int empty;
} inner;

typedef struct outer {
    bool quiet, json;
    int64_t threads;
    const char *labels;
    inner inner;
} outer;

static const char *const empties[] = {"farthest", "keep", "split", NULL};

static const shoal_option inner_rows[] = {
    {"clusters", 'k', SHOAL_OPTION_COUNT, offsetof(inner, k), "K", .help = "number of clusters", .least = 1},
    {"memory", 0, SHOAL_OPTION_BYTES, offsetof(inner, bytes), "BYTES", .help = "how much", .most = 0x1p60},
    {"seed", 0, SHOAL_OPTION_COUNT, offsetof(inner, seed), "N", .help = "where draws start", .fallback = "7",
     .most = 9e15},
    {"tolerance", 0, SHOAL_OPTION_REAL, offsetof(inner, tolerance), "T", .help = "stop below", .fallback = "1e-4",
     .most = 1},
    {"empty", 0, SHOAL_OPTION_CHOICE, offsetof(inner, empty), NULL, .help = "empty clusters", .fallback = "keep",
     .choices = empties},
    {0},
};
static const shoal_option outer_rows[] = {
    {"quiet", 'q', SHOAL_OPTION_FLAG, offsetof(outer, quiet), NULL, .help = "print nothing"},
    {"json", 'j', SHOAL_OPTION_FLAG, offsetof(outer, json), NULL, .help = "print JSON"},
    {"threads", 't', SHOAL_OPTION_COUNT, offsetof(outer, threads), "N", .help = "how many", .least = 1,
     .default_text = "all cores"},
    {"labels", 'l', SHOAL_OPTION_TEXT, offsetof(outer, labels), "FILE", .help = "write 'labels' to .\\FILE"},
    {0},
};
static const shoal_option *const inner_options = inner_rows, *const outer_options = outer_rows;

static const base_option_group groups[] = {
    {"Inner", &inner_options, offsetof(outer, inner)},
    {"Outer", &outer_options, 0},
    {0},
};

enum { MOST = 16 };

typedef struct parsed {
    outer settings;
    const char *words[MOST];
    int count, status;
} parsed;

/* Splits at spaces, so no argument of these tests has one; the text stays until the next call. */
static parsed parse(const char *line)
{
    static char copy[512];
    char *argv[MOST], *rest = copy;
    int argc = 0;
    parsed out = {.count = 0};
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word; argc < MOST && (word = strsep(&rest, " ")) != NULL;)
        argv[argc++] = word;
    if (line[0] == '\0')
        argc = 0;
    assert_int_equal(base_options_default(&out.settings, groups), SHOAL_OK);
    out.status = base_options_parse(&out.settings, groups, false, out.words, &out.count, argc, argv);
    return out;
}

static void refuses(const char *line, const char *sentence)
{
    assert_int_equal(parse(line).status, SHOAL_USAGE);
    assert_string_equal(shoal_error(), sentence);
}

static void defaults_are_what_the_user_would_have_typed(void **state)
{
    (void)state;
    parsed out = parse("");
    assert_int_equal(out.status, SHOAL_OK);
    assert_int_equal(out.settings.inner.seed, 7);
    assert_int_equal(out.settings.inner.empty, 1);
    assert_true(out.settings.inner.tolerance == 1e-4);
    assert_int_equal(out.settings.inner.k, 0);
    assert_null(out.settings.labels);
}

static void every_spelling_is_read(void **state)
{
    static const char *const same[] = {"in -k5",          "in -k 5",      "-k=5 in",          "in --clusters 5",
                                       "--clusters=5 in", "-k 9 in -k 5", "--clusters +5 in", "-k 0.5e1 in"};
    (void)state;
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        parsed out = parse(same[i]);
        assert_int_equal(out.status, SHOAL_OK);
        assert_int_equal(out.settings.inner.k, 5);
        assert_int_equal(out.count, 1);
        assert_string_equal(out.words[0], "in");
    }
    parsed out = parse("-qjk5 - -- -k --quiet");
    assert_int_equal(out.status, SHOAL_OK);
    assert_true(out.settings.quiet && out.settings.json);
    assert_int_equal(out.settings.inner.k, 5);
    assert_int_equal(out.count, 3);
    assert_string_equal(out.words[0], "-");
    assert_string_equal(out.words[1], "-k");
    assert_string_equal(out.words[2], "--quiet");
    assert_string_equal(parse("--labels=--json").settings.labels, "--json");
    assert_string_equal(parse("--labels=").settings.labels, "");
    assert_string_equal(parse("-lx=y").settings.labels, "x=y");
}

static void numbers_are_exact_or_refused(void **state)
{
    static const struct {
        const char *text;
        int64_t value;
    } counts[] = {{"1", 1},
                  {"500e3", 500000},
                  {"5E6", 5000000},
                  {"1.5e3", 1500},
                  {"9223372036854775807", INT64_MAX},
                  {"9007199254740993", 9007199254740993},
                  {"-3", -3}},
      sizes[] = {{"4096", 4096}, {"64MB", 64000000}, {"1GiB", 1 << 30}, {"1.5KiB", 1536},     {"2k", 2048},
                 {"3kB", 3000},  {"7 B", 7},         {"1e3", 1000},     {"2T", 2199023255552}};
    static const char *const no_counts[] = {"",     "x",   "1x", "0x10", "inf", "nan",
                                            " 1",   "1 ",  "1e", "-",    "1.5", "1e400",
                                            "1e19", "--1", ".",  "e5",   "1,5", "9223372036854775808"};
    static const char *const no_sizes[] = {"", "MB", "1XB", "1MBB", "1e30", "8388608TiB", "1  B", "0x1K"};
    int64_t value = 0;
    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        assert_true(base_parse_count(&value, counts[i].text));
        assert_true(value == counts[i].value);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_true(base_parse_bytes(&value, sizes[i].text));
        assert_true(value == sizes[i].value);
    }
    for (size_t i = 0; i < sizeof no_counts / sizeof no_counts[0]; i++)
        assert_false(base_parse_count(&value, no_counts[i]));
    for (size_t i = 0; i < sizeof no_sizes / sizeof no_sizes[0]; i++)
        assert_false(base_parse_bytes(&value, no_sizes[i]));
}

static void ranges_are_two_numbers_that_grow(void **state)
{
    static const char *const no_ranges[] = {"",    ":",     "1",     "1:",   ":1",   "1:1",          "2:1", "0:1:2",
                                            "a:1", "nan:1", "0:inf", "0 :1", "0: 1", "-1e308:1e308", "0,1"};
    double low = 0, high = 0;
    (void)state;
    assert_true(base_parse_range(&low, &high, "-0.5:2e3"));
    assert_true(low == -0.5 && high == 2000);
    for (size_t i = 0; i < sizeof no_ranges / sizeof *no_ranges; i++)
        assert_false(base_parse_range(&low, &high, no_ranges[i]));
}

static void errors_name_the_option_as_it_was_called(void **state)
{
    (void)state;
    refuses("-k 0", "-k must be at least 1, not 0");
    refuses("--clusters=-4", "--clusters must be at least 1, not -4");
    refuses("-k x", "-k: 'x' is not a number");
    refuses("-k 1.5", "-k: 1.5 is not a whole number");
    refuses("-k 1e19", "-k: 1e19 is too large");
    refuses("--seed -1", "--seed must be at least 0, not -1");
    refuses("--tolerance 1e-4x", "--tolerance: '1e-4x' is not a number");
    refuses("--tolerance 2", "--tolerance must be at most 1, not 2");
    refuses("--tolerance nan", "--tolerance: 'nan' is not a number");
    refuses("--memory 64MX", "--memory: '64MX' is not a size such as 4096, 64MB or 1.5GiB");
    refuses("--empty fartest", "--empty: 'fartest' is not one of farthest, keep, split; did you mean farthest?");
    refuses("--empty 3", "--empty: '3' is not one of farthest, keep, split");
    refuses("--quiet=yes", "--quiet takes no value");
    refuses("--labels", "--labels needs FILE");
    refuses("-qk", "-k needs K");
    refuses("--labels --json",
            "--labels needs FILE, not the option --json (write --labels=--json if you mean that text)");
    refuses("-x", "unknown option -x");
    refuses("-qx5", "unknown option -x");
    refuses("--clutsers 3", "unknown option --clutsers; did you mean --clusters?");
    refuses("--cluster=3", "unknown option --cluster; did you mean --clusters?");
    refuses("--toler 3", "unknown option --toler; did you mean --tolerance?");
    refuses("--zzzzzzzz", "unknown option --zzzzzzzz");
    refuses("--memory 2e18", "--memory must be at most 1099511627776MiB, not 2e18");
    refuses("--tolerance=", "--tolerance: '' is not a number");
    refuses("--verbose", "unknown option --verbose; progress is shown on a terminal, and a summary at the end, unless "
                         "--quiet is given");
    refuses("--output x", "unknown option --output; each result has an option of its own, such as --labels FILE");
    refuses("---", "unknown option ---");
    refuses("--a\033[31mb", "unknown option --a?[31mb");
}

static void names_of_other_programs_are_understood(void **state)
{
    static const char *const clusters[] = {"--k 5", "--n-clusters=5", "--n_clusters 5", "--num-clusters 5"};
    (void)state;
    for (size_t i = 0; i < sizeof clusters / sizeof *clusters; i++)
        assert_int_equal(parse(clusters[i]).settings.inner.k, 5);
    assert_true(parse("--tol 0.5").settings.inner.tolerance == 0.5);
    assert_int_equal(parse("--random-state 3").settings.inner.seed, 3);
    assert_int_equal(parse("--n-jobs 3").settings.threads, 3);
    assert_int_equal(parse("--threads 3 --n-jobs -1").settings.threads, 0); /* all cores, as in scikit-learn */
    refuses("--threads -1", "--threads must be at least 1, not -1");
    refuses("--n-jobs 0", "--n-jobs must be at least 1, not 0");
    refuses("--n-cluster 3", "unknown option --n-cluster; did you mean --clusters?");
    refuses("--usecols 3", "unknown option --usecols"); /* --columns is not an option here */
    refuses("--labels --tol", "--labels needs FILE, not the option --tol (write --labels=--tol if you mean that text)");
    outer settings = {0};
    assert_int_equal(base_options_set(&settings, groups, "n_clusters", "7"), SHOAL_OK);
    assert_int_equal(settings.inner.k, 7);
    assert_int_equal(base_options_set(&settings, groups, "random_state", NULL), SHOAL_OK);
    assert_int_equal(settings.inner.seed, 7); /* its default */
}

static void very_long_names_are_cut(void **state)
{
    char line[300] = "--";
    (void)state;
    memset(line + 2, 'x', 290);
    assert_int_equal(parse(line).status, SHOAL_USAGE);
    assert_true(strlen(shoal_error()) < 100);
}

static void one_option_can_be_set_by_name(void **state)
{
    outer settings = {0};
    inner deep = {0};
    (void)state;
    assert_int_equal(shoal_options_set(&deep, inner_rows, "clusters", "500e3"), SHOAL_OK);
    assert_int_equal(deep.k, 500000);
    assert_int_equal(shoal_options_set(&settings, outer_rows, "quiet", "true"), SHOAL_OK);
    assert_true(settings.quiet);
    assert_int_equal(shoal_options_set(&settings, outer_rows, "quiet", "no"), SHOAL_OK);
    assert_false(settings.quiet);
    assert_int_equal(shoal_options_set(&settings, outer_rows, "quiet", "maybe"), SHOAL_USAGE);
    assert_int_equal(shoal_options_set(&deep, inner_rows, "clusters", "0"), SHOAL_USAGE);
    assert_string_equal(shoal_error(), "--clusters must be at least 1, not 0");
    assert_int_equal(deep.k, 500000); /* a refused value leaves the old one */
    assert_int_equal(shoal_options_set(&deep, inner_rows, "seeds", "0"), SHOAL_USAGE);
    assert_string_equal(shoal_error(), "unknown option --seeds; did you mean --seed?");
}

static void nearest_names_are_near(void **state)
{
    static const char *const names[] = {"kmeans", "predict", "data info"};
    (void)state;
    assert_string_equal(base_nearest("kmean", names, 3), "kmeans");
    assert_string_equal(base_nearest("kmaens", names, 3), "kmeans");
    assert_string_equal(base_nearest("data", names, 3), "data info");
    assert_null(base_nearest("frobnicate", names, 3));
    assert_null(base_nearest("", names, 3));
}

/* ---- help -------------------------------------------------------------------------------------------------------- */

typedef void render(FILE *stream);

static char *rendered(render *write)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    write(stream);
    fclose(stream);
    return text;
}

static void render_help(FILE *stream)
{
    base_options_help(stream, groups, 60);
}

static void render_manual(FILE *stream)
{
    base_options_manual(stream, groups);
}

static void help_is_aligned_and_wrapped(void **state)
{
    (void)state;
    char *text = rendered(render_help);
    assert_non_null(strstr(text, "\nInner:\n  -k, --clusters K "));
    assert_non_null(strstr(text, "stop below (default: 1e-4)\n"));
    assert_non_null(strstr(text, "how many (default: all cores)\n"));
    assert_non_null(strstr(text, "      --empty farthest|keep|split"));
    size_t column = 0;
    for (char *line = text, *next; *line; line = next) {
        next = strchr(line, '\n') + 1;
        assert_true(next - line - 1 <= 60);
        char *help = strstr(line, "print JSON");
        if (help && help < next)
            column = (size_t)(help - line);
    }
    char *other = strstr(text, "print nothing");
    assert_int_equal(column, other - (char *)memrchr(text, '\n', (size_t)(other - text)) - 1);
    free(text);
}

static void render_long_text(FILE *stream)
{
    base_wrap(stream, "one two  three \xc3\xa4\xc3\xb6\xc3\xbc four averyveryverylongword five", 3, 2, 14);
}

static void text_breaks_at_spaces_only(void **state)
{
    (void)state;
    char *text = rendered(render_long_text);
    assert_string_equal(text, "one two\n  three \xc3\xa4\xc3\xb6\xc3\xbc\n  four\n  averyveryverylongword\n  five\n");
    free(text);
}

static void render_difficult_text(FILE *stream)
{
    base_roff(stream, ".TH \\x\n'a' `~^ k-means \xc3\x97");
}

static void roff_shows_text_as_it_is(void **state)
{
    (void)state;
    char *text = rendered(render_difficult_text);
    assert_string_equal(text, "\\&.TH \\ex\n\\&\\(aqa\\(aq \\(ga\\(ti\\(ha k\\-means \\[u00D7]");
    free(text);
    text = rendered(render_manual);
    assert_non_null(
        strstr(text, ".SS Inner\n.TP\n\\fB\\-k\\fR, \\fB\\-\\-clusters\\fR \\fIK\\fR\nnumber of clusters.\n"));
    assert_non_null(strstr(text, "\\fB\\-\\-empty\\fR \\fIfarthest|keep|split\\fR\nempty clusters (default: keep).\n"));
    assert_non_null(strstr(text, "write \\(aqlabels\\(aq to .\\eFILE.\n"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_what_the_user_would_have_typed),
        cmocka_unit_test(every_spelling_is_read),
        cmocka_unit_test(numbers_are_exact_or_refused),
        cmocka_unit_test(ranges_are_two_numbers_that_grow),
        cmocka_unit_test(errors_name_the_option_as_it_was_called),
        cmocka_unit_test(names_of_other_programs_are_understood),
        cmocka_unit_test(very_long_names_are_cut),
        cmocka_unit_test(one_option_can_be_set_by_name),
        cmocka_unit_test(nearest_names_are_near),
        cmocka_unit_test(help_is_aligned_and_wrapped),
        cmocka_unit_test(text_breaks_at_spaces_only),
        cmocka_unit_test(roff_shows_text_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
