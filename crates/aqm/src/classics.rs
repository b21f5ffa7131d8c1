//! Classic algorithms of 1990 to 2005: DropTail, RED and its adaptive variants, PI, REM, AVQ, BLUE; a fixed
//! probability.

pub(crate) mod ared;
pub(crate) mod ared_feng;
pub(crate) mod avq;
pub(crate) mod blue;
pub(crate) mod droptail;
pub(crate) mod fixed;
pub(crate) mod pi;
pub(crate) mod red;
pub(crate) mod red_law;
pub(crate) mod rem;
