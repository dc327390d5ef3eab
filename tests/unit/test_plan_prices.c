/* src/plan/prices*.c: tables of prices are read whole or refused by line; patterns choose machines, or say which
 * names are near. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "plan/prices_internal.h"

#define HEADER "cloud,region,machine,vcpus,memory_gib,usd_per_hour,usd_per_hour_spot\n"

static plan_prices *parse(const char *text)
{
    plan_prices *prices = NULL;
    if (plan_prices_parse(&prices, "t.csv", text, strlen(text)) < 0)
        fail_msg("%s", shoal_error());
    return prices;
}

static void refused_bytes(const char *sentence, const char *text, size_t length)
{
    plan_prices *prices = (plan_prices *)&prices;
    assert_int_equal(plan_prices_parse(&prices, "t.csv", text, length), SHOAL_INVALID);
    assert_null(prices);
    assert_string_equal(shoal_error(), sentence);
}

static void refused(const char *sentence, const char *text)
{
    refused_bytes(sentence, text, strlen(text));
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static void columns_are_found_by_name(void **state)
{
    (void)state;
    plan_prices *prices =
        parse("# prices of 2025-11-30, by hand\r\n"
              "\r\n"
              "Speed, usd_per_hour ,network_mbps,MACHINE,colour,region,cloud,vcpus,memory_gib,accelerator\r\n"
              "1.5,0.25,8000,big,red,here,own,2.5,4,\r\n"
              "  # between\r\n"
              "   \r\n"
              ",\"3\" ,,\"a \"\"b\"\"\", \"x, y\" ,here,own,1,1e1, T4 \r\n");
    assert_string_equal(prices->date, "2025-11-30");
    assert_string_equal(prices->name, "t.csv");
    assert_int_equal(prices->machines, 2);
    const plan_machine *m = prices->machine;
    assert_string_equal(m[0].name, "big");
    assert_string_equal(m[0].cloud, "own");
    assert_string_equal(m[0].region, "here");
    assert_true(m[0].speed == 1.5 && m[0].dollars_per_hour == 0.25 && m[0].vcpus == 2.5 && m[0].memory_gib == 4);
    assert_true(m[0].network == 1e9 && m[0].accelerators == 0 && isnan(m[0].dollars_spot));
    assert_string_equal(m[0].accelerator, "");
    assert_int_equal(m[0].line, 4);
    assert_string_equal(m[1].name, "a \"b\"");
    assert_string_equal(m[1].accelerator, "T4");
    assert_true(m[1].speed == 1 && m[1].network == 0 && m[1].accelerators == 1 && m[1].memory_gib == 10);
    assert_int_equal(m[1].line, 7);
    plan_prices_free(&prices);
    assert_null(prices);
    plan_prices_free(&prices);
}

static void marks_and_ends_of_lines_do_not_matter(void **state)
{
    (void)state;
    static const char *const forms[] = {"\xef\xbb\xbf" HEADER "a,b,c,1,2,3,4", HEADER "a,b,c,1,2,3,4\n\n\n",
                                        "\n#\n" HEADER "a,b,c,1,2,3,4\r\n"};
    for (int i = 0; i < 3; i++) {
        plan_prices *prices = parse(forms[i]);
        assert_int_equal(prices->machines, 1);
        assert_true(prices->machine[0].dollars_spot == 4);
        assert_string_equal(prices->date, "");
        plan_prices_free(&prices);
    }
}

static void a_spot_price_alone_is_a_price(void **state)
{
    (void)state;
    plan_prices *prices = parse(HEADER "a,b,c,1,2,,0.5\n");
    assert_true(isnan(prices->machine[0].dollars_per_hour) && prices->machine[0].dollars_spot == 0.5);
    plan_prices_free(&prices);
}

static void dates_are_found_in_names_and_comments(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text, *date;
    } cases[] = {
        {"/2020-01/prices_2026-08.csv", HEADER "a,b,c,1,2,3,\n", "2026-08"},
        {"prices_2026-08.csv", "# of 2024-02-29\n" HEADER "a,b,c,1,2,3,\n", "2024-02-29"},
        {"x.csv", "# 2024-13 12024-01 2024-011 3024-01\n" HEADER "a,b,c,1,2,3,\n", ""},
        {"2024-1", HEADER "a,b,c,1,2,3,\n", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        plan_prices *prices = NULL;
        assert_int_equal(plan_prices_parse(&prices, cases[i].name, cases[i].text, strlen(cases[i].text)), SHOAL_OK);
        assert_string_equal(prices->date, cases[i].date);
        plan_prices_free(&prices);
    }
}

static void what_is_wrong_is_named_by_line(void **state)
{
    (void)state;
    refused("t.csv is empty: a price table begins with a header", "");
    refused("t.csv is empty: a price table begins with a header", "\n# nothing\n  \n");
    refused("t.csv has a header but no machines", HEADER);
    refused("t.csv: line 1: the column usd_per_hour is missing; did you mean 'usd_per_hours'?",
            "cloud,region,machine,vcpus,memory_gib,usd_per_hours,usd_per_hour_spot\na,b,c,1,1,1,1\n");
    refused("t.csv: line 1: the column cloud is missing from the header, a line of names separated by commas",
            "cloud;region;machine;vcpus;memory_gib;usd_per_hour\n");
    refused("t.csv: line 1: the column vcpus appears twice",
            "cloud,region,machine,vcpus,VCPUS,memory_gib,usd_per_hour\n");
    refused("t.csv: line 3 has 6 fields, and the header 7", HEADER "a,b,c,1,2,3,4\na,b,d,1,2,3\n");
    refused("t.csv: line 2 has 8 fields, and the header 7", HEADER "a,b,c,1,2,3,4,5\n");
    refused("t.csv: line 2: a quote is not closed", HEADER "a,b,\"c,1,2,3,4\n");
    refused("t.csv: line 2: text after the closing quote of 'c'", HEADER "a,b,\"c\"d,1,2,3,4\n");
    refused("t.csv: line 2: machine is empty", HEADER "a,b,,1,2,3,4\n");
    refused("t.csv: line 2: region is empty", HEADER "a,\"\",c,1,2,3,4\n");
    refused("t.csv: line 2: machine 'c/d' has a '/', which has a meaning in patterns", HEADER "a,b,c/d,1,2,3,4\n");
    refused("t.csv: line 2: cloud is longer than 23 bytes: 'aaaaaaaaaaaaaaaaaaaaaaaa...'",
            HEADER "aaaaaaaaaaaaaaaaaaaaaaaa,b,c,1,2,3,4\n");
    refused("t.csv: line 2 is not UTF-8", HEADER "a,b,\xff\xc3,1,2,3,4\n");
    refused("t.csv: line 2 holds a control character, so this is not a table of text", HEADER "a,b,\033c,1,2,3,4\n");
    refused("t.csv: this is UTF-16 text; save it as UTF-8", "\xff\xfe"
                                                            "c");
    refused_bytes("t.csv: line 1 holds a control character, so this is not a table of text", "clo\0ud,region", 13);
    refused("t.csv: line 2: c has no price, neither usd_per_hour nor usd_per_hour_spot", HEADER "a,b,c,1,2,,\n");
}

static void numbers_that_can_not_be_are_refused(void **state)
{
    (void)state;
    static const char *const none[] = {"x",    "nan", "NaN", "inf", "-inf", "1e999",
                                       "0x10", "1 2", "1,5", "$3",  "--1",  "."};
    char text[256], sentence[256];
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        snprintf(text, sizeof text, HEADER "a,b,c,1,2,\"%s\",\n", none[i]);
        snprintf(sentence, sizeof sentence, "t.csv: line 2: usd_per_hour is '%s', which is not a number", none[i]);
        refused(sentence, text);
    }
    refused("t.csv: line 2: usd_per_hour is -1, and must be greater than 0", HEADER "a,b,c,1,2,-1,\n");
    refused("t.csv: line 2: usd_per_hour is 0, and must be greater than 0", HEADER "a,b,c,1,2,0,\n");
    refused("t.csv: line 2: usd_per_hour_spot is -0.1, and must be greater than 0", HEADER "a,b,c,1,2,1,-0.1\n");
    refused("t.csv: line 2: vcpus is 0.0, and must be greater than 0", HEADER "a,b,c,0.0,2,1,\n");
    refused("t.csv: line 2: vcpus is '', which is not a number", HEADER "a,b,c,,2,1,\n");
    refused("t.csv: line 2: vcpus is 1e6, which is too much: the most is 100000", HEADER "a,b,c,1e6,2,1,\n");
    refused("t.csv: line 2: memory_gib is 1e300, which is too much: the most is 1e+07", HEADER "a,b,c,1,1e300,1,\n");
    refused("t.csv: line 2: usd_per_hour is 89250000, which is too much: the most is 1e+06",
            HEADER "a,b,c,1,1,89250000,\n");
}

static void a_row_that_is_there_twice_is_told_with_both_lines(void **state)
{
    (void)state;
    refused("t.csv: line 5: a:b/c is in line 2 already",
            HEADER "a,b,c,1,2,3,4\na,b,d,1,2,3,4\na,x,c,1,2,3,4\na,b,c,1,2,9,4\na,b,d,1,2,3,4\n");
    refused("t.csv: line 3: AWS:b/C is in line 2 already", HEADER "aws,b,c,1,2,3,4\nAWS,b,C,1,2,3,4\n");
}

static void files_that_can_not_be_read_are_told(void **state)
{
    (void)state;
    plan_prices *prices = NULL;
    assert_int_equal(plan_prices_read(&prices, "/nowhere/prices.csv"), SHOAL_SYSTEM);
    assert_string_equal(shoal_error(), "/nowhere/prices.csv can't be opened: No such file or directory");
    assert_int_equal(plan_prices_read(&prices, "/tmp"), SHOAL_SYSTEM);
    assert_string_equal(shoal_error(), "/tmp can't be read: Is a directory");
    assert_int_equal(plan_prices_read(&prices, "/dev/zero"), SHOAL_INVALID);
    assert_string_equal(shoal_error(), "/dev/zero is larger than 16 MiB, so it is not a table of prices");
    assert_null(prices);
}

/* ---- the shipped table ------------------------------------------------------------------------------------------- */

