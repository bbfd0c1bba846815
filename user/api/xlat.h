/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * xlat.h - inside the api room: the tables of xlat.def by name (xlat_memcpy_kind, ...), and a
 * list of all of them.
 */
#ifndef CT_XLAT_H
#define CT_XLAT_H

#include "field.h"

#define ENUM(id, prefix, ...) extern const struct xlat xlat_##id;
#define FLAGS(id, prefix, ...) extern const struct xlat xlat_##id;
#include "xlat.def"
#undef ENUM
#undef FLAGS

extern const struct xlat *const xlat_all[]; /* in the order of xlat.def; NULL at the end */

#endif
