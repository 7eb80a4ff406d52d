//! Tests with a server of their own: it is killed, stopped and started, and requires encrypted
//! connections.

mod certificates;
mod cluster;
mod crash;
mod impostor;
mod outage;
mod proxy;
mod tls;
