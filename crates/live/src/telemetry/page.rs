//! The live page: one file that asks for new samples twice a second and draws the last minute of them.

/// It needs nothing from anywhere else.
pub(crate) const HTML: &str = include_str!("page.html");
