/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * absent.c - the target of the tests about memory that is not there when a call is made: gives CUDA
 * names in pages that nobody has touched, or that nobody serves.
 *
 *         absent many             registers 20 000 kernels whose names lie in untouched .rodata,
 *                                 and launches each of them once
 *         absent file FILE        asks for functions by names that lie at the beginning of
 *                                 FILE's four pages, which are mapped and not
 *                                 touched: page 0; page 2, which another page replaces as soon
 *                                 as the call is over; page 3, which is
 *                                 changed in the file likewise; page 1, after its memory was
 *                                 written to
 *         absent library DIR FILE mounts a file system at DIR that serves FILE, and maps it as code
 *         absent fuse DIR MS      mounts a file system at DIR that never answers a read, maps
 *                                 its file and has a thread ask for a
 * 				function whose name lies there
 * 	absent uffd MS		the same by userfaultfd
 * 	absent arguments MS	the same with pages of its own arguments and environment
 *
 * The latter three print "ready", wait for a line, print "hanging" when the thread is about to
 * make its call, and call cudaMalloc every 10 ms until MS are over. Then the page is served, and
 * they end. They print "skip WHY" where the kernel has no such thing.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What nvcc's code calls. */
void **__cudaRegisterFatBinary(void *binary);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
			    int limit, void *tid, void *bid, void *block, void *grid, int *warp);

/* ---- names in .rodata ---- */

#define MANY 20000
#define EACH 64 /* bytes of most names' places */
#define LONG 40 /* of them these are longer than a record's room */
#define LONG_EACH 1024

/* On pages of their own, which nothing else has touched. */
__asm__(".section .rodata.names, \"a\"\n.balign 65536\n.globl names\nnames:\n"
	".altmacro\n"
	".macro name n\n.asciz \"_Z10kernel\\n\\()ilPfS_iiiiiiii\"\n.balign 64\n.endm\n"
	".macro longname n\n.ascii \"_Z900long\\n\"\n.fill 900, 1, 0x61\n.asciz \"end\"\n.balign "
	"1024\n.endm\n"
	".set i, 0\n.rept 20000\nname %i\n.set i, i + 1\n.endr\n.balign 65536\n"
	".globl long_names\nlong_names:\n.set i, 0\n.rept 40\nlongname %i\n.set i, i + 1\n.endr\n"
	".balign 65536\n.noaltmacro\n.text\n");
extern const char names[], long_names[];

static char stubs[MANY + LONG];

static int many(void)
{
	void **handle;
	static char binary[64];

	handle = __cudaRegisterFatBinary(binary);
	for (int i = 0; i < MANY + LONG; i++) {
		const char *name = i < MANY ? names + (size_t)i * EACH
					    : long_names + (size_t)(i - MANY) * LONG_EACH;

		__cudaRegisterFunction(handle, &stubs[i], (char *)(uintptr_t)name, name, -1, NULL,
				       NULL, NULL, NULL, NULL);
	}
	for (int i = 0; i < MANY + LONG; i++)
		cudaLaunchKernel(&stubs[i], (dim3){ 1, 1, 1 }, (dim3){ 1, 1, 1 }, NULL, 0, NULL);
	return 0;
}

/* ---- a page that is never served ---- */

#define READS 64

static int fuse_fd = -1;
static int library_fd = -1; /* a file that is served */
static off_t served_bytes = 65536;
static struct fuse_read {
	uint64_t id;
	uint32_t size;
} reads[READS]; /* that were not answered */
static _Atomic unsigned int nreads;

static void reply(uint64_t id, int err, const void *data, size_t n)
{
	static char buf[1 << 18];
	struct fuse_out_header h = { .len = (uint32_t)(sizeof(h) + n), .error = err, .unique = id };

	memcpy(buf, &h, sizeof(h));
	if (n)
		memcpy(buf + sizeof(h), data, n);
	if (write(fuse_fd, buf, h.len) < 0 && errno != ENOENT)
		perror("fuse");
}

static struct fuse_attr attr(uint64_t ino)
{
	return (struct fuse_attr){ .ino = ino,
				   .mode = ino == 1 ? S_IFDIR | 0755 : S_IFREG | 0755,
				   .nlink = 1,
				   .size = ino == 1 ? 0 : (uint64_t)served_bytes,
				   .uid = getuid(),
				   .gid = getgid(),
				   .blksize = 4096 };
}

