/* The only program of a virtual machine: it offers a trace of arrivals to disciplines of the machine's own kernel, one after another, and
 * prints all that happens at each, in order. python/tests/test_kernel_qdiscs.py builds the machine and reads what it prints.
 *
 * A TUN device is the link: its root is htb at the link's rate, under which the discipline stands, and what leaves is read here at once.
 * Packets are the kernel's own datagrams.
 *
 * The machine's clock stands still between two ticks ("clocksource=jiffies"): whatever the kernel's discipline reads within a tick is the
 * very number that is read here, to the nanosecond. All that is due at a tick is done within it, and "LATE" says that it was not.
 *
 * Lines: "Q name" begins a discipline, "S from to" says between which moments it was set up; then "T time", nanoseconds of the same clock,
 * "a number" a packet that arrives, "d number ce" one that leaves, "p probability" PIE's, in units of 2^-64, when it changes;
 * "END" is the end.
 */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/gen_stats.h>
#include <linux/if_tun.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <termios.h>
#include <unistd.h>

#define PACKETS 100000
#define FLOWS 64
#define HEADERS 28
/* A multiple of CoDel's unit of time, 1024 ns: times counted from such a moment are rounded as the kernel's are. */
#define WHOLE 1024000ull

struct arrival {
	uint64_t at;
	uint32_t flow, bytes, ect;
};

static struct arrival arrivals[PACKETS];
static int count;
/* What is printed when a discipline has done its work: the line to the outside is slow. */
static char story[8 << 20];
static size_t told;
static uint64_t origin;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void fail(const char *what)
{
	printf("FAILED %s: %s\n", what, strerror(errno));
	fflush(stdout);
	sync();
	reboot(RB_POWER_OFF);
	_exit(1);
}

static void load_modules(void)
{
	FILE *list = fopen("/modules.txt", "r");
	char path[256];

	while (list && fscanf(list, "%255s", path) == 1) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);

		/* What is there already is fine. */
		if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) && errno != EEXIST))
			fail(path);
		close(fd);
	}
}

static void tc(const char *line)
{
	char words[512], *argv[64];
	int n = 0, status;
	pid_t child;

	snprintf(words, sizeof(words), "tc %s", line);
	for (char *word = strtok(words, " \n"); word && n < 63; word = strtok(NULL, " \n"))
		argv[n++] = word;
	argv[n] = NULL;
	child = fork();
	if (!child) {
		execv("/sbin/tc", argv);
		_exit(127);
	}
	if (waitpid(child, &status, 0) < 0 || status)
		fail(line);
}

static int make_device(int control)
{
	struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
	struct sockaddr_in *address = (struct sockaddr_in *)&request.ifr_addr;
	int tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	strcpy(request.ifr_name, "t0");
	if (tun < 0 || ioctl(tun, TUNSETIFF, &request))
		fail("tun");
	memset(&request.ifr_addr, 0, sizeof(request.ifr_addr));
	address->sin_family = AF_INET;
	address->sin_addr.s_addr = inet_addr("10.0.0.1");
	if (ioctl(control, SIOCSIFADDR, &request))
		fail("address");
	address->sin_addr.s_addr = inet_addr("255.255.255.0");
	if (ioctl(control, SIOCSIFNETMASK, &request))
		fail("netmask");
	request.ifr_flags = IFF_UP | IFF_RUNNING | IFF_NOARP;
	if (ioctl(control, SIOCSIFFLAGS, &request))
		fail("up");
	return tun;
}

#define TELL(...) (told += snprintf(story + told, told + 64 < sizeof(story) ? 64 : 0, __VA_ARGS__))

/* Tells what has left; a packet's number is the first word that it carries. */
static void take(int tun)
{
	unsigned char packet[2048];
	uint32_t number;

	for (;;) {
		ssize_t length = read(tun, packet, sizeof(packet));

		if (length < 0)
			return;
		if (length >= HEADERS + 4 && packet[0] == 0x45 && packet[9] == 17) {
			memcpy(&number, packet + HEADERS, 4);
			TELL("d %u %d\n", number, (packet[1] & 3) == 3);
		}
	}
}

/* PIE's probability, by the kernel's own statistics; false: there is no PIE. */
static int probability(int netlink, uint64_t *p)
{
	static char room[16384];
	struct {
		struct nlmsghdr head;
		struct tcmsg tc;
	} ask = {{sizeof(ask), RTM_GETQDISC, NLM_F_REQUEST | NLM_F_DUMP, 1, 0}, {AF_UNSPEC}};
	int found = 0, over = 0;

	ask.tc.tcm_ifindex = if_nametoindex("t0");
	if (send(netlink, &ask, sizeof(ask), 0) < 0)
		fail("statistics");
	while (!over) {
		int length = recv(netlink, room, sizeof(room), 0);

		if (length <= 0)
			fail("statistics");
		for (struct nlmsghdr *one = (struct nlmsghdr *)room; NLMSG_OK(one, length); one = NLMSG_NEXT(one, length)) {
			struct tcmsg *tc = NLMSG_DATA(one);
			struct rtattr *of = TCA_RTA(tc);
			int left = TCA_PAYLOAD(one), pie = 0;

			over |= one->nlmsg_type == NLMSG_DONE;
			if (one->nlmsg_type != RTM_NEWQDISC || tc->tcm_ifindex != ask.tc.tcm_ifindex)
				continue;
			for (; RTA_OK(of, left); of = RTA_NEXT(of, left)) {
				if (of->rta_type == TCA_KIND)
					pie = !strcmp(RTA_DATA(of), "pie");
				if (of->rta_type != TCA_STATS2 || !pie)
					continue;
				int rest = RTA_PAYLOAD(of);

				for (struct rtattr *in = RTA_DATA(of); RTA_OK(in, rest); in = RTA_NEXT(in, rest)) {
					if (in->rta_type == TCA_STATS_APP) {
						memcpy(p, RTA_DATA(in), sizeof(*p));
						found = 1;
					}
				}
			}
		}
	}
	return found;
}

