//! A scenario: reading, overrides, checks, writing, expansion.

use std::collections::BTreeMap;
use std::path::Path;

use aqumen_aqm::Catalogue;

use crate::check::check;
use crate::expand::expand;
use crate::field::{Cursor, Field};
use crate::files::{Files, decode_utf8, read_file};
use crate::network::Core;
use crate::schema::Spec;
use crate::spec::AqmSpec;
use crate::traffic::CustomKinds;
use crate::tree::{Node, Value, locate};
use crate::{Error, Plan};

/// Extensions that a scenario may name: custom AQMs and custom kinds of traffic.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extensions {
    /// AQMs, built-in and custom.
    pub aqms: Catalogue,
    /// Custom kinds of traffic.
    pub traffic: CustomKinds,
}

impl From<Catalogue> for Extensions {
    fn from(aqms: Catalogue) -> Self {
        Extensions { aqms, traffic: CustomKinds::NONE }
    }
}

/// A checked scenario, which every engine can run.
#[derive(Clone, Debug)]
pub struct Scenario {
    file: String,
    files: Files,
    extensions: Extensions,
    tree: Node,
    spec: Spec,
    core: Core,
    /// AQM of each core link; `None` under test.
    fixed: Vec<Option<AqmSpec>>,
}

impl Scenario {
    /// Reads the file at `path` and applies `overrides` (key and value) before it is checked.
    pub fn load(path: impl AsRef<Path>, overrides: &[(&str, &str)]) -> Result<Scenario, Error> {
        let path = path.as_ref();
        let file = path.display().to_string();
        let bytes = read_file(path, &file, "a scenario")?;
        Scenario::from_bytes(&bytes, &file, overrides)
    }

    /// Reads the bytes of `file` and applies `overrides`.
    pub fn from_bytes(bytes: &[u8], file: &str, overrides: &[(&str, &str)]) -> Result<Scenario, Error> {
        let text = decode_utf8(bytes, file, "a scenario")?;
        let mut tree = Node::parse(text, file)?;
        for (key, value) in overrides {
            tree.set(&full_key(key), value, file)?;
        }
        Scenario::from_tree(tree, file, Files::on_disk(file), Extensions::default())
    }

    /// Reads the file at `path`, with `extensions`.
    pub fn load_with_extensions(path: impl AsRef<Path>, extensions: impl Into<Extensions>) -> Result<Scenario, Error> {
        let path = path.as_ref();
        let file = path.display().to_string();
        let bytes = read_file(path, &file, "a scenario")?;
        Scenario::parse_with_extensions(
            decode_utf8(&bytes, &file, "a scenario")?,
            &file,
            Files::on_disk(&file),
            extensions,
        )
    }

    /// Reads `text`; `file` is its name in messages.
    pub fn parse(text: &str, file: &str) -> Result<Scenario, Error> {
        Scenario::from_bytes(text.as_bytes(), file, &[])
    }

    /// Reads `text`, with the files that it names from `files`.
    pub fn parse_with(text: &str, file: &str, files: Files) -> Result<Scenario, Error> {
        Scenario::parse_with_extensions(text, file, files, Catalogue::BUILT_IN)
    }

    /// Reads `text`, with the files that it names from `files`, and with `extensions`.
    pub fn parse_with_extensions(
        text: &str,
        file: &str,
        files: Files,
        extensions: impl Into<Extensions>,
    ) -> Result<Scenario, Error> {
        let text = decode_utf8(text.as_bytes(), file, "a scenario")?;
        Scenario::from_tree(Node::parse(text, file)?, file, files, extensions.into())
    }

    /// Returns the scenario with the value at the dotted `key` replaced: `topology.bottleneck.rate` or
    /// `bottleneck.rate` for short, `flows.ftp.count` by name or `flows.0.count` by index.
    pub fn with(&self, key: &str, value: &str) -> Result<Scenario, Error> {
        self.with_all(&[(key, value)])
    }

    /// Returns the scenario with several values replaced, checked together.
    pub fn with_all(&self, changes: &[(&str, &str)]) -> Result<Scenario, Error> {
        let mut tree = self.tree.clone();
        for (key, value) in changes {
            tree.set(&full_key(key), value, &self.file)?;
        }
        self.with_tree(tree)
    }

    /// Returns the scenario with one more event, an inline table of TOML: `{ at = "5s", capacity = "4Mbit" }`.
    pub fn with_event(&self, event: &str) -> Result<Scenario, Error> {
        self.with_event_at(self.spec.events.len(), event)
    }

