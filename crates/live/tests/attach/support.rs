//! Laboratory for `aqumend attach`: sender, router and receiver, each in an anonymous network namespace, which ends
//! with the test.
//!
//! ```text
//! sender  s0 == TUN, 40 ms each way == r0  router  r1 == veth == v0  receiver
//!         10.1.0.1             10.1.0.2            10.2.0.1      10.2.0.2
//!         fd01::1              fd01::2             fd02::1       fd02::2
//! ```

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Lock of the laboratory for one test. Tests run one at a time, over all processes, since each counts its leftovers in
/// the kernel and measures rates. `None`, with a message, where the tests cannot run.
pub(crate) fn can_run() -> Option<(MutexGuard<'static, ()>, File)> {
    static ONE: Mutex<()> = Mutex::new(());
    let root = rustix::process::geteuid().is_root();
    let there = ["ip", "tc"].iter().all(|program| Command::new(program).arg("-V").output().is_ok());
    if !(root && there) {
        eprintln!("Skipped: aqumend attach needs root, ip and tc (Debian package iproute2).");
        return None;
    }
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let file = File::create(std::env::temp_dir().join("aqumend-attach-tests.lock")).unwrap();
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
    Some((one, file))
}

/// A network namespace, held by a descriptor.
pub(crate) struct Namespace(OwnedFd);

impl Namespace {
    pub(crate) fn new() -> Self {
        let made = thread::spawn(|| {
            // SAFETY: changes this thread's network namespace and nothing else.
            assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNET) }, 0, "{}", std::io::Error::last_os_error());
            // Addresses are usable at once.
            sh("for of in all default; do echo 0 >/proc/sys/net/ipv6/conf/$of/accept_dad; done; ip link set lo up");
            Namespace(File::open("/proc/thread-self/ns/net").unwrap().into())
        });
        made.join().unwrap()
    }

    /// Runs `work` in this namespace, in a thread of its own.
    pub(crate) fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let work = scope.spawn(|| {
                self.enter();
                work()
            });
            work.join().unwrap()
        })
    }

    /// Starts `work` in this namespace.
    pub(crate) fn spawn(&self, work: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
        let copy = Namespace(self.0.try_clone().unwrap());
        thread::Builder::new()
            .stack_size(1 << 17)
            .spawn(move || {
                copy.enter();
                work();
            })
            .unwrap()
    }

    fn enter(&self) {
        // SAFETY: the descriptor is that of a network namespace and open; only this thread changes.
        let done = unsafe { libc::setns(self.0.as_raw_fd(), libc::CLONE_NEWNET) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    }

    /// Runs a shell command in it. Returns its output.
    pub(crate) fn sh(&self, line: &str) -> String {
        self.within(|| sh(line))
    }

    /// Runs `aqumend` with the words of `line` to its end.
    pub(crate) fn aqumend(&self, line: &str) -> Output {
        self.within(|| Command::new(AQUMEND).args(line.split_whitespace()).output().unwrap())
    }

    /// Status of the only attachment.
    pub(crate) fn status(&self) -> serde_json::Value {
        let mut status: serde_json::Value = serde_json::from_slice(&self.aqumend("status --json").stdout).unwrap();
        status["attached"][0].take()
    }

    /// Starts `aqumend attach` and waits until it has attached.
    pub(crate) fn attach(&self, line: &str) -> Aqumend {
        let child = self.within(|| {
            Command::new(AQUMEND).arg("attach").args(line.split_whitespace()).stderr(Stdio::piped()).spawn().unwrap()
        });
        let mut attached = Aqumend(child);
        let stderr = attached.0.stderr.as_mut().unwrap();
        // One line is printed at the attachment, others follow.
        let mut messages = Vec::new();
        let mut byte = [0];
        while stderr.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
            messages.push(byte[0]);
        }
        let messages = String::from_utf8_lossy(&messages).into_owned();
        assert!(messages.contains("marker by"), "aqumend attach {line}: {messages}");
        attached
    }

    /// Path of the namespace for other programs, valid while this one runs.
    pub(crate) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }
}

