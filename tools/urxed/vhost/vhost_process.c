/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/vhost/vhost_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <netdev/shm.h>

#include "common/clock.h"
#include "urxed/epoll_watch.h"
#include "urxed/vhost/vhost_spawner.h"

/* Limit of the time that a start may take; DPDK's start takes 0.2 s on an idle machine. */
#define START_NS (60 * NS_PER_SEC)

/* Delay of a restart. The first is the shortest, and each further one doubles up to the longest.
 * After a process has lived for STABLE_NS, the delay is the shortest again. */
#define DELAY_MIN_NS (NS_PER_SEC / 10)
#define DELAY_MAX_NS (10 * NS_PER_SEC)
#define STABLE_NS    (60 * NS_PER_SEC)

/* A process hangs if it has taken no frame for this time while some wait. */
#define HANG_NS (10 * NS_PER_SEC)

#define LOG_READ  4096
#define LOG_READS 4 /* reads per event, limited because the process may write without end */

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* --- The log of the process */

/* Logs a line of the process, in which '?' replaces unprintable characters: the process may write
 * anything, also control characters for the terminal that shows the log. */
static void log_process_line(struct vhost_process *p, uint64_t now)
{
	for (uint32_t i = 0; i < p->line_len; i++)
		if (p->line[i] < ' ' || p->line[i] > '~')
			p->line[i] = '?';
	if (p->line_len)
		log_ratelimited(&p->budget, now, "%s: %.*s", p->spec, (int)p->line_len, p->line);
	p->line_len = 0;
}

static void take_log(struct vhost_process *p, uint64_t now, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (text[i] != '\n')
			p->line[p->line_len++] = text[i];
		if (text[i] == '\n' || p->line_len == VHOST_PROCESS_LINE)
			log_process_line(p, now);
	}
}

static void read_log(struct vhost_process *p, uint64_t now)
{
	char text[LOG_READ];
	ssize_t n = 1;

	for (int i = 0; p->log_fd >= 0 && i < LOG_READS && n > 0; i++) {
		n = read(p->log_fd, text, sizeof(text));
		if (n > 0)
			take_log(p, now, text, (size_t)n);
	}
	/* Closes the pipe at the end of the file, which epoll would report for ever. */
	if (!n)
		close_fd(&p->log_fd);
}

/* --- Start */

/* Adds a new process's descriptors to the epoll set; those of the old process left the set when
 * they were closed. Returns 0, or a negative errno value and a sentence in `error`. */
static int watch_descriptors(const struct vhost_process *p, char error[VHOST_PROCESS_ERROR])
{
	if (p->epoll_fd < 0 || !p->pid)
		return 0;
	return epoll_watch_add(p->epoll_fd, p->pid_fd, p->what, error)
		       ?: epoll_watch_add(p->epoll_fd, p->log_fd, p->what, error);
}

static void kill_process(struct vhost_process *p)
{
	if (!p->is_killed)
		vhost_spawner_kill(p->pid);
	p->is_killed = true;
}

/* Waits at most 1 s for the end of a killed process, which may hang in the kernel, and reaps it. */
static void reap_killed(struct vhost_process *p)
{
	struct pollfd ended = {p->pid_fd, POLLIN, 0};
	int status;

	if (p->pid_fd >= 0)
		poll(&ended, 1, 1000);
	vhost_spawner_reap(p->pid, &status);
}

static void forget_process(struct vhost_process *p)
{
	close_fd(&p->pid_fd);
	close_fd(&p->log_fd);
	netdev_shm_disconnect(p->port);
	p->pid = 0;
	p->is_up = false;
	p->line_len = 0;
}

static int start_process(struct vhost_process *p, const int log[2], char error[VHOST_PROCESS_ERROR])
{
	struct netdev_shm_fds fds;
	int rc = netdev_shm_connect(p->port, &fds);

	p->log_fd = log[0];
	p->is_killed = false;
	if (!rc) {
		const struct vhost_spawner_fds given = {fds.kick, log[1], fds.memory, fds.wake};

		rc = vhost_spawner_run(p->text, &given, &p->pid, &p->pid_fd);
	}
	if (!rc)
		rc = watch_descriptors(p, error);
	if (!rc)
		return 0;
	if (p->pid) {
		kill_process(p);
		reap_killed(p);
	}
	forget_process(p);
	snprintf(error, VHOST_PROCESS_ERROR, "%s: cannot start its process: %s", p->spec,
		 strerror(-rc));
	return rc;
}

/*
 * Makes the pipe of the log, and starts the process. Returns 0, or a negative errno value and a
 * sentence in `error`. Does not look at the path of the vhost-user socket, which may be on a file
 * system that does not answer: only the process itself uses the path.
 */
