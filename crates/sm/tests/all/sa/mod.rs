//! Subnet administration over a scripted fabric: what it says against what the devices themselves hold.

#![allow(unreachable_pub)]

use crate::fake;

pub(crate) mod client;
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
