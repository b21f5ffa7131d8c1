/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The marker: signals each packet at the egress of a device with the probability that the controller ordered.
 *
 * It runs before the shaper, when a packet arrives. An order is valid until its deadline: without new orders everything passes.
 * A signalled packet is marked CE if it is ECN-capable, and dropped otherwise. Packets that are not IPv4 or IPv6, neighbour
 * discovery and the packets of `spare` always pass. A super-packet of n segments is signalled with probability 1 - (1-p)^n.
 *
 * The class in which a packet will queue is not known yet. On a device with several classes `only` selects the packets that are
 * regulated; all others pass and are not counted.
 *
 * The random choice comes first. The clock, and the headers unless `only` needs them, are read for signalled packets alone. A packet
 * costs mostly cache misses, so the random state lies beside the counters. Headers are read and written by offset: the kernel's
 * helper for CE relies on offsets that packet sockets may set wrong.
 *
 * With `by_flow` there is no random choice: the packet rule of ST-PI2 (crates/aqm/src/papers/st_pi2.rs) adds up the probability of
 * each flow in a table, and signals it when the sum passes 1. Two processors that send packets of one flow at the same time may lose
 * an addition. Build: scripts/bpf.
 */

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define FIELD(name, value) int(*name)[value]
/* Keeps the compiler from merging counters of two branches into one computed address, which the verifier refuses. */
#define APART() __asm__ volatile("" ::: "memory")

/* Packet as the kernel presents it (linux/bpf.h, struct __sk_buff), up to the last member used here. */
struct __sk_buff {
	u32 len, pkt_type, mark, queue_mapping, protocol, vlan_present, vlan_tci, vlan_proto, priority, ingress_ifindex;
	u32 ifindex, tc_index, cb[5], hash, tc_classid, data, data_end, napi_id, family, remote_ip4, local_ip4;
	u32 remote_ip6[4], local_ip6[4], remote_port, local_port, data_meta;
	u64 flow_keys;
	u64 tstamp;
	u32 wire_len, gso_segs;
};

static void *(*map_lookup_elem)(void *map, const void *key) = (void *)1;
static u64 (*ktime_get_ns)(void) = (void *)5;
static u32 (*get_prandom_u32)(void) = (void *)7;
static long (*skb_store_bytes)(struct __sk_buff *, u32 offset, const void *from, u32 len, u64 flags) = (void *)9;
static long (*l3_csum_replace)(struct __sk_buff *, u32 offset, u64 from, u64 to, u64 size) = (void *)10;
/* The monotonic clock as of the last timer tick, a few milliseconds old at most: a deadline needs no more. Linux 5.11. */
static u64 (*ktime_get_coarse_ns)(void) = (void *)160;
static long (*skb_load_bytes)(const struct __sk_buff *, u32 offset, void *to, u32 len) = (void *)26;

/* Continues with the next program at this hook; TC_ACT_OK would end the evaluation. */
#define PASS (-1)
#define DROP 2

#define ONE (1U << 31)
#define UNROLLED _Pragma("clang loop unroll(full)")

/* Order of the controller. */
struct orders {
	u64 deadline_ns; /* by the monotonic clock; afterwards everything passes */
	u32 chance;	 /* p in units of 2^-31 */
	u32 ecn;	 /* mark ECN-capable packets */
	/* With `by_flow`; the rule is struct PacketRule of the AQM. */
	u32 scalable;	  /* p of ECT(1) packets; zero: they are classic ones */
	u32 hold;	  /* steps without another signal to a classic flow */
	u32 step;	  /* number of the AQM's step */
	u32 epoch;	  /* number of the epoch of the flows' rates; zero: no rule yet */
	u32 packet_bytes; /* mean packet */
	u32 kib_ns;	  /* time in which the link sends 1024 bytes */
	u64 recent_bytes; /* mean of the flows' bytes in this epoch and the one before; zero: not known */
	u64 fair_bytes;	  /* fair share of them */
	u64 wait_ns;	  /* wait in the queue at `read_ns` */
	u64 read_ns;	  /* when the queue was read, by the monotonic clock */
};

/* Counters, in packets as they pass here and in segments as they will be on the wire. */
struct counts {
	u64 packets, segments, bytes;
	u64 random; /* state of the generator; zero before its first use */
	u64 marked, marked_segments;
	u64 dropped, dropped_segments, dropped_bytes;
	u64 spared;	/* selected, and passed: not IP, neighbour discovery, `spare`, or truncated */
	u64 unregulated; /* selected, and passed because the order had expired */
	/* With `by_flow`. */
	u64 squares;	/* sum of bytes of a segment times bytes of the packet */
	u64 recent;	/* sum of bytes times recent bytes of the flow, modulo 2^64 */
	u64 flows;	/* flows that sent for the first time in an epoch */
	u64 handshakes; /* completed */
	u64 handshakes_ns; /* sum of their round trips */
	u64 order_ns;	   /* `read_ns` of the present order, and `bytes` when it came */
	u64 order_bytes;
};

