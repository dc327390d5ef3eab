/* Machines that can be rented and what they cost, from tables of text:
 *
 *     cloud,region,machine,vcpus,memory_gib,accelerator,accelerators,usd_per_hour,usd_per_hour_spot
 *     aws,us-east-1,c7i.large,2.0,4.0,,,0.08925,0.0335
 *
 * Columns are found by their names, in any order; accelerator, accelerators and usd_per_hour_spot may be left out,
 * and two more are known: network_mbps (what a machine sends and receives) and speed (of a core, as a multiple of
 * the one that was calibrated).  Others are not looked at.  Fields may be quoted; blank lines and lines that begin
 * with # don't count.
 *
 *     plan_prices *prices = NULL;
 *     int status = plan_prices_read(&prices, "prices.csv");      // or plan_prices_shipped(&prices)
 *     plan_selection chosen;
 *     if (status == SHOAL_OK) status = plan_prices_select(&chosen, prices, "aws:us-east-1/c7i.*", false);
 *
 * A pattern is CLOUD:REGION/MACHINE, each with * and ?; "CLOUD:" and "REGION/" may be left out, and stand for any.
 * Several patterns have commas between.  Small and capital letters are the same. */
#ifndef PLAN_PRICES_H
#define PLAN_PRICES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct plan_machine {
    char cloud[24], region[40], name[64];
    char id[132]; /* the three of them: "aws:us-east-1/c7i.large" */
    double vcpus, memory_gib;
    char accelerator[48];    /* "" for none */
    double accelerators;     /* 0 without; 1 where a table names one and does not count */
    double dollars_per_hour; /* NaN when the table has none */
    double dollars_spot;     /* NaN when there is none */
    double network;          /* bytes a second; 0: not told */
    double speed;            /* of a core; 1 when not told */
    int64_t line;            /* of the table */
} plan_machine;

typedef struct plan_prices {
    char *name;    /* of the file, or "the table of this program" */
    char date[16]; /* "2026-08" where the table or its file's name says so, otherwise "" */
    plan_machine *machine;
    int64_t machines;
} plan_prices;

/* SHOAL_INVALID names file and line: a column that is missing, a row with too few fields, a number that is none or
 * is not positive, a row that is there twice (both lines), a machine without any price.  A number may not be absurd
 * either, such as a million vcpus. */
int plan_prices_read(plan_prices **out, const char *path);
/* The small dated table that the program has. */
int plan_prices_shipped(plan_prices **out);
void plan_prices_free(plan_prices **prices);

typedef struct plan_selection {
    const plan_machine **machine; /* into the table, in its order */
    int64_t machines;
} plan_selection;

/* Those that match and have a price: with `spot` a spot price, otherwise the ordinary one.  SHOAL_USAGE when one of
 * the patterns gives nothing, with the nearest names, or, where cloud or region matches nothing, with those there
 * are. */
int plan_prices_select(plan_selection *out, const plan_prices *prices, const char *pattern, bool spot);
void plan_selection_free(plan_selection *selection);

#endif
