//! Controllers of the reproduced papers: ARM-PFC, PAQM, AQM-MO, AAQM, and self-tuning ones; ST-PI2 builds on them.

pub mod aaqm;
pub mod aqm_mo;
pub mod arm_pfc;
pub mod arm_pfc_adaptive;
pub mod paqm;
pub(crate) mod st_aqm_mo;
pub(crate) mod st_arm_pfc;
pub(crate) mod st_pi2;
pub mod stpi;
pub(crate) mod stred;