static void read_library(uint64_t id, const struct fuse_read_in *r)
{
	static char buf[1 << 17];
	ssize_t n = pread(library_fd, buf, r->size < sizeof(buf) ? r->size : sizeof(buf),
			  (off_t)r->offset);

	reply(id, 0, buf, n > 0 ? (size_t)n : 0);
}

static void *serve(void *arg)
{
	static char buf[1 << 20];
	ssize_t n;

	(void)arg;
	while ((n = read(fuse_fd, buf, sizeof(buf))) > 0 || errno == EINTR || errno == ENOENT) {
		struct fuse_in_header *h = (void *)buf;
		struct fuse_init_out init = { .major = 7, .minor = 31, .max_write = 4096 };
		struct fuse_entry_out entry = {
			.nodeid = 2, .attr = attr(2), .entry_valid = 1000, .attr_valid = 1000
		};
		struct fuse_attr_out a = { .attr_valid = 1000, .attr = attr(h->nodeid) };
		struct fuse_open_out o = { .fh = 1 };

		if (n <= 0)
			continue;
		switch (h->opcode) {
		case FUSE_INIT: reply(h->unique, 0, &init, sizeof(init)); break;
		case FUSE_LOOKUP: reply(h->unique, 0, &entry, sizeof(entry)); break;
		case FUSE_GETATTR: reply(h->unique, 0, &a, sizeof(a)); break;
		case FUSE_OPEN:
		case FUSE_OPENDIR: reply(h->unique, 0, &o, sizeof(o)); break;
		case FUSE_READ:
			if (library_fd >= 0) {
				read_library(h->unique, (struct fuse_read_in *)(h + 1));
				break;
			}
			/* later */
			reads[nreads % READS] =
				(struct fuse_read){ h->unique,
						    ((struct fuse_read_in *)(h + 1))->size };
			nreads++;
			break;
		case FUSE_FORGET:
		case FUSE_INTERRUPT: break;
		default: reply(h->unique, -ENOSYS, NULL, 0);
		}
	}
	return NULL;
}

static char *skip(const char *what)
{
	printf("skip %s: %s\n", what, strerror(errno));
	return NULL;
}

static char *fuse_page(const char *dir, int prot)
{
	char opts[100], file[300];
	pthread_t t;
	char *page;
	int fd;

	fuse_fd = open("/dev/fuse", O_RDWR);
	if (fuse_fd < 0)
		return skip("/dev/fuse");
	snprintf(opts, sizeof(opts), "fd=%d,rootmode=40000,user_id=%d,group_id=%d", fuse_fd,
		 getuid(), getgid());
	if (mount("absent", dir, "fuse", 0, opts))
		return skip("mount");
	pthread_create(&t, NULL, serve, NULL);
	/* it has each name */
	snprintf(file, sizeof(file), "%s/libcudart.so.13", dir);
	fd = open(file, O_RDONLY);
	page = mmap(NULL, (size_t)served_bytes, prot, MAP_PRIVATE, fd, 0);
	/* at our end it would be closed when nobody answers any more */
	close(fd);
	return page == MAP_FAILED ? skip("mmap") : page;
}

static int uffd = -1;

/* A new page that is not served, at AT, or anywhere. */
static char *uffd_page(void *at)
{
	struct uffdio_api api = { .api = UFFD_API };
	char *page = mmap(at, 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);
	struct uffdio_register r = { .range = { (uintptr_t)page, 4096 },
				     .mode = UFFDIO_REGISTER_MODE_MISSING };

	if (page == MAP_FAILED)
		return skip("mmap");
	if (uffd < 0) {
		uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
		if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api))
			return skip("userfaultfd");
	}
	return ioctl(uffd, UFFDIO_REGISTER, &r) ? skip("userfaultfd") : page;
}

/*
 * The first page that lies in TEXT as a whole is not served: /proc reads it for the arguments or
 * the environment. The kernel puts both on the stack below its end, which is a page's; what lies
 * there beside them must go on being served, and cudatrace reads 2 KiB of the arguments. So the
 * program starts itself again with an argument and a variable of some pages, and once more with
 * an argument that is shorter by as much as its first page begins too late.
 */
#define PAD 12288
#define EARLY 500

