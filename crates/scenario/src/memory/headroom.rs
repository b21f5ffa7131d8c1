//! Memory that this process can still allocate within the limits of machine, control group and resource limits.
//!
//! Linux shows these limits in files; other systems have none that are read here.

use std::fs::read_to_string;
use std::path::Path;

use super::size;

/// Memory of this process and its tightest limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headroom {
    /// Resident size of the process, bytes.
    pub resident: u64,
    /// Bytes that count against the limit.
    pub used: u64,
    /// Bytes left below the limit.
    pub left: u64,
    /// The limit, bytes.
    pub limit: u64,
    /// Name of the limit.
    pub name: &'static str,
}

/// A run ends when less than this fraction, 1/n, of its resident size is left.
const PART: u64 = 8;

/// A run ends when less than this number of bytes is left: queues may grow between two checks.
const LEAST_BYTES: u64 = 32 << 20;

/// Least value that means no limit in control groups of versions 1 and 2.
const UNLIMITED: u64 = 1 << 60;

impl Headroom {
    /// Whether a run has to end.
    pub fn is_short(&self) -> bool {
        self.left < LEAST_BYTES.max(self.resident / PART)
    }
}

impl std::fmt::Display for Headroom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [resident, used, limit] = [self.resident, self.used, self.limit].map(size);
        write!(f, "the process uses {resident}; {used} of {limit} are in use ({})", self.name)
    }
}

/// Returns the tightest limit of this process; `None` if the system shows none.
pub fn headroom() -> Option<Headroom> {
    headroom_in(Path::new("/"))
}

/// As [`headroom`], with the system's files under `root`.
fn headroom_in(root: &Path) -> Option<Headroom> {
    let status = read_to_string(root.join("proc/self/status")).ok()?;
    let resident = kilobytes(&status, "VmRSS:")?;
    let mut limits = Vec::new();
    if let Ok(machine) = read_to_string(root.join("proc/meminfo"))
        && let (Some(limit), Some(left)) = (kilobytes(&machine, "MemTotal:"), kilobytes(&machine, "MemAvailable:"))
    {
        limits.push(Headroom { resident, used: limit - left, left, limit, name: "memory of the machine" });
    }
    let resources = read_to_string(root.join("proc/self/limits")).unwrap_or_default();
    for (title, used, name) in [
        ("Max address space", "VmSize:", "address space, ulimit -v"),
        ("Max data size", "VmData:", "data size, ulimit -d"),
    ] {
        let soft = resources.lines().find_map(|line| line.strip_prefix(title)?.split_whitespace().next()?.parse().ok());
        if let (Some(limit), Some(used)) = (soft, kilobytes(&status, used)) {
            // Lists of samples double their capacity at once.
            let left = u64::saturating_sub(limit, used + resident);
            limits.push(Headroom { resident, used, left, limit, name });
        }
    }
    let groups = read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let (mount, [limit, used]) = match controllers {
            "" => ("sys/fs/cgroup", ["memory.max", "memory.current"]),
            list if list.split(',').any(|name| name == "memory") => {
                ("sys/fs/cgroup/memory", ["memory.limit_in_bytes", "memory.usage_in_bytes"])
            }
            _ => continue,
        };
        // The limit of a parent applies to its children.
        for group in Path::new(path.trim_start_matches('/')).ancestors() {
            let folder = root.join(mount).join(group);
            let number = |file: &str| read_to_string(folder.join(file)).ok()?.trim().parse::<u64>().ok();
            let (Some(limit), Some(used)) = (number(limit).filter(|limit| *limit < UNLIMITED), number(used)) else {
                continue;
            };
            // Cached files are reclaimed before any process is killed.
            let files = read_to_string(folder.join("memory.stat")).map_or(0, |stat| cached(&stat));
            let used = used.saturating_sub(files);
            limits.push(Headroom { resident, used, left: limit.saturating_sub(used), limit, name: "control group" });
        }
    }
    limits.into_iter().min_by_key(|limit| limit.left)
}

