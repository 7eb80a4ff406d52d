//! Live sessions through the public builder, over real WebSockets to a local server that plays
//! scripts in real pacing. Each scenario runs on a runtime with one thread and on one with several.

/// Makes two tests of each scenario: on one thread, and on several.
macro_rules! scenarios {
    ($($(#[$doc:meta])* async fn $name:ident() $body:block)+) => {
        $(
            $(#[$doc])*
            mod $name {
                use super::*;

                async fn scenario() $body

                #[tokio::test]
                async fn on_one_thread() {
                    crate::common::limited(scenario()).await;
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 3)]
                async fn on_many_threads() {
                    crate::common::limited(scenario()).await;
                }
            }
        )+
    };
}

#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod check;
#[cfg(test)]
mod common;
#[cfg(test)]
mod defects;
#[cfg(test)]
mod extractors;
#[cfg(test)]
mod phases;
#[cfg(test)]
mod reactions;
#[cfg(test)]
mod reconnect;
#[cfg(test)]
mod seed;
#[cfg(test)]
mod signals;
#[cfg(test)]
mod store;
#[cfg(test)]
mod tools;
#[cfg(test)]
mod turns;
#[cfg(test)]
mod wire;
#[cfg(test)]
mod writers;
