/* SPDX-License-Identifier: BSD-2-Clause */
/* make_forged.h - builds prog/forged.c, with symbols stripped too, and as a driver. */
#ifndef CT_MAKE_FORGED_H
#define CT_MAKE_FORGED_H

#include <stdlib.h>

#include "programs.h"

static char forged_dir[] = "/tmp/test_known.XXXXXX"; /* where it is */

static inline bool forged_build(void)
{
	return mkdtemp(forged_dir) &&
	       !system(text("cc -O1 -w -o %s/forged tests/unit/prog/forged.c && cd %s && sed -i "
			    "'s/Z1QQQQQQ/Z1\\x1b[2J~~/g' forged && cp forged libcuda.so.580.1 && "
			    "strip -o forged-stripped forged",
			    forged_dir, forged_dir));
}

static inline void forged_remove(void)
{
	CHECK(!system(text("rm -rf %s", forged_dir)));
}

#endif
