/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * forged.c - what nvcc and the driver would make, with names of our own: variables that hold handles, and blocks
 * with a pointer to a name 8 bytes behind their beginning. Prints "HANDLE WHAT" lines, then waits for its input to
 * end. test_known and test_known_files build it when they run, and put other letters for the Q's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
__asm__(".pushsection .nv_fatbin,\"a\",@progbits\n.quad 0\n.popsection\n");
struct desc {
	long other;
	const char *name;
	long more[4];
};
#define VAR(id, symbol) static void *id __asm__(symbol) __attribute__((used))
VAR(v_a, "_ZZ20__device_stub__Z1aPiPiE8__handle");
/* two kernels, one handle */
VAR(v_b1, "_ZZL20__device_stub__Z1bPiPiE8__handle");
VAR(v_b2, "_ZZL20__device_stub__Z1cPiPiE8__handle");
/* extern "C" d; then e, or extern "C" e; then a hostile one */
VAR(v_d, "_ZZL20__device_stub__Z1dPiPiE8__handle");
VAR(v_e, "_ZZL20__device_stub__Z1ePiPiE8__handle");
VAR(v_bad, "_ZZL25__device_stub__Z1QQQQQQPiPiE8__handle");
#define FN(id, symbol)                                \
	void id(void) __asm__(symbol);                \
	__attribute__((used, noinline)) void id(void) \
	{                                             \
		__asm__ volatile("" ::"i"(__LINE__)); \
	}
FN(f_a, "_Z1aPi")
FN(f_d, "d")
FN(f_e1, "_ZL1ePi")
FN(f_e2, "e")
FN(f_static, "_ZL4statPi")
FN(f_stub, "_ZL23__device_stub__Z4statPiPi")
FN(f_clang, "_Z17__device_stub__clPi")
FN(f_bad, "_Z1QQQQQQ")
FN(f_alias, "_Z3onePi")
__asm__(".globl _Z3twoPi\n.set _Z3twoPi, _Z3onePi\n.type _Z3twoPi, @function\n");
FN(f_same, "_ZL4samePi")
__asm__(".globl _Z4samePi\n.set _Z4samePi, _ZL4samePi\n.type _Z4samePi, @function\n");
static void *desc(const char *name)
{
	struct desc *d = calloc(1, sizeof(*d));
	d->name = name ? strdup(name) : 0;
	return d;
}
int main(int argc, char **argv)
{
	static struct desc in_file = { 0, "_Z6staticPi", { 0 } };
	char *big = malloc(20000), c;
	memset(big, 'x', 19999);
	big[19999] = 0;
	v_a = desc(argc > 1 ? argv[1] : "_Z1aPi");
	v_b1 = v_b2 = desc("_Z1bPi");
	v_d = desc("d");
	v_e = desc("e");
	v_bad = desc("bad");
	printf("%p a\n%p b\n%p d\n%p e\n%p bad\n", v_a, v_b1, v_d, v_e, v_bad);
	printf("%p fa\n%p fd\n%p fstatic\n%p fclang\n%p falias\n%p fsame\n", (void *)f_a,
	       (void *)f_d, (void *)f_static, (void *)f_clang, (void *)f_alias, (void *)f_same);
	printf("%p driver\n%p hostile\n%p digit\n%p big\n%p none\n", desc("_Z6driverPi"),
	       desc("a\033[2Jb"), desc("1abc"), desc(big), desc(NULL));
	printf("%p infile\n%p odd\n%p main\n", (void *)&in_file, (char *)desc("_Z3oddPi") + 4,
	       (void *)((char *)main + 1));
	printf("%p other\n", desc("_Z5otherPi"));
	struct desc *nowhere = desc(NULL);
	nowhere->name = (char *)16;
	printf("%p nowhere\n", (void *)nowhere);
	struct desc *ro = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ro->name = strdup("_Z8readonlyPi");
	mprotect(ro, 4096, PROT_READ);
	printf("%p readonly\n", (void *)ro);
	printf("%p fbad\n", (void *)f_bad);
	puts("end");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		if (c == 'x') {
			strcpy((char *)((struct desc *)v_a)->name, "_Z1zPi");
			v_a = 0;
			puts("ok");
			fflush(stdout);
		}
	return 0;
}
