//! News from the thread of connections to the manager.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::SyncSender;

use weft_vm::{HostName, Input};

/// Something that the thread tells.
#[derive(Debug)]
pub(crate) enum News {
    /// For the machine.
    Input(Input),
    /// A host's agent does not answer, and why.
    Away(HostName, String),
}

/// The thread's way to the manager.
#[derive(Debug)]
pub(crate) struct Teller {
    pub(crate) bell: UnixStream,
    pub(crate) news: SyncSender<News>,
}

impl Teller {
    pub(crate) fn tell(&self, news: News) {
        // A manager that has ended hears nothing.
        let _ = self.news.send(news);
        // A bell that cannot ring any louder is heard anyway.
        let _ = (&self.bell).write(&[1]);
    }

    pub(crate) fn input(&self, input: Input) {
        self.tell(News::Input(input));
    }
}
