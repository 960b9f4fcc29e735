//! One cable over QUIC: handshake, lanes, liveness; and its in-process twin
