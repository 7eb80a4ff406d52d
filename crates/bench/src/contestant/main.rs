//! Sessile and the floor of SQLite as contestants of `bench/run stores`.
//!
//! `contestant memory`, `contestant sqlite:///file.db`, `contestant postgresql://…`, or
//! `contestant floor:64:file.db` for SQLite by hand with 64 events in a transaction.

mod counting;
mod floor;
mod sessile;

fn main() {
    let url = std::env::args().nth(1).unwrap_or_default();
    let floor = url.strip_prefix("floor:").and_then(|rest| rest.split_once(':'));
    match floor {
        Some((together, path)) => {
            let together = together.parse().expect("floor:COUNT:FILE");
            sessile_contestant::serve(floor::open(path.to_owned(), together));
        }
        None => sessile_contestant::serve(sessile::open(url)),
    }
}