const AQUMEND: &str = env!("CARGO_BIN_EXE_aqumend");

/// Runs a shell command. Returns its output.
fn sh(line: &str) -> String {
    let output = Command::new("sh").args(["-ec", line]).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// An attached aqumend, which is killed when the test ends.
pub(crate) struct Aqumend(Child);

impl Aqumend {
    pub(crate) fn signal(&self, signal: i32) {
        // SAFETY: our own child, which was not waited for yet.
        unsafe { libc::kill(self.0.id() as i32, signal) };
    }

    /// Process id.
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Waits for its end. Returns exit code and messages.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let mut messages = String::new();
        self.0.stderr.take().unwrap().read_to_string(&mut messages).unwrap();
        (self.0.wait().unwrap().code(), messages)
    }

    /// CPU time so far.
    pub(crate) fn cpu(&self) -> Duration {
        // Nanoseconds first: proc_pid_schedstat(5). Each thread has a file of its own.
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.0.id())).unwrap().flatten();
        let spent = threads.map(|thread| {
            let text = std::fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
            text.split(' ').next().and_then(|nanos| nanos.parse::<u64>().ok()).unwrap_or(0)
        });
        Duration::from_nanos(spent.sum())
    }

    /// Resident memory, KiB.
    pub(crate) fn resident_kib(&self) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Number of open files.
    pub(crate) fn descriptors(&self) -> u64 {
        std::fs::read_dir(format!("/proc/{}/fd", self.0.id())).unwrap().count() as u64
    }

    /// Ends it, and asserts that it succeeded without messages but those about machine and traffic.
    pub(crate) fn detach(self) {
        let messages = self.detach_with_messages();
        assert!(messages.lines().all(is_load_message), "{messages}");
    }

    /// Ends it, and asserts that it succeeded. Returns its messages since the attachment.
    pub(crate) fn detach_with_messages(self) -> String {
        self.signal(libc::SIGTERM);
        let (code, messages) = self.end();
        assert_eq!(code, Some(0), "{messages}");
        messages
    }
}

/// Whether a line is about a busy machine, or about overload by traffic.
pub(crate) fn is_load_message(line: &str) -> bool {
    line.contains(": warning: overload: ") || line.contains(": stalled for ")
}

impl Drop for Aqumend {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Three namespaces, connected.
pub(crate) struct Lab {
    pub(crate) sender: Namespace,
    pub(crate) router: Namespace,
    pub(crate) receiver: Namespace,
    stop: Arc<AtomicBool>,
    relay: Option<thread::JoinHandle<()>>,
}

impl Lab {
    /// Creates the laboratory with this one-way delay between sender and router.
    pub(crate) fn new(delay: Duration) -> Self {
        let (sender, router, receiver) = (Namespace::new(), Namespace::new(), Namespace::new());
        let ends = [sender.within(|| tun("s0")), router.within(|| tun("r0"))];
        router.sh(&format!("ip link add r1 type veth peer name v0 netns {}", receiver.path()));
        sender.sh("ip addr add 10.1.0.1/24 dev s0; ip -6 addr add fd01::1/64 dev s0 nodad; ip link set s0 up; \
                   ip route add default via 10.1.0.2; ip -6 route add default via fd01::2");
        router.sh("ip addr add 10.1.0.2/24 dev r0; ip -6 addr add fd01::2/64 dev r0 nodad; \
                   ip addr add 10.2.0.1/24 dev r1; ip -6 addr add fd02::1/64 dev r1 nodad; \
                   ip link set r0 up; ip link set r1 up; \
                   echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding");
        receiver.sh("ip addr add 10.2.0.2/24 dev v0; ip -6 addr add fd02::2/64 dev v0 nodad; ip link set v0 up; \
                     ip route add default via 10.2.0.1; ip -6 route add default via fd02::1");
        for end in [&sender, &receiver] {
            end.sh("echo 1 >/proc/sys/net/ipv4/tcp_ecn; echo 0 >/proc/sys/net/ipv4/tcp_ecn_fallback; \
                    echo 1 >/proc/sys/net/ipv4/tcp_no_metrics_save");
        }
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let relay = thread::spawn(move || relay(ends, delay, &stopped));
        Lab { sender, router, receiver, stop, relay: Some(relay) }
    }

