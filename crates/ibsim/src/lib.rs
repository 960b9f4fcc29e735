//! ibsim's client protocol: how programs under the stock `libumad2sim.so` attach, and how a program attaches to ibsim.
//!
//! ```text
//!   program ─ \0NAME:ctlPID\0 ──80 bytes──▶ \0NAME:ctl\0 ─ server      attach, set issm, ask for NodeInfo …
//!           ─ \0NAME:inPID\0 ──288 bytes──▶ \0NAME:outN\0 ─           MADs; N is the program's slot, 0 to 9
//! ```
//!
//! The names are of abstract Unix datagram sockets, their final zero included; over UDP it is the ports P and P+1 to
//! P+10 instead. Control questions are answered one by one. A MAD goes by LID or along a directed route, and comes
//! back with status 110 when no one answered it in time, because the library has no clock of its own.
//!
//! [`Server`] is the server without its sockets: what its programs say goes in, and what is to be done comes out.
//! [`Control`] and [`Data`] are the messages. [`Program`] is the other side, for weft's own subnet manager.
//!
//! Nothing that a program says is trusted: there are ten of them at most, each with a bounded number of requests.

mod address;
mod codec;
mod program;
mod server;
mod slot;

pub use address::{Address, Socket};
pub use codec::{
    CONTROL_BYTES, CONTROL_DATA_BYTES, Command, Connect, Control, DATA_BYTES_MAX, Data, Form, Malformed,
    SLOTS, TIMED_OUT, is_connect,
};
pub use program::{Program, ProgramError, Received, UDP_WINDOW, local_window};
pub use server::{Counts, Output, Server, ServerOptions};
pub use slot::Role;
