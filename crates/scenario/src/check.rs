//! Checks across values: names refer to existing things, times fit the run, keys do not exclude each other.

use aqumen_aqm::Catalogue;
use aqumen_units::Span;

use crate::channel::LinkState;
use crate::error::{PathError, suggestion};
use crate::field::{Buffer, Name};
use crate::files::Files;
use crate::line::Medium;
use crate::network::{Core, loss};
use crate::schema::{Event, Group, Side, Spec, Topology};
use crate::spec::{AqmChange, AqmSpec, check_profiles};
use crate::spread::Spread;
use crate::sweep;
use crate::traffic::Traffic;
use crate::units::show_span;

/// Most flows of a scenario.
pub const FLOWS_MAX: u64 = 10_000_000;

/// Most samples of a series.
pub const SAMPLES_MAX: u64 = 10_000_000;

/// Most nodes, links, events, groups or windows, each.
const WRITTEN_MAX: usize = 10_000;

/// Checks `spec` with the files that it names; returns its network, and the AQM of each link with a fixed one.
pub(crate) fn check(
    spec: &Spec,
    files: &Files,
    catalogue: &Catalogue,
) -> Result<(Core, Vec<Option<AqmSpec>>), PathError> {
    let end = spec.duration;
    if end == Span::ZERO {
        return reject("duration", "must be above 0s, such as \"100s\"");
    }
    if let Err((key, message)) = sweep::check(&spec.variants, &spec.sweep) {
        return reject(key, message);
    }
    let interval = spec.sample_interval();
    if interval == Span::ZERO || interval > end {
        return reject("record.interval", "must be above 0s, at most the duration");
    }
    if end.as_nanos() / interval.as_nanos() > SAMPLES_MAX {
        return reject("record.interval", format!("gives more than {SAMPLES_MAX} samples; make it longer"));
    }
    let (nodes, links) = match &spec.topology {
        Topology::Dumbbell(_) => (2, 1),
        Topology::ParkingLot(row) => (row.rate.len() + 1, row.rate.len()),
        Topology::Graph(graph) => (graph.nodes.len(), graph.links.len()),
    };
    for (key, count) in [
        ("topology.nodes", nodes),
        ("topology.links", links),
        ("flows", spec.flows.len()),
        ("events", spec.events.len()),
        ("windows", spec.windows.0.len()),
    ] {
        if count > WRITTEN_MAX {
            return reject(key, format!("{count} entries; at most {WRITTEN_MAX}"));
        }
    }
    if spec.flows.is_empty() {
        return reject("flows", "a scenario needs at least one group of flows");
    }
    for (i, group) in spec.flows.iter().enumerate() {
        let twin = spec.flows[..i].iter().any(|other| other.name == group.name);
        check_group(group, end, twin).map_err(|(key, message)| (format!("flows.{i}.{key}"), message))?;
    }
    let flows = spec.all_flows();
    if flows > FLOWS_MAX {
        let largest = (0..spec.flows.len()).max_by_key(|i| spec.flows[*i].flows()).unwrap_or(0);
        return reject(format!("flows.{largest}.count"), format!("{flows} flows in all; at most {FLOWS_MAX}"));
    }
    let core = Core::new(spec, files)?;
    check_shared_hosts(spec, &core)?;
    check_buffers(spec, &core)?;
    check_lists(spec, &core)?;
    check_events(spec, &core, catalogue)?;
    check_windows(spec)?;
    if let Some(flows) = spec.nominal.flows
        && flows <= 0.0
    {
        return reject("nominal.flows", "must be above 0");
    }
    check_profiles(&spec.aqms, catalogue).map_err(|(name, (key, message))| {
        (key.map_or_else(|| format!("aqms.{name}"), |key| format!("aqms.{name}.{key}")), message)
    })?;
    AqmSpec::parse(&spec.aqm, &spec.aqms, catalogue).map_err(|message| ("aqm".to_string(), message))?;
    let fixed = core
        .links
        .iter()
        .map(|link| {
            let parse = |text: &String| {
                AqmSpec::parse(text, &spec.aqms, catalogue).map_err(|m| (format!("{}.aqm", link.path), m))
            };
            link.aqm.as_ref().map(parse).transpose()
        })
        .collect::<Result<_, _>>()?;
    Ok((core, fixed))
}

