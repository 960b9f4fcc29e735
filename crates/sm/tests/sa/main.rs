//! Subnet administration over a scripted fabric: what it says against what the devices themselves hold.

#![allow(unreachable_pub)]

#[path = "../fake/mod.rs"]
mod fake;

mod client;
mod events;
mod limits;
mod management;
mod masks;
mod partitions;
mod paths;
mod records;
mod repath;
mod services;
mod shape;
mod shares;
mod sight;
