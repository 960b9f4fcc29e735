//! Attaching a management program to a port of the fabric
