/* SPDX-License-Identifier: BSD-2-Clause */
/* test_table.c - the tables of user/util/table. */
#include <unistd.h>
#include <sys/wait.h>

#include "../../user/util/hash.h"
#include "../../user/util/table/array.h"
#include "../../user/util/table/chains.h"
#include "../../user/util/table/hash_map.h"
#include "unit.h"

struct item {
	uint32_t a, b;
};

static void test_array(void)
{
	struct item *items = NULL, *i;
	uint16_t *shorts = NULL;
	size_t room = 0, had;
	uint32_t n = 0;
	int few = 0;
	bool good = true;

	CHECK(array_full(0) && !array_full(1) && !array_full(7) && array_full(8));
	CHECK(!array_full(9) && array_full(16) && !array_full(24));
	for (uint32_t k = 0; k < 1000; k++) {
		i = array_add(items, n);
		good &= i && i == &items[k] && !i->a && !i->b;
		if (i)
			*i = (struct item){ k, ~k };
	}
	for (uint32_t k = 0; k < n; k++)
		good &= items[k].a == k && items[k].b == ~k;
	CHECK(good && n == 1000);
	/* it may lose items at its end, and get others */
	for (n = 5; n < 70; n++) {
		if (!array_room(items, n))
			break;
		items[n].a = 7;
	}
	CHECK(n == 70 && items[4].a == 4 && items[69].a == 7);
	free(items);
	CHECK(array_room(shorts, few));
	free(shorts);
	shorts = NULL;
	CHECK(array_fit(shorts, room, 100) && room == 100);
	memset(shorts, 1, room * sizeof(*shorts));
	CHECK(array_fit(shorts, room, 100) && room == 100);
	CHECK(array_fit(shorts, room, 101) && room == 200 && shorts[99] == 257);
	had = room;
	CHECK(!array_fit(shorts, room, SIZE_MAX / 2 + 2) && room == had && shorts[99] == 257);
	free(shorts);
}

/* Against a plain array, with many additions and removals. */
static void test_hash_map(void)
{
	struct item {
		uint32_t key, value;
	};
	static uint32_t want[4096];
	struct hash_map k;
	unsigned int seed = 1;
	size_t n = 0;
	bool made_it = false;

	hash_map_open(&k, sizeof(struct item), sizeof(uint32_t), 2000);
	for (int i = 0; i < 200000; i++) {
		uint32_t key = (uint32_t)rand_r(&seed) % ARRAY_LEN(want);
		struct item *it = hash_map_find(&k, &key);

		if ((it ? it->value : 0) != want[key])
			abort();
		if (it && rand_r(&seed) % 2) {
			hash_map_remove(&k, it);
			want[key] = 0;
			n--;
		} else if (!it && (it = hash_map_get(&k, &key, &made_it))) {
			want[key] = it->value = (uint32_t)i + 1;
			n++;
			CHECK(made_it);
		} else if (!it) {
			CHECK(k.n == 2000 && !made_it);
		}
	}
	CHECK(k.n == n);
	for (uint32_t key = 0; key < ARRAY_LEN(want); key++) {
		struct item *it = hash_map_find(&k, &key);

		if ((it ? it->value : 0) != want[key])
			abort();
	}
	hash_map_close(&k);
}

struct thing {
	struct chain_link link;
	uint32_t key;
};

static struct thing *thing_of(const struct chains *c, uint32_t key)
{
	struct chain_link *at = chains_find(c, key / 4);

	while (at && ((struct thing *)at)->key != key)
		at = chains_again(at);
	return (struct thing *)at;
}

/* Against a plain array: four keys have the same hash, the hashes are in few chains. */
static void test_chains(void)
{
	static bool want[4096];
	static struct thing things[ARRAY_LEN(want)];
	struct chains c = { 0 };
	unsigned int seed = 2;
	size_t n = 0, seen = 0, odd = 0;

	CHECK(!thing_of(&c, 7));
	for (int i = 0; i < 200000; i++) {
		uint32_t key = (uint32_t)rand_r(&seed) % ARRAY_LEN(want);
		struct thing *it = thing_of(&c, key);

		if (it != (want[key] ? &things[key] : NULL))
			abort();
		if (it && rand_r(&seed) % 2) {
			chains_remove(&c, &it->link);
			n--;
		} else if (!it) {
			things[key].key = key;
			CHECK(!chains_add(&c, &things[key].link, key / 4));
			n++;
		} else {
			continue;
		}
		want[key] = !want[key];
	}
	CHECK(c.n == n);
	chains_each(&c, link) seen += want[((struct thing *)link)->key];
	CHECK_EQ(seen, n);
	/* what is looked at may be taken out */
	chains_each(&c, link) if (((struct thing *)link)->key % 2) chains_remove(&c, link);
	chains_each(&c, link) odd += ((struct thing *)link)->key % 2;
	CHECK_EQ(odd, 0);
	for (uint32_t key = 0; key < ARRAY_LEN(want); key++)
		if (thing_of(&c, key) != (want[key] && key % 2 == 0 ? &things[key] : NULL))
			abort();
	chains_close(&c);
}

/* What somebody could choose to collide if there were no secret: words that differ in their high
 * bits alone, and texts of two words whose second word takes back what the first one changed. */
static unsigned int slots_of_words(unsigned int mask)
{
	bool used[256] = { false };
	unsigned int n = 0;

	for (uint64_t i = 0; i < ARRAY_LEN(used); i++) {
		uint64_t word = i << 56 | 42, at = hash_map_hash(&word, sizeof(word)) & mask;

		n += !used[at];
		used[at] = true;
	}
	return n;
}

static void test_hash(void)
{
	uint64_t first[2] = { 1, 2 }, other[2] = { 1 | 1ULL << 63, 2 ^ (1ULL << 63 | 1ULL << 34) };
	uint64_t mine = hash_bytes("name", 4), theirs = 0;
	int ends[2], status = -1;
	pid_t pid;

	CHECK(hash_bytes("name", 4) == mine && hash_bytes("name", 3) != mine);
	CHECK(hash_bytes("a", 1) != hash_bytes("a\0", 2));
	hash_fix_key();
	for (int i = 0; i < 100; i++) {
		hash_key[0] += 0x123456789;
		hash_key[1] += 0xabcdef02468ULL;
		CHECK(hash_bytes(first, 16) != hash_bytes(other, 16));
		CHECK(hash_map_hash(first, 16) != hash_map_hash(other, 16));
		/* 256 in 256 slots: by chance some 160 are taken */
		CHECK(slots_of_words(255) > 80);
	}
	/* another run has another secret */
	CHECK(!pipe(ends));
	pid = fork();
	if (!pid) {
		dup2(ends[1], 1);
		execl("/proc/self/exe", "test_table", "hash", NULL);
		_exit(1);
	}
	CHECK(read(ends[0], &theirs, sizeof(theirs)) == sizeof(theirs) && theirs != mine);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	hash_fix_key();
	mine = hash_bytes("name", 4);
	hash_fix_key();
	CHECK(hash_bytes("name", 4) == mine);
}

int main(int argc, char **argv)
{
	uint64_t hash = hash_bytes("name", 4);

	if (argc > 1 && !strcmp(argv[1], "hash"))
		return write(1, &hash, sizeof(hash)) != sizeof(hash);
	test_hash();
	test_array();
	test_hash_map();
	test_chains();
	return unit_end();
}
