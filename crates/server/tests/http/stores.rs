//! Stores that do not work.

use async_trait::async_trait;
use sessile_session::{
    Address, Appended, Commit, EventWindow, ListQuery, NewSession, ScopeKey, SessionError, SessionKey,
    StateMap, Store, StoredPage, StoredSession, Version,
};
use sessile_state::Delta;

/// Cannot be reached; its errors hold what nobody should see.
pub(crate) struct Broken;

/// Never answers.
pub(crate) struct Stuck;

trait Fate: Send + Sync {
    fn fate<T: Send>(&self) -> impl Future<Output = Result<T, SessionError>> + Send;
}

impl Fate for Broken {
    async fn fate<T: Send>(&self) -> Result<T, SessionError> {
        let source = "connection refused: postgresql://me:password@db".into();
        Err(SessionError::Backend { action: "reach the store", source })
    }
}

impl Fate for Stuck {
    async fn fate<T: Send>(&self) -> Result<T, SessionError> {
        std::future::pending().await
    }
}

macro_rules! store {
    ($type:ty) => {
        #[async_trait]
        impl Store for $type {
            async fn create(&self, _: NewSession) -> Result<StoredSession, SessionError> {
                self.fate().await
            }
            async fn get(
                &self,
                _: &SessionKey,
                _: EventWindow,
            ) -> Result<Option<StoredSession>, SessionError> {
                self.fate().await
            }
            async fn list(&self, _: &ListQuery) -> Result<StoredPage, SessionError> {
                self.fate().await
            }
            async fn delete(&self, _: &SessionKey, _: Option<Version>) -> Result<bool, SessionError> {
                self.fate().await
            }
            async fn append(&self, _: Commit) -> Result<Appended, SessionError> {
                self.fate().await
            }
            async fn scope_state(&self, _: &ScopeKey) -> Result<StateMap, SessionError> {
                self.fate().await
            }
            async fn write_scope(&self, _: &ScopeKey, _: Delta, _: f64) -> Result<(), SessionError> {
                self.fate().await
            }
            async fn addresses(&self, _: Option<&Address>, _: usize) -> Result<Vec<Address>, SessionError> {
                self.fate().await
            }
        }
    };
}

store!(Broken);
store!(Stuck);
