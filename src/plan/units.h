/* Durations and money, as people write them and as people read them: "2h", "1h30m", "5usd"; "1.3 h", "$0.0421". */
#ifndef PLAN_UNITS_H
#define PLAN_UNITS_H

#include <stddef.h>

/* Reads "30s", "90m" (or "90min"), "2h", "1d", several of them one after another ("1h30m"), or a plain number of
 * seconds.  More than nothing and at most 100 years.  SHOAL_USAGE with a sentence that starts with `called`, such as
 * "--deadline". */
int plan_parse_duration(double *seconds, const char *called, const char *text);
/* The same, and 0 is one too. */
int plan_parse_pause(double *seconds, const char *called, const char *text);
/* Reads "5", "5usd", "5 USD" or "$5".  More than nothing.  SHOAL_USAGE as above. */
int plan_parse_money(double *dollars, const char *called, const char *text);

enum { PLAN_UNITS_BYTES = 32 };

/* "850 ms", "12.4 s", "7.5 min", "45 min", "1.3 h", "5.2 days"; "-" for NaN, "never" for infinity. */
void plan_format_duration(char out[PLAN_UNITS_BYTES], double seconds);
/* An error as a share: "4.2%", "79%"; "a factor of 140" where percentages say little; "-" for NaN. */
void plan_format_error(char out[PLAN_UNITS_BYTES], double error);
/* "$0", "$0.0421", "$1.23", "$12,345": three digits at least, and whole dollars from 1,000; "$1.16e-06" below a
 * hundredth of a cent; "-" for NaN. */
void plan_format_money(char out[PLAN_UNITS_BYTES], double dollars);

#endif
