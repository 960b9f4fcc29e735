//! A switch and an HCA as state machines: ports, SMA, PMA, counters, forwarding
