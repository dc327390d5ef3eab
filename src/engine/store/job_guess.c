/* The arithmetic of waiting.  See job_guess.h. */
#include "engine/store/job_guess.h"

#include <math.h>
#include <string.h>

/* The fewest and the most seconds between two requests; and the share of the round's time, and of the time for which
 * the thing has been asked for already, that lies between them. */
static const double pause_least = 1e-3, pause_most = 2, share_of_round = 0.02, share_of_asking = 0.3;
static const double pause_trips = 1.5;

void job_guess_learn(job_guess *guess, double at)
{
    guess->last[guess->count++ % JOB_GUESS_ROUNDS] = at > 1e-6 ? at : 1e-6;
}

/* Inserts a number into a sorted list. */
static void insert_sorted(double *sorted, int count, double value)
{
    while (count > 0 && sorted[count - 1] > value) {
        sorted[count] = sorted[count - 1];
        count--;
    }
    sorted[count] = value;
}

/* The quickest of many is an exception, and going by it would mean asking too early most of the time; but where most
 * take far longer than the quickest, they are what is exceptional. */
static double early_of(const double *sorted, int count)
{
    static const double far = 1.5;
    if (count == 0)
        return 0;
    return sorted[count / 4] < far * sorted[0] ? sorted[count / 4] : sorted[0];
}

double job_guess_early(const job_guess *guess)
{
    double sorted[JOB_GUESS_ROUNDS];
    int count = guess->count < JOB_GUESS_ROUNDS ? (int)guess->count : JOB_GUESS_ROUNDS;
    for (int i = 0; i < count; i++)
        insert_sorted(sorted, i, guess->last[i]);
    return early_of(sorted, count);
}

/* A history comes from elsewhere: entries that make no sense are skipped. */
job_length job_guess_rounds(const job_trailer *trailer, const char *phase)
{
    double sorted[JOB_GUESS_ROUNDS];
    int count = 0;
    for (int64_t i = trailer->steps - 1; i > 0 && count < JOB_GUESS_ROUNDS; i--) {
        const job_step *step = &trailer->step[i], *before = step - 1;
        double seconds = step->seconds - before->seconds;
        if (strcmp(step->phase, phase) == 0 && step->number == before->number + 1 && seconds > 0 && !isinf(seconds))
            insert_sorted(sorted, count++, seconds);
    }
    return (job_length){.early = early_of(sorted, count), .usual = count ? sorted[count / 2] : 0};
}

/* ---- learning ---------------------------------------------------------------------------------------------------- */

double job_guess_between(double said, double absent, double found)
{
    if (!(said >= 0 && said <= found))
        said = found;
    return said < absent ? absent : said;
}

double job_guess_trip(double trip, double took, bool brought)
{
    static const double outlier = 4, another_store = 8; /* times */
    if (trip <= 0 || another_store * took < trip)
        return took;
    if (brought && took > trip)
        return trip;
    return 0.8 * trip + 0.2 * fmin(took, outlier * trip + pause_least);
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

double job_guess_ask(const job_asking *asking)
{
    double pause = fmax(share_of_round * asking->elapsed, pause_trips * asking->trip);
    if (asking->asked >= 0)
        pause = fmax(pause, share_of_asking * (asking->now - asking->first));
    pause = fmin(fmax(pause, pause_least), pause_most);
    if (asking->asked >= 0)
        return asking->asked + pause;
    return asking->early > 0 ? asking->early - asking->trip / 2 : asking->now + pause;
}