static const plan_machine *find(const plan_prices *prices, const char *cloud, const char *region, const char *name)
{
    for (int64_t i = 0; i < prices->machines; i++) {
        const plan_machine *m = &prices->machine[i];
        if (strcmp(m->cloud, cloud) == 0 && strcmp(m->region, region) == 0 && strcmp(m->name, name) == 0)
            return m;
    }
    return NULL;
}

static void the_program_has_a_dated_table(void **state)
{
    (void)state;
    plan_prices *prices = NULL;
    assert_int_equal(plan_prices_shipped(&prices), SHOAL_OK);
    assert_string_equal(prices->name, "the table of this program");
    assert_string_equal(prices->date, "2026-08");
    assert_in_range(prices->machines, 50, 100);
    const plan_machine *m = find(prices, "aws", "us-east-1", "c7i.large");
    assert_non_null(m);
    assert_true(m->vcpus == 2 && m->memory_gib == 4 && m->dollars_per_hour == 0.08925 && m->dollars_spot == 0.018);
    m = find(prices, "azure", "eastus", "Standard_NC40ads_H100_v5");
    assert_non_null(m);
    assert_string_equal(m->accelerator, "H100");
    assert_true(m->accelerators == 1);
    plan_prices_free(&prices);
}

static void the_shipped_rows_are_those_of_the_whole_table(void **state)
{
    (void)state;
    static const char path[] = "../shared/data/clouds/prices_2026-08.csv";
    if (access(path, R_OK) != 0) {
        print_message("%s is not here: skipped\n", path);
        skip();
    }
    plan_prices *shipped = NULL, *whole = NULL;
    assert_int_equal(plan_prices_shipped(&shipped), SHOAL_OK);
    assert_int_equal(plan_prices_read(&whole, path), SHOAL_OK);
    assert_int_equal(whole->machines, 3248);
    assert_string_equal(whole->date, "2026-08");
    int64_t without_spot = 0, accelerated = 0;
    for (int64_t i = 0; i < whole->machines; i++) {
        without_spot += isnan(whole->machine[i].dollars_spot);
        accelerated += whole->machine[i].accelerators > 0;
        assert_int_equal(whole->machine[i].line, i + 2);
    }
    assert_int_equal(without_spot, 55);
    assert_int_equal(accelerated, 140);
    for (int64_t i = 0; i < shipped->machines; i++) {
        plan_machine mine = shipped->machine[i];
        const plan_machine *there = find(whole, mine.cloud, mine.region, mine.name);
        assert_non_null(there);
        mine.line = there->line;
        assert_memory_equal(&mine, there, sizeof mine);
    }
    plan_prices_free(&shipped);
    plan_prices_free(&whole);
}

