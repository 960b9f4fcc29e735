//! Serving one attached program: what it says goes to the core.

use std::rc::Rc;

use tokio::net::UnixStream;
use weft_umad::{ClientMessage, Decoder, FrameError, ServerMessage, VERSION};

use crate::channel::Channel;
use crate::counter::Counter;
use crate::program::Program;
use crate::shared::Agent;
use crate::socket::Socket;
use crate::user;

const READ_BYTES: usize = 32 * 1024;

/// Serves the connection of a program on this machine until either side ends it.
pub(crate) async fn serve(agent: Rc<Agent>, stream: UnixStream) {
    let Ok(socket) = stream.into_std().and_then(Socket::new) else { return };
    converse(&agent, Rc::new(Program::new(Channel::Unix(socket), None))).await;
}

/// Serves a program's connection until either side ends it.
pub(crate) async fn converse(agent: &Rc<Agent>, program: Rc<Program>) {
    let mut decoder = Decoder::new();
    let mut buffer = vec![0; READ_BYTES];
    while program.over().is_none() {
        let busy = tokio::select! {
            read = program.read(&mut buffer) => {
                let Some(bytes) = read.ok().and_then(|n| buffer.get(..n)).filter(|b| !b.is_empty()) else {
                    break;
                };
                decoder.feed(bytes);
                bytes.len() == READ_BYTES
            }
            () = program.unblocked() => {
                program.flush();
                continue;
            }
        };
        let served = match take_messages(agent, &program, &mut decoder) {
            Ok(None) => Ok(()),
            Ok(Some(first)) => {
                user::converse(agent, &program, &mut decoder, first).await.inspect(|()| program.close())
            }
            Err(error) => Err(error.to_string()),
        };
        if let Err(reason) = served {
            agent.with_core(|core| {
                core.recorder.count(Counter::ProgramFramesMalformed);
                core.say(&program, &ServerMessage::Refused { reason });
            });
            break;
        }
        if busy {
            // A program that never stops writing must not keep the links waiting.
            tokio::task::yield_now().await;
        }
    }
    agent.with_core(|core| core.program_gone(&program));
    program.finish().await;
    if let Some(dropped) = program.over().filter(|dropped| *dropped > 0) {
        agent.with_core(|core| core.recorder.slow_client(dropped));
    }
}

/// Takes the messages that have come whole. One of libibumad's ends it: the connection is the stand-in's from then on.
fn take_messages(
    agent: &Rc<Agent>,
    program: &Rc<Program>,
    decoder: &mut Decoder<ClientMessage>,
) -> Result<Option<Vec<u8>>, FrameError> {
    agent.with_core(|core| {
        while let Some(message) = decoder.next_message()? {
            match message {
                ClientMessage::User(first) if program.attached().is_none() => {
                    if program.may_attach_anywhere() {
                        return Ok(Some(first));
                    }
                    core.recorder.count(Counter::AttachNotAllowed);
                    core.refuse(
                        program,
                        "the certificate does not let its holder run tools; use an operator's".into(),
                    );
                }
                ClientMessage::User(_) => {
                    core.refuse(program, "this connection is attached already".into());
                }
                ClientMessage::Send(mad) => core.program_sends(program, mad),
                ClientMessage::Attach { version: VERSION, node, port, registrations } => {
                    core.program_attaches(program, node, port, registrations);
                }
                ClientMessage::Attach { version, .. } => core.refuse(
                    program,
                    format!("version {version} of the protocol is not spoken here, version {VERSION} is"),
                ),
            }
        }
        Ok(None)
    })
}