/* Packet rules; a packet matches if it fits any of them. */
struct rules {
	u64 dscps;	  /* code points, a bit each */
	u64 protocols[4]; /* IP protocols, a bit each */
	u32 kinds;	  /* kinds of rules in use */
	u32 mark, mask;	  /* firewall mark */
	u32 unused;	  /* explicit padding */
	u16 ports[8];	  /* ports of TCP and UDP at either end; zero: none */
};

#define BY_DSCP 1
#define BY_PROTOCOL 2
#define BY_MARK 4
#define BY_PORT 8

/* Constants of a loaded marker. */
struct setup {
	struct rules spare; /* never marked or dropped */
	struct rules only;  /* if in use: all other packets pass and are not counted */
	u32 link_header;    /* bytes before the network header: 14 for Ethernet, 0 for tunnels and PPP */
	u32 by_flow;	    /* signals are added up flow by flow */
};

const volatile struct setup SETUP = {.link_header = 14};

struct {
	FIELD(type, 2); /* array */
	FIELD(max_entries, 1);
	u32 *key;
	struct orders *value;
} ORDERS SEC(".maps");

struct {
	FIELD(type, 6); /* array per processor */
	FIELD(max_entries, 1);
	u32 *key;
	struct counts *value;
} COUNTS SEC(".maps");

#define SLOTS 2048
#define WAYS 4
#define FORGOTTEN 8
#define HANDSHAKES 256
#define HANDSHAKE_MAX_NS 3000000000ULL
#define WEIGHTS_PER_OCTAVE 8
#define WEIGHTS 256

/* Flow in the table. Its epoch is 0 for a free place. */
struct flow {
	u64 bytes;  /* in its epoch */
	u64 before; /* in the epoch before */
	u64 sum;    /* of probabilities since its last signal, in units of 2^-31 */
	u32 flow, epoch;
	u32 signalled; /* step of its last signal */
	u32 unused;
};

/* SYN whose answer is awaited. */
struct handshake {
	u64 left_ns; /* end of its wait in the queue */
	u32 flow, open;
};

/* Sets of four places, one after the other. */
struct {
	FIELD(type, 2);
	FIELD(max_entries, SLOTS);
	u32 *key;
	struct flow *value;
} FLOWS SEC(".maps");

struct {
	FIELD(type, 2);
	FIELD(max_entries, HANDSHAKES);
	u32 *key;
	struct handshake *value;
} OPEN SEC(".maps");

/* Weight of a flow's signals in units of 2^-16, by the logarithm of its rate over the mean one: 8 steps an octave from 2^-12 on. */
struct {
	FIELD(type, 2);
	FIELD(max_entries, WEIGHTS);
	u32 *key;
	u32 *value;
} RATE_WEIGHTS SEC(".maps");

/* (2^31 - chance)^n / 2^31^(n-1): probability, in units of 2^-31, that none of n segments is selected. n is below 1024, since the
 * largest packet of Linux has 512 KiB. All loops are unrolled, and this one has no branches: without CAP_PERFMON the verifier also
 * follows speculative paths, which never leave a loop. */
INLINE u32 none_selected(u32 chance, u32 n)
{
	u64 base = ONE - chance, none = ONE;

	if (n > 1023)
		n = 1023;
	UNROLLED
	for (int bit = 0; bit < 10; bit++) {
		u64 taken = -(u64)(n >> bit & 1);

		none = none * ((base & taken) | (ONE & ~taken)) >> 31;
		base = base * base >> 31;
	}
	return none;
}

/* 31 random bits by Marsaglia's xorshift (13, 7, 17), seeded by the kernel's generator. */
INLINE u32 draw(struct counts *counts)
{
	u64 random = counts->random;

	if (!random)
		random = (u64)get_prandom_u32() << 32 | get_prandom_u32() | 1;
	random ^= random << 13;
	random ^= random >> 7;
	random ^= random << 17;
	counts->random = random;
	return random >> 33;
}

/* Header fields that the marker needs. */
struct headers {
	u32 network; /* offset of the IP header */
	u32 version;
	u8 tos; /* traffic class */
	u8 protocol; /* transport, after extension headers */
	u8 first; /* the transport header is in this packet: no later fragment, no unknown header before it */
	u8 start[2]; /* the first two bytes of the IP header */
	u32 transport; /* its offset */
};

