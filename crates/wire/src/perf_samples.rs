//! Sampling: counting for a stated time (IBA 16.1.3.2 to 16.1.3.4, 16.1.4.12).

use crate::PortNum;

codes! {
    /// How far a sample is (IBA 16.1.3.2).
    SampleStatus(u8), 2 {
        /// Done; the counters can be read.
        Done = 0,
        /// Not begun: the time to the start is running.
        Started = 1,
        /// Counting.
        Running = 2,
    }

    /// What a sampling counter counts (IBA 16.1.3.4).
    SampleSelect(u16), 16 {
        /// Nothing.
        Nothing = 0x0000,
        /// 4-byte words sent, from LRH to ICRC.
        PortXmitData = 0x0001,
        /// 4-byte words received, from LRH to ICRC.
        PortRcvData = 0x0002,
        /// Packets sent.
        PortXmitPkts = 0x0003,
        /// Packets received.
        PortRcvPkts = 0x0004,
        /// Ticks that data waited without being sent.
        PortXmitWait = 0x0005,
    }
}

layout! {
    /// What is to be sampled, when and for how long (IBA 16.1.3.2).
    pub struct PortSamplesControl: 80 {
        /// The opcode for counters that count one.
        0, 8, op_code: u8;
        /// Which port.
        8, 8, port_select: PortNum;
        /// The unit of the two times and of waiting: 4 ns times one more than this.
        16, 8, tick: u8;
        /// Reserved.
        24, 5, reserved_24: u8;
        /// 16 bits and 4 times this: how wide the counters are.
        29, 3, counter_width: u8;
        /// Reserved.
        32, 2, reserved_32: u8;
        /// What counter 0 can count: 1 is the quantities that every agent counts.
        34, 3, counter_mask0: u8;
        /// What counters 1 to 9 can count, three bits each.
        37, 27, counter_masks1to9: u32;
        /// Reserved.
        64, 1, reserved_64: u8;
        /// What counters 10 to 14 can count, three bits each.
        65, 15, counter_masks10to14: u16;
        /// Sampling mechanisms beside the first.
        80, 8, sample_mechanisms: u8;
        /// Reserved.
        88, 6, reserved_88: u8;
        /// How far the sample is.
        94, 2, sample_status: SampleStatus;
        /// Which optional counters there are.
        96, 64, option_mask: u64;
        /// Which counters of the vendor's own there are.
        160, 64, vendor_mask: u64;
        /// Ticks from the Set to the start.
        224, 32, sample_start: u32;
        /// Ticks from the start to the end.
        256, 32, sample_interval: u32;
        /// By which whoever asked for the sample knows it again.
        288, 16, tag: u16;
        /// What each counter counts.
        304, 240, counter_select: [SampleSelect; 15];
        /// Reserved.
        544, 32, reserved_544: u32;
        /// Which optional counters can be sampled only.
        576, 64, samples_only_option_mask: u64;
    }
}

/// Bits of PortSamplesControl's OptionMask (IBA 16.1.3.2).
pub mod sample_option {
    /// PortRcvErrorDetails, all six counters.
    pub const PORT_RCV_ERROR_DETAILS: u64 = 0x3f << 6;
    /// PortXmitDiscardDetails, all four counters.
    pub const PORT_XMIT_DISCARD_DETAILS: u64 = 0xf << 12;
    /// PortOpRcvCounters, both counters.
    pub const PORT_OP_RCV_COUNTERS: u64 = 0x3 << 16;
    /// PortFlowCtlCounters, both counters.
    pub const PORT_FLOW_CTL_COUNTERS: u64 = 0x3 << 18;
    /// PortVLOpPackets.
    pub const PORT_VL_OP_PACKETS: u64 = 1 << 20;
    /// PortVLOpData.
    pub const PORT_VL_OP_DATA: u64 = 1 << 21;
    /// PortVLXmitFlowCtlUpdateErrors.
    pub const PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS: u64 = 1 << 22;
    /// PortVLXmitWaitCounters.
    pub const PORT_VL_XMIT_WAIT_COUNTERS: u64 = 1 << 23;
}

layout! {
    /// What was sampled (IBA 16.1.3.4).
    pub struct PortSamplesResult: 64 {
        /// The tag of the sample.
        0, 16, tag: u16;
        /// Reserved.
        16, 14, reserved_16: u16;
        /// How far the sample is; the counters are valid when it is done.
        30, 2, sample_status: SampleStatus;
        /// The counters.
        32, 480, counter: [u32; 15];
    }

    /// What was sampled, with 64-bit counters (IBA 16.1.4.12).
    pub struct PortSamplesResultExtended: 128 {
        /// The tag of the sample.
        0, 16, tag: u16;
        /// Reserved.
        16, 14, reserved_16: u16;
        /// How far the sample is; the counters are valid when it is done.
        30, 2, sample_status: SampleStatus;
        /// How wide the counters are: 48 bits, 56, or 2 for 64.
        32, 2, extended_width: u8;
        /// Reserved.
        34, 30, reserved_34: u32;
        /// The counters.
        64, 960, counter: [u64; 15];
    }
}