static char *first_page(char *text)
{
	return (char *)(((uintptr_t)text + 4095) & ~(uintptr_t)4095);
}

static char *over_arguments(char **argv)
{
	static char pad[PAD], self[4096];
	char *variable = getenv("ABSENT_PAD");
	ptrdiff_t before = first_page(argv[0]) - argv[0];

	if (!variable || before > EARLY) {
		memset(pad, 'a', PAD - 1);
		setenv("ABSENT_PAD", pad, 1);
		if (variable)
			pad[PAD - 1 - before] = '\0';
		argv[0] = pad;
		if (readlink("/proc/self/exe", self, sizeof(self) - 1) > 0)
			execv(self, argv);
		return skip("exec");
	}
	return uffd_page(first_page(variable)) ? uffd_page(first_page(argv[0])) : NULL;
}

static volatile int hung;

static void *ask(void *page)
{
	CUfunction f;
	CUmodule m = (CUmodule)0x1234;

	hung = 1;
	cuModuleGetFunction(&f, m, page);
	return NULL;
}

static void serve_all(char *page)
{
	static char zeros[1 << 17];
	struct uffdio_zeropage z = { .range = { (uintptr_t)page, 4096 } };

	if (uffd >= 0)
		ioctl(uffd, UFFDIO_ZEROPAGE, &z);
	for (unsigned int i = 0; fuse_fd >= 0 && i < nreads; i++)
		reply(reads[i % READS].id, 0, zeros, reads[i % READS].size);
}

static int hang(char *page, int ms, int calls)
{
	pthread_t t;
	char line[16];
	void *p;

	if (!page)
		return 0;
	cudaMalloc(&p, 100);
	cudaFree(p);
	printf("ready %d\n", getpid());
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	if (calls)
		pthread_create(&t, NULL, ask, page);
	while (calls && !hung)
		usleep(1000);
	printf("hanging\n");
	for (int i = 0; i < ms / 10; i++) {
		cudaMalloc(&p, 100);
		cudaFree(p);
		usleep(10000);
	}
	printf("done\n");
	serve_all(page);
	if (calls)
		pthread_join(t, NULL);
	return 0;
}

/* ---- names in files ---- */

static CUresult ask_for(const char *name)
{
	CUfunction f;

	return cuModuleGetFunction(&f, (CUmodule)0x1234, name);
}

static int file(const char *path)
{
	char *map;
	int fd = open(path, O_RDWR);

	map = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (fd < 0 || map == MAP_FAILED)
		return 1;
	/* as the file has it */
	ask_for(map);
	/* another page takes the place as soon as the call is over */
	ask_for(map + 8192);
	mmap(map + 8192, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
	     0);
	strcpy(map + 8192, "wrong_page");
	/* the file is changed as soon as the call is over */
	ask_for(map + 12288);
	if (pwrite(fd, "wrong_file", 11, 12288) != 11)
		return 1;
	/* memory that is not what the file has: written to, and then thrown out of memory if
	 * that can be */
	strcpy(map + 4096, "written_to");
	madvise(map, 8192, MADV_PAGEOUT);
	ask_for(map + 4096);
	/* shorter than the mapping: nothing is there */
	if (ftruncate(fd, 4096))
		return 1;
	return 0;
}

/* A library that this program serves itself is mapped, as code. */
static int library(const char *dir, const char *path)
{
	struct stat st;

	library_fd = open(path, O_RDONLY);
	if (library_fd < 0 || fstat(library_fd, &st))
		return 1;
	served_bytes = st.st_size;
	if (!fuse_page(dir, PROT_READ | PROT_EXEC))
		return 0;
	printf("ready\n");
	getchar();
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(what, "many"))
		return many();
	if (!strcmp(what, "file") && argc > 2)
		return file(argv[2]);
	if (!strcmp(what, "fuse") && argc > 3)
		return hang(fuse_page(argv[2], PROT_READ), atoi(argv[3]), 1);
	if (!strcmp(what, "library") && argc > 3)
		return library(argv[2], argv[3]);
	if (!strcmp(what, "uffd") && argc > 2)
		return hang(uffd_page(NULL), atoi(argv[2]), 1);
	if (!strcmp(what, "arguments") && argc > 2)
		return hang(over_arguments(argv), atoi(argv[2]), 0);
	fprintf(stderr, "absent: wrong arguments\n");
	return 2;
}
