/* SPDX-License-Identifier: BSD-2-Clause */
/* own_folder.h - a folder that nobody else can put files into: for what we keep for ourselves. */
#ifndef CT_OWN_FOLDER_H
#define CT_OWN_FOLDER_H

/* Makes the folder if it is not there, and checks that it is ours alone to write to. Returns 0, or -errno: -EPERM if it
 * is not. */
int own_folder(const char *path);

#endif