static int launch_process(struct vhost_process *p, uint64_t now, char error[VHOST_PROCESS_ERROR])
{
	int log[2], rc;

	p->started_at = now;
	p->hangs_at = UINT64_MAX;
	/*
	 * O_NONBLOCK at both ends: urxed must not wait for the process, nor the process for urxed.
	 */
	if (pipe2(log, O_NONBLOCK | O_CLOEXEC)) {
		snprintf(error, VHOST_PROCESS_ERROR, "%s: cannot create a pipe: %s", p->spec,
			 strerror(errno));
		return -errno;
	}
	rc = start_process(p, log, error);
	close(log[1]);
	return rc;
}

/* --- End */

static void describe_end(int status, char *text, size_t size)
{
	if (status == VHOST_SPAWNER_UNKNOWN)
		snprintf(text, size, "has ended");
	else if (WIFSIGNALED(status))
		snprintf(text, size, "was killed by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else
		snprintf(text, size, "ended with status %d", WEXITSTATUS(status));
}

/* Sets the time of the next start. Returns false if the spawner has ended, so that no process can
 * be started any more; the spawner's end is in the log. */
static bool schedule_restart(struct vhost_process *p, uint64_t now)
{
	const bool stable = now - p->started_at >= STABLE_NS;

	if (vhost_spawner_ended()) {
		p->restart_at = UINT64_MAX;
		return false;
	}
	p->delay = !p->delay || stable ? DELAY_MIN_NS : 2 * p->delay;
	if (p->delay > DELAY_MAX_NS)
		p->delay = DELAY_MAX_NS;
	p->restart_at = now + p->delay;
	return true;
}

static unsigned long long delay_ms(const struct vhost_process *p)
{
	return (unsigned long long)(p->delay / (NS_PER_SEC / 1000));
}

/* Reaps the process if it has ended, and logs its last lines. Returns false if no process runs, or
 * if it has not ended. */
static bool reap_process(struct vhost_process *p, uint64_t now, int *status)
{
	struct pollfd ended = {p->pid_fd, POLLIN, 0};

	if (!p->pid || poll(&ended, 1, 0) != 1 || !vhost_spawner_reap(p->pid, status))
		return false;
	read_log(p, now);
	log_process_line(p, now);
	forget_process(p);
	return true;
}

static void handle_end(struct vhost_process *p, uint64_t now)
{
	char text[64];
	int status;

	if (!reap_process(p, now, &status))
		return;
	describe_end(status, text, sizeof(text));
	if (schedule_restart(p, now))
		log_ratelimited(&p->budget, now, "%s: its process %s and restarts in %llu ms",
				p->spec, text, delay_ms(p));
	else
		log_ratelimited(&p->budget, now, "%s: its process %s", p->spec, text);
}

static void restart_process(struct vhost_process *p, uint64_t now)
{
	char error[VHOST_PROCESS_ERROR];

	if (!launch_process(p, now, error))
		return;
	if (!schedule_restart(p, now))
		return;
	log_ratelimited(&p->budget, now, "%s; the next try is in %llu ms", error, delay_ms(p));
}

/* --- For the daemon */

void vhost_process_event(struct vhost_process *p, uint64_t now)
{
	read_log(p, now);
	handle_end(p, now);
}

/*
 * Kills a process that hangs or misbehaves, and logs the reason `why`. If the spawner
 * (vhost_spawner.h) has ended, urxed cannot kill the process. The kernel kills it at the spawner's
 * end, but only if the process has reached vhost_sandbox.c by then.
 */
static void kill_hanging(struct vhost_process *p, uint64_t now, const char *why)
{
	const char *then = "urxed kills it";

	if (!p->is_killed && vhost_spawner_ended())
		then = "urxed cannot kill it, because the process that started it has ended";
	if (!p->is_killed)
		log_ratelimited(&p->budget, now, "%s: its process %s: %s", p->spec, why, then);
	kill_process(p);
}

/*
 * Kills a process that takes no frames, for instance in an endless loop of DPDK's library:
 * otherwise the port would serve no later machine. Returns when to check again, in ns; UINT64_MAX:
 * no frame waits, or the process is killed.
 */
static uint64_t kill_if_stuck(struct vhost_process *p, uint64_t now)
{
	uint32_t waiting, taken = netdev_shm_progress(p->port, &waiting);

	if (!waiting)
		p->hangs_at = UINT64_MAX;
	else if (p->hangs_at == UINT64_MAX || taken != p->taken)
		p->hangs_at = now + HANG_NS;
	p->taken = taken;
	if (now >= p->hangs_at)
		kill_hanging(p, now, "accepts no frames");
	return p->is_killed ? UINT64_MAX : p->hangs_at;
}

uint64_t vhost_process_tick(struct vhost_process *p, uint64_t now)
{
	if (!p->pid && now >= p->restart_at)
		restart_process(p, now);
	if (!p->pid)
		return p->restart_at;
	switch (netdev_shm_state(p->port)) {
	case NETDEV_SHM_BROKEN: kill_hanging(p, now, "broke the rings of its port"); break;
	case NETDEV_SHM_STARTING:
		if (now - p->started_at < START_NS)
			return p->started_at + START_NS;
		kill_hanging(p, now, "did not become ready in time");
		break;
	default:
		if (!p->is_up)
			log_ratelimited(&p->budget, now, "%s: its process %d serves the port",
					p->spec, (int)p->pid);
		p->is_up = true;
		return kill_if_stuck(p, now);
	}
	return UINT64_MAX;
}

/* Sleeps until the process is ready or ends. Does not wait for the process's log, because unread
 * lines would end each sleep at once. */
static void wait_for_start(struct vhost_process *p)
{
	struct pollfd fds[] = {{p->pid_fd, POLLIN, 0}, {netdev_wait_fd(p->port), POLLIN, 0}};

	poll(fds, sizeof(fds) / sizeof(fds[0]), 1000);
}

/* Copies the last line of the process's log into `error`: it says why the process cannot start.
 * Returns -EIO. */
static int read_reason(struct vhost_process *p, char error[VHOST_PROCESS_ERROR])
{
	char text[LOG_READ], *last;
	ssize_t n = read(p->log_fd, text, sizeof(text) - 1);

	while (n > 0 && text[n - 1] == '\n')
		n--;
	text[n > 0 ? n : 0] = '\0';
	last = strrchr(text, '\n');
	snprintf(error, VHOST_PROCESS_ERROR, "%s: its process cannot start: %.*s", p->spec,
		 VHOST_PROCESS_ERROR / 2, last ? last + 1 : text);
	return -EIO;
}

static int wait_until_ready(struct vhost_process *p, char error[VHOST_PROCESS_ERROR])
{
	struct pollfd ended = {p->pid_fd, POLLIN, 0};

	while (netdev_shm_state(p->port) == NETDEV_SHM_STARTING) {
		if (poll(&ended, 1, 0) > 0)
			return read_reason(p, error);
		if (now_ns() - p->started_at > START_NS) {
			snprintf(error, VHOST_PROCESS_ERROR, "%s: its process is not ready in time",
				 p->spec);
			return -ETIMEDOUT;
		}
		wait_for_start(p);
	}
	p->is_up = true;
	return 0;
}

/*
 * Sets p->text to the specification with an absolute path, because the process parses p->text after
 * the daemon has changed its directory. Returns 0, or a negative errno value and a sentence in
 * `error`.
 */
static int parse_spec(struct vhost_process *p, char error[VHOST_PROCESS_ERROR])
{
	struct netdev_vhost_spec vhost;
	int rc = netdev_vhost_parse(p->spec, &vhost, error, VHOST_PROCESS_ERROR);

	if (!rc)
		snprintf(p->text, sizeof(p->text), "vhost:%s%s", vhost.path,
			 vhost.connects ? ",connect" : "");
	return rc;
}

int vhost_process_start(struct vhost_process *p, const char *spec, uint32_t mtu,
			char error[VHOST_PROCESS_ERROR])
{
	int rc;

	*p = (struct vhost_process){.spec = spec, .epoll_fd = -1, .pid_fd = -1, .log_fd = -1};
	rc = parse_spec(p, error);
	if (rc)
		return rc;
	rc = netdev_shm_create(mtu, &p->port);
	if (rc) {
		snprintf(error, VHOST_PROCESS_ERROR, "%s: %s", spec, strerror(-rc));
		return rc;
	}
	rc = launch_process(p, now_ns(), error) ?: wait_until_ready(p, error);
	if (!rc)
		return 0;
	vhost_process_stop(p);
	netdev_close(p->port);
	return rc;
}

/* Removes the socket of the process, which has ended, by netdev_vhost_parse. */
static void remove_socket(const struct vhost_process *p)
{
	struct netdev_vhost_spec vhost;
	char error[VHOST_PROCESS_ERROR];

	(void)netdev_vhost_parse(p->text, &vhost, error, sizeof(error));
}

void vhost_process_stop(struct vhost_process *p)
{
	if (p->pid) {
		kill_process(p);
		reap_killed(p);
		forget_process(p);
	}
	remove_socket(p);
}

int vhost_process_watch(struct vhost_process *p, int epoll_fd, void *what,
			char error[VHOST_PROCESS_ERROR])
{
	if (p->epoll_fd >= 0)
		return 0;
	p->epoll_fd = epoll_fd;
	p->what = what;
	return watch_descriptors(p, error);
}
