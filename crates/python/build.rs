//! Puts the scenario files of `experiments/` into the module, so that an installed package has them too, and digests of
//! the engines' sources, by which stored results know the engine that made them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Engines, and the crate of ours that each is.
const ENGINES: [(&str, &str); 3] = [("packet", "sim"), ("fluid", "theory"), ("theory", "theory")];

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    fs::write(target.join("experiments.rs"), experiments(&root.join("experiments"))).expect("cargo made the folder");
    let digests: Vec<String> =
        ENGINES.iter().map(|(engine, name)| format!("({engine:?}, {:?})", digest(&root, name))).collect();
    let table = format!("const ENGINES: &[(&str, &str)] = &[{}];\n", digests.join(", "));
    fs::write(target.join("engines.rs"), table).expect("cargo made the folder");
}

/// Returns the table of the scenario files, as Rust.
fn experiments(root: &Path) -> String {
    println!("cargo::rerun-if-changed={}", root.display());
    let mut files: Vec<_> = inside(root).iter().flat_map(|folder| inside(folder)).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    let mut table = String::from("&[\n");
    for file in &files {
        let name = slashes(file.strip_prefix(root).expect("the file is below the root").with_extension("").as_path());
        table += &format!("    ({name:?}, include_str!({file:?})),\n");
    }
    table + "]\n"
}

/// Returns the digest of the sources of a crate of ours, of those it needs, and of the versions of all others: equal on
/// every machine, whatever its line ends and separators of paths.
fn digest(root: &Path, name: &str) -> String {
    let (ours, others) = needed(root, name);
    let mut parts = vec![fs::read_to_string(root.join("crates/python/src/custom.rs")).unwrap_or_default()];
    for name in &ours {
        let source = root.join("crates").join(name).join("src");
        println!("cargo::rerun-if-changed={}", source.display());
        let mut files = below(&source);
        files.sort();
        for file in files {
            parts.push(slashes(file.strip_prefix(root).expect("the file is below the root")));
            parts.push(fs::read_to_string(&file).unwrap_or_default());
        }
    }
    parts.extend(versions(root, &others));
    fnv(parts.join("\0").replace('\r', "").as_bytes())
}

/// Returns the crates of ours that `name` needs, itself among them, and the names of the others that these name.
fn needed(root: &Path, name: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut ours, mut others, mut left) = (BTreeSet::new(), BTreeSet::new(), vec![name.to_string()]);
    while let Some(name) = left.pop() {
        let manifest = root.join("crates").join(&name).join("Cargo.toml");
        println!("cargo::rerun-if-changed={}", manifest.display());
        let text = fs::read_to_string(&manifest).expect("a crate has a manifest");
        ours.insert(name);
        let section = text.lines().skip_while(|line| line.trim() != "[dependencies]").skip(1);
        for line in section.take_while(|line| !line.starts_with('[')) {
            let dependency = line.split(['=', '.', ' ']).next().unwrap_or_default();
            match dependency.strip_prefix("aqumen-") {
                Some(own) if !ours.contains(own) => left.push(own.into()),
                Some(_) => {}
                None if dependency.is_empty() || dependency.starts_with('#') => {}
                None => drop(others.insert(dependency.to_string())),
            }
        }
    }
    (ours, others)
}

/// Returns name and version of these packages in the lock file, in its order.
fn versions(root: &Path, names: &BTreeSet<String>) -> Vec<String> {
    let lock = root.join("Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    let text = fs::read_to_string(lock).unwrap_or_default().replace('\r', "");
    let value = |block: &str, key: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(key))?;
        Some(line.trim_matches(['"', ' ', '=']).to_string())
    };
    let packages =
        text.split("[[package]]").filter_map(|block| Some((value(block, "name")?, value(block, "version")?)));
    packages.filter(|(name, _)| names.contains(name)).map(|(name, version)| format!("{name} {version}")).collect()
}

/// FNV-1a with 128 bits, as 32 hexadecimal digits.
fn fnv(bytes: &[u8]) -> String {
    let step =
        |hash: u128, byte: &u8| (hash ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    format!("{:032x}", bytes.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, step))
}

/// Returns a path with slashes, on every system.
fn slashes(path: &Path) -> String {
    path.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

/// Returns the files below `folder`.
fn below(folder: &Path) -> Vec<PathBuf> {
    inside(folder).into_iter().flat_map(|path| if path.is_dir() { below(&path) } else { vec![path] }).collect()
}

/// Returns the entries of `folder`; none if it is a file.
fn inside(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).map(|entries| entries.flatten().map(|entry| entry.path()).collect()).unwrap_or_default()
}
