/* Normal deviates that are the same on every machine: the inverse of the normal distribution function by
 * Wichura's algorithm AS 241 (PPND16, Applied Statistics 37, 1988), relative error about 1e-16, from
 * + - * / and sqrt only.  The C library's log may round differently elsewhere, so this has its own.
 *
 * 32 random bits reach no further than |z| = 6.4, so the part of AS 241 for the far tails is not needed. */
#include "data/data_internal.h"

#include <math.h>
#include <string.h>

enum { TERMS = 8 };

/* Horner's rule. */
static double polynomial(const double c[TERMS], double x)
{
    double value = c[TERMS - 1];
    for (int i = TERMS - 2; i >= 0; i--)
        value = value * x + c[i];
    return value;
}

/* The natural logarithm of a positive normal number: x = m * 2^e with m in [sqrt(1/2), sqrt(2)), then
 * log m = 2 artanh((m-1)/(m+1)) by its series, whose terms after s^23 are below 2^-60. */
static double own_log(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int exponent = (int)(bits >> 52) - 1022;
    bits = (bits & 0x000fffffffffffffu) | 0x3fe0000000000000u; /* now in [1/2, 1) */
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m < 0.70710678118654752440) {
        m *= 2;
        exponent--;
    }
    double s = (m - 1) / (m + 1), square = s * s, sum = 0;
    for (int n = 23; n >= 1; n -= 2)
        sum = sum * square + 1.0 / n;
    return 0.69314718055994530942 * exponent + 2 * s * sum;
}

double data_normal(uint32_t bits)
{
    static const double a[TERMS] = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                                    1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                    3.3430575583588128105e+4, 2.5090809287301226727e+3};
    static const double b[TERMS] = {1.0,
                                    4.2313330701600911252e+1,
                                    6.8718700749205790830e+2,
                                    5.3941960214247511077e+3,
                                    2.1213794301586595867e+4,
                                    3.9307895800092710610e+4,
                                    2.8729085735721942674e+4,
                                    5.2264952788528545610e+3};
    static const double c[TERMS] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                                    3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                                    2.27238449892691845833e-2, 7.74545014278341407640e-4};
    static const double d[TERMS] = {1.0,
                                    2.05319162663775882187e0,
                                    1.67638483018380384940e0,
                                    6.89767334985100004550e-1,
                                    1.48103976427480074590e-1,
                                    1.51986665636164571966e-2,
                                    5.47593808499534494600e-4,
                                    1.05075007164441684324e-9};
    double p = ((double)bits + 0.5) * 0x1p-32; /* never 0 or 1 */
    double q = p - 0.5;
    if (q >= -0.425 && q <= 0.425) {
        double r = 0.180625 - q * q;
        return q * polynomial(a, r) / polynomial(b, r);
    }
    double r = sqrt(-own_log(q < 0 ? p : 1 - p)) - 1.6;
    double z = polynomial(c, r) / polynomial(d, r);
    return q < 0 ? -z : z;
}
