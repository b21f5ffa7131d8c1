/* The only program of a virtual machine: it offers a trace of arrivals to disciplines of the machine's own kernel, one after another, and
 * prints what became of each packet. python/tests/test_kernel_qdiscs.py builds the machine and reads what it prints.
 *
 * A TUN device is the link: its root is htb at the link's rate, under which the discipline stands, and what leaves is read here at once.
 * Packets are the kernel's own datagrams. Lines: "Q name" begins a discipline; "A number time" is an arrival, "D number time ce" a
 * departure, in nanoseconds of the machine's clock; "END" is the end.
 */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
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

struct arrival {
	uint64_t at;
	uint32_t flow, bytes, ect;
};

static struct arrival arrivals[PACKETS];
static uint64_t arrived[PACKETS], left[PACKETS];
static unsigned char marked[PACKETS];
static int count;

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

/* Reads what left until `until`; a packet's number is the first word that it carries. */
static void watch(int tun, uint64_t until)
{
	unsigned char packet[2048];
	uint32_t number;

	for (;;) {
		ssize_t length = read(tun, packet, sizeof(packet));
		uint64_t at = now();

		if (length >= HEADERS + 4 && packet[0] == 0x45 && packet[9] == 17) {
			memcpy(&number, packet + HEADERS, 4);
			if (number < PACKETS) {
				left[number] = at;
				marked[number] = (packet[1] & 3) == 3;
			}
		} else if (length < 0) {
			struct pollfd ready = {.fd = tun, .events = POLLIN};
			struct timespec wait = {0};

			if (at >= until)
				return;
			wait.tv_sec = (until - at) / 1000000000;
			wait.tv_nsec = (until - at) % 1000000000;
			ppoll(&ready, 1, &wait, NULL);
		}
	}
}

static void offer(const char *name, int tun, int sockets[FLOWS][2])
{
	static char payload[2048];
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr("10.0.0.2")};
	uint64_t start = now() + 10000000;

	memset(left, 0, sizeof(left));
	for (int i = 0; i < count; i++) {
		struct arrival *a = &arrivals[i];
		uint32_t number = i;

		watch(tun, start + a->at);
		memcpy(payload, &number, 4);
		to.sin_port = htons(7000 + a->flow);
		arrived[i] = now();
		/* A discipline that drops it may say so. */
		sendto(sockets[a->flow][a->ect], payload, a->bytes - HEADERS, 0, (struct sockaddr *)&to, sizeof(to));
	}
	watch(tun, now() + 3000000000ull);
	printf("\nQ %s\n", name);
	for (int i = 0; i < count; i++) {
		printf("A %d %llu\n", i, (unsigned long long)(arrived[i] - start));
		if (left[i])
			printf("D %d %llu %d\n", i, (unsigned long long)(left[i] - start), marked[i]);
	}
	fflush(stdout);
}

int main(void)
{
	static int sockets[FLOWS][2];
	char rate[64], line[256];
	FILE *file;
	int control, tun;

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
	file = fopen("/qdiscs.txt", "r");
	while (file && fgets(line, sizeof(line), file)) {
		char command[512], name[32];

		if (sscanf(line, "%31s", name) != 1)
			continue;
		tc("qdisc add dev t0 root handle 1: htb default 10");
		snprintf(command, sizeof(command), "class add dev t0 parent 1: classid 1:10 htb rate %s burst 2000 cburst 2000 quantum 2000", rate);
		tc(command);
		snprintf(command, sizeof(command), "qdisc add dev t0 parent 1:10 handle 10: %s", line);
		tc(command);
		offer(name, tun, sockets);
		tc("qdisc del dev t0 root");
	}
	printf("END\n");
	fflush(stdout);
	tcdrain(1);
	sync();
	reboot(RB_POWER_OFF);
	return 0;
}
