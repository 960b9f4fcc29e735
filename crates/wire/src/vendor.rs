//! Vendor-defined classes of range 2, 0x30 to 0x4f (IBA 16.5).

/// The organisation whose classes the OpenIB ping and system-status services are.
pub const OPENIB_OUI: u32 = 0x00_1405;

/// Attributes of the OpenIB system-status service.
pub mod sysstat {
    use crate::AttributeId;

    /// Asks for an answer and nothing more.
    pub const PING: AttributeId = AttributeId::from_code(0x10);
    /// The host's name.
    pub const HOST_INFO: AttributeId = AttributeId::from_code(0x11);
    /// The host's processors.
    pub const CPU_INFO: AttributeId = AttributeId::from_code(0x12);
}

mads! {
    /// A MAD of a vendor class of range 2 (IBA 16.5.1).
    VendorMad: 256 {
        /// The header of reliable multi-packet transfers; all zero when there is none.
        192, 96, rmpp_header: [u8; 12];
        /// Reserved.
        288, 8, reserved_288: u8;
        /// The vendor.
        296, 24, oui: u32;
        /// The attribute's bytes.
        320, 1728, data: [u8; 216];
    }
}
