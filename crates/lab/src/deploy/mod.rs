//! A laboratory's bundle as files for programs that start containers.

pub mod compose;
pub mod kubernetes;
mod services;
mod yaml;
