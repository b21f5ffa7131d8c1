//! A scenario: read, overridden, checked, written back, expanded.

use std::path::Path;

use aqumen_aqm::Catalogue;

use crate::check::check;
use crate::expand::expand;
use crate::field::{At, Field};
use crate::files::{Files, bytes_of_file, text_of_bytes};
use crate::network::Core;
use crate::schema::Spec;
use crate::spec::AqmSpec;
use crate::traffic::OwnKinds;
use crate::tree::{Node, Value, locate};
use crate::{Error, Plan};

/// What a scenario may name beside what is built in: AQMs and kinds of traffic from outside.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outside {
    /// The AQMs, those built in among them.
    pub aqms: Catalogue,
    /// The kinds of traffic.
    pub traffic: OwnKinds,
}

impl From<Catalogue> for Outside {
    fn from(aqms: Catalogue) -> Self {
        Outside { aqms, traffic: OwnKinds::NONE }
    }
}

/// A scenario that has been checked: every engine can run it.
#[derive(Clone, Debug)]
pub struct Scenario {
    file: String,
    files: Files,
    outside: Outside,
    tree: Node,
    spec: Spec,
    core: Core,
    /// The AQM of each written link; `None` under test.
    fixed: Vec<Option<AqmSpec>>,
}

impl Scenario {
    /// Reads the file at `path` and applies `overrides` (key and value) before it is checked.
    pub fn load(path: impl AsRef<Path>, overrides: &[(&str, &str)]) -> Result<Scenario, Error> {
        let path = path.as_ref();
        let file = path.display().to_string();
        let bytes = bytes_of_file(path, &file, "a scenario")?;
        Scenario::from_bytes(&bytes, &file, overrides)
    }

    /// Reads the bytes of `file` and applies `overrides`.
    pub fn from_bytes(bytes: &[u8], file: &str, overrides: &[(&str, &str)]) -> Result<Scenario, Error> {
        let text = text_of_bytes(bytes, file, "a scenario")?;
        let mut tree = Node::parse(text, file)?;
        for (key, value) in overrides {
            tree.set(&full_key(key), value, file)?;
        }
        Scenario::from_tree(tree, file, Files::beside(file), Outside::default())
    }

    /// Reads the file at `path`, with what comes from `outside` beside what is built in.
    pub fn load_knowing(path: impl AsRef<Path>, outside: impl Into<Outside>) -> Result<Scenario, Error> {
        let path = path.as_ref();
        let file = path.display().to_string();
        let bytes = bytes_of_file(path, &file, "a scenario")?;
        Scenario::parse_knowing(text_of_bytes(&bytes, &file, "a scenario")?, &file, Files::beside(&file), outside)
    }

    /// Reads `text`; `file` is its name in messages.
    pub fn parse(text: &str, file: &str) -> Result<Scenario, Error> {
        Scenario::from_bytes(text.as_bytes(), file, &[])
    }

    /// Reads `text`, and the files that it names among `files` in place of the disk.
    pub fn parse_with(text: &str, file: &str, files: Files) -> Result<Scenario, Error> {
        Scenario::parse_knowing(text, file, files, Catalogue::BUILT_IN)
    }

    /// Reads `text`; the files that it names are found among `files`, and what is not built in comes from `outside`.
    pub fn parse_knowing(text: &str, file: &str, files: Files, outside: impl Into<Outside>) -> Result<Scenario, Error> {
        let text = text_of_bytes(text.as_bytes(), file, "a scenario")?;
        Scenario::from_tree(Node::parse(text, file)?, file, files, outside.into())
    }

    /// The same scenario with the value at the dotted `key` replaced: `topology.bottleneck.rate` or `bottleneck.rate`
    /// for short, `flows.ftp.count` by name or `flows.0.count` by place.
    pub fn with(&self, key: &str, value: &str) -> Result<Scenario, Error> {
        self.with_all(&[(key, value)])
    }

    /// The same with several values replaced, checked when all are in place.
    pub fn with_all(&self, changes: &[(&str, &str)]) -> Result<Scenario, Error> {
        let mut tree = self.tree.clone();
        for (key, value) in changes {
            tree.set(&full_key(key), value, &self.file)?;
        }
        self.of_tree(tree)
    }

    /// The same scenario with what comes from `outside`.
    pub fn knowing(&self, outside: impl Into<Outside>) -> Result<Scenario, Error> {
        Scenario::from_tree(self.tree.clone(), &self.file, self.files.clone(), outside.into())
    }