fn reject<T>(path: impl Into<String>, message: impl Into<String>) -> Result<T, PathError> {
    Err((path.into(), message.into()))
}

/// Checks shared hosts: the owning group comes first and has hosts at that node, and the sharing group sets no
/// parameters of these hosts.
fn check_shared_hosts(spec: &Spec, core: &Core) -> Result<(), PathError> {
    for (i, group) in spec.flows.iter().enumerate() {
        let both = group.hosts_of.is_some();
        for (side, side_key, others) in [
            (Side::Source, "sources_of", [("sources", group.sources), ("hosts", group.hosts)]),
            (Side::Destination, "destinations_of", [("destinations", group.destinations), ("hosts", group.hosts)]),
        ] {
            let Some(of) = group.shares(side) else { continue };
            let own_key = if side == Side::Source { &group.sources_of } else { &group.destinations_of };
            if both && own_key.is_some() {
                return reject(format!("flows.{i}.{side_key}"), "excludes hosts_of");
            }
            let sharing_key = if both { "hosts_of" } else { side_key };
            let path = format!("flows.{i}.{sharing_key}");
            let Some(owner) = spec.flows[..i].iter().position(|other| other.name == *of) else {
                return reject(path, format!("no earlier group \"{}\"", of.0));
            };
            let (route, owner_route) = (&core.routes[i], &core.routes[owner]);
            if both && (route.from, route.to) != (owner_route.from, owner_route.to) {
                return reject(path, format!("the group \"{}\" runs between other nodes", of.0));
            }
            if core.owner(spec, i, side).is_none() {
                let node = &core.nodes[route.node(side) as usize];
                return reject(path, format!("the group \"{}\" has no hosts at {node}", of.0));
            }
            if let Some((key, _)) = others.iter().find(|(_, given)| given.is_some()) {
                return reject(
                    format!("flows.{i}.{key}"),
                    format!("is a setting of the hosts, which {sharing_key} takes from another group"),
                );
            }
        }
        if group.hosts.is_some()
            && let Some((key, _)) = [("sources", group.sources), ("destinations", group.destinations)]
                .iter()
                .find(|(_, given)| given.is_some())
        {
            return reject(format!("flows.{i}.{key}"), "excludes hosts");
        }
        let given = [
            ("access", group.access.is_some()),
            ("rtt", group.rtt.is_some()),
            ("extra_rtt", group.extra_rtt != Spread::fixed(Span::ZERO)),
        ];
        if core.owners(spec, i).iter().all(|owner| *owner != i)
            && let Some((key, _)) = given.iter().find(|(_, given)| *given)
        {
            let sharing = if both { "hosts_of takes" } else { "sources_of and destinations_of take" };
            return reject(
                format!("flows.{i}.{key}"),
                format!("is a setting of the hosts, which {sharing} from another group"),
            );
        }
        let varies = core.routes[i].access.as_ref().is_some_and(|access| access.delay.low != access.delay.high);
        if group.rtt.is_some() && varies && !is_paired(spec, core, i) {
            return reject(
                format!("flows.{i}.rtt"),
                "needs access links of one delay, since the hosts of the two sides are not paired",
            );
        }
    }
    Ok(())
}

/// Whether each host of one side of group `i` communicates with one host of the other side.
fn is_paired(spec: &Spec, core: &Core, i: usize) -> bool {
    let [source, destination] = core.owners(spec, i);
    source == destination && core.hosts(spec, i, Side::Source) == core.hosts(spec, i, Side::Destination)
}

