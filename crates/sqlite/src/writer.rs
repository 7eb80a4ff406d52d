//! The queue of the thread that writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rusqlite::Connection;
use sessile_session::SessionError;
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::batch::{Batch, is_refusal};
use crate::failure::{closed, failed_to};
use crate::layout::Layout;
use crate::writing_thread::{Message, Task, WritingThread};

/// Queue capacity. When it is full, callers wait for a free slot.
const LONGEST_QUEUE: usize = 4096;

/// The queue of the writing thread. When this is closed or dropped, the thread commits what is in
/// the queue and ends.
pub(crate) struct Writer {
    queue: mpsc::Sender<Message>,
    is_closed: AtomicBool,
    /// `None` after it was joined. Locked while the writer is closed, so that a second caller waits
    /// for the first.
    thread: Arc<Mutex<Option<Handle>>>,
}

/// The thread; it returns the result of closing the file.
type Handle = thread::JoinHandle<Result<(), SessionError>>;

impl Writer {
    /// Starts the thread. A transaction waits at most `timeout` for the locks of other processes.
    pub(crate) fn start(
        connection: Connection,
        layout: Layout,
        timeout: Duration,
    ) -> Result<Self, SessionError> {
        let (queue, waiting) = mpsc::channel(LONGEST_QUEUE);
        let thread = thread::Builder::new()
            .name("sessile-sqlite-writer".to_owned())
            .spawn(move || WritingThread::new(connection, layout, timeout).run(waiting))
            .map_err(failed_to("start the writing thread"))?;
        Ok(Self { queue, is_closed: AtomicBool::new(false), thread: Arc::new(Mutex::new(Some(thread))) })
    }

    /// Does `work` in a transaction, alone or with other writes, and returns after the commit. The
    /// work is done again if the transaction of a batch fails.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl Fn(&mut Batch<'_>) -> Result<T, SessionError> + Send + 'static,
    ) -> Result<T, SessionError> {
        let (reply, answer) = oneshot::channel();
        let task = Write { work, answer: None, reply };
        let sent = self.queue.send(Message::Write(Box::new(task))).await;
        sent.map_err(|_| match self.is_closed.load(Ordering::Acquire) {
            true => closed(),
            false => ended(),
        })?;
        answer.await.map_err(|_| ended())?
    }

    /// Waits until everything in the queue is written, moves the write-ahead log into the file, and
    /// closes the connection. Closing it again does nothing.
    pub(crate) async fn close(&self) -> Result<(), SessionError> {
        let mut thread = self.thread.clone().lock_owned().await;
        self.is_closed.store(true, Ordering::Release);
        if thread.is_none() {
            return Ok(());
        }
        // If it cannot be sent, the thread has ended, and joining it returns why.
        drop(self.queue.send(Message::Close).await);
        let joined = tokio::task::spawn_blocking(move || match thread.take() {
            Some(thread) => thread.join().map_err(|_| ended())?,
            None => Ok(()),
        });
        joined.await.map_err(failed_to("close the SQLite file"))?
    }
}

fn ended() -> SessionError {
    SessionError::Backend { action: "write", source: "the writing thread has ended".into() }
}

struct Write<T, Work> {
    work: Work,
    answer: Option<Result<T, SessionError>>,
    reply: oneshot::Sender<Result<T, SessionError>>,
}

impl<T: Send, Work: Fn(&mut Batch<'_>) -> Result<T, SessionError> + Send> Task for Write<T, Work> {
    fn perform(&mut self, batch: &mut Batch<'_>) -> Result<(), SessionError> {
        match (self.work)(batch) {
            Err(error) if !is_refusal(&error) => Err(error),
            answer => {
                self.answer = Some(answer);
                Ok(())
            }
        }
    }

    fn finish(self: Box<Self>, failed: Option<SessionError>) {
        let Self { work, answer, reply } = *self;
        let answer = match (failed, answer) {
            (Some(error), _) => Err(error),
            (None, Some(answer)) => answer,
            (None, None) => Err(ended()),
        };
        drop(work); // first: then the answer has the only reference to its event, which is changed without a copy
        // The caller may have stopped waiting: what is committed stays committed.
        drop(reply.send(answer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_write_that_panics_fails_alone() {
        let connection = Connection::open_in_memory().expect("memory opens");
        let writer = Writer::start(connection, Layout::Adk, Duration::ZERO).expect("the thread starts");
        let bad = writer.write(|_| -> Result<(), SessionError> { panic!("a bug") }).await;
        assert!(bad.expect_err("it panics").to_string().contains("panicked"));
        assert_eq!(writer.write(|_| Ok(5)).await.expect("the thread goes on"), 5);
        writer.close().await.expect("it closes");
        let late = writer.write(|_| Ok(6)).await.expect_err("it is closed").to_string();
        assert!(late.contains("it is closed; open the file again"), "{late}");
        writer.close().await.expect("it is closed already");
    }
}
