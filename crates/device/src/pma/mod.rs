//! The performance management agent: one `match` over method and attribute, one file per group of attributes
//! (IBA 16.1.3, 16.1.4).

mod details;
mod lanes;
mod samples;
mod totals;

use std::ops::Range;

use weft_machine::Time;
use weft_wire::{
    AttributeId, ClassPortInfo, Mad, Method, PERF_DATA, PerfMad, PortCounters, PortCountersExtended,
    PortFlowCtlCounters, PortNum, PortOpRcvCounters, PortRcvErrorDetails, PortVlOpData, PortVlOpPackets,
    PortVlXmitFlowCtlUpdateErrors, PortVlXmitWaitCounters, PortXmitDiscardDetails, perf_capability, status,
};

use crate::data::DataPath;
use crate::port::Port;
use crate::ports::Ports;

use samples::Sampler;

/// The port number that stands for all ports.
const ALL_PORTS: PortNum = PortNum(255);

/// An attribute that is made of counters of one port, or of the sums of all ports.
trait CounterAttribute: Sized {
    /// From the 192 data bytes of a MAD.
    fn decode_from(data: &[u8]) -> Option<Self>;
    /// To the 192 data bytes of a MAD.
    fn encode_to(&self, data: &mut [u8]);
    /// Which port it is about.
    fn port_select(&self) -> PortNum;
    /// The counters of these ports, as the request asks for them.
    fn read(&self, ports: &[Port]) -> Self;
    /// Gives the port's counters that are selected the values that the request has.
    fn write(&self, port: &mut Port);
}

/// Writes down what is particular to one [`CounterAttribute`].
macro_rules! attribute {
    ($name:ident {
        read($asked:ident, $ports:ident) $read:block
        write($values:ident, $port:ident) $write:block
    }) => {
        impl super::CounterAttribute for $name {
            fn decode_from(data: &[u8]) -> Option<Self> {
                data.first_chunk().map($name::decode)
            }

            fn encode_to(&self, data: &mut [u8]) {
                super::put(data, &self.encode());
            }

            fn port_select(&self) -> weft_wire::PortNum {
                self.port_select
            }

            fn read(&self, $ports: &[crate::port::Port]) -> Self {
                let $asked = self;
                $read
            }

            fn write(&self, $port: &mut crate::port::Port) {
                let $values = self;
                $write
            }
        }
    };
}
use attribute;

/// The agent: what it has beside the ports' counters.
#[derive(Debug, Default)]
pub(crate) struct Pma {
    sampler: Sampler,
}

/// The counters that it reads and sets: those of ports, with what the data lanes have not put there yet.
pub(crate) struct Counted<'a> {
    pub(crate) ports: &'a mut Ports,
    pub(crate) data: &'a mut DataPath,
}

impl Counted<'_> {
    /// Puts everything that is counted into the ports' counters.
    fn settle(&mut self, ports: Range<usize>) {
        self.data.count_all(self.ports, ports);
    }

    /// Get or Set of counters.
    fn counters<A: CounterAttribute>(&mut self, method: Method, data: &mut [u8]) -> Result<(), u16> {
        let asked = A::decode_from(data).ok_or(status::BAD_VALUE)?;
        let ports = self.selected_ports(asked.port_select())?;
        self.settle(ports.clone());
        if method == Method::Set {
            self.ports[ports.clone()].iter_mut().for_each(|port| asked.write(port));
        }
        asked.read(&self.ports[ports]).encode_to(data);
        Ok(())
    }

    /// Where the ports that are asked for are in the list.
    fn selected_ports(&self, port: PortNum) -> Result<Range<usize>, u16> {
        let first = usize::from(!self.ports.is_switch());
        if port == ALL_PORTS {
            return Ok(first..self.ports.len());
        }
        let at = usize::from(port.0);
        if self.ports.has(port) { Ok(at..at + 1) } else { Err(status::BAD_VALUE) }
    }
}

impl Pma {
    /// When a sample next begins or ends; at the end of time when there is none.
    #[inline]
    pub(crate) fn due(&self) -> Time {
        self.sampler.due()
    }