    /// Returns the scenario with one more event, number `index` of the list, which orders events of one moment.
    pub fn with_event_at(&self, index: usize, event: &str) -> Result<Scenario, Error> {
        let (mut tree, node) = (self.tree.clone(), Node::parse_override(event));
        if !matches!(node.value, Value::Table(_)) {
            let message =
                format!("an event must be a table, such as {{ at = \"5s\", capacity = \"4Mbit\" }}, not {event}");
            return Err(locate(&tree, &self.file, ("events".into(), message)));
        }
        match tree.items("events") {
            Some(events) => events.insert(index.min(events.len()), node),
            None => tree.set("events", &format!("[{event}]"), &self.file)?,
        }
        self.with_tree(tree)
    }

    /// Returns the scenario with these extensions.
    pub fn with_extensions(&self, extensions: impl Into<Extensions>) -> Result<Scenario, Error> {
        Scenario::from_tree(self.tree.clone(), &self.file, self.files.clone(), extensions.into())
    }

    /// Returns the scenario of `tree`, with the file name, files and extensions of this one.
    pub(crate) fn with_tree(&self, tree: Node) -> Result<Scenario, Error> {
        Scenario::from_tree(tree, &self.file, self.files.clone(), self.extensions.clone())
    }

    fn from_tree(tree: Node, file: &str, files: Files, extensions: Extensions) -> Result<Scenario, Error> {
        let files = files.unread();
        let mut spec = Spec::read(&Cursor { node: &tree, path: String::new() }).map_err(|error| error.in_file(file))?;
        for (i, group) in spec.flows.iter_mut().enumerate() {
            let at = |(key, message)| locate(&tree, file, (format!("flows.{i}.traffic.{key}"), message));
            group.traffic.load(&files).map_err(at)?;
            group.traffic.resolve_custom(&extensions.traffic).map_err(|(key, message)| {
                let path = format!("flows.{i}.traffic");
                let table = matches!(tree.nearest(&path).0.value, Value::Table(_));
                locate(&tree, file, (if table { format!("{path}.{key}") } else { path }, message))
            })?;
        }
        let (core, fixed) = check(&spec, &files, &extensions.aqms).map_err(|wrong| locate(&tree, file, wrong))?;
        Ok(Scenario { file: file.into(), files, extensions, tree, spec, core, fixed })
    }

    /// The contents of the scenario.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// AQMs that the scenario may name.
    pub fn catalogue(&self) -> &Catalogue {
        &self.extensions.aqms
    }

    /// The tree with the line numbers of the values.
    pub(crate) fn tree(&self) -> &Node {
        &self.tree
    }

    /// Name of the file it was read from.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Contents of the files that the scenario names, by their names in it.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        self.files.contents()
    }

    /// The scenario as TOML, which reads back as the same scenario; comments and defaults are omitted.
    pub fn to_toml(&self) -> String {
        match self.spec.write() {
            Some(toml::Value::Table(table)) => table.to_string(),
            _ => String::new(),
        }
    }

    /// Reads the AQM of a SPEC, with the profiles of this scenario.
    pub fn aqm(&self, text: &str) -> Result<AqmSpec, Error> {
        AqmSpec::parse(text, &self.spec.aqms, &self.extensions.aqms).map_err(|message| Error::for_aqm(text, message))
    }

    /// Names of the links under test.
    pub fn links_under_test(&self) -> Vec<&str> {
        self.core.under_test().map(|i| self.core.links[i].name.as_str()).collect()
    }

    /// Returns the plan for `seed`, with `aqm` on the links under test; `None`: the AQM of the scenario. Plans of two
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
            Some((_, message)) if aqm.is_some() => Err(Error::for_aqm(&own.label, message)),
            Some((_, message)) => Err(locate(&self.tree, &self.file, ("aqm".into(), message))),
        }
    }

    /// The core network.
    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    /// AQM of each core link; `None` under test.
    pub(crate) fn fixed(&self) -> &[Option<AqmSpec>] {
        &self.fixed
    }

    /// Returns the AQM on the links under test: `aqm`, or that of the scenario.
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

/// Expands the short form `bottleneck.rate` to `topology.bottleneck.rate`.
pub(crate) fn full_key(key: &str) -> String {
    match key.split('.').next().map(str::trim) {
        Some("bottleneck" | "access" | "links") => format!("topology.{key}"),
        _ => key.into(),
    }
}
