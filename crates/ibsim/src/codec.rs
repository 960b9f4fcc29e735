//! The two messages of ibsim's protocol, byte by byte. Everything is in the byte order of the host unless said
//! otherwise, and both ends are on hosts of one kind.

use weft_wire::{Lid, MAD_SIZE, Mad, QpNum, RMPP_END, RmppType};

/// How many programs a server takes: the protocol's client numbers and sockets go from 0 to 9.
pub const SLOTS: usize = 10;

/// How many bytes a control message has.
pub const CONTROL_BYTES: usize = 80;

/// How many bytes a control message says things with.
pub const CONTROL_DATA_BYTES: usize = 64;

/// More than the longest data message; a datagram read into this that fills it is none.
pub const DATA_BYTES_MAX: usize = 512;

/// The status of a request that no one answered: ETIMEDOUT, as libibumad expects it.
pub const TIMED_OUT: u32 = 110;

const MAGIC: u32 = 0xdead_beef;
const NODE_BYTES: usize = 32;
const CONNECT_BYTES: usize = 12 + NODE_BYTES;

/// Why a datagram was no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// It is too short or too long.
    #[error("{0} bytes are no message")]
    Length(usize),
    /// It does not begin as a control message does.
    #[error("the magic number is {0:#x}")]
    Magic(u32),
}

/// What a control message asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// The answer to what cannot be done.
    Error,
    /// Attaches a program to a node.
    Connect,
    /// Gives the slot back.
    Disconnect,
    /// LID and state of the port.
    GetPort,
    /// Vendor, device and revision of the node.
    GetVendor,
    /// GID of the port.
    GetGid,
    /// GUID of the node.
    GetGuid,
    /// NodeInfo.
    GetNodeInfo,
    /// PortInfo of any port of the node.
    GetPortInfo,
    /// Whether the program manages the subnet.
    SetIssm,
    /// The first block of the P_Key table.
    GetPKeys,
    /// None of these.
    Other(u32),
}

impl Command {
    const KNOWN: [Self; 11] = [
        Self::Error,
        Self::Connect,
        Self::Disconnect,
        Self::GetPort,
        Self::GetVendor,
        Self::GetGid,
        Self::GetGuid,
        Self::GetNodeInfo,
        Self::GetPortInfo,
        Self::SetIssm,
        Self::GetPKeys,
    ];

    /// The number that stands for it.
    pub fn code(self) -> u32 {
        match self {
            Self::Other(code) => code,
            known => Self::KNOWN.iter().position(|other| *other == known).unwrap_or(0) as u32,
        }
    }

    /// What a number stands for.
    pub fn from_code(code: u32) -> Self {
        Self::KNOWN.get(code as usize).copied().unwrap_or(Self::Other(code))
    }
}

/// A control message; the server answers with the same message filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    /// Which slot asks; anything in a [`Command::Connect`].
    pub client: u32,
    /// What is asked.
    pub command: Command,
    /// How much of `data` counts, as the program says.
    pub length: u32,
    /// What goes with it.
    pub data: [u8; CONTROL_DATA_BYTES],
}

impl Control {
    /// A message with this data, of which what does not fit is left out.
    pub fn new(client: u32, command: Command, data: &[u8]) -> Self {
        let mut control = Self { client, command, length: data.len() as u32, data: [0; CONTROL_DATA_BYTES] };
        control.fill(data);
        control
    }

    /// Replaces the beginning of the data.
    pub fn fill(&mut self, data: &[u8]) {
        let count = data.len().min(CONTROL_DATA_BYTES);
        self.data[..count].copy_from_slice(&data[..count]);
    }

    /// Reads a datagram.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let bytes: &[u8; CONTROL_BYTES] = bytes.try_into().map_err(|_| Malformed::Length(bytes.len()))?;
        let magic = word(bytes, 0);
        if magic != MAGIC {
            return Err(Malformed::Magic(magic));
        }
        let mut data = [0; CONTROL_DATA_BYTES];
        data.copy_from_slice(&bytes[16..]);
        let (client, command) = (word(bytes, 4), Command::from_code(word(bytes, 8)));
        Ok(Self { client, command, length: word(bytes, 12), data })
    }

    /// The datagram.
    pub fn encode(&self) -> [u8; CONTROL_BYTES] {
        let mut bytes = [0; CONTROL_BYTES];
        let head = [MAGIC, self.client, self.command.code(), self.length];
        put(&mut bytes, &head);
        bytes[16..].copy_from_slice(&self.data);
        bytes
    }
}

/// Whether a datagram is a [`Command::Connect`].
pub fn is_connect(bytes: &[u8]) -> bool {
    Control::decode(bytes).is_ok_and(|control| control.command == Command::Connect)
}

