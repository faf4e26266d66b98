/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/percent.h"

#include <math.h>
#include <stdio.h>

static char *print(double frac, const char *sign, char *buf)
{
    double percents = fabs(frac) * 100;
    if (isnan(frac))
        snprintf(buf, PERCENT_SIZE, "-");
    else
        snprintf(buf, PERCENT_SIZE, "%s%.*f%%", percents < 0.05 ? "" : sign,
                 percents < 9.95 ? 1 : 0, fmin(percents, 1e15));
    return buf;
}

char *percent(double frac, char buf[PERCENT_SIZE])
{
    return print(frac, frac < 0 ? "-" : "", buf);
}

char *percent_signed(double frac, char buf[PERCENT_SIZE])
{
    return print(frac, frac < 0 ? "-" : "+", buf);
}