fn check_group(group: &Group, end: Span, twin: bool) -> Result<(), PathError> {
    if twin {
        return reject("name", "there is another group of this name");
    }
    if !group.transport.config.adapts() && group.traffic == Traffic::Bulk && group.transfer.is_none() {
        return reject("traffic", "UDP needs a kind of traffic, such as { kind = \"cbr\" }");
    }
    if matches!(group.traffic, Traffic::AdaptiveVideo(_)) && !group.transport.config.reports_delivery() {
        return reject("traffic", "adaptive-video needs a transport with acknowledgements: TCP or SCTP");
    }
    if group.count == 0 {
        return reject("count", "must be at least 1");
    }
    for (key, hosts) in [("hosts", group.hosts), ("sources", group.sources), ("destinations", group.destinations)] {
        if hosts.is_some_and(|hosts| !(1..=group.count).contains(&hosts)) {
            return reject(key, format!("must be 1 to the number of flows, {}", group.count));
        }
    }
    if group.class > u32::from(u8::MAX) {
        return reject("class", "must be 0 to 255");
    }
    if group.start.low >= end {
        return reject("start", format!("must be before the end of the run, {}", show_span(end)));
    }
    if let Some(stop) = group.stop {
        if stop <= group.start.high {
            return reject("stop", format!("must be after the start, {}", show_span(group.start.high)));
        }
        if stop > end {
            return reject("stop", format!("must be within the run of {}", show_span(end)));
        }
    }
    if group.transfer.is_some() && group.traffic != Traffic::Bulk {
        return reject("transfer", format!("applies to bulk traffic only; {} has its own sizes", group.traffic.kind()));
    }
    group.traffic.check().map_err(|(key, message)| {
        (if key.is_empty() { "traffic".to_string() } else { format!("traffic.{key}") }, message)
    })?;
    let mut last = Span::ZERO;
    for (k, off) in group.off.iter().enumerate() {
        let until = off.end.unwrap_or(end);
        if until > end || off.start >= end {
            return reject(format!("off.{k}"), format!("must be within the run of {}", show_span(end)));
        }
        if off.start < last {
            return reject(format!("off.{k}"), "must come after the interval before it");
        }
        last = until;
    }
    Ok(())
}

/// Refuses a buffer in bytes that is smaller than one packet.
fn check_buffers(spec: &Spec, core: &Core) -> Result<(), PathError> {
    let largest = spec.flows.iter().map(|group| group.transport.config.packet_bytes()).max().unwrap_or(0);
    let check = |buffer: Buffer, path: String| match buffer {
        Buffer::Bytes(bytes) if bytes.0 < u64::from(largest) => {
            reject(path, format!("holds less than one packet of {largest}B"))
        }
        _ => Ok(()),
    };
    for link in &core.links {
        check(link.buffer, format!("{}.buffer", link.path))?;
    }
    for (i, (group, route)) in spec.flows.iter().zip(&core.routes).enumerate() {
        if let Some(access) = &route.access {
            loss(&access.loss, if group.access.is_some() { "" } else { "topology.access" }).map_err(
                |(key, message)| (if group.access.is_some() { format!("flows.{i}.access{key}") } else { key }, message),
            )?;
            let own = if group.access.is_some() { format!("flows.{i}.access") } else { "topology.access".into() };
            check(access.buffer, format!("{own}.buffer"))?;
        }
    }
    Ok(())
}

/// Refuses lists of times or delays sharing_key length does not divide the number of flows or hosts.
fn check_lists(spec: &Spec, core: &Core) -> Result<(), PathError> {
    for (i, (group, route)) in spec.flows.iter().zip(&core.routes).enumerate() {
        if let Some(message) = group.start.count_error(group.count, "flows") {
            return reject(format!("flows.{i}.start"), message);
        }
        let access = route.access.as_ref().map(|access| &access.delay);
        let own =
            if group.access.is_some() { format!("flows.{i}.access.delay") } else { "topology.access.delay".into() };
        for (path, spread) in [
            (own, access),
            (format!("flows.{i}.extra_rtt"), Some(&group.extra_rtt)),
            (format!("flows.{i}.rtt"), group.rtt.as_ref()),
        ] {
            for side in Side::BOTH.into_iter().filter(|&side| group.shares(side).is_none()) {
                let hosts = group.own_hosts(side);
                let each = match (hosts == group.count, group.hosts, side) {
                    (true, None, _) => "flows",
                    (_, Some(_), _) => "hosts",
                    (_, _, Side::Source) => "sources",
                    (_, _, Side::Destination) => "destinations",
                };
                if let Some(message) = spread.and_then(|spread| spread.count_error(hosts, each)) {
                    return reject(path, message);
                }
            }
        }
    }
    Ok(())
}

