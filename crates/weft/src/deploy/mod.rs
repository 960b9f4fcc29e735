//! A laboratory's bundle as files for programs that start containers.

pub(crate) mod compose;
pub(crate) mod kubernetes;
mod services;
mod yaml;