static void offer(int tun, int netlink, int is_pie, int sockets[FLOWS][2])
{
	static char payload[2048];
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr("10.0.0.2")};
	struct timespec tick = {.tv_nsec = 1};
	uint64_t start = now(), p = 0, last = 0;

	for (int i = 0, quiet = 0; i < count || quiet < 500;) {
		size_t before;
		uint64_t at;

		/* It ends with the next tick, whose disciplines' timers and departures have had their turn by then. */
		nanosleep(&tick, NULL);
		at = now();
		before = told;
		TELL("T %llu\n", (unsigned long long)(at - origin));
		size_t stamp = told;

		if (is_pie && probability(netlink, &p) && p != last)
			TELL("p %llu\n", (unsigned long long)(last = p));
		take(tun);
		for (; i < count && start + arrivals[i].at <= at; i++) {
			struct arrival *a = &arrivals[i];
			uint32_t number = i;

			memcpy(payload, &number, 4);
			to.sin_port = htons(7000 + a->flow);
			TELL("a %d\n", i);
			/* A discipline that drops it may say so. */
			sendto(sockets[a->flow][a->ect], payload, a->bytes - HEADERS, 0, (struct sockaddr *)&to, sizeof(to));
			take(tun);
		}
		if (now() != at)
			TELL("LATE %llu\n", (unsigned long long)(now() - at));
		quiet = told == stamp ? quiet + 1 : 0;
		if (told == stamp)
			told = before;
	}
}

int main(void)
{
	static int sockets[FLOWS][2];
	char rate[64], line[256];
	FILE *file;
	int control, tun, netlink;
	uint64_t began;

	/* Whatever the kernel has to do at a tick, in threads of its own too, comes before us. */
	if (sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){0}))
		fail("idle");
	mount("none", "/proc", "proc", 0, "");
	mount("none", "/sys", "sysfs", 0, "");
	mount("none", "/dev", "devtmpfs", 0, "");
	int serial = open("/dev/ttyS0", O_WRONLY);
	if (serial >= 0)
		dup2(serial, 1);
	load_modules();
	control = socket(AF_INET, SOCK_DGRAM, 0);
	file = fopen("/trace.txt", "r");
	if (!file || fscanf(file, "%63s", rate) != 1)
		fail("trace");
	while (count < PACKETS && fscanf(file, "%llu %u %u %u", (unsigned long long *)&arrivals[count].at, &arrivals[count].flow,
					 &arrivals[count].bytes, &arrivals[count].ect) == 4)
		count++;
	for (int flow = 0; flow < FLOWS; flow++) {
		for (int ect = 0; ect < 2; ect++) {
			struct sockaddr_in from = {.sin_family = AF_INET, .sin_port = htons(5000 + flow)};
			int tos = ect ? 2 : 0, yes = 1, room = 8 << 20;
			int s = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);

			setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
			setsockopt(s, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof(yes));
			setsockopt(s, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
			setsockopt(s, IPPROTO_IP, IP_TOS, &tos, sizeof(tos));
			if (s < 0 || bind(s, (struct sockaddr *)&from, sizeof(from)))
				fail("socket");
			sockets[flow][ect] = s;
		}
	}
	tun = make_device(control);
	netlink = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	file = fopen("/qdiscs.txt", "r");
	while (file && fgets(line, sizeof(line), file)) {
		char command[512], name[32];

		if (sscanf(line, "%31s", name) != 1)
			continue;
		tc("qdisc add dev t0 root handle 1: htb default 10");
		snprintf(command, sizeof(command), "class add dev t0 parent 1: classid 1:10 htb rate %s burst 3000 cburst 3000 quantum 2000", rate);
		tc(command);
		snprintf(command, sizeof(command), "qdisc add dev t0 parent 1:10 handle 10: %s", line);
		began = now();
		origin = began / WHOLE * WHOLE;
		tc(command);
		told = 0;
		TELL("S %llu %llu\n", (unsigned long long)(began - origin), (unsigned long long)(now() - origin));
		offer(tun, netlink, !strcmp(name, "pie"), sockets);
		if (told + 64 >= sizeof(story))
			fail("too much to tell");
		printf("\nQ %s\n%s", name, story);
		fflush(stdout);
		tc("qdisc del dev t0 root");
	}
	printf("END\n");
	fflush(stdout);
	tcdrain(1);
	sync();
	reboot(RB_POWER_OFF);
	return 0;
}
