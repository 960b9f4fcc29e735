//! The virtual-time driver: a whole fabric in one process, deterministic from a seed