/* ---- choosing ---------------------------------------------------------------------------------------------------- */

static const char table[] = HEADER "aws,us-east-1,c7i.large,2,4,0.1,0.05\n"
                                   "aws,us-east-1,c7i.xlarge,4,8,0.2,\n"
                                   "aws,eu-west-1,c7i.large,2,4,0.11,0.06\n"
                                   "aws,eu-west-1,m7i.large,2,8,0.12,0.06\n"
                                   "azure,eastus,Standard_D4s_v5,4,16,0.2,0.02\n"
                                   "azure,eastus,Standard_E4s_v5,4,32,,0.02\n"
                                   "own,here,box,4,32,0.01,\n";

/* The chosen machines' lines, "3 4". */
static const char *choose(const char *text, bool spot)
{
    static char lines[64];
    static char const *const letters = "0123456789";
    plan_prices *prices = parse(table);
    plan_selection chosen = {.machines = 9};
    size_t used = 0;
    int status = plan_prices_select(&chosen, prices, text, spot);
    for (int64_t i = 0; status == SHOAL_OK && i < chosen.machines; i++)
        lines[used++] = letters[chosen.machine[i]->line];
    lines[used] = '\0';
    if (status < 0) {
        assert_int_equal(status, SHOAL_USAGE);
        assert_int_equal(chosen.machines, 0);
        assert_null(chosen.machine);
    }
    plan_selection_free(&chosen);
    plan_prices_free(&prices);
    return status == SHOAL_OK ? lines : shoal_error();
}