#define IPV4 0x0800
#define IPV6 0x86dd
#define VLAN 0x8100
#define SERVICE_VLAN 0x88a8
#define PPPOE 0x8864
#define EXTENSIONS_MAX 8

/* Skips the extension headers of IPv6. */
INLINE void skip_extensions(struct __sk_buff *skb, struct headers *h)
{
	UNROLLED
	for (int i = 0; i < EXTENSIONS_MAX; i++) {
		u8 extension[4];

		switch (h->protocol) {
		case 0: case 43: case 60: case 135: /* hop by hop, routing, destination, mobility */
		case 44: case 51: /* fragment, authentication */
			break;
		default:
			return;
		}
		if (skb_load_bytes(skb, h->transport, extension, sizeof(extension)))
			break;
		if (h->protocol == 44) {
			h->transport += 8;
			if (extension[2] || extension[3] & 0xf8) {
				/* A later fragment: data follow. */
				h->protocol = extension[0];
				h->first = 0;
				return;
			}
		} else if (h->protocol == 51) {
			h->transport += (extension[1] + 2) * 4;
		} else {
			h->transport += (extension[1] + 1) * 8;
		}
		h->protocol = extension[0];
	}
	h->first = 0;
}

/* Reads the header fields. Zero if there is no IP header or it is truncated. */
INLINE int read_headers(struct __sk_buff *skb, struct headers *h)
{
	u8 bytes[40];
	u32 at = SETUP.link_header;

	if (at) {
		u8 kind[2];
		u32 protocol;

		if (skb_load_bytes(skb, at - 2, kind, 2))
			return 0;
		protocol = kind[0] << 8 | kind[1];
		UNROLLED
		for (int tags = 0; tags < 2 && (protocol == VLAN || protocol == SERVICE_VLAN); tags++) {
			if (skb_load_bytes(skb, at + 2, kind, 2))
				return 0;
			protocol = kind[0] << 8 | kind[1];
			at += 4;
		}
		if (protocol == PPPOE) {
			if (skb_load_bytes(skb, at + 6, kind, 2))
				return 0;
			protocol = kind[0] << 8 | kind[1];
			protocol = protocol == 0x21 ? IPV4 : protocol == 0x57 ? IPV6 : 0;
			at += 8;
		}
		if (protocol != IPV4 && protocol != IPV6)
			return 0;
	}
	if (skb_load_bytes(skb, at, bytes, 20))
		return 0;
	h->network = at;
	h->version = bytes[0] >> 4;
	h->start[0] = bytes[0];
	h->start[1] = bytes[1];
	h->first = 1;
	if (h->version == 4) {
		u32 length = (bytes[0] & 15) * 4;

		if (length < 20)
			return 0;
		h->tos = bytes[1];
		h->protocol = bytes[9];
		h->first = !((bytes[6] & 0x1f) | bytes[7]);
		h->transport = at + length;
		return 1;
	}
	if (h->version != 6 || skb_load_bytes(skb, at, bytes, 40))
		return 0;
	h->tos = bytes[0] << 4 | bytes[1] >> 4;
	h->protocol = bytes[6];
	h->transport = at + 40;
	skip_extensions(skb, h);
	return 1;
}

/* Whether a packet fits one of the rules. */
INLINE int fits(struct __sk_buff *skb, const volatile struct rules *rules, const struct headers *h)
{
	u32 kinds = rules->kinds;
	u8 start[4];

	if (kinds & BY_DSCP && rules->dscps >> (h->tos >> 2) & 1)
		return 1;
	if (kinds & BY_PROTOCOL && rules->protocols[h->protocol >> 6] >> (h->protocol & 63) & 1)
		return 1;
	if (kinds & BY_MARK && (skb->mark & rules->mask) == rules->mark)
		return 1;
	if (kinds & BY_PORT && h->first && (h->protocol == 6 || h->protocol == 17) &&
	    !skb_load_bytes(skb, h->transport, start, 4)) {
		u16 source = start[0] << 8 | start[1], destination = start[2] << 8 | start[3];

		UNROLLED
		for (int i = 0; i < 8; i++) {
			u16 port = rules->ports[i];

			if (port && (port == source || port == destination))
				return 1;
		}
	}
	return 0;
}

/* Whether a selected packet is exempt. */
INLINE int is_spared(struct __sk_buff *skb, const struct headers *h)
{
	u8 kind;

	if (h->version == 6 && h->protocol == 58 && h->first) {
		/* RFC 4861: solicitations and advertisements of routers and neighbours, and redirects. Without them the link
		 * fails. */
		if (skb_load_bytes(skb, h->transport, &kind, 1) || (kind >= 133 && kind <= 137))
			return 1;
	}
	return fits(skb, &SETUP.spare, h);
}

