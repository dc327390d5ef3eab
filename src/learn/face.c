/* What faces share.  See face.h. */
#include "face.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "exec/exec_calls.h"
#include "lbfgs.h"

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static void add_line_text(learn_lines *lines, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    size_t before = lines->text ? strlen(lines->text) : 0;
    char *longer = NULL;
    va_end(again);
    if (lines->status == SHOAL_OK)
        lines->status = base_alloc(&longer, before + (size_t)length + 1, 1, "a summary");
    if (lines->status < 0)
        return;
    if (before > 0)
        memcpy(longer, lines->text, before);
    vsnprintf(longer + before, (size_t)length + 1, format, arguments);
    base_free(&lines->text);
    lines->text = longer;
}

void learn_say(learn_lines *lines, const char *word, const char *format, ...)
{
    va_list arguments;
    learn_say_more(lines, "%s%-11s", lines->text ? "\n" : "", word);
    va_start(arguments, format);
    add_line_text(lines, format, arguments);
    va_end(arguments);
}

void learn_say_more(learn_lines *lines, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_line_text(lines, format, arguments);
    va_end(arguments);
}

/* How a descent can end: a word for programs, and a sentence for people. */
static const struct {
    const char *word, *sentence;
} ends[] = {[LEARN_LBFGS_GOES_ON] = {"stopped", "not converged"},
            [LEARN_LBFGS_GRADIENT] = {"gradient", "converged: the gradient is small"},
            [LEARN_LBFGS_CHANGE] = {"change", "converged: the objective has stopped changing"},
            [LEARN_LBFGS_ITERATIONS] = {"iterations", LEARN_NOT_CONVERGED},
            [LEARN_LBFGS_STUCK] = {"rounding", "converged to rounding error"},
            [LEARN_LBFGS_DIVERGED] = {"diverged", "diverged"}};

/* The number "end" of the result may come from a store. */
static int end_of(const shoal_result *result)
{
    double end = shoal_result_number(result, "end");
    return end >= 0 && end < (double)(sizeof ends / sizeof ends[0]) ? (int)end : LEARN_LBFGS_GOES_ON;
}

const char *learn_number_word(const shoal_result *result, const shoal_number *number)
{
    bool is_descent = !isnan(shoal_result_number(result, "diverged"));
    return is_descent && strcmp(number->name, "end") == 0 ? ends[end_of(result)].word : NULL;
}

static const char *why_ended(const learn_ended *ended)
{
    return ended->stopped ? "stopped" : ends[end_of(ended->result)].sentence;
}

void learn_say_sizes(learn_lines *lines, const char *label, int64_t count, double least, double most)
{
    const int digits = least == floor(least) && most == floor(most) ? 15 : 10;
    learn_say(lines, label, "%" PRId64 ", of ", count);
    if (least != most)
        learn_say_more(lines, "%.*g to ", digits, least);
    learn_say_more(lines, "%.*g row%s%s", digits, most, most == 1 ? "" : "s",
                   least == most && count > 1 ? " each" : "");
}

void learn_say_descent(learn_lines *lines, const learn_ended *ended)
{
    const double iterations = shoal_result_number(ended->result, "iterations");
    learn_say(lines, "objective", "%.10g after %.0f iteration%s, %s", shoal_result_number(ended->result, "objective"),
              iterations, iterations == 1 ? "" : "s", why_ended(ended));
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

const char *const *learn_option_choices(const shoal_option *table, const char *name)
{
    for (; table->name; table++)
        if (strcmp(table->name, name) == 0 && table->kind == SHOAL_OPTION_CHOICE)
            return table->choices;
    SHOAL_BUG("there is no choice --%s", name);
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

const learn_face *learn_face_find(const char *learner)
{
    for (const learn_face *const *face = learn_faces; *face; face++)
        if (strcmp((*face)->algorithm->name, learner) == 0)
            return *face;
    return NULL;
}

const learn_face *learn_face_of_algorithm(const char *algorithm)
{
    for (const learn_face *const *face = learn_faces; *face; face++)
        if (strcmp((*face)->algorithm->name, algorithm) == 0 ||
            ((*face)->predictor && strcmp((*face)->predictor->algorithm->name, algorithm) == 0))
            return *face;
    return NULL;
}

enum { ALGORITHMS_MOST = 64 };
static const shoal_algorithm *algorithms[ALGORITHMS_MOST];

static void list_algorithms(void)
{
    int count = 0;
    algorithms[count++] = &exec_calls; /* which has no face: only who makes the calls asks for it */
    for (const learn_face *const *face = learn_faces; *face; face++) {
        if (count + 3 > ALGORITHMS_MOST)
            SHOAL_BUG("there are more learners than fit into the list");
        algorithms[count++] = (*face)->algorithm;
        if ((*face)->predictor)
            algorithms[count++] = (*face)->predictor->algorithm;
    }
}

const shoal_algorithm *const *learn_algorithms(void)
{
    static pthread_once_t listed = PTHREAD_ONCE_INIT;
    pthread_once(&listed, list_algorithms);
    return algorithms;
}

const shoal_algorithm *learn_algorithm_find(const char *name)
{
    for (const shoal_algorithm *const *algorithm = learn_algorithms(); *algorithm; algorithm++)
        if (strcmp((*algorithm)->name, name) == 0)
            return *algorithm;
    return NULL;
}

void learn_shown_release(learn_shown *shown)
{
    for (int64_t i = 0; i < shown->images; i++)
        base_free(&shown->names[i]);
    base_free(&shown->names);
    base_free(&shown->title);
    base_free(&shown->pixels);
}
