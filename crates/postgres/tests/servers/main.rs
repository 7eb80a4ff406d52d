//! What happens with a server: it is killed, it goes away and comes back, it wants encrypted
//! connections.

mod certificates;
mod cluster;
mod crash;
mod impostor;
mod outage;
mod proxy;
mod tls;