/// The data of a [`Command::Connect`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connect {
    /// Names the program's socket: its process number, or over UDP the port of its data socket.
    pub id: u32,
    /// The queue pair that it asks for; 0 is none in particular.
    pub qp: u32,
    /// Whether it manages the subnet.
    pub issm: bool,
    /// Where it wants to be attached; empty is anywhere. In the answer: where it is.
    pub node: String,
}

impl Connect {
    /// Whether a node's name was as long as the message takes, and so may be only the beginning of one.
    pub fn may_be_cut(&self) -> bool {
        self.node.len() >= NODE_BYTES - 1
    }

    /// Reads the data of a control message.
    pub fn decode(data: &[u8; CONTROL_DATA_BYTES]) -> Self {
        let name = &data[12..CONNECT_BYTES];
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        let node = String::from_utf8_lossy(name).into_owned();
        Self { id: word(data, 0), qp: word(data, 4), issm: word(data, 8) != 0, node }
    }

    /// The data of a control message. A node's name that is too long is cut.
    pub fn encode(&self) -> [u8; CONNECT_BYTES] {
        let mut bytes = [0; CONNECT_BYTES];
        put(&mut bytes, &[self.id, self.qp, u32::from(self.issm)]);
        let mut end = self.node.len().min(NODE_BYTES - 1);
        while !self.node.is_char_boundary(end) {
            end -= 1;
        }
        bytes[12..12 + end].copy_from_slice(&self.node.as_bytes()[..end]);
        bytes
    }
}

/// The answer to a [`Command::GetVendor`].
pub(crate) fn vendor(vendor_id: u32, part_id: u32, hardware: u32, firmware: u64) -> [u8; 24] {
    let mut bytes = [0; 24];
    put(&mut bytes, &[vendor_id, part_id, hardware]);
    bytes[16..].copy_from_slice(&firmware.to_ne_bytes());
    bytes
}

/// The answer to a [`Command::GetPort`].
pub(crate) fn port(lid: Lid, state: u8) -> [u8; 3] {
    let [first, second] = lid.0.to_ne_bytes();
    [first, second, state]
}

/// How a program's compiler lays a data message out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// 288 bytes: the length stands at a multiple of eight, as on 64-bit hosts.
    Wide,
    /// 284 bytes: the length stands at a multiple of four, as on i386.
    Narrow,
}

impl Form {
    const fn length_at(self) -> usize {
        match self {
            Self::Wide => 24,
            Self::Narrow => 20,
        }
    }

    /// How many bytes a data message has.
    pub const fn size(self) -> usize {
        self.length_at() + 8 + MAD_SIZE
    }
}

/// A data message: a MAD with its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Where it goes; permissive on a purely directed route.
    pub dlid: Lid,
    /// Where it comes from; 0 is the sender's own LID.
    pub slid: Lid,
    /// The queue pair that it goes to.
    pub dqp: QpNum,
    /// The queue pair that it comes from.
    pub sqp: QpNum,
    /// 0, or why it comes back.
    pub status: u32,
    /// The MAD.
    pub mad: Mad,
}

impl Data {
    /// Reads a datagram, and says how it was laid out.
    ///
    /// Programs leave what is behind a short MAD as it happened to be in their memory, so that is cleared.
    pub fn decode(bytes: &[u8]) -> Result<(Self, Form), Malformed> {
        let forms = [Form::Wide, Form::Narrow];
        let form = forms.into_iter().find(|form| form.size() == bytes.len());
        let form = form.ok_or(Malformed::Length(bytes.len()))?;
        let (head, tail) = bytes.split_at(form.length_at());
        let (length, mad) = tail.split_at(8);
        let mut mad = Mad::try_from(mad).map_err(|_| Malformed::Length(bytes.len()))?;
        let length = length.try_into().map_or(0, u64::from_be_bytes);
        if (1..MAD_SIZE as u64).contains(&length) {
            mad.0[length as usize..].fill(0);
        }
        let lid = |at| Lid(u16::from_be(word(head, at) as u16));
        let qp = |at| QpNum(u32::from_be(word(head, at)) & 0x00ff_ffff);
        let (dlid, slid, dqp, sqp) = (lid(0), lid(4), qp(8), qp(12));
        Ok((Self { dlid, slid, dqp, sqp, status: u32::from_be(word(head, 16)), mad }, form))
    }

    /// The datagram, in the first [`Form::size`] bytes.
    pub fn encode(&self, form: Form) -> [u8; Form::Wide.size()] {
        let mut bytes = [0; Form::Wide.size()];
        let lid = |lid: Lid| u32::from(lid.0.to_be());
        let head =
            [lid(self.dlid), lid(self.slid), self.dqp.0.to_be(), self.sqp.0.to_be(), self.status.to_be()];
        put(&mut bytes, &head);
        let at = form.length_at();
        bytes[at..at + 8].copy_from_slice(&meaning_bytes(&self.mad).to_be_bytes());
        bytes[at + 8..at + 8 + MAD_SIZE].copy_from_slice(&self.mad.0);
        bytes
    }
}

