//! `libweft_umad.so`: what libibumad does, done by a weft agent.
//!
//! Preloaded into an unmodified program, it takes the place of libibumad's 39 functions. What the kernel does
//! underneath happens in the agent; this is plain blocking I/O on Unix sockets ([`umad::user_mad`]).
//!
//! ```text
//!   LD_PRELOAD          this library
//!   WEFT_UMAD_SOCKET    the agent's socket for it
//!   WEFT_UMAD_NODE      the GUID of the node whose ports the program sees
//!   WEFT_UMAD_PORT      the port that the program uses if it names none, where there is this variable
//! ```
//!
//! Three rules keep it fit for programs that fork, cancel threads and share descriptors:
//!
//! * **No state.** An open port is a socket and nothing else. The only variable is the debug level.
//! * **Nothing held across a wait.** `pthread_cancel` unwinds a thread from its wait, and only C's own `poll` can be
//!   left so; entry points are `extern "C-unwind"`, and no value with a destructor lives while [`abi::wait`] runs.
//! * **No panic leaves.** All work is done inside [`guard::guard`], which never contains a wait.
//!
//! Errors are those that libibumad documents: negative numbers, with `errno` set where it sets it.

mod abi;
mod buffer;
mod ca;
mod guard;
mod list;
mod place;
mod port;
mod register;
mod text;
mod transfer;