static void patterns_choose_in_the_order_of_the_table(void **state)
{
    (void)state;
    assert_string_equal(choose("*", false), "234568");
    assert_string_equal(choose("*", true), "24567");
    assert_string_equal(choose("aws:*", false), "2345");
    assert_string_equal(choose("aws:us-east-1/c7i.*", false), "23");
    assert_string_equal(choose("aws:us-east-1/c7i.*", true), "2");
    assert_string_equal(choose("us-east-1/*", false), "23");
    assert_string_equal(choose("eu-*/*", false), "45");
    assert_string_equal(choose("c7i.large", false), "24");
    assert_string_equal(choose("?7i.l*e", false), "245");
    assert_string_equal(choose("AWS:US-EAST-?/C7I.LARGE", false), "2");
    assert_string_equal(choose("standard_d*V5", false), "6");
    assert_string_equal(choose("own:*, aws:eu-west-1/m7i.large,us-east-1/*", false), "2358");
    assert_string_equal(choose("c7i.large,c7i.*,*i.large", false), "2345");
    assert_string_equal(choose("**x*", false), "38");
    assert_string_equal(choose("*.*a*r*g*e*", false), "2345");
}

static void a_pattern_that_matches_nothing_says_what_is_near(void **state)
{
    (void)state;
    assert_string_equal(choose("gcp:*", false),
                        "--machines gcp:*: t.csv has no cloud 'gcp'; there are aws, azure, own");
    assert_string_equal(choose("aws:mars-1/c7i.*", false),
                        "--machines aws:mars-1/c7i.*: t.csv has no region 'mars-1'; there are us-east-1, eu-west-1");
    assert_string_equal(choose("own:x/box", false), "--machines own:x/box: t.csv has no region 'x'; there is here");
    assert_string_equal(
        choose("c7i.lrge", false),
        "--machines c7i.lrge: t.csv has no such machine; the nearest are c7i.large, c7i.xlarge, m7i.large");
    assert_string_equal(choose("c9i.*", false),
                        "--machines c9i.*: t.csv has no such machine; the nearest are c7i.*, m7i.*");
    assert_string_equal(
        choose("C9I.large", false),
        "--machines C9I.large: t.csv has no such machine; the nearest are c7i.large, c7i.xlarge, m7i.large");
    assert_string_equal(
        choose("D4s_v5", false),
        "--machines D4s_v5: t.csv has no such machine; the nearest are Standard_D4s_v5, Standard_E4s_v5");
    assert_string_equal(choose("us-east-1/m7i.large", false),
                        "--machines us-east-1/m7i.large: t.csv has no such machine there, only in aws:eu-west-1");
    assert_string_equal(choose("aws:us-east-1", false),
                        "--machines aws:us-east-1: us-east-1 is a region; use aws:us-east-1/* for all its machines");
    assert_string_equal(choose("aws", false), "--machines aws: aws is a cloud; use aws:* for all its machines");
    assert_string_equal(choose("quantum.enormous", false),
                        "--machines quantum.enormous: t.csv has no machine of such a name; it has c7i.large, "
                        "c7i.xlarge, m7i.large, ...");
    assert_string_equal(choose("*,nothing", false) + strlen("--machines nothing: "),
                        "t.csv has no machine of such a name; it has c7i.large, c7i.xlarge, m7i.large, ...");
}

