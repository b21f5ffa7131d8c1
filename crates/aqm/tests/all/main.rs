//! All tests of this crate from outside, in one program: to link one is quicker than to link a dozen.

mod allocation;
mod anti_windup;
mod arm_pfc_predictor;
mod catalogue;
mod closed_loop;
mod common;
mod docs;
mod host_isolation;
mod interfaces;
mod kernel;
mod operations;
mod qdiscs;
mod random;
mod replay;
mod st_pi2;
mod theory;
mod vectors;
mod vectors_classic;
mod vectors_papers;
mod vectors_st_pi2;
