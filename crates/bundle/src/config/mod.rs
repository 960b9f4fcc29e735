//! Configurations: one file for each process of a laboratory, and those that all of them share.

pub mod hub;
pub mod keys;
pub mod managers;
pub mod run;