/* Sets the ECN field to CE. Zero if it cannot be written. */
INLINE int set_ce(struct __sk_buff *skb, const struct headers *h)
{
	union {
		u8 bytes[2];
		u16 word;
	} before = {{h->start[0], h->start[1]}}, after = before;

	if ((h->tos & 3) == 3)
		return 1;
	after.bytes[1] |= h->version == 4 ? 0x03 : 0x30;
	/* The flag BPF_F_RECOMPUTE_CSUM updates a checksum over a whole IPv6 packet, if there is one. */
	if (h->version == 4 && l3_csum_replace(skb, h->network + 10, before.word, after.word, 2))
		return 0;
	return !skb_store_bytes(skb, h->network + 1, &after.bytes[1], 1, h->version == 6);
}

/* Hash of addresses, protocol and ports. `tcp_flags`: those of a TCP header, otherwise zero. */
INLINE u32 flow_hash(struct __sk_buff *skb, const struct headers *h, u8 *tcp_flags)
{
	u32 words[9] = {};
	u8 flags = 0;
	u64 hash = h->protocol;

	if (h->version == 4)
		skb_load_bytes(skb, h->network + 12, words, 8);
	else
		skb_load_bytes(skb, h->network + 8, words, 32);
	if (h->first && (h->protocol == 6 || h->protocol == 17 || h->protocol == 132))
		skb_load_bytes(skb, h->transport, &words[8], 4);
	if (h->first && h->protocol == 6)
		skb_load_bytes(skb, h->transport + 13, &flags, 1);
	*tcp_flags = flags;
	UNROLLED
	for (int i = 0; i < 9; i++) {
		/* Fibonacci hashing, Knuth, The Art of Computer Programming 3, section 6.4. */
		hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 32;
	}
	return hash;
}

/* Round trip from a SYN, once it has left the queue, to the next packet of its flow. */
INLINE void time_handshake(struct counts *counts, const struct orders *orders, u32 flow, int syn)
{
	u32 slot = flow * 0x9e3779b1U >> 24;
	struct handshake *open = map_lookup_elem(&OPEN, &slot);
	u64 now, busy_ns;

	if (!open)
		return;
	if (syn) {
		/* What waited when the queue was read, and what came since, has to be sent before. */
		busy_ns = orders->wait_ns + ((counts->bytes - counts->order_bytes) * orders->kib_ns >> 10);
		now = ktime_get_ns();
		open->flow = flow;
		open->left_ns = orders->read_ns + busy_ns;
		if (open->left_ns < now)
			open->left_ns = now;
		open->open = 1;
		return;
	}
	if (!open->open || open->flow != flow)
		return;
	open->open = 0;
	now = ktime_get_ns();
	now = now > open->left_ns ? now - open->left_ns : 0;
	if (now <= HANDSHAKE_MAX_NS) {
		counts->handshakes++;
		counts->handshakes_ns += now;
	}
}

/* The place of a flow, which may be another's. Places are addressed by number: without CAP_PERFMON the verifier refuses pointers
 * that were computed differently on different paths. */
INLINE struct flow *place(u32 flow)
{
	u32 set = (flow * 0x9e3779b1U >> 23) * WAYS, at = set, best = set, oldest = -1U;

	UNROLLED
	for (int i = 0; i < WAYS; i++) {
		struct flow *way;

		at = set + i;
		way = map_lookup_elem(&FLOWS, &at);
		if (!way)
			return 0;
		if (way->epoch && way->flow == flow)
			return way;
		if (way->epoch < oldest) {
			oldest = way->epoch;
			best = at;
		}
	}
	return map_lookup_elem(&FLOWS, &best);
}

/* The place of a flow, after its `bytes` are counted. The same as in flows.rs of ST-PI2. */
INLINE struct flow *count_flow(struct counts *counts, u32 hash, u32 epoch, u32 bytes)
{
	struct flow *flow = place(hash);

	if (!flow)
		return 0;
	if (!flow->epoch || flow->flow != hash) {
		/* If the flow that had the place is still active, the newcomer takes over its sum. */
		if (!flow->epoch || flow->epoch + 1 < epoch)
			flow->sum = 0;
		flow->flow = hash;
		flow->epoch = flow->signalled = 0;
		flow->bytes = 0;
	} else if (flow->epoch + FORGOTTEN < epoch) {
		flow->sum = 0;
	}
	if (flow->epoch != epoch) {
		flow->before = flow->epoch + 1 == epoch ? flow->bytes : 0;
		flow->epoch = epoch;
		flow->bytes = 0;
		counts->flows++;
	}
	flow->bytes += bytes;
	return flow;
}

