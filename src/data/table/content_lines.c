/* Whether a text file is rows of another one, as shoal data split and shuffle write them.  See content_text.h. */
#include "content_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data_lines.h"
#include "data/format/data_text.h"

/* A line of the old file. */
typedef struct old_line {
    const char *text;
    size_t size;
    bool found;
} old_line;

static int compare_bytes(const char *a, size_t a_size, const char *b, size_t b_size)
{
    const int order = memcmp(a, b, a_size < b_size ? a_size : b_size);
    return order ? order : (a_size > b_size) - (a_size < b_size);
}

static int compare_lines(const void *a, const void *b)
{
    const old_line *x = a, *y = b;
    return compare_bytes(x->text, x->size, y->text, y->size);
}

/* Splits what follows the head into lines, sorts them, and drops those that are there twice.  False when the file ends
 * within a line. */
static bool take_old_lines(old_line *line, size_t *count, const char *at, const content_text *start)
{
    const char *end = start->text + start->size;
    *count = 0;
    while (at < end) {
        text_field field = {.next = at};
        while (!field.last)
            if (!data_text_take_field(&field, field.next, end, start->delimiter))
                break;
        if (!field.last && start->whole)
            return false;
        if (!field.last)
            break;
        line[(*count)++] = (old_line){at, (size_t)(field.next - at), false};
        at = field.next;
    }
    qsort(line, *count, sizeof *line, compare_lines);
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++)
        if (i == 0 || compare_lines(&line[kept - 1], &line[i]) != 0)
            line[kept++] = line[i];
    *count = kept;
    return true;
}

static old_line *find_old_line(old_line *line, size_t count, const char *text, size_t size)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = compare_bytes(line[middle].text, line[middle].size, text, size);
        if (order == 0)
            return &line[middle];
        low = order < 0 ? middle + 1 : low;
        high = order > 0 ? middle : high;
    }
    return NULL;
}

/* Whether the old file begins with what stands above the rows, and moves behind it. */
static int pass_head(bool *fits, const char **at, data_cells *cells, const content_text *start, const shoal_data *data)
{
    const struct data_lines *lines = data->lines;
    const size_t before = lines->whole ? lines->before : 0;
    const char *head = "";
    size_t size = 0;
    int status = SHOAL_OK;
    if (lines->header.size > 0)
        status = data_lines_render(&head, &size, cells, data, lines->header, start->delimiter);
    *fits = status == SHOAL_OK && before + size < start->size && memcmp(start->text, lines->text, before) == 0 &&
            memcmp(start->text + before, head, size) == 0;
    *at = start->text + before + size;
    return status;
}

int data_content_lines_fit(bool *out, const content_text *start, const data_content *content)
{
    const shoal_data *data = content->lines;
    const char *at = NULL, *text;
    data_cells cells;
    old_line *line = NULL, *found;
    size_t count = 0, left, size;
    int status = data_cells_init(&cells, data);
    if (status == SHOAL_OK)
        status = base_alloc(&line, start->size + 1, sizeof *line, "lines of a file");
    if (status == SHOAL_OK)
        status = pass_head(out, &at, &cells, start, data);
    *out = status == SHOAL_OK && *out && take_old_lines(line, &count, at, start) && count > 0;
    left = count;
    for (int64_t row = 0; row < shoal_data_rows(data) && *out && left > 0 && status == SHOAL_OK; row++) {
        status = data_lines_render(&text, &size, &cells, data, data_lines_row(data, row), start->delimiter);
        found = status == SHOAL_OK ? find_old_line(line, count, text, size) : NULL;
        left -= found && !found->found;
        if (found)
            found->found = true;
    }
    *out = *out && left == 0;
    base_free(&line);
    data_cells_release(&cells);
    return status;
}