/// How many bytes of a MAD mean something. The last segment of a long message says so itself (IBA 13.6.2.1), and
/// programs count records by it.
fn meaning_bytes(mad: &Mad) -> u64 {
    let header = mad.rmpp();
    if !mad.is_rmpp_active() || header.kind != RmppType::Data || !header.last {
        return MAD_SIZE as u64;
    }
    (RMPP_END as u64 + u64::from(header.length)).min(MAD_SIZE as u64)
}

/// The word at `at`; 0 behind the end.
fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u32::from_ne_bytes(*word))
}

/// Writes words one after the other from the beginning.
fn put(bytes: &mut [u8], words: &[u32]) {
    for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use weft_wire::{MgmtClass, RmppHeader, Smp as MadLayout};

    use super::*;

    #[test]
    fn a_connect_has_the_bytes_that_the_stock_library_sends() {
        let connect = Connect { id: 4711, qp: 0, issm: true, node: "H-1".into() };
        let control = Control::new(0, Command::Connect, &connect.encode());
        let bytes = control.encode();
        let mut expected = [0; CONTROL_BYTES];
        put(&mut expected, &[0xdead_beef, 0, 1, 44, 4711, 0, 1]);
        expected[28..31].copy_from_slice(b"H-1");
        assert_eq!(bytes, expected);
        assert_eq!(Control::decode(&bytes), Ok(control.clone()));
        assert_eq!(Connect::decode(&control.data), connect);
    }

    #[test]
    fn a_name_that_is_too_long_is_cut_between_letters() {
        let connect = Connect { id: 0, qp: 0, issm: false, node: "é".repeat(20) };
        let decoded = Connect::decode(&Control::new(0, Command::Connect, &connect.encode()).data);
        assert_eq!(decoded.node, "é".repeat(15));
    }

    #[test]
    fn every_code_names_a_command_and_back() {
        for code in 0..20 {
            assert_eq!(Command::from_code(code).code(), code);
        }
        assert_eq!(Command::from_code(10), Command::GetPKeys);
        assert_eq!(Command::from_code(11), Command::Other(11));
    }

    #[test]
    fn both_forms_of_a_data_message() {
        let mut mad = Mad::default();
        (mad.0[0], mad.0[255]) = (1, 0x77);
        let data = Data { dlid: Lid(0x1234), slid: Lid(5), dqp: QpNum(1), sqp: QpNum(2), status: 110, mad };
        for (form, size, length_at) in [(Form::Wide, 288, 24), (Form::Narrow, 284, 20)] {
            assert_eq!(form.size(), size);
            let bytes = data.encode(form);
            assert_eq!(Data::decode(&bytes[..size]), Ok((data, form)));
            assert_eq!(bytes[16..20], [0, 0, 0, 110], "the status is in the order of the network");
            assert_eq!(bytes[length_at + 6..length_at + 8], [1, 0]);
        }
        if cfg!(target_endian = "little") {
            assert_eq!(data.encode(Form::Wide)[..8], [0x12, 0x34, 0, 0, 0, 5, 0, 0]);
        }
    }

    #[test]
    fn a_short_table_is_as_long_as_it_says() {
        let mut mad = Mad::default();
        MadLayout::mgmt_class.set(&mut mad.0, MgmtClass::SubnAdm);
        let mut header =
            RmppHeader { active: true, kind: RmppType::Data, first: true, segment: 1, ..Default::default() };
        for (last, length, wanted) in
            [(true, 20 + 108, 164), (true, 20, 56), (true, 4000, 256), (false, 400, 256)]
        {
            (header.last, header.length) = (last, length);
            mad.set_rmpp(&header);
            assert_eq!(meaning_bytes(&mad), wanted, "{last} {length}");
        }
    }

    #[test]
    fn bytes_after_a_short_mad_are_cleared() {
        let data = Data {
            dlid: Lid(1),
            slid: Lid(0),
            dqp: QpNum(0),
            sqp: QpNum(0),
            status: 0,
            mad: Mad([0xaa; MAD_SIZE]),
        };
        let mut bytes = data.encode(Form::Wide);
        bytes[24..32].copy_from_slice(&24u64.to_be_bytes());
        let (read, _) = Data::decode(&bytes).unwrap();
        assert!(read.mad.0[..24].iter().all(|byte| *byte == 0xaa));
        assert!(read.mad.0[24..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn other_lengths_and_magics_are_refused() {
        assert_eq!(Control::decode(&[0; 79]), Err(Malformed::Length(79)));
        assert_eq!(Control::decode(&[0; 80]), Err(Malformed::Magic(0)));
        for length in [0, 1, 283, 285, 287, 289, 512] {
            assert_eq!(Data::decode(&vec![0; length]).map(|_| ()), Err(Malformed::Length(length)));
        }
    }
}