/// Returns the value in kB of the line of `text` that starts with `title`, in bytes.
fn kilobytes(text: &str, title: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(title))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Bytes of cached files by a `memory.stat`, children of the group included.
fn cached(stat: &str) -> u64 {
    let of = |key: &str| stat.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.parse::<u64>().ok());
    let either = |key: &str| of(&format!("total_{key}")).or_else(|| of(key)).unwrap_or(0);
    either("inactive_file") + either("active_file")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Headroom of a process of 1 GiB on a machine of 8 GiB, half of it free, with additional files.
    fn on(name: &str, more: &[(&str, &str)]) -> Option<Headroom> {
        let root = std::env::temp_dir().join(format!("aqumen-headroom-{}-{name}", std::process::id()));
        let always = [
            ("proc/self/status", "Name:\taqumen\nVmSize:\t 2097152 kB\nVmRSS:\t 1048576 kB\nVmData:\t 1572864 kB\n"),
            ("proc/meminfo", "MemTotal:  8388608 kB\nMemFree: 9 kB\nMemAvailable:    4194304 kB\n"),
        ];
        for (file, text) in always.iter().chain(more) {
            let file = root.join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        let found = headroom_in(&root);
        std::fs::remove_dir_all(&root).unwrap();
        found
    }

    #[test]
    fn the_tightest_limit_applies() {
        let limit = |more: &[(&str, &str)], name| on(name, more).map(|found| (found.name, found.limit, found.left));
        let machine = ("memory of the machine", 8192 * MIB, 4096 * MIB);
        assert_eq!(limit(&[], "machine"), Some(machine));
        // 3.5 GiB of addresses, of which 2 are used; the resident size is reserved for growing lists.
        let ulimit = |space: &str, data: &str| {
            format!(
                "Limit  Soft Limit  Hard Limit  Units\nMax data size  {data}  unlimited  bytes\nMax address space  {space}  unlimited  bytes\n"
            )
        };
        let limits = ulimit("3758096384", "unlimited");
        let space = ("address space, ulimit -v", 3584 * MIB, 512 * MIB);
        assert_eq!(limit(&[("proc/self/limits", &limits)], "space"), Some(space));
        let limits = ulimit("unlimited", "2684354560");
        let data = ("data size, ulimit -d", 2560 * MIB, 0);
        assert_eq!(limit(&[("proc/self/limits", &limits)], "data"), Some(data));
        // A group and its parent, version 2; cached files do not count.
        let two = [
            ("proc/self/cgroup", "0::/user/run\n"),
            ("sys/fs/cgroup/user/run/memory.max", "max\n"),
            ("sys/fs/cgroup/user/run/memory.current", "1073741824\n"),
            ("sys/fs/cgroup/user/memory.max", "2147483648\n"),
            ("sys/fs/cgroup/user/memory.current", "1610612736\n"),
            ("sys/fs/cgroup/user/memory.stat", "anon 5\ninactive_file 104857600\nactive_file 104857600\n"),
        ];
        assert_eq!(limit(&two, "two"), Some(("control group", 2048 * MIB, 712 * MIB)));
        // Version 1, in a container that sees its own group as the root.
        let one = [
            ("proc/self/cgroup", "4:memory:/elsewhere/x\n1:cpu:/\n0::/\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "2147483648\n"),
            ("sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 1048576\ntotal_active_file 0\n"),
        ];
        assert_eq!(limit(&one, "one"), Some(("control group", 2048 * MIB, MIB)));
        let unlimited = [one[0], ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"), one[2]];
        assert_eq!(limit(&unlimited, "unlimited"), Some(machine));
        assert_eq!(headroom_in(Path::new("/no/such/root")), None);
    }

    #[test]
    fn a_run_ends_while_an_eighth_of_it_is_left() {
        let short = |resident, left| Headroom { resident, used: 0, left, limit: 1 << 40, name: "" }.is_short();
        assert!(!short(800 * MIB, 100 * MIB) && short(800 * MIB, 100 * MIB - 1));
        // A small run ends when 32 MiB are left.
        assert!(!short(8 * MIB, 32 * MIB) && short(8 * MIB, 32 * MIB - 1));
    }
}