    /// The scenario of `tree`, with the file's name, the files and all from outside of this one.
    pub(crate) fn of_tree(&self, tree: Node) -> Result<Scenario, Error> {
        Scenario::from_tree(tree, &self.file, self.files.clone(), self.outside.clone())
    }

    fn from_tree(tree: Node, file: &str, files: Files, outside: Outside) -> Result<Scenario, Error> {
        let mut spec = Spec::read(&At { node: &tree, path: String::new() }).map_err(|misfit| misfit.in_file(file))?;
        for (i, group) in spec.flows.iter_mut().enumerate() {
            let at = |(key, message)| locate(&tree, file, (format!("flows.{i}.traffic.{key}"), message));
            group.traffic.load(&files).map_err(at)?;
            group.traffic.look_up(&outside.traffic).map_err(|(key, message)| {
                let path = format!("flows.{i}.traffic");
                let table = matches!(tree.nearest(&path).0.value, Value::Table(_));
                locate(&tree, file, (if table { format!("{path}.{key}") } else { path }, message))
            })?;
        }
        let (core, fixed) = check(&spec, &files, &outside.aqms).map_err(|wrong| locate(&tree, file, wrong))?;
        Ok(Scenario { file: file.into(), files, outside, tree, spec, core, fixed })
    }

    /// What the scenario says.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The AQMs that it may name.
    pub fn catalogue(&self) -> &Catalogue {
        &self.outside.aqms
    }

    /// Its text with the lines of its values.
    pub(crate) fn tree(&self) -> &Node {
        &self.tree
    }

    /// Name of the file it was read from.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The scenario as TOML. It reads back as the same scenario; comments and values equal to their default are left
    /// out.
    pub fn to_toml(&self) -> String {
        match self.spec.write() {
            Some(toml::Value::Table(table)) => table.to_string(),
            _ => String::new(),
        }
    }

    /// The AQM of a SPEC, with the profiles of this scenario.
    pub fn aqm(&self, text: &str) -> Result<AqmSpec, Error> {
        AqmSpec::parse(text, &self.spec.aqms, &self.outside.aqms).map_err(|message| Error::of_aqm(text, message))
    }

    /// Names of the links under test.
    pub fn links_under_test(&self) -> Vec<&str> {
        self.core.under_test().map(|i| self.core.links[i].name.as_str()).collect()
    }

    /// The plan for `seed`, with `aqm` on the links under test; `None`: the one that the scenario names. Plans of two
    /// AQMs for one seed differ in the AQM alone.
    pub fn plan(&self, seed: u64, aqm: Option<&AqmSpec>) -> Result<Plan, Error> {
        if aqm.is_some() && self.core.under_test().next().is_none() {
            let message = "no link is under test; give one aqm = \"test\"";
            return Err(locate(&self.tree, &self.file, ("topology.links".into(), message.into())));
        }
        let own = self.own(aqm)?;
        let plan = expand(&self.spec, &self.core, seed, &own, &self.fixed)
            .map_err(|wrong| locate(&self.tree, &self.file, wrong))?;
        match plan.unfit_aqm(self.core.links.len()) {
            None => Ok(plan),
            Some((i, message)) if self.core.links[i].aqm.is_some() => {
                Err(locate(&self.tree, &self.file, (format!("{}.aqm", self.core.links[i].path), message)))
            }
            Some((_, message)) if aqm.is_some() => Err(Error::of_aqm(&own.label, message)),
            Some((_, message)) => Err(locate(&self.tree, &self.file, ("aqm".into(), message))),
        }
    }

    /// The network as written.
    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    /// The AQM of each written link; `None` under test.
    pub(crate) fn fixed(&self) -> &[Option<AqmSpec>] {
        &self.fixed
    }

    /// The AQM on the links under test: `aqm`, or the one that the scenario names.
    pub(crate) fn own(&self, aqm: Option<&AqmSpec>) -> Result<AqmSpec, Error> {
        aqm.map_or_else(|| self.aqm(&self.spec.aqm), |aqm| Ok(aqm.clone()))
    }

    /// The JSON Schema of a scenario file, as text that ends with a newline.
    pub fn json_schema() -> String {
        let mut schema = Spec::schema();
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
        schema["title"] = "Aqumen scenario".into();
        let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
        text.push('\n');
        text
    }
}

/// `bottleneck.rate` is short for `topology.bottleneck.rate`.
pub(crate) fn full_key(key: &str) -> String {
    match key.split('.').next().map(str::trim) {
        Some("bottleneck" | "access" | "links") => format!("topology.{key}"),
        _ => key.into(),
    }
}
