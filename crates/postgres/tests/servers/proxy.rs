//! A stretch of network between a caller and a server, which can be cut at the worst moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(crate) struct Proxy {
    port: u16,
    swallow: Arc<AtomicBool>,
}

impl Proxy {
    pub(crate) async fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let port = listener.local_addr().expect("it has an address").port();
        let swallow = Arc::new(AtomicBool::new(false));
        let told = swallow.clone();
        tokio::spawn(async move {
            while let Ok((caller, _)) = listener.accept().await {
                tokio::spawn(carry(caller, server, told.clone()));
            }
        });
        Self { port, swallow }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Loses the next answer of the server, after the server has given it, and cuts the connection.
    pub(crate) fn lose_the_next_answer(&self) {
        self.swallow.store(true, Ordering::SeqCst);
    }
}

async fn carry(caller: TcpStream, server: u16, swallow: Arc<AtomicBool>) {
    let server = TcpStream::connect(("127.0.0.1", server)).await.expect("the server is there");
    let (mut from_caller, mut to_caller) = caller.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let questions = tokio::spawn(async move {
        drop(tokio::io::copy(&mut from_caller, &mut to_server).await);
    });
    let mut answer = vec![0; 65536];
    while let Ok(length @ 1..) = from_server.read(&mut answer).await {
        if swallow.swap(false, Ordering::SeqCst) || to_caller.write_all(&answer[..length]).await.is_err() {
            break;
        }
    }
    questions.abort();
}
