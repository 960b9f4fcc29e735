//! A conversation with a process that tells events. It begins with a look at the process's clock, so that events of machines whose
//! clocks differ can be put in one order.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use weft_bundle::folder::LabFolder;
use weft_control::{EventFilter, Request, Utc};
use weft_process::{Client, ClientError, utc_now};

use crate::events::told::{Line, read};

pub(crate) struct Talk {
    client: Client,
    /// When the process was asked for its clock.
    asked: Utc,
    /// How many nanoseconds its clock is ahead of this process's, once it has answered.
    ahead_ns: i64,
}

impl AsFd for Talk {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.client.as_fd()
    }
}

impl Talk {
    /// Has a process tell what it remembers, or what happens.
    pub(crate) fn begin(lab: &LabFolder, process: &str, filter: EventFilter) -> Result<Self, ClientError> {
        let mut client = Client::connect(&lab.control(process))?;
        let asked = utc_now();
        client.post(Request::Hello)?;
        client.post(Request::Events(filter))?;
        Ok(Self { client, asked, ahead_ns: 0 })
    }

    /// The next line that has come, if one has. Events have their moments by this process's clock.
    pub(crate) fn next(&mut self) -> Result<Option<Line>, ClientError> {
        while let Some(line) = self.client.next_raw(Instant::now())? {
            match read(&line) {
                Line::Hello(time) => self.ahead_ns = time.ahead_of(self.asked, utc_now()),
                Line::Event(mut told) => {
                    told.moment = told.moment.less(self.ahead_ns);
                    return Ok(Some(Line::Event(told)));
                }
                line => return Ok(Some(line)),
            }
        }
        Ok(None)
    }
}