fn check_events(spec: &Spec, core: &Core, catalogue: &Catalogue) -> Result<(), PathError> {
    for (i, event) in spec.events.iter().enumerate() {
        check_event(spec, core, event, catalogue).map_err(|(key, message)| {
            (if key.is_empty() { format!("events.{i}") } else { format!("events.{i}.{key}") }, message)
        })?;
    }
    // Counts of running and stopped flows decide how many can stop or resume.
    for group in &spec.flows {
        let mut running = group.count;
        for (i, event) in in_order(spec) {
            let (key, name, can) = match (&event.stop, &event.resume) {
                (Some(name), _) => ("stop", name, running),
                (_, Some(name)) => ("resume", name, group.count - running),
                _ => continue,
            };
            if *name != group.name {
                continue;
            }
            let count = event.count.unwrap_or(can);
            if count > can || can == 0 {
                let state = if key == "stop" { "are running" } else { "are stopped" };
                let at = if event.count.is_some() { "count" } else { key };
                return reject(format!("events.{i}.{at}"), format!("{can} flows of {} {state} at that time", name.0));
            }
            running = if key == "stop" { running - count } else { running + count };
        }
    }
    // Each link alternates between down and up.
    for link in 0..core.links.len() {
        let mut state = LinkState::Up;
        for (i, event) in in_order(spec).into_iter().filter(|(_, event)| event_link(event, core) == Some(link)) {
            match event.state {
                Some(new) if new == state => {
                    let shown = if state == LinkState::Up { "up" } else { "down" };
                    return reject(
                        format!("events.{i}.state"),
                        format!("{} is already {shown} at that time", core.links[link].name),
                    );
                }
                Some(new) => state = new,
                None => {}
            }
        }
    }
    Ok(())
}

/// The link that `event` changes, if it changes one.
pub(crate) fn event_link(event: &Event, core: &Core) -> Option<usize> {
    if !changes_link(event) {
        return None;
    }
    match &event.link {
        Some(name) => core.links.iter().position(|link| link.name == name.0),
        None => core.under_test().next(),
    }
}

fn changes_link(event: &Event) -> bool {
    event.capacity.is_some()
        || event.delay.is_some()
        || event.loss.is_some()
        || event.state.is_some()
        || event.aqm.is_some()
}

fn check_event(spec: &Spec, core: &Core, event: &Event, catalogue: &Catalogue) -> Result<(), PathError> {
    if event.at >= spec.duration {
        return reject("at", format!("must be before the end of the run, {}", show_span(spec.duration)));
    }
    let kinds = [
        event.capacity.is_some(),
        event.delay.is_some(),
        event.loss.is_some(),
        event.state.is_some(),
        event.aqm.is_some(),
        event.stop.is_some(),
        event.resume.is_some(),
    ];
    if kinds.iter().filter(|given| **given).count() != 1 {
        return reject("", "must have one of capacity, delay, loss, state, aqm, stop and resume");
    }
    loss(&event.loss, "").map_err(|(key, message)| (key.trim_start_matches('.').to_string(), message))?;
    let of_link = changes_link(event);
    match &event.link {
        Some(_) if !of_link => return reject("link", "belongs to capacity, delay, loss, state and aqm"),
        Some(name) => drop(core.link("link", &name.0)?),
        // In a dumbbell the bottleneck, link 0, is the default.
        None if of_link && core.under_test().count() != 1 && !matches!(spec.topology, Topology::Dumbbell(_)) => {
            return reject("", "link is missing; it names the link that changes");
        }
        None => {}
    }
    if event.capacity.is_some()
        && let Some(link) = event_link(event, core)
        && core.links[link].carries.medium != Medium::Wire
    {
        let name = &core.links[link].name;
        return reject("capacity", format!("{name} has no rate to change: its channel or trace determines it"));
    }
    if let Some(AqmChange::Spec(text)) = &event.aqm {
        AqmSpec::parse(text, &spec.aqms, catalogue).map_err(|message| ("aqm".to_string(), message))?;
    }
    if event.count.is_some() && of_link {
        return reject("count", "belongs to stop and resume");
    }
    if event.count == Some(0) {
        return reject("count", "must be at least 1");
    }
    for (key, name) in [("stop", &event.stop), ("resume", &event.resume)] {
        if let Some(Name(name)) = name
            && !spec.flows.iter().any(|group| group.name.0 == *name)
        {
            let known = suggestion(name, spec.flows.iter().map(|group| group.name.0.as_str()));
            return reject(key, format!("no such group of flows{known}"));
        }
    }
    Ok(())
}

