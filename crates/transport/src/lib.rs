//! To come.
/// To come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpConfig;
