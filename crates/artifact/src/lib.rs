//! Artifacts: named files of a session or a user, each with numbered versions.
//!
//! An [`ArtifactService`] stores them: [`MemoryArtifacts`] in memory, and [`FileArtifacts`] in a
//! folder that google-adk's `FileArtifactService` reads and writes too. A name that begins with
//! `user:` belongs to the user and is seen by all their sessions; every other name belongs to one
//! session.
//!
//! ```
//! use sessile_artifact::{ArtifactKey, ArtifactService, MemoryArtifacts, NewArtifact};
//! use sessile_session::{Part, SessionKey};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let artifacts = MemoryArtifacts::new();
//! let monday = SessionKey::new("shop", "ada", "monday")?;
//! let tuesday = SessionKey::new("shop", "ada", "tuesday")?;
//!
//! let wishes = ArtifactKey::new(&monday, "user:wishes.txt");
//! artifacts.save(&wishes, NewArtifact::new(Part::text("a bicycle"))).await?;
//! let second = artifacts.save(&wishes, NewArtifact::new(Part::text("two bicycles"))).await?;
//! assert_eq!(second.version, 1);
//!
//! let found = artifacts.load(&ArtifactKey::new(&tuesday, "user:wishes.txt"), None).await?;
//! assert_eq!(found, Some(Part::text("two bicycles")));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

mod content;
mod error;
mod file;
mod memory;
mod path;
mod reference;
mod rewind;
mod service;

pub use content::as_text;
pub use error::ArtifactError;
pub use file::FileArtifacts;
pub use memory::MemoryArtifacts;
pub use rewind::{RewindError, rewind};
pub use service::{ArtifactKey, ArtifactService, ArtifactVersion, NewArtifact};
