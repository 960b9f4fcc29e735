//! Services.

use super::Parts::Split;
use super::record;
use crate::{Gid, PKey};

layout! {
    /// A service that a port offers (IBA 15.2.5.14).
    pub struct ServiceRecord: 176 {
        /// Which service.
        0, 64, service_id: u64;
        /// Who offers it.
        64, 128, service_gid: Gid;
        /// In which partition.
        192, 16, service_p_key: PKey;
        /// Reserved.
        208, 16, reserved_208: u16;
        /// For how many seconds more; all ones is for good.
        224, 32, service_lease: u32;
        /// A key that whoever offers it may keep there.
        256, 128, service_key: [u8; 16];
        /// A name, filled up with zeros.
        384, 512, service_name: [u8; 64];
        /// What the service wants to say, in bytes.
        896, 128, service_data8: [u8; 16];
        /// The same in 16-bit words.
        1024, 128, service_data16: [u16; 8];
        /// The same in 32-bit words.
        1152, 128, service_data32: [u32; 4];
        /// The same in 64-bit words.
        1280, 128, service_data64: [u64; 2];
    }
}
record!(
    ServiceRecord: SERVICE_RECORD, 37,
    service_data8: Split(16), service_data16: Split(8), service_data32: Split(4), service_data64: Split(2)
);

impl ServiceRecord {
    /// The lease of a service that is offered for good.
    pub const LEASE_INFINITE: u32 = u32::MAX;
}
