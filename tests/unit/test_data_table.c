/* src/data/table/data_table.c: rows of text are taken apart as the reader of numbers does it, whatever ends their
 * lines, and what is not a table is reported by line. */
#include "data_support.h"

#include "base/memory.h"
#include "data/table/data_table.h"

/* Rows as "a|b|c;d|e|f;", or the sentence that came instead. */
static const char *rows_of(const char *text, size_t length)
{
    static char out[1024];
    data_table table;
    char *mine = malloc(length); /* of this size exactly, so that a sanitizer sees reads beyond it */
    memcpy(mine, text, length);
    int status = data_table_init(&table, "t.csv", mine, length);
    free(mine);
    out[0] = '\0';
    while (status == SHOAL_OK && data_table_next(&status, &table)) {
        for (int i = 0; i < table.fields; i++)
            strcat(strcat(out, i ? "|" : ""), table.field[i]);
        strcat(out, ";");
    }
    data_table_release(&table);
    return status == SHOAL_OK ? out : shoal_error();
}

#define ROWS(text) rows_of(text, sizeof text - 1)

static void fields_are_taken_apart(void **state)
{
    (void)state;
    assert_string_equal(ROWS("a,b,c\nd,e,f\n"), "a|b|c;d|e|f;");
    assert_string_equal(ROWS("a,b,c\r\nd,e,f"), "a|b|c;d|e|f;");
    assert_string_equal(ROWS("\xef\xbb\xbf"
                             "a , b,\tc \n\n \t\n# no row, \"\nd,,"),
                        "a|b|c;d||;");
    assert_string_equal(ROWS("\"a,b\" , \"say \"\"so\"\"\",\"\"\n"), "a,b|say \"so\"|;");
    assert_string_equal(ROWS("\" a \",it's \"fine\"\n"), " a |it's \"fine\";");
    assert_string_equal(ROWS("ø,→\n"), "ø|→;");
    assert_string_equal(ROWS(""), "");
    assert_string_equal(ROWS("#"), "");
    assert_string_equal(ROWS(" "), "");
}

static void what_is_no_table_is_told_by_line(void **state)
{
    (void)state;
    char many[2 * DATA_TABLE_FIELDS + 1];
    memset(many, ',', sizeof many);
    assert_string_equal(ROWS("a\n\"b\n"), "t.csv: line 2: a quote is not closed");
    assert_string_equal(ROWS("a\n\n\"b\"c,d\n"), "t.csv: line 3: text after the closing quote of 'b'");
    assert_string_equal(ROWS("a\rb\n"), "t.csv: line 1 holds a control character, so this is not a table of text");
    assert_string_equal(ROWS("a\0b\n"), "t.csv: line 1 holds a control character, so this is not a table of text");
    assert_string_equal(ROWS("a\nb\xff\n"), "t.csv: line 2 is not UTF-8");
    assert_string_equal(ROWS("a\nb\xc3"), "t.csv: line 2 is not UTF-8");
    assert_string_equal(ROWS("\xff\xfe"
                             "a"),
                        "t.csv: this is UTF-16 text; save it as UTF-8");
    assert_string_equal(rows_of(many, sizeof many), "t.csv: line 1 has more than 256 fields");
}

static void files_are_read_up_to_a_size(void **state)
{
    (void)state;
    data_table table;
    int status = SHOAL_OK;
    FILE *file = tmpfile();
    assert_non_null(file);
    fputs("a,b\n", file);
    rewind(file);
    assert_int_equal(data_table_read(&table, "t.csv", file, "a table of prices"), SHOAL_OK);
    assert_true(data_table_next(&status, &table) && table.fields == 2);
    assert_false(data_table_next(&status, &table));
    data_table_release(&table);
    assert_int_equal(ftruncate(fileno(file), 17 << 20), 0);
    rewind(file);
    assert_int_equal(data_table_read(&table, "t.csv", file, "a table of prices"), SHOAL_INVALID);
    assert_string_equal(shoal_error(), "t.csv is larger than 16 MiB, so it is not a table of prices");
    data_table_release(&table);
    rewind(file);
    base_memory_fail_after(0);
    assert_int_equal(data_table_read(&table, "t.csv", file, "a table of prices"), SHOAL_MEMORY);
    base_memory_fail_after(-1);
    data_table_release(&table);
    fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_taken_apart),
        cmocka_unit_test(what_is_no_table_is_told_by_line),
        cmocka_unit_test(files_are_read_up_to_a_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