    /// Starts `n` Reno flows from sender to receiver, which end when the result is dropped.
    pub(crate) fn flows(&self, n: usize) -> Flows {
        let listener = self.receiver.within(|| TcpListener::bind("10.2.0.2:5000").unwrap());
        let flows = Flows { received: Arc::default(), stop: Arc::default() };
        let (received, stop) = (flows.received.clone(), flows.stop.clone());
        thread::spawn(move || {
            for mut stream in listener.incoming().take(n).flatten() {
                let (received, stop) = (received.clone(), stop.clone());
                stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
                thread::Builder::new()
                    .stack_size(1 << 17)
                    .spawn(move || {
                        let mut buffer = vec![0; 1 << 16];
                        while !stop.load(Ordering::Relaxed) {
                            if let Ok(bytes) = stream.read(&mut buffer) {
                                received.fetch_add(bytes as u64, Ordering::Relaxed);
                            }
                        }
                    })
                    .unwrap();
            }
        });
        for _ in 0..n {
            let stop = flows.stop.clone();
            self.sender.spawn(move || {
                let Ok(mut stream) = connect_reno() else { return };
                stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
                let data = [7; 1 << 14];
                while !stop.load(Ordering::Relaxed) {
                    let _ = stream.write(&data);
                }
            });
        }
        flows
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.relay.take().unwrap().join();
    }
}

/// Connects to the receiver under Reno: the machine's default control may ignore marks.
fn connect_reno() -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect("10.2.0.2:5000")?;
    rustix::net::sockopt::set_tcp_congestion(&stream, "reno")?;
    Ok(stream)
}

