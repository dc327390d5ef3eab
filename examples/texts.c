/* Counts the words of text files and writes each in capitals: a module whose maps read and write files ("blobs").
 *
 * Row i of DATA holds the number of a file, N.txt in --blobs-from; N.upper.txt in --blobs-to is the same in capitals.
 * The two may be folders or addresses of stores, and the job may run on any workers.
 *
 *     shoal run texts.c numbers.csv --blobs-from texts --blobs-to capitals */
#include <ctype.h>
#include <stdio.h>
#include <shoal/module.h>

static int64_t one_sum(const shoal_setting *setting)
{
    (void)setting;
    return 1;
}

/* Makes capitals in place, and counts where words begin. */
static double count_words(char *text, size_t size)
{
    double words = 0;
    for (size_t i = 0; i < size; i++) {
        words += !isspace((unsigned char)text[i]) && (i == 0 || isspace((unsigned char)text[i - 1]));
        text[i] = (char)toupper((unsigned char)text[i]);
    }
    return words;
}

static void map_texts(double *sum, const double *model, const shoal_rows *rows, const shoal_setting *setting)
{
    (void)model;
    for (int64_t i = 0; i < rows->count; i++) {
        long long number = (long long)rows->values[i * rows->columns];
        char name[64];
        void *text = NULL;
        size_t size = 0;
        snprintf(name, sizeof name, "%lld.txt", number);
        if (shoal_setting_get(setting, name, &text, &size) != SHOAL_OK)
            return; /* the run ends with the sentence of that failure */
        sum[0] += count_words(text, size);
        snprintf(name, sizeof name, "%lld.upper.txt", number);
        shoal_setting_put(setting, name, text, size);
        shoal_setting_release(setting, &text);
    }
}

SHOAL_MODULE(.summary = "count words and make capitals", .sums = one_sum, .map = map_texts);