fn check_windows(spec: &Spec) -> Result<(), PathError> {
    let of_events = event_windows(spec);
    let mut names: Vec<&str> = vec!["all"];
    for (name, interval) in &spec.windows.0 {
        let path = format!("windows.{name}");
        if interval.start >= spec.duration || interval.end.is_some_and(|end| end > spec.duration) {
            return reject(path, format!("must be within the run of {}", show_span(spec.duration)));
        }
        if names.contains(&name.as_str()) {
            return reject(path, "is the name of a predefined window; choose another name");
        }
        names.push(name);
    }
    names.push("steady");
    for (i, event) in spec.events.iter().enumerate() {
        let own = of_events.iter().find(|(_, at, _)| *at == event.at).map_or("", |(name, _, _)| name);
        if names.contains(&own) {
            return reject(format!("events.{i}"), format!("there is another window called {own}"));
        }
    }
    for (k, (name, at, _)) in of_events.iter().enumerate() {
        if of_events[..k].iter().any(|(other, _, _)| other == name) {
            let i = spec.events.iter().position(|event| event.at == *at).unwrap_or(0);
            return reject(format!("events.{i}.name"), format!("there is another window called {name}"));
        }
    }
    Ok(())
}

/// Returns the events in order of time, stable, with their indices in the file.
fn in_order(spec: &Spec) -> Vec<(usize, &Event)> {
    let mut events: Vec<(usize, &Event)> = spec.events.iter().enumerate().collect();
    events.sort_by_key(|(_, event)| event.at);
    events
}

/// Returns the windows that events open: name, start, end (`None`: the end of the run).
pub(crate) fn event_windows(spec: &Spec) -> Vec<(String, Span, Option<Span>)> {
    let mut windows: Vec<(String, Span, Option<Span>)> = Vec::new();
    for (_, event) in in_order(spec) {
        let given = event.name.as_ref().map(|name| name.0.clone());
        match windows.last_mut() {
            Some(last) if last.1 == event.at => {
                if let Some(name) = given {
                    last.0 = name;
                }
                continue;
            }
            Some(last) => last.2 = Some(event.at),
            None => {}
        }
        windows.push((given.unwrap_or_else(|| format!("after-{}", show_span(event.at))), event.at, None));
    }
    windows
}

/// Returns for each flow of `group` the disjoint intervals without data, in order.
pub(crate) fn pauses(spec: &Spec, group: &Group) -> Vec<Vec<(Span, Option<Span>)>> {
    let common: Vec<_> = group.off.iter().map(|off| (off.start, off.end)).collect();
    let mut all = vec![common; group.count as usize];
    // Time since which each flow has been stopped by an event.
    let mut stopped: Vec<Option<Span>> = vec![None; group.count as usize];
    for (_, event) in in_order(spec) {
        let stops = event.stop.as_ref() == Some(&group.name);
        if !stops && event.resume.as_ref() != Some(&group.name) {
            continue;
        }
        let mut left = event.count.unwrap_or(u32::MAX);
        for (flow, since) in stopped.iter_mut().enumerate() {
            if left > 0 && since.is_none() == stops {
                left -= 1;
                match since.take() {
                    None => *since = Some(event.at),
                    Some(from) => all[flow].push((from, Some(event.at))),
                }
            }
        }
    }
    for (flow, since) in stopped.iter().enumerate() {
        if let Some(from) = since {
            all[flow].push((*from, None));
        }
    }
    for pauses in &mut all {
        merge(pauses);
    }
    all
}

/// Sorts intervals and joins those that touch.
pub(crate) fn merge<T: Copy + Ord>(intervals: &mut Vec<(T, Option<T>)>) {
    intervals.sort_by_key(|(from, _)| *from);
    let mut joined: Vec<(T, Option<T>)> = Vec::with_capacity(intervals.len());
    for &(from, until) in intervals.iter() {
        match joined.last_mut() {
            Some((_, last)) if last.is_none_or(|last| last >= from) => {
                *last = match (*last, until) {
                    (Some(a), Some(b)) => Some(a.max(b)),
                    _ => None,
                };
            }
            _ => joined.push((from, until)),
        }
    }
    *intervals = joined;
}
