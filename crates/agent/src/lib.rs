//! The wall-clock driver: machines, links and attachment in one tokio process
