//! Artifacts: named files of a session or a user, each with numbered versions.
//!
//! An [`ArtifactService`] keeps them. A name that begins with `user:` belongs to the user and is
//! seen by all their sessions; every other name belongs to one session.

mod error;
mod service;

pub use error::ArtifactError;
pub use service::{ArtifactKey, ArtifactService, ArtifactVersion, NewArtifact};