static void prices_that_are_missing_are_told(void **state)
{
    (void)state;
    assert_string_equal(choose("own:*", true), "--machines own:*: what matches in t.csv has no spot price");
    assert_string_equal(choose("Standard_E*", false),
                        "--machines Standard_E*: what matches in t.csv has no ordinary price");
}

static void empty_parts_are_refused(void **state)
{
    (void)state;
#define PARTS "write CLOUD:REGION/MACHINE, where * matches all, or FILE.csv"
    static const char empty[] = "--machines: a pattern is empty: write CLOUD:REGION/MACHINE, where * matches all";
    assert_string_equal(choose("", false), empty);
    assert_string_equal(choose("c7i.large,", false), empty);
    assert_string_equal(choose(" , ", false), empty);
    assert_string_equal(choose("aws:", false), "--machines aws: has an empty part: " PARTS);
    assert_string_equal(choose(":/", false), "--machines :/ has an empty part: " PARTS);
    assert_string_equal(choose("aws:/x", false), "--machines aws:/x has an empty part: " PARTS);
}

/* ---- out of memory ----------------------------------------------------------------------------------------------- */

static void every_allocation_may_fail(void **state)
{
    (void)state;
    static const char *const patterns[] = {"aws:*,own:*", "c9i.*"};
    for (int p = 0; p < 2; p++) {
        int status = SHOAL_MEMORY, failures = 0;
        for (; status == SHOAL_MEMORY; failures++) {
            plan_prices *prices = NULL;
            plan_selection chosen = {0};
            base_memory_fail_after(failures);
            status = plan_prices_parse(&prices, "t.csv", table, sizeof table - 1);
            assert_true(status == SHOAL_OK || !prices);
            if (status == SHOAL_OK)
                status = plan_prices_select(&chosen, prices, patterns[p], false);
            base_memory_fail_after(-1);
            plan_selection_free(&chosen);
            plan_prices_free(&prices);
        }
        assert_true(failures > 6);
        assert_int_equal(status, p == 0 ? SHOAL_OK : SHOAL_USAGE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_found_by_name),
        cmocka_unit_test(marks_and_ends_of_lines_do_not_matter),
        cmocka_unit_test(a_spot_price_alone_is_a_price),
        cmocka_unit_test(dates_are_found_in_names_and_comments),
        cmocka_unit_test(what_is_wrong_is_named_by_line),
        cmocka_unit_test(numbers_that_can_not_be_are_refused),
        cmocka_unit_test(a_row_that_is_there_twice_is_told_with_both_lines),
        cmocka_unit_test(files_that_can_not_be_read_are_told),
        cmocka_unit_test(the_program_has_a_dated_table),
        cmocka_unit_test(the_shipped_rows_are_those_of_the_whole_table),
        cmocka_unit_test(patterns_choose_in_the_order_of_the_table),
        cmocka_unit_test(a_pattern_that_matches_nothing_says_what_is_near),
        cmocka_unit_test(prices_that_are_missing_are_told),
        cmocka_unit_test(empty_parts_are_refused),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
