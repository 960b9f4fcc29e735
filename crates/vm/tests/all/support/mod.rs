//! A model of everything around the manager.

#![allow(dead_code, reason = "not every test uses all of it")]

pub(crate) mod agent;
pub(crate) mod disk;
pub(crate) mod subnet;
pub(crate) mod world;
