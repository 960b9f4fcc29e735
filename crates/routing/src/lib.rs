//! Cabling in, forwarding tables out: pure routing functions and their verifier
