//! Traffic sources: the size and the moment of each thing that an application sends.
//!
//! A [`Source`] is pure: the host keeps the clock and the random stream (kind `Traffic`, the flow's number; the group's
//! first flow for a source that serves a whole group), carries out each [`Action`] at its moment, and asks again.
//! [`build`] makes the source of a scenario's [`Traffic`]; `docs/traffic.md` has the formulas.
//!
//! - `draw` draws from the laws of sizes, times and counts;
//! - `source` is the interface of all sources;
//! - `transfers` are finite transfers, `web` sessions of pages;
//! - `packets` are sources of packets: constant rate, Poisson, ON/OFF, self-similar; `mmpp` Markov-modulated ones;
//! - `media` are voice and video, `adaptive_video` a video player that adapts its bit rate, `custom` user-defined
//!   sources;
//! - `requests` computes the requests of a source before a run, for external simulators.

mod adaptive_video;
mod custom;
mod draw;
mod media;
mod mmpp;
mod packets;
mod requests;
mod source;
mod transfers;
mod web;

use aqumen_scenario::Traffic;

pub use adaptive_video::film;
pub use draw::Draws;
pub use requests::{Requests, requests};
pub use source::{Action, Source, Step};

/// Makes the source of `traffic`; `None` for a bulk transfer, which needs no source, and for a custom source that
/// cannot be made.
pub fn build(traffic: &Traffic) -> Option<Box<dyn Source + Send>> {
    Some(match traffic {
        Traffic::Bulk => return None,
        Traffic::Transfers(spec) => match spec.per_second() {
            Some(rate) => Box::new(transfers::Poisson::new(spec, rate)),
            None => Box::new(transfers::Thinking::new(spec)),
        },
        Traffic::Web(spec) => Box::new(web::Web::new(spec)),
        Traffic::Cbr(spec) => Box::new(packets::Cbr::new(spec)),
        Traffic::Poisson(spec) => Box::new(packets::Poisson::new(spec)),
        Traffic::OnOff(spec) => Box::new(packets::OnOff::new(spec)),
        Traffic::SelfSimilar(spec) => Box::new(packets::SelfSimilar::new(spec)),
        Traffic::Voip(spec) => Box::new(media::Voip::new(spec)),
        Traffic::Mmpp(spec) => Box::new(mmpp::Mmpp::new(spec)),
        Traffic::Video(spec) => match &spec.file {
            Some(file) => Box::new(media::Video::new(spec, &file.trace)),
            None => Box::new(media::RandomVideo::new(spec)),
        },
        Traffic::AdaptiveVideo(spec) => Box::new(adaptive_video::AdaptiveVideo::new(spec, film(traffic)?)),
        Traffic::Custom(spec) => Box::new(custom::Custom(spec.source()?)),
    })
}