    /// Takes the steps of a sample that are due by `now`, before anything else happens at that moment.
    pub(crate) fn step(&mut self, now: Time, mut counted: Counted<'_>) {
        self.sampler.step(now, &mut counted);
    }

    /// The answer to a request of class Perf. `answers` is the method that it is answered with.
    pub(crate) fn answer(
        &mut self,
        now: Time,
        mut counted: Counted<'_>,
        request: &Mad,
        answers: Method,
    ) -> Mad {
        let header = request.header();
        let mut answer = *request;
        let result = if header.base_version != 1 || header.class_version != 1 {
            Err(status::BAD_VERSION)
        } else {
            self.attribute(now, &mut counted, header.method, header.attribute_id, &mut answer.0[PERF_DATA])
        };
        PerfMad::method.set(&mut answer.0, answers);
        PerfMad::status.set(&mut answer.0, result.err().unwrap_or(status::OK));
        answer
    }

    fn attribute(
        &mut self,
        now: Time,
        counted: &mut Counted<'_>,
        method: Method,
        attribute: AttributeId,
        data: &mut [u8],
    ) -> Result<(), u16> {
        if !matches!(method, Method::Get | Method::Set) {
            return Err(status::BAD_METHOD);
        }
        let counters = match (method, attribute) {
            (Method::Get, AttributeId::ClassPortInfo) => {
                put(data, &class_port_info().encode());
                return Ok(());
            }
            (_, AttributeId::PORT_SAMPLES_CONTROL) => {
                return self.sampler.control(now, counted, method, data);
            }
            (Method::Get, AttributeId::PORT_SAMPLES_RESULT) => {
                self.sampler.result(data);
                return Ok(());
            }
            (Method::Get, AttributeId::PORT_SAMPLES_RESULT_EXTENDED) => {
                self.sampler.result_extended(data);
                return Ok(());
            }
            (_, AttributeId::PORT_COUNTERS) => Counted::counters::<PortCounters>,
            (_, AttributeId::PortCountersExtended) => Counted::counters::<PortCountersExtended>,
            (_, AttributeId::PORT_RCV_ERROR_DETAILS) => Counted::counters::<PortRcvErrorDetails>,
            (_, AttributeId::PORT_XMIT_DISCARD_DETAILS) => Counted::counters::<PortXmitDiscardDetails>,
            (_, AttributeId::PORT_OP_RCV_COUNTERS) => Counted::counters::<PortOpRcvCounters>,
            (_, AttributeId::PORT_FLOW_CTL_COUNTERS) => Counted::counters::<PortFlowCtlCounters>,
            (_, AttributeId::PORT_VL_OP_PACKETS) => Counted::counters::<PortVlOpPackets>,
            (_, AttributeId::PORT_VL_OP_DATA) => Counted::counters::<PortVlOpData>,
            (_, AttributeId::PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS) => {
                Counted::counters::<PortVlXmitFlowCtlUpdateErrors>
            }
            (_, AttributeId::PORT_VL_XMIT_WAIT_COUNTERS) => Counted::counters::<PortVlXmitWaitCounters>,
            _ => return Err(status::BAD_METHOD_ATTRIBUTE),
        };
        counters(counted, method, data)
    }
}

fn put(data: &mut [u8], attribute: &[u8]) {
    data.fill(0);
    data[..attribute.len()].copy_from_slice(attribute);
}

fn class_port_info() -> ClassPortInfo {
    ClassPortInfo {
        base_version: 1,
        class_version: 1,
        capability_mask: perf_capability::ALL_PORT_SELECT
            | perf_capability::EXTENDED_WIDTH
            | perf_capability::XMIT_WAIT,
        capability_mask2: perf_capability::ADDITIONAL_EXTENDED,
        resp_time_value: 16,
        ..ClassPortInfo::default()
    }
}

#[cfg(test)]
mod caused;
#[cfg(test)]
mod sampled;
#[cfg(test)]
pub(crate) mod tests;
