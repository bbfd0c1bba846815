/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * no_device.c - none/libcuda.so.1: a driver of a machine without a device. It cannot be started, and has no tables
 * for NVIDIA's tools. A libcupti finds that there is no driver, and says so.
 */
#define VISIBLE __attribute__((visibility("default")))
int cuInit(unsigned int flags);
int cuDriverGetVersion(int *version);

VISIBLE int cuInit(unsigned int flags)
{
	(void)flags;
	return 100; /* CUDA_ERROR_NO_DEVICE */
}

VISIBLE int cuDriverGetVersion(int *version)
{
	*version = 13050;
	return 0;
}
