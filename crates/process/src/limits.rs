//! Limits of the clients that a process takes.

/// Clients at the same time; further ones get an error and are sent away.
pub const CLIENTS_MAX: usize = 1280;
/// Of these the clients of one process.
pub const CLIENTS_OF_ONE_MAX: usize = 1024;
