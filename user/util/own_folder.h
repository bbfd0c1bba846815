/* SPDX-License-Identifier: BSD-2-Clause */
/* own_folder.h - a folder into which nobody else can put files, for files that we keep for
 * ourselves. */
#ifndef CT_OWN_FOLDER_H
#define CT_OWN_FOLDER_H

/* Makes the folder if it is not there, and checks that only we may write to it. Returns 0 or
 * -errno: -EPERM if others may. */
int own_folder(const char *path);

#endif
