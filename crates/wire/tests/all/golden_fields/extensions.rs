//! Extensions of PortInfo, and the MADs of vendor classes.

use super::*;

#[test]
fn error_correction() {
    pinned!(
        PortInfoExtended {
            capability_mask: 0x0102_0304,
            fec_mode_active: 0x0506,
            fdr_fec_mode_supported: 0x0708,
            fdr_fec_mode_enabled: 0x090a,
            edr_fec_mode_supported: 0x0b0c,
            edr_fec_mode_enabled: 0x0d0e,
            hdr_fec_mode_supported: 0x0f10,
            hdr_fec_mode_enabled: 0x1112,
            ndr_fec_mode_supported: 0x1314,
            ndr_fec_mode_enabled: 0x1516,
            reserved_176: run(0x20),
        },
        "01020304 0506 0708 090a 0b0c 0d0e 0f10 1112 1314 1516",
        hex(&run::<42>(0x20))
    );
}

#[test]
fn fdr10() {
    pinned!(
        MlnxExtPortInfo {
            reserved_0: 0x01_0203,
            state_change_enable: 0x04,
            reserved_32: 0x05_0607,
            link_speed_supported: 0x08,
            reserved_64: 0x09_0a0b,
            link_speed_enabled: 0x0c,
            reserved_96: 0x0d_0e0f,
            link_speed_active: 0x10,
            reserved_128: run(0x20),
        },
        "010203 04 050607 08 090a0b 0c 0d0e0f 10",
        hex(&run::<48>(0x20))
    );
}

#[test]
fn a_vendors_mad() {
    pinned!(
        VendorMad {
            base_version: 0x01,
            mgmt_class: MgmtClass::OpenIbPing,
            class_version: 0x02,
            method: Method::GetResp,
            status: 0x0304,
            class_specific: 0x0506,
            transaction_id: TransactionId(0x1011_1213_1415_1617),
            attribute_id: AttributeId::from_code(0x2021),
            reserved_144: 0x2223,
            attribute_modifier: 0x2425_2627,
            rmpp_header: run(0x30),
            reserved_288: 0x40,
            oui: OPENIB_OUI,
            data: run(0x50),
        },
        "01 32 02 81 0304 0506 1011121314151617 2021 2223 24252627",
        hex(&run::<12>(0x30)),
        "40 001405",
        hex(&run::<216>(0x50))
    );
}
