//! Puts the scenario files of `experiments/` into the module, so that an installed package has them too.

use std::path::Path;
use std::{env, fs};

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    println!("cargo::rerun-if-changed={}", root.display());
    let mut files: Vec<_> = inside(&root).iter().flat_map(|folder| inside(folder)).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    let mut table = String::from("&[\n");
    for file in &files {
        let name = file.strip_prefix(&root).expect("the file is below the root").with_extension("");
        // With slashes on every system; a path is written as a Rust string.
        let name: Vec<_> = name.iter().map(|part| part.to_string_lossy()).collect();
        table += &format!("    ({:?}, include_str!({:?})),\n", name.join("/"), file);
    }
    table += "]\n";
    let target = Path::new(&env::var_os("OUT_DIR").expect("cargo sets it")).join("experiments.rs");
    fs::write(target, table).expect("cargo made the folder");
}

/// Returns the entries of `folder`; none if it is a file.
fn inside(folder: &Path) -> Vec<std::path::PathBuf> {
    fs::read_dir(folder).map(|entries| entries.flatten().map(|entry| entry.path()).collect()).unwrap_or_default()
}
