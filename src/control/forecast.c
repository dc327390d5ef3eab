/* When a job will end, and what it will cost.  See forecast.h. */
#include "control/forecast.h"

#include <math.h>
#include <stddef.h>

static const double Z95 = 1.6448536269514722;
static const double FIXED_ERROR = 0.5; /* of the model's fixed part, which depends on the store's mood */
static const double FIRST_NOISE = 0.1; /* standard deviation of a round, before any was seen */
static const double NOISE_COUNTS = 6;  /* rounds that this guess is worth */
static const double NOISE_MEMORY = 40; /* rounds after which it is forgotten */
static const double DRIFT = 0.02;      /* standard deviation of what a and b change by from round to round */
static const double FAR = 3.5;         /* standard deviations that are not believed at first */
static const double LEAST_NOISE = 0.02, MOST_NOISE = 0.6;

void control_trend_init(control_trend *self, double error)
{
    double least = error > 0.02 ? error : 0.02;
    *self = (control_trend){
        .aa = least * least, .bb = FIXED_ERROR * FIXED_ERROR, .noise = FIRST_NOISE * FIRST_NOISE, .seen = NOISE_COUNTS};
}

void control_trend_init_blind(control_trend *self)
{
    control_trend_init(self, 10);
    self->ab = self->aa; /* both are in units of the same round */
    self->bb += self->aa;
}

/* ---- what was seen ----------------------------------------------------------------------------------------------- */

/* The round that is believed in, and by how much its logarithm moves with a and b. */
static double believe(const control_trend *self, const control_option *option, double *by_a, double *by_b)
{
    double work = exp(self->a) * option->work, fixed = exp(self->b) * option->fixed, all = work + fixed;
    *by_a = all > 0 ? work / all : 1;
    *by_b = all > 0 ? fixed / all : 0;
    return all;
}

double control_trend_round(const control_trend *self, const control_option *option)
{
    double by_a, by_b;
    return believe(self, option, &by_a, &by_b);
}

static void learn_noise(control_trend *self, double off, double expected)
{
    double share = 1 / (self->seen + 1), noise = off * off - (expected - self->noise);
    noise = fmin(fmax(noise, 0), 9 * self->noise);
    self->noise =
        fmin(fmax(self->noise + share * (noise - self->noise), LEAST_NOISE * LEAST_NOISE), MOST_NOISE * MOST_NOISE);
    self->seen = fmin(self->seen + 1, NOISE_MEMORY);
}

void control_trend_see(control_trend *self, const control_option *option, double seconds)
{
    double by_a, by_b, predicted = believe(self, option, &by_a, &by_b);
    if (!(seconds > 0) || !(predicted > 0))
        return;
    self->rounds++;
    self->aa += DRIFT * DRIFT;
    self->bb += DRIFT * DRIFT;
    double off = log(seconds / predicted);
    double to_a = by_a * self->aa + by_b * self->ab, to_b = by_a * self->ab + by_b * self->bb;
    double known = by_a * to_a + by_b * to_b, variance = known + self->noise;
    if (fabs(off) > FAR * sqrt(variance)) {
        int side = off > 0 ? 1 : -1;
        if (self->doubted != side) {
            self->doubted = side;
            return;
        }
        /* It has really changed: as much as this was to be expected, then. */
        double more = off * off - variance;
        self->aa += more;
        to_a += by_a * more;
        known += by_a * by_a * more;
        variance = known + self->noise;
    } else {
        learn_noise(self, off, variance);
    }
    self->doubted = 0;
    self->a += to_a / variance * off;
    self->b += to_b / variance * off;
    self->aa -= to_a * to_a / variance;
    self->ab -= to_a * to_b / variance;
    self->bb -= to_b * to_b / variance;
}

/* ---- what will be ------------------------------------------------------------------------------------------------ */

/* What waits for machines that do not run yet does the rounds that those do meanwhile. */
static double seconds_of(const control_trend *self, const control_option *option, const control_course *course,
                         double round)
{
    double now = course->now && course->now->machines > 0 ? control_trend_round(self, course->now) : INFINITY;
    if (option->machines <= (course->now ? course->now->machines : 0) || course->start <= 0)
        return course->rounds * round;
    double meanwhile = isfinite(now) && now > 0 ? course->start / now : 0;
    if (meanwhile >= course->rounds)
        return course->rounds * now;
    return course->start + (course->rounds - meanwhile) * round;
}

control_band control_foresee(const control_trend *self, const control_option *option, const control_course *course)
{
    double by_a, by_b, round = believe(self, option, &by_a, &by_b), rounds = course->rounds;
    double seconds = seconds_of(self, option, course, round);
    /* Losses come one by one: their number has its mean as its variance. */
    double each = course->replace + round / 2, losses = course->losses * (double)option->machines * seconds / 3600;
    double lost = losses * each;
    seconds += lost;
    double sure = rounds > 0 ? self->noise / rounds : 0; /* noise of single rounds averages out */
    double model = by_a * by_a * self->aa + 2 * by_a * by_b * self->ab + by_b * by_b * self->bb;
    double drift = DRIFT * DRIFT * rounds / 3;
    double variance = fmin(model + drift, 9) + sure + course->spread * course->spread;
    double relative = seconds > 0 ? (seconds - lost) / seconds : 1;
    variance = variance * relative * relative + (seconds > 0 ? losses * each * each / (seconds * seconds) : 0);
    double width = exp(Z95 * sqrt(variance));
    control_band band = {.seconds = seconds, .low = seconds / width, .high = seconds * width};
    band.cost = option->price * band.seconds / 3600;
    band.cost_high = option->price * band.high / 3600;
    return band;
}
