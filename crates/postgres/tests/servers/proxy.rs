//! A proxy between client and server that can cut the connection at the worst moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(crate) struct Proxy {
    port: u16,
    cuts: Arc<Cuts>,
}

struct Cuts {
    /// Whether the next answer is dropped.
    next: AtomicBool,
    /// How many answers are forwarded before all others are dropped.
    left: AtomicI64,
}

impl Proxy {
    pub(crate) async fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let port = listener.local_addr().expect("it has an address").port();
        let cuts = Arc::new(Cuts { next: AtomicBool::new(false), left: AtomicI64::new(i64::MAX) });
        let shared_cuts = cuts.clone();
        tokio::spawn(async move {
            while let Ok((caller, _)) = listener.accept().await {
                tokio::spawn(carry(caller, server, shared_cuts.clone()));
            }
        });
        Self { port, cuts }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Drops the next answer of the server, after the server has sent it, and cuts the connection.
    pub(crate) fn lose_the_next_answer(&self) {
        self.cuts.next.store(true, Ordering::SeqCst);
    }

    /// Forwards this many answers of the server, then drops all others.
    pub(crate) fn lose_all_answers_after(&self, count: i64) {
        self.cuts.left.store(count, Ordering::SeqCst);
    }

    /// Forwards all answers again.
    pub(crate) fn mend(&self) {
        self.cuts.left.store(i64::MAX, Ordering::SeqCst);
    }
}

async fn carry(caller: TcpStream, server: u16, cuts: Arc<Cuts>) {
    let server = TcpStream::connect(("127.0.0.1", server)).await.expect("the server is there");
    let (mut from_caller, mut to_caller) = caller.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let questions = tokio::spawn(async move {
        drop(tokio::io::copy(&mut from_caller, &mut to_server).await);
    });
    let mut answer = vec![0; 65536];
    while let Ok(length @ 1..) = from_server.read(&mut answer).await {
        let lost = cuts.next.swap(false, Ordering::SeqCst) || cuts.left.fetch_sub(1, Ordering::SeqCst) <= 0;
        if lost || to_caller.write_all(&answer[..length]).await.is_err() {
            break;
        }
    }
    questions.abort();
}
