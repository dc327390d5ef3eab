/* src/learn/module*.c: modules are loaded or refused with a sentence, and run as learners.  They are compiled here.
 * Labels: threads */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <shoal/engine.h>

#include "base/memory.h"
#include "learn/module.h"

static char folder[] = "/tmp/shoal-module-XXXXXX";
static char source[64], object[64];

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(source, sizeof source, "%s/m.c", folder);
    snprintf(object, sizeof object, "%s/m.so", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(source);
    unlink(object);
    return rmdir(folder);
}

static void assert_says(const char *part)
{
    if (!strstr(shoal_error(), part))
        fail_msg("'%s' does not say '%s'", shoal_error(), part);
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

static void compile(const char *text)
{
    char command[256];
    FILE *file = fopen(source, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    snprintf(command, sizeof command, "cc -std=gnu11 -O1 -w -shared -fPIC -Iinclude -o %s %s -lm", object, source);
    assert_int_equal(system(command), 0);
}

static int load(const shoal_algorithm **out)
{
    int file = open(object, O_RDONLY | O_CLOEXEC);
    assert_true(file >= 0);
    int status = learn_module_load(out, file);
    close(file);
    return status;
}

static void assert_refused(const char *part)
{
    const shoal_algorithm *algorithm = NULL;
    assert_int_equal(load(&algorithm), SHOAL_INVALID);
    assert_says(part);
    assert_null(algorithm);
}

#define HEADER "#include <shoal/module.h>\n#include <math.h>\n"
#define MAP(body)                                                                                                      \
    "static void map(double *sum, const double *model, const shoal_rows *rows, const shoal_setting "                   \
    "*setting)\n{\n" body "\n}\n"
#define SUM_COLUMNS                                                                                                    \
    HEADER MAP("for (int64_t i = 0; i < rows->count * rows->columns; i++) sum[i % rows->columns] += rows->values[i];")

static void what_is_no_module_is_refused(void **state)
{
    (void)state;
    FILE *file = fopen(object, "we");
    fputs("#!/bin/sh\n", file);
    fclose(file);
    assert_refused("the module can't be loaded: ");
    assert_null(strstr(shoal_error(), "/proc/"));
    compile("int nothing;\n");
    assert_refused("the module defines no SHOAL_MODULE(...)");
    compile(HEADER "SHOAL_MODULE(.summary = \"empty\");\n");
    assert_refused("neither .map nor .algorithm");
    compile("#include <shoal/module.h>\n"
            "const shoal_module shoal_module_table = {.version = 77, .bytes = sizeof(shoal_module)};\n");
    assert_refused("compiled for version 77 of shoal/module.h, and this program has version 2: compile it again");
    compile(HEADER "static const shoal_algorithm none = {.name = \"none\"};\nSHOAL_MODULE(.algorithm = &none);\n");
    assert_refused("version 0 of shoal_algorithm");
    compile(HEADER "static const shoal_algorithm none = {SHOAL_ALGORITHM_VERSION, 8, .name = \"none\"};\n"
                   "SHOAL_MODULE(.algorithm = &none);\n");
    assert_refused("and 8 bytes; this library");
    compile(HEADER "static const shoal_algorithm none = {SHOAL_ALGORITHM_VERSION, sizeof none, .name = \"none\"};\n"
                   "SHOAL_MODULE(.algorithm = &none);\n");
    assert_refused("'none' lacks one of name, start, check, map and update");
    compile(HEADER "extern void nowhere(void);\nvoid call(void) { nowhere(); }\n");
    assert_refused("undefined symbol: nowhere");
    assert_int_equal(truncate(object, 0), 0);
    assert_refused("no file of 1 byte");
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

enum { ROWS = 1000, COLUMNS = 3 };
static float rows[ROWS][COLUMNS];

static int run_loaded(shoal_result **out, const shoal_algorithm *algorithm, const char *params, int threads)
{
    const learn_module_config config = {.params = params};
    const shoal_run_options options = {.threads = threads, .rows_per_grain = 64};
    shoal_data *data = NULL;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            rows[i][j] = (float)((i - 300) * 0.1 + j * 1e10);
    int status = shoal_data_wrap(&data, rows, ROWS, COLUMNS, SHOAL_FLOAT32);
    if (status == SHOAL_OK)
        status = shoal_run(out, NULL, algorithm, &config, data, NULL, &options);
    shoal_data_free(&data);
    return status;
}

static int run(shoal_result **out, const char *text, const char *params, int threads)
{
    const shoal_algorithm *algorithm = NULL;
    compile(text);
    assert_int_equal(load(&algorithm), SHOAL_OK);
    assert_string_equal(algorithm->name, "module");
    return run_loaded(out, algorithm, params, threads);
}

static const double *values_of(const shoal_result *result, int64_t count)
{
    const shoal_tensor *tensor = shoal_result_tensor(result, "result");
    assert_non_null(tensor);
    assert_int_equal(tensor->type, SHOAL_FLOAT64);
    assert_int_equal(tensor->rank, 1);
    assert_int_equal(tensor->shape[0], count);
    return tensor->values;
}

static void sums_are_the_same_with_any_number_of_threads(void **state)
{
    double first[COLUMNS];
    (void)state;
    for (int threads = 1; threads <= 4; threads++) {
        shoal_result *result = NULL;
        assert_int_equal(run(&result, SUM_COLUMNS "SHOAL_MODULE(.map = map);", NULL, threads), SHOAL_OK);
        const double *sum = values_of(result, COLUMNS);
        for (int j = 0; j < COLUMNS; j++) {
            double about = 0;
            for (int i = 0; i < ROWS; i++)
                about += (double)rows[i][j];
            assert_true(fabs(sum[j] - about) <= 1e-9 * fabs(about));
        }
        if (threads == 1)
            memcpy(first, sum, sizeof first);
        assert_memory_equal(first, sum, sizeof first);
        shoal_result_free(&result);
    }
}

/* A sum for each grain that is lost beside the others unless it is exact, and that needs more digits than usual. */
static void sums_of_grains_are_exact(void **state)
{
    static const char text[] = HEADER MAP(
        "sum[0] = rows->first == 0 ? 1e300 : rows->first == 64 ? -1e300 : 0x1p-1000;") "static int64_t one(const "
                                                                                       "shoal_setting *setting) { "
                                                                                       "return 1; }\n"
                                                                                       "SHOAL_MODULE(.sums = one, "
                                                                                       ".map = map);";
    shoal_result *result = NULL;
    (void)state;
    assert_int_equal(run(&result, text, NULL, 3), SHOAL_OK);
    assert_true(values_of(result, 1)[0] == 14 * 0x1p-1000);
    shoal_result_free(&result);
}

/* Newton's square root of --params' square, a step a round, with a row count that must come out right in each. */
static const char newton[] = HEADER MAP(
    "sum[0] += rows->count; sum[1] += rows->first;") "static int64_t two(const shoal_setting *s) { return 2; }\n"
                                                     "static int64_t one(const shoal_setting *s) { return s->sums == 2 "
                                                     "? 1 : shoal_fail(SHOAL_INVALID, \"no\"); }\n"
                                                     "static int start(double *model, const shoal_setting *s) { const "
                                                     "double *list; model[0] = shoal_param_list(s, \"from\", &list) == "
                                                     "2 ? list[1] : 1; return SHOAL_OK; }\n"
                                                     "static bool update(double *m, const double *sum, int64_t round, "
                                                     "const shoal_setting *s) {\n"
                                                     "    double square = shoal_param(s, \"square\", 2);\n"
                                                     "    m[0] = sum[0] == s->rows ? (m[0] + square / m[0]) / 2 : "
                                                     "NAN;\n"
                                                     "    return round + 1 == shoal_param(s, \"rounds\", 6);\n"
                                                     "}\n"
                                                     "static double objective(const double *m, const double *sum, "
                                                     "const shoal_setting *s) { return m[0]; }\n"
                                                     "SHOAL_MODULE(.summary = \"roots\", .sums = two, .numbers = one, "
                                                     ".start = start, .map = map, .update = update, .objective = "
                                                     "objective);";

static void rounds_go_on_until_update_says_so(void **state)
{
    shoal_result *result = NULL;
    (void)state;
    assert_int_equal(run(&result, newton, "{\"square\": 9, \"rounds\": 8, \"from\": [1, 100, true]}", 2), SHOAL_OK);
    assert_true(values_of(result, 1)[0] == 3);
    assert_true(shoal_result_number(result, "steps") == 8);
    shoal_result_free(&result);
    assert_string_equal(learn_module_summary(), "roots");
    assert_int_equal(run(&result, newton, "{\"rounds\": 1, \"from\": [1, 4]}", 2), SHOAL_OK);
    assert_true(values_of(result, 1)[0] == 2.25);
    assert_true(shoal_result_number(result, "objective") == 4);
    shoal_result_free(&result);
}

static void what_a_module_gets_wrong_has_a_sentence(void **state)
{
    shoal_result *result = NULL;
    (void)state;
    assert_int_equal(run(&result, newton, "{\"square\": 0, \"from\": [0, 0]}", 2), SHOAL_INVALID);
    assert_says("the module's update made number 1 of the model NaN in round 0");
    assert_int_equal(
        run(&result, HEADER MAP("sum[1] = rows->first == 128 ? NAN : 1;") "SHOAL_MODULE(.map = map);", NULL, 2),
        SHOAL_INVALID);
    assert_says("the module's sum 2 of rows 129 to 192 is NaN in round 0");
    assert_int_equal(run(&result, HEADER MAP("sum[0] = 1.7e308;") "SHOAL_MODULE(.map = map);", NULL, 2), SHOAL_INVALID);
    assert_says("the module's sum 1 is too large for float64");
    assert_int_equal(run(&result,
                         HEADER MAP("") "static int64_t refuse(const shoal_setting *s) { return "
                                        "shoal_fail(SHOAL_INVALID, \"%d columns are odd\", (int)s->columns); }\n"
                                        "SHOAL_MODULE(.map = map, .sums = refuse);",
                         NULL, 2),
                     SHOAL_INVALID);
    assert_says("3 columns are odd");
    assert_int_equal(run(&result, SUM_COLUMNS "SHOAL_MODULE(.map = map);", "[1]", 1), SHOAL_USAGE);
    assert_says("--params must be a JSON object");
    assert_int_equal(run(&result, SUM_COLUMNS "SHOAL_MODULE(.map = map);", "{\"a\" 1}", 1), SHOAL_USAGE);
    assert_says("--params: line 1, column 6");
    assert_null(result);
}

static const char whole[] = HEADER
    "typedef struct config { int64_t factor; bool negate; const char *name; } config;\n"
    "static const shoal_option options[] = {{\"factor\", 0, SHOAL_OPTION_COUNT, offsetof(config, factor), \"N\", .help "
    "= \"h\", .fallback = \"1\"}, {\"negate\", 0, SHOAL_OPTION_FLAG, offsetof(config, negate), NULL, .help = \"h\"}, "
    "{\"name\", 0, SHOAL_OPTION_TEXT, offsetof(config, name), \"T\", .help = \"h\"}, {0}};\n"
    "static int start(shoal_round **out, const void *from, const shoal_shape *shape) {\n"
    "    const config *asked = from;\n"
    "    int status = shoal_round_new(out, sizeof(int64_t));\n"
    "    if (status < 0) return status;\n"
    "    *(int64_t *)(*out)->model = asked->negate ? -asked->factor : asked->factor;\n"
    "    (*out)->layout.cells = 1;\n"
    "    (*out)->layout.cell[0] = (shoal_cell){.name = \"rows\", .kind = SHOAL_CELL_SUM, .count = 1};\n"
    "    return SHOAL_OK;\n"
    "}\n"
    "static size_t scratch(const shoal_round *r, const void *p, const shoal_shape *s) { return 0; }\n"
    "static int map(shoal_partial *partial, const shoal_round *round, const void *p, const shoal_grain *grain, const "
    "shoal_scratch *s) {\n"
    "    shoal_partial_values(partial, 0)[0] += grain->rows * *(const int64_t *)round->model; return SHOAL_OK;\n"
    "}\n"
    "static int update(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged, "
    "const shoal_shape *shape, const shoal_crew *crew, bool stop) {\n"
    "    int status = shoal_result_new(result);\n"
    "    if (status == SHOAL_OK) shoal_result_set_whole(*result, \"rows\", shoal_partial_values(merged, 0)[0]);\n"
    "    return status;\n"
    "}\n"
    "static int check(const shoal_algorithm *self, const shoal_round *round, const shoal_shape *s) {\n"
    "    return round->model_bytes == sizeof(int64_t) ? SHOAL_OK : shoal_fail(SHOAL_BROKEN, \"not mine\");\n"
    "}\n"
    "static const shoal_algorithm mine = {.version = SHOAL_ALGORITHM_VERSION, .bytes = sizeof(shoal_algorithm), .check "
    "= check, .name = \"mine\", .options = options, .config_size = sizeof(config), .start = start, .scratch_bytes = "
    "scratch, .map = map, .update = update};\n"
    "SHOAL_MODULE(.algorithm = &mine);\n";

static void a_whole_algorithm_is_handed_through(void **state)
{
    shoal_result *result = NULL;
    (void)state;
    assert_int_equal(run(&result, whole, NULL, 2), SHOAL_OK);
    assert_true(shoal_result_number(result, "rows") == ROWS);
    shoal_result_free(&result);
    assert_int_equal(run(&result, whole, "{\"factor\": 5, \"negate\": true, \"name\": \"x\"}", 2), SHOAL_OK);
    assert_true(shoal_result_number(result, "rows") == -5 * ROWS);
    shoal_result_free(&result);
    assert_int_equal(run(&result, whole, "{\"factr\": 5}", 2), SHOAL_USAGE);
    assert_says("--params: the module has no parameter 'factr'");
    assert_int_equal(run(&result, whole, "{\"factor\": \"many\"}", 2), SHOAL_USAGE);
    assert_int_equal(run(&result, whole, "{\"factor\": [1]}", 2), SHOAL_USAGE);
    assert_says("'factor' must be a number or a text");
}

/* The same bytes are loaded once; other bytes take their place. */
static void the_last_module_counts(void **state)
{
    const shoal_algorithm *first = NULL, *again = NULL;
    shoal_result *result = NULL;
    (void)state;
    compile(newton);
    assert_int_equal(load(&first), SHOAL_OK);
    const char *summary = learn_module_summary();
    assert_int_equal(load(&again), SHOAL_OK);
    assert_ptr_equal(first, again);
    assert_ptr_equal(summary, learn_module_summary());
    assert_int_equal(run(&result, SUM_COLUMNS "SHOAL_MODULE(.map = map);", NULL, 1), SHOAL_OK);
    (void)values_of(result, COLUMNS);
    shoal_result_free(&result);
    assert_null(learn_module_summary());
}

static void a_lack_of_memory_leaves_nothing_behind(void **state)
{
    const shoal_algorithm *algorithm = NULL;
    int status = SHOAL_MEMORY;
    (void)state;
    compile(newton);
    for (int64_t n = 0; status == SHOAL_MEMORY; n++) {
        shoal_result *result = NULL;
        base_memory_fail_after(n);
        status = load(&algorithm);
        if (status == SHOAL_OK)
            status = run_loaded(&result, algorithm, "{\"rounds\": 2, \"from\": [1, 2]}", 1);
        base_memory_fail_after(-1);
        shoal_result_free(&result);
        assert_true(n < 1000);
    }
    assert_int_equal(status, SHOAL_OK);
}

static void nothing_runs_before_a_module_is_loaded(void **state)
{
    shoal_result *result = NULL;
    (void)state;
    assert_int_equal(run_loaded(&result, &learn_module, NULL, 1), SHOAL_USAGE);
    assert_says("no module has been loaded");
}

/* Models come from the store: one that does not agree with what its partials hold would be written beyond them. */
static void a_model_that_does_not_fit_its_partials_is_refused(void **state)
{
    const shoal_shape shape = {.rows = ROWS, .columns = 2, .type = SHOAL_FLOAT64, .rows_per_grain = ROWS, .grains = 1};
    const learn_module_config config = {0};
    const shoal_algorithm *algorithm = NULL;
    (void)state;
    compile(SUM_COLUMNS "SHOAL_MODULE(.map = map);");
    assert_int_equal(load(&algorithm), SHOAL_OK);
    for (int wrong = 0; wrong < 4; wrong++) {
        shoal_round *round = NULL;
        assert_int_equal(algorithm->start(&round, &config, &shape), SHOAL_OK);
        switch (wrong) {
        case 0: round->layout.cell[1].count = 1; break;
        case 1: round->layout.cell[0].kind = SHOAL_CELL_RECORD; break;
        case 2: round->layout.cell[0].count--; break;
        default: round->layout.cells = 1; break;
        }
        assert_int_equal(algorithm->check(algorithm, round, &shape), SHOAL_BROKEN);
        assert_says("not that of a module");
        shoal_round_free(&round);
    }
}

/* One round of sums is known beforehand; how many rounds an update asks for is not. */
static void the_cost_is_that_of_one_round_or_of_nobody_knows_how_many(void **state)
{
    const shoal_shape shape = {.rows = ROWS, .columns = 5, .type = SHOAL_FLOAT64, .rows_per_grain = ROWS, .grains = 1};
    const learn_module_config config = {.params = "{\"rate\": 0.5}"};
    const shoal_algorithm *algorithm = NULL;
    shoal_round *round = NULL;
    shoal_cost cost = {0};
    (void)state;
    compile(SUM_COLUMNS "static int64_t sums(const shoal_setting *setting) { return 3 * setting->columns; }\n"
                        "SHOAL_MODULE(.map = map, .sums = sums);");
    assert_int_equal(load(&algorithm), SHOAL_OK);
    assert_int_equal(algorithm->cost(&cost, &config, &shape), SHOAL_OK);
    assert_int_equal(algorithm->start(&round, &config, &shape), SHOAL_OK);
    assert_true(cost.phases == 1 && cost.rounds == 1 && cost.phase[0].rounds == 1);
    assert_string_equal(cost.phase[0].name, round->phase);
    double partial = 8 * (double)(round->layout.cell[0].count + round->layout.cell[1].count);
    assert_true(cost.phase[0].partial_bytes >= partial && cost.phase[0].partial_bytes < partial + 40);
    assert_true(cost.phase[0].model_bytes >= (double)round->model_bytes &&
                cost.phase[0].model_bytes < (double)round->model_bytes + 300);
    shoal_round_free(&round);
    compile(SUM_COLUMNS "static bool update(double *model, const double *sum, int64_t round, const shoal_setting *s) { "
                        "return round > 7; }\n"
                        "SHOAL_MODULE(.map = map, .update = update);");
    assert_int_equal(load(&algorithm), SHOAL_OK);
    assert_int_equal(algorithm->cost(&cost, &config, &shape), SHOAL_OK);
    assert_true(cost.phases == 1 && cost.rounds == 0 && cost.phase[0].rounds == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_runs_before_a_module_is_loaded),
                                       cmocka_unit_test(what_is_no_module_is_refused),
                                       cmocka_unit_test(sums_are_the_same_with_any_number_of_threads),
                                       cmocka_unit_test(sums_of_grains_are_exact),
                                       cmocka_unit_test(rounds_go_on_until_update_says_so),
                                       cmocka_unit_test(a_model_that_does_not_fit_its_partials_is_refused),
                                       cmocka_unit_test(what_a_module_gets_wrong_has_a_sentence),
                                       cmocka_unit_test(the_cost_is_that_of_one_round_or_of_nobody_knows_how_many),
                                       cmocka_unit_test(a_whole_algorithm_is_handed_through),
                                       cmocka_unit_test(the_last_module_counts),
                                       cmocka_unit_test(a_lack_of_memory_leaves_nothing_behind)};
    return cmocka_run_group_tests_name("module", tests, make_folder, remove_folder);
}