/* Weight of a flow with `recent` bytes, in units of 2^-16. */
INLINE u64 weight(u64 recent, u64 mean)
{
	u64 rate = mean ? (recent << 12) / mean : 0;
	u32 octave = 0, at, *found;

	if (!rate)
		return 1 << 16;
	if (rate > 0xffffffff)
		rate = 0xffffffff;
	UNROLLED
	for (int bits = 16; bits; bits >>= 1) {
		u64 above = -(u64)(rate >> (octave + bits) != 0);

		octave += bits & above;
	}
	at = octave * WEIGHTS_PER_OCTAVE + (((rate << 3) >> octave) & (WEIGHTS_PER_OCTAVE - 1));
	found = map_lookup_elem(&RATE_WEIGHTS, &at);
	return found ? *found : 1 << 16;
}

/* Counts a packet of `segments`, and returns whether the sum of its flow has passed 1. */
INLINE int is_due(struct __sk_buff *skb, struct counts *counts, const struct orders *orders, const struct headers *h, u32 segments)
{
	u32 bytes = skb->wire_len, hash, chance = orders->chance, even;
	u64 recent, sum;
	struct flow *flow;
	u8 flags;

	hash = flow_hash(skb, h, &flags);
	counts->squares += (u64)bytes * (bytes / segments);
	if (counts->order_ns != orders->read_ns) {
		counts->order_ns = orders->read_ns;
		counts->order_bytes = counts->bytes - bytes;
	}
	if (h->first && h->protocol == 6)
		time_handshake(counts, orders, hash, flags & 2);
	if (!orders->epoch)
		return 0;
	flow = count_flow(counts, hash, orders->epoch, bytes);
	if (!flow)
		return 0;
	recent = flow->bytes + flow->before;
	counts->recent += bytes * recent;
	if ((h->tos & 3) == 1 && orders->scalable)
		chance = orders->scalable;
	else if (flow->signalled && orders->step - flow->signalled < orders->hold)
		return 0;
	if (!chance || !orders->packet_bytes)
		return 0;
	/* Small packets of a flow above its fair share count as mean ones. */
	even = segments * orders->packet_bytes;
	if (recent > orders->fair_bytes && bytes < even)
		bytes = even;
	sum = (u64)chance * bytes / orders->packet_bytes;
	sum = flow->sum + (sum * weight(recent, orders->recent_bytes) >> 16);
	if (sum < ONE) {
		flow->sum = sum;
		return 0;
	}
	sum -= ONE;
	flow->sum = sum < ONE ? sum : ONE;
	flow->signalled = orders->step;
	return 1;
}

SEC("classifier")
int aqumen_marker(struct __sk_buff *skb)
{
	const u32 zero = 0;
	struct orders *orders = map_lookup_elem(&ORDERS, &zero);
	struct counts *counts = map_lookup_elem(&COUNTS, &zero);
	struct headers headers = {};
	u32 segments = skb->gso_segs, chance, bytes = skb->wire_len;

	if (!orders || !counts)
		return PASS;
	if (SETUP.only.kinds && !(read_headers(skb, &headers) && fits(skb, &SETUP.only, &headers)))
		return PASS;
	if (!segments)
		segments = 1;
	counts->packets++;
	counts->segments += segments;
	counts->bytes += bytes;

	if (SETUP.by_flow) {
		if (!SETUP.only.kinds && !read_headers(skb, &headers))
			return PASS;
		if (!is_due(skb, counts, orders, &headers, segments))
			return PASS;
	} else {
		chance = orders->chance;
		if (!chance)
			return PASS;
		if (segments > 1)
			chance = ONE - none_selected(chance, segments);
		if (draw(counts) >= chance)
			return PASS;
	}

	if (ktime_get_coarse_ns() > orders->deadline_ns) {
		counts->unregulated++;
		APART();
		return PASS;
	}
	if ((!SETUP.only.kinds && !SETUP.by_flow && !read_headers(skb, &headers)) || is_spared(skb, &headers)) {
		counts->spared++;
		APART();
		return PASS;
	}
	if (headers.tos & 3 && orders->ecn) {
		if (set_ce(skb, &headers)) {
			counts->marked++;
			counts->marked_segments += segments;
		}
		APART();
		return PASS;
	}
	counts->dropped++;
	counts->dropped_segments += segments;
	counts->dropped_bytes += bytes;
	APART();
	return DROP;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