/// Flows in progress.
pub(crate) struct Flows {
    received: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Flows {
    /// Bytes received so far.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Mbit/s over the next `time`.
    pub(crate) fn rate_over(&self, time: Duration) -> f64 {
        let (before, start) = (self.received(), Instant::now());
        thread::sleep(time);
        8e-6 * (self.received() - before) as f64 / start.elapsed().as_secs_f64()
    }
}

impl Drop for Flows {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// A TUN device in the calling thread's namespace.
fn tun(name: &str) -> OwnedFd {
    const TUNSETIFF: u64 = 0x4004_54ca;
    const TUN_WITHOUT_HEADER: i16 = 0x1001;
    let file = File::options().read(true).write(true).open("/dev/net/tun").unwrap();
    let mut request = [0u8; 40];
    request[..name.len()].copy_from_slice(name.as_bytes());
    request[16..18].copy_from_slice(&TUN_WITHOUT_HEADER.to_ne_bytes());
    // SAFETY: TUNSETIFF reads and writes one struct ifreq of 40 bytes.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF as _, request.as_mut_ptr()) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: as above; fcntl has no pointers.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    let fd = std::os::fd::IntoRawFd::into_raw_fd(file);
    // SAFETY: the file no longer owns its descriptor.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// Relays packets between two TUN devices with a delay.
fn relay(ends: [OwnedFd; 2], delay: Duration, stop: &AtomicBool) {
    let mut waiting: [VecDeque<(Instant, Vec<u8>)>; 2] = Default::default();
    let mut buffer = vec![0; 1 << 16];
    while !stop.load(Ordering::Relaxed) {
        for from in 0..2 {
            while let Ok(length) = rustix::io::read(&ends[from], &mut buffer) {
                waiting[from].push_back((Instant::now() + delay, buffer[..length].to_vec()));
            }
            while waiting[from].front().is_some_and(|(due, _)| *due <= Instant::now()) {
                let (_, packet) = waiting[from].pop_front().unwrap();
                let _ = rustix::io::write(&ends[1 - from], &packet);
            }
        }
        let due = waiting.iter().filter_map(|queue| queue.front()).map(|(due, _)| *due).min();
        let rest = due.map_or(Duration::from_millis(50), |due| due.saturating_duration_since(Instant::now()));
        let rest = Timespec { tv_sec: 0, tv_nsec: rest.min(Duration::from_millis(50)).as_nanos() as i64 };
        let mut ready = ends.each_ref().map(|end| PollFd::from_borrowed_fd(end.as_fd(), PollFlags::IN));
        let _ = poll(&mut ready, Some(&rest));
    }
}

/// File name that no other test has; the file is removed with this object.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        Scratch(std::env::temp_dir().join(format!("aqumend-{}-{name}", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Samples of a recording, by column.
pub(crate) struct Samples {
    columns: Vec<String>,
    rows: Vec<Vec<f64>>,
}

impl Samples {
    pub(crate) fn read(path: &std::path::Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let mut lines = text.lines();
        let head: serde_json::Value = serde_json::from_str(lines.next().unwrap()).unwrap();
        let columns =
            head["columns"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect();
        Samples { columns, rows: lines.map(|line| serde_json::from_str(line).unwrap()).collect() }
    }

    /// A column after `from_s` seconds.
    pub(crate) fn column(&self, name: &str, from_s: f64) -> Vec<f64> {
        let at = self.columns.iter().position(|column| column == name).unwrap();
        self.rows.iter().filter(|row| row[0] >= from_s).map(|row| row[at]).collect()
    }
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Empty program at a device's egress, until it is dropped: the run time that the kernel counts for any program.
pub(crate) struct EmptyProgram {
    _descriptors: [OwnedFd; 2],
}

impl EmptyProgram {
    pub(crate) const NAME: &str = "empty";

    /// Attaches it at the egress of `device` by TCX; an error on kernels without TCX.
    pub(crate) fn attach(namespace: &Namespace, device: &str) -> std::io::Result<Self> {
        // linux/bpf.h: the commands, `union bpf_attr` for each, the kind of program and of attachment.
        const PROG_LOAD: libc::c_int = 5;
        const LINK_CREATE: libc::c_int = 28;
        const SCHED_CLS: u32 = 3;
        const TCX_EGRESS: u32 = 47;
        #[derive(Default)]
        #[repr(C)]
        struct Load {
            kind: u32,
            instructions: u32,
            code: u64,
            license: u64,
            log: [u64; 2],
            kernel: u32,
            flags: u32,
            name: [u8; 16],
        }
        #[derive(Default)]
        #[repr(C)]
        struct Attach {
            program: u32,
            device: u32,
            kind: u32,
            flags: u32,
            order: [u64; 2],
        }
        fn call<T>(command: libc::c_int, attributes: &T) -> std::io::Result<OwnedFd> {
            // SAFETY: the attributes are those of the command, of the size that is given, and what they point to
            // outlives the call; the result is a new descriptor.
            unsafe {
                let fd = libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), size_of::<T>());
                if fd < 0 { Err(std::io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd as i32)) }
            }
        }
        // r0 = -1: continue with the next program; exit.
        let code: [u64; 2] = [0xffff_ffff_0000_00b7, 0x95];
        let license = b"GPL\0";
        let mut load = Load {
            kind: SCHED_CLS,
            instructions: code.len() as u32,
            code: code.as_ptr() as u64,
            license: license.as_ptr() as u64,
            ..Load::default()
        };
        load.name[..Self::NAME.len()].copy_from_slice(Self::NAME.as_bytes());
        let program = call(PROG_LOAD, &load)?;
        // /sys shows the devices of the namespace in which it was mounted.
        let number = namespace.sh(&format!("ip -o link show dev {device}"));
        let number = number.trim().split(':').next().unwrap().parse().unwrap();
        let at = Attach { program: program.as_raw_fd() as u32, device: number, kind: TCX_EGRESS, ..Attach::default() };
        let link = namespace.within(|| call(LINK_CREATE, &at))?;
        Ok(EmptyProgram { _descriptors: [program, link] })
    }
}
